// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.nereid.repository.Fakes.FakeClock;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.repository.RepositorySource.Mode;
import io.nereid.repository.RepositorySource.Options;
import io.nereid.repository.layout.LocalFileSystems;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a poll of a repository reads, and which changes it detects. */
class RepositoryPollingTest {
    private static final Options POLL = Options.DEFAULT.withMode(Mode.POLL).withPollInterval(Duration.ofHours(1));
    private static final long LONG_AGO = 1_700_000_000_000L;

    @TempDir
    Path root;

    @TempDir
    Path elsewhere;

    private final FakeClock clock = new FakeClock();
    private final Recorder target = new Recorder();
    private RepositorySource source = source();

    private RepositorySource source() {
        return new RepositorySource(
                root == null ? List.of() : List.of(root),
                List.of(Fakes.ONNX, Fakes.IDENTITY),
                Fakes.FACTORY,
                POLL,
                clock);
    }

    private void start() {
        Fakes.touch(root, LONG_AGO);
        Fakes.touch(elsewhere, LONG_AGO);
        source = source();
        source.start(target);
    }

    @AfterEach
    void close() {
        source.close();
    }

    private Path model(String name) {
        Fakes.write(root.resolve(name + "/config.pbtxt"), "max_batch_size: 4");
        return Fakes.write(root.resolve(name + "/1/model.onnx"), "v1");
    }

    private void settle() {
        source.poll();
        clock.advance(Duration.ofSeconds(1));
        source.poll();
    }

    private long reads(Runnable work) {
        long before = source.polling().reads();
        work.run();
        return source.polling().reads() - before;
    }

    private static void link(Path link, Path to) {
        try {
            Files.createSymbolicLink(link, to);
        } catch (IOException | UnsupportedOperationException e) {
            assumeThat(e).as("links are supported").isNull();
        }
    }

    @Test
    void aPollOfAnUnchangedRepositoryReadsNothing() {
        for (int i = 0; i < 200; i++) {
            model("m" + i);
        }
        Fakes.write(root.resolve("no-model/readme.txt"), "x");
        start();
        assertThat(target.all).hasSize(200);
        assertThat(reads(() -> source.poll())).isZero();
        assertThat(reads(() -> source.poll())).isZero();
        assertThat(target.all).hasSize(200);
    }

    @Test
    void onlyTheChangedModelIsRead() {
        for (int i = 0; i < 200; i++) {
            model("m" + i);
        }
        start();
        Fakes.write(root.resolve("m7/config.pbtxt"), "max_batch_size: 8");
        Fakes.touch(root.resolve("m7/config.pbtxt"), LONG_AGO + 10_000);
        assertThat(reads(this::settle)).isEqualTo(2);
        assertThat(target.last("m7").loader().config().maxBatchSize()).isEqualTo(8);
        assertThat(reads(() -> source.poll())).isZero();
    }

    @Test
    void aNewModelAndARemovedModelAreSeen() {
        for (int i = 0; i < 200; i++) {
            model("m" + i);
        }
        start();
        model("new");
        Fakes.delete(root.resolve("m3"));
        settle();
        assertThat(target.last("new").loadable()).containsExactly(1L);
        assertThat(target.last("m3").versions()).isEmpty();
        assertThat(target.all).hasSize(202);
    }

    @Test
    void aNewVersionIsSeen() {
        model("a");
        start();
        Fakes.write(root.resolve("a/2/model.onnx"), "v2");
        settle();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void aFileOfTheSameSizeAndTimeThatReplacesAnotherIsSeen() throws IOException {
        assumeThat(LocalFileSystems.contains(root)).isTrue();
        Path file = model("a");
        start();
        Path other = Fakes.write(root.resolve("a/1/.upload"), "v2");
        Files.setLastModifiedTime(other, FileTime.fromMillis(LONG_AGO));
        Files.move(other, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        Fakes.touch(root, LONG_AGO);
        settle();
        assertThat(target.count("a")).isEqualTo(2);
    }

    @Test
    void aConfigMapThatKubernetesUpdatesIsSeen() throws IOException {
        Path volume = root.resolve("a");
        Fakes.write(volume.resolve("1/model.onnx"), "v1");
        Fakes.write(volume.resolve("..2026_1/config.pbtxt"), "max_batch_size: 4");
        link(volume.resolve("..data"), Path.of("..2026_1"));
        link(volume.resolve("config.pbtxt"), Path.of("..data/config.pbtxt"));
        start();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(4);
        Fakes.write(volume.resolve("..2026_2/config.pbtxt"), "max_batch_size: 8");
        Fakes.touch(volume.resolve("..2026_2"), LONG_AGO);
        link(volume.resolve("..data_tmp"), Path.of("..2026_2"));
        Files.move(
                volume.resolve("..data_tmp"),
                volume.resolve("..data"),
                StandardCopyOption.REPLACE_EXISTING,
                StandardCopyOption.ATOMIC_MOVE);
        settle();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(8);
    }

    @Test
    void aModelThatIsALinkElsewhereIsFollowed() throws IOException {
        assumeThat(LocalFileSystems.contains(root)).isTrue();
        Fakes.write(elsewhere.resolve("one/1/model.onnx"), "v1");
        Fakes.write(elsewhere.resolve("two/1/model.onnx"), "v2");
        link(elsewhere.resolve("current"), elsewhere.resolve("one"));
        link(root.resolve("a"), elsewhere.resolve("current"));
        start();
        assertThat(target.last("a").loadable()).containsExactly(1L);
        Files.delete(elsewhere.resolve("current"));
        link(elsewhere.resolve("current"), elsewhere.resolve("two"));
        settle();
        assertThat(target.count("a")).isEqualTo(2);
    }

    @Test
    void aDirectoryThatCannotBeReadDoesNotStopTheOthers() throws IOException {
        model("a");
        model("b");
        start();
        Fakes.delete(root.resolve("a/1"));
        link(root.resolve("a/1"), Path.of("1"));
        Fakes.write(root.resolve("b/2/model.onnx"), "v2");
        settle();
        assertThat(target.last("b").loadable()).containsExactly(2L);
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void twoChangesWithinTheResolutionOfTimesAreSeen() {
        model("a");
        start();
        Path config = root.resolve("a/config.pbtxt");
        long now = System.currentTimeMillis() + 60_000;
        Fakes.write(config, "max_batch_size: 5");
        Fakes.touch(config, now);
        settle();
        Fakes.write(config, "max_batch_size: 6");
        Fakes.touch(config, now);
        settle();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(6);
    }

    @Test
    void aFileThatIsAModelIsSeenWithTheFilesThatBelongToIt() {
        Fakes.write(root.resolve("bare.onnx"), "v1");
        model("a");
        start();
        assertThat(target.count("bare")).isEqualTo(1);
        Fakes.write(root.resolve("bare.onnx"), "version 2");
        settle();
        assertThat(target.count("bare")).isEqualTo(2);
        Fakes.write(root.resolve("bare.onnx.data"), "weights");
        settle();
        assertThat(target.count("bare")).isEqualTo(3);
    }

    @Test
    void anEnsembleIsReadAgainWhenItsMemberAppears() {
        Fakes.write(root.resolve("e/config.pbtxt"), """
                platform: "ensemble"
                input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
                output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
                ensemble_scheduling { step [ {
                  model_name: "member" model_version: -1
                  input_map { key: "x" value: "IN" } output_map { key: "y" value: "OUT" } } ] }
                """);
        model("a");
        start();
        assertThat(target.last("e").loadable()).isEmpty();
        model("member");
        settle();
        settle();
        assertThat(target.last("e").loadable()).containsExactly(1L);
    }

    @Test
    void aDirectoryBecomesAModel() {
        Fakes.write(root.resolve("a/1/model.onnx"), "v1");
        Fakes.write(root.resolve("later/1"), "not a directory");
        start();
        assertThat(target.all).hasSize(1);
        Fakes.write(root.resolve("later/2/model.onnx"), "v2");
        settle();
        assertThat(target.last("later").loadable()).containsExactly(2L);
    }

    @Test
    void aRootThatIsAModelIsPolled() {
        Fakes.write(root.resolve("1/model.onnx"), "v1");
        start();
        String name = target.all.get(0).model();
        Fakes.write(root.resolve("2/model.onnx"), "v2");
        settle();
        assertThat(target.last(name).loadable()).containsExactly(2L);
        assertThat(source.polling().polls()).isEqualTo(2);
    }
}
