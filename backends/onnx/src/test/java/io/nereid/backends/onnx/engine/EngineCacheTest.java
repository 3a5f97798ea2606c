// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Engines are kept for the next load, whatever happens to the process that built them; files stand for TensorRT's. */
class EngineCacheTest {
    private static final String ENGINE = "TensorrtExecutionProvider_graph_0_sm86.engine";

    @TempDir
    Path root;

    private static String build(Path directory, String content) throws IOException {
        Files.writeString(directory.resolve(ENGINE), content);
        return content;
    }

    private List<String> names() throws IOException {
        try (Stream<Path> entries = Files.list(root)) {
            return entries.map(path -> path.getFileName().toString()).sorted().toList();
        }
    }

    @Test
    void anEngineIsFoundByTheNextLoadAndRunsAddToIt() throws Exception {
        EngineCache.Opened<String> first = EngineCache.open(root, "k", directory -> build(directory, "one"));
        assertThat(root.resolve("k").resolve(ENGINE)).hasContent("one");
        // While the first session is open, another one of the same model finds the engine, and writes elsewhere.
        EngineCache.Opened<String> second = EngineCache.open(root, "k", directory -> {
            String found = Files.readString(directory.resolve(ENGINE));
            build(directory, "two");
            Files.writeString(directory.resolve("run.engine"), "of a run");
            return found;
        });
        assertThat(second.session()).isEqualTo("one");
        second.cache().close();
        first.cache().close();
        assertThat(root.resolve("k").resolve("run.engine")).hasContent("of a run");
        assertThat(names()).containsExactly("k", "k.lock");
        assertThat(EngineCache.<List<String>>open(root, "other", directory -> {
                            try (Stream<Path> entries = Files.list(directory)) {
                                return entries.map(path -> path.getFileName().toString())
                                        .toList();
                            }
                        })
                        .session())
                .containsExactly("in-use.lock");
    }

    @Test
    void aFailedBuildLeavesNothing() throws Exception {
        assertThatThrownBy(() -> EngineCache.open(root, "k", directory -> {
                    build(directory, "half");
                    throw new IOException("the build failed");
                }))
                .hasMessage("the build failed");
        assertThat(names()).containsExactly("k", "k.lock");
        assertThat(root.resolve("k")).isEmptyDirectory();
        Path file = Files.writeString(root.resolve("file"), "");
        assertThatThrownBy(() -> EngineCache.open(file, "k", directory -> ""))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("cannot be used");
    }

    @Test
    void theDirectoryOfAKilledProcessIsRemovedAndThatOfALivingOneIsNot() throws Exception {
        Path dead = Files.createDirectories(root.resolve(".work-k-dead"));
        build(dead, "half");
        Path living = Files.createDirectories(root.resolve(".work-k-living"));
        try (FileChannel channel = FileChannel.open(
                        living.resolve("in-use.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.lock()) {
            assertThat(lock.isValid()).isTrue();
            EngineCache.open(root, "k", directory -> "").cache().close();
        }
        assertThat(names()).containsExactly(".work-k-living", "k", "k.lock");
    }

    @Test
    void oneBuildsAndTheOtherWaitsForIt() throws Exception {
        CountDownLatch building = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        CompletableFuture<Void> first = CompletableFuture.runAsync(
                () -> {
                    try {
                        EngineCache.open(root, "k", directory -> {
                                    building.countDown();
                                    goOn.await();
                                    return build(directory, "slow");
                                })
                                .cache()
                                .close();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                },
                task -> Threads.named("first").newThread(task).start());
        assertThat(building.await(10, TimeUnit.SECONDS)).isTrue();
        // A process takes the lock of the file; without it, an engine that is half built would be used.
        Process other = new ProcessBuilder(
                        "python3",
                        "-c",
                        "import fcntl,sys\nf=open(sys.argv[1],'w')\ntry:\n fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\n"
                                + " print('free')\nexcept OSError:\n print('locked')",
                        root.resolve("k.lock").toString())
                .start();
        assertThat(new String(other.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                .isEqualTo("locked\n");
        goOn.countDown();
        EngineCache.Opened<String> second =
                EngineCache.open(root, "k", directory -> Files.readString(directory.resolve(ENGINE)));
        assertThat(second.session()).isEqualTo("slow");
        second.cache().close();
        first.get(10, TimeUnit.SECONDS);
    }

    @Test
    void theKeyCoversTheWeightsAndWhatTheEngineIsFor() throws Exception {
        Path model = Files.writeString(root.resolve("model.onnx"), "graph");
        Path weights = Files.writeString(root.resolve("weights"), "1");
        List<Path> files = List.of(model, weights);
        String key = EngineCache.key(files, List.of("A10 8.6", "trt_fp16_enable=1"));
        assertThat(key).hasSize(32).isEqualTo(EngineCache.key(files, List.of("A10 8.6", "trt_fp16_enable=1")));
        assertThat(EngineCache.key(files, List.of("H100 9.0", "trt_fp16_enable=1")))
                .isNotEqualTo(key);
        Files.writeString(weights, "2");
        assertThat(EngineCache.key(files, List.of("A10 8.6", "trt_fp16_enable=1")))
                .isNotEqualTo(key);
    }
}
