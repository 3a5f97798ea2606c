// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.Fakes.FakeClock;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.repository.Fakes.Recorder.Emission;
import io.nereid.repository.RepositorySource.Mode;
import io.nereid.repository.RepositorySource.Options;
import io.nereid.spi.Loader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ensembles, named configurations, checksums, and loads with overridden configurations and files. */
class ModelSetTest {
    private static final Options EXPLICIT =
            Options.DEFAULT.withMode(Mode.EXPLICIT).withSettle(Duration.ZERO);
    private static final Options POLL = Options.DEFAULT
            .withMode(Mode.POLL)
            .withPollInterval(Duration.ofHours(1))
            .withSettle(Duration.ZERO);

    @TempDir
    Path root;

    @TempDir
    Path scratch;

    private final FakeClock clock = new FakeClock();
    private final Recorder target = new Recorder();
    private RepositorySource source = source(POLL);

    private RepositorySource source(Options options) {
        return new RepositorySource(
                root == null ? List.of() : List.of(root),
                List.of(Fakes.ONNX, Fakes.IDENTITY),
                Fakes.FACTORY,
                scratch == null ? options : options.withScratch(scratch),
                clock);
    }

    private void start(Options options) {
        source = source(options);
        source.start(target);
    }

    @AfterEach
    void close() {
        source.close();
    }

    private void model(String name) {
        Fakes.write(root.resolve(name + "/1/model.onnx"), "v1");
    }

    private void ensemble(String name, String... members) {
        Fakes.write(root.resolve(name + "/config.pbtxt"), ensembleText(members));
    }

    /** A chain through the members. */
    private static String ensembleText(String... members) {
        StringBuilder b = new StringBuilder("platform: 'ensemble' ensemble_scheduling {");
        for (int i = 0; i < members.length; i++) {
            String in = i == 0 ? "IN" : "t" + i;
            String out = i == members.length - 1 ? "OUT" : "t" + (i + 1);
            b.append(" step { model_name: '").append(members[i]).append("' model_version: -1 ");
            b.append("input_map { key: 'x' value: '").append(in).append("' } ");
            b.append("output_map { key: 'y' value: '").append(out).append("' } }");
        }
        return b.append(" } input { name: 'IN' data_type: TYPE_FP32 dims: 1 }")
                .append(" output { name: 'OUT' data_type: TYPE_FP32 dims: 1 }")
                .toString();
    }

    private List<String> emitted() {
        return target.all.stream().map(Emission::model).toList();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private long scratchFolders() throws IOException {
        try (Stream<Path> children = Files.list(scratch)) {
            return children.count();
        }
    }

    // ---- ensembles ----

    @Test
    void anEnsembleIsEmittedAfterItsMembersWithOrWithoutAVersionDirectory() throws IOException {
        model("z");
        ensemble("a", "m", "z");
        ensemble("m", "z");
        Files.createDirectories(root.resolve("m/3"));
        start(POLL);
        assertThat(emitted()).containsExactly("z", "m", "a");
        assertThat(target.last("a").loadable()).containsExactly(1L);
        assertThat(target.last("m").loadable()).containsExactly(3L);
        assertThat(target.last("a").loader().config().platform()).isEqualTo("ensemble");
        assertThat(target.last("a").loader().dependencies()).containsExactly("m", "z");
    }

    @Test
    void aCircleOfEnsemblesIsRefusedByName() {
        ensemble("a", "b");
        ensemble("b", "a");
        ensemble("c", "c");
        start(POLL);
        assertThat(target.last("a").error()).contains("circular dependency between ensembles: a -> b -> a");
        assertThat(target.last("b").error()).contains("circular dependency between ensembles: b -> a -> b");
        assertThat(target.last("c").error()).contains("circular dependency between ensembles: c -> c");
        model("b2");
        ensemble("b", "b2");
        source.poll();
        assertThat(target.last("a").loadable()).containsExactly(1L);
        assertThat(target.last("b").loadable()).containsExactly(1L);
    }

    @Test
    void anEnsembleOfAModelThatIsNotThereIsTakenUpWhenItComes() {
        ensemble("e", "m", "n");
        model("m");
        start(POLL);
        assertThat(target.last("e").error())
                .contains("ensemble 'e' contains models that are not available or ambiguous: n");
        model("n");
        source.poll();
        assertThat(target.last("e").loadable()).containsExactly(1L);
        assertThat(emitted()).containsSubsequence("n", "e");
    }

    @Test
    void anEnsembleGoesOnWhenAMemberLeavesTheRepository() {
        ensemble("e", "m");
        model("m");
        model("other");
        start(POLL);
        Fakes.delete(root.resolve("m"));
        source.poll();
        assertThat(target.last("m").versions()).isEmpty();
        assertThat(target.last("e").loadable()).containsExactly(1L);
        assertThat(source.problems()).anyMatch(p -> p.message().endsWith("not available or ambiguous: m"));
    }

    @Test
    void loadingAnEnsembleLoadsWhatItIsMadeOf() {
        model("m");
        model("n");
        model("unrelated");
        ensemble("inner", "m");
        ensemble("outer", "inner", "n");
        start(EXPLICIT);
        assertThat(source.load("outer")).hasSize(1);
        assertThat(emitted()).containsExactly("m", "inner", "n", "outer");
        source.load("outer");
        // Unchanged members are not reloaded.
        assertThat(target.count("m")).isEqualTo(1);
        assertThat(target.count("outer")).isEqualTo(2);
        Fakes.write(root.resolve("m/1/model.onnx"), "changed");
        source.load("outer");
        assertThat(target.count("m")).isEqualTo(2);
    }

    @Test
    void startModelsBringTheirMembers() {
        model("m");
        model("unrelated");
        ensemble("e", "m");
        start(EXPLICIT.withStartModels(List.of("e")));
        assertThat(emitted()).containsExactly("m", "e");
    }

    @Test
    void unloadingWithDependentsTakesWhatWasLoadedForIt() {
        model("m");
        model("n");
        model("asked");
        ensemble("inner", "m", "asked");
        ensemble("outer", "inner", "n");
        ensemble("second", "n");
        start(EXPLICIT);
        source.load("asked");
        source.load("outer");
        source.load("second");
        target.all.clear();
        source.unload("outer", true);
        assertThat(emitted()).containsExactly("outer", "inner", "m");
        assertThat(target.all).allMatch(e -> e.versions().isEmpty());
        target.all.clear();
        source.unload("second", true);
        assertThat(emitted()).containsExactly("second", "n");
        // Requested by name, so it stays.
        source.poll();
        assertThat(target.all).noneMatch(e -> e.model().equals("asked"));
    }

    @Test
    void unloadingWithoutDependentsLeavesMembersServing() {
        model("m");
        ensemble("e", "m");
        start(EXPLICIT);
        source.load("e");
        source.unload("e");
        assertThat(target.last("e").versions()).isEmpty();
        assertThat(target.last("m").loadable()).containsExactly(1L);
    }

    @Test
    void whereEnsemblesAreNotServedTheyFailOneByOne() {
        ensemble("e", "m");
        model("m");
        source = new RepositorySource(List.of(root), List.of(Fakes.ONNX), Fakes::loader, POLL, clock);
        source.start(target);
        assertThat(target.last("e").error()).contains("model 'e' is an ensemble, which this server does not run");
        assertThat(target.last("m").loadable()).containsExactly(1L);
    }

    // ---- named configurations ----

    @Test
    void aNamedConfigurationCountsWhereThereIsOneAndIsWatched() {
        model("a");
        model("b");
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 1");
        Fakes.write(root.resolve("a/configs/small.pbtxt"), "max_batch_size: 2");
        Fakes.write(root.resolve("b/config.pbtxt"), "max_batch_size: 3");
        Fakes.write(root.resolve("b/configs/other.pbtxt"), "max_batch_size: 4");
        start(POLL.withConfigName("small"));
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(2);
        assertThat(target.last("b").loader().config().maxBatchSize()).isEqualTo(3);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 8");
        source.poll();
        assertThat(target.count("a")).isEqualTo(1);
        Fakes.write(root.resolve("a/configs/small.pbtxt"), "max_batch_size: 16");
        source.poll();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(16);
        assertThatThrownBy(() -> POLL.withConfigName("../x")).hasMessageContaining("invalid configuration name");
    }

    // ---- checksums ----

    @ParameterizedTest
    @CsvSource({
        "MD5:1/model.onnx, 1b267619c4812cc46ee281747884ca50, ",
        "MD5:1/model.onnx, 1B267619C4812CC46EE281747884CA50, ",
        "SHA256:1/model.onnx, fb04dcb6970e4c3d1873de51fd5a50d7bb46b3383113602665c350ec40b5f990, ",
        "MD5:1/model.onnx, 00, Mismatched MD5 hash for file '1/model.onnx'",
        "SHA256:1/model.onnx, 00, Mismatched SHA256 hash for file '1/model.onnx'",
        "CRC:1/model.onnx, 00, does not know the parameter 'CRC:1/model.onnx'",
        "MD5:../b/1/model.onnx, 00, lies outside of",
        "MD5:1/absent, 00, cannot read file '1/absent'"
    })
    void filesMustHaveTheSumsThatTheConfigurationGives(String key, String sum, String error) {
        Fakes.write(root.resolve("a/1/model.onnx"), "v2");
        Fakes.write(root.resolve("b/1/model.onnx"), "v2");
        Fakes.write(
                root.resolve("a/config.pbtxt"),
                "model_repository_agents { agents { name: 'checksum' parameters { key: '" + key + "' value: '" + sum
                        + "' } } }");
        start(POLL);
        if (error == null) {
            assertThat(target.last("a").loadable()).containsExactly(1L);
        } else {
            assertThat(target.last("a").error()).contains(error);
        }
    }

    @Test
    void anotherAgentIsRefusedByName() {
        model("a");
        Fakes.write(root.resolve("a/config.pbtxt"), "model_repository_agents { agents { name: 'decrypt' } }");
        start(POLL);
        assertThat(target.last("a").error()).contains("unknown repository agent 'decrypt' for model 'a'");
    }

    // ---- overridden configurations and files ----

    @Test
    void aConfigurationMaySupersedeTheStoredOneUntilTheNextPlainLoad() {
        model("a");
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 1");
        start(POLL);
        String before = target.last("a").loader().fingerprint();
        assertThat(source.load("a", "{\"max_batch_size\": 7, \"backend\": \"onnxruntime\"}", Map.of()))
                .hasSize(1);
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(7);
        assertThat(target.last("a").loader().fingerprint()).isNotEqualTo(before);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 22");
        source.poll();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(7);
        source.load("a");
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(22);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 333");
        source.poll();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(333);
    }

    @Test
    void filesMakeAModelThatNeedNotBeInTheRepository() throws Exception {
        model("a");
        start(EXPLICIT);
        var versions = source.load(
                "new",
                "{\"backend\": \"onnxruntime\"}",
                Map.of("file:4/model.onnx", bytes("weights"), "labels.txt", bytes("cat")));
        assertThat(versions).singleElement().matches(id -> id.version() == 4);
        Loader loader =
                Objects.requireNonNull(target.last("new").versions().get(0).loader());
        Path directory = Fakes.FACTORY.directory(loader.id());
        assertThat(directory).startsWith(scratch).hasFileName("4");
        assertThat(directory.resolve("model.onnx")).hasContent("weights");
        assertThat(directory.resolveSibling("labels.txt")).hasContent("cat");
        assertThat(source.names()).containsExactly("a", "new");
        source.poll();
        assertThat(target.count("new")).isEqualTo(1);
        var unused = loader.load();
        source.unload("new");
        // In use until it is unloaded.
        assertThat(directory.resolve("model.onnx")).exists();
        loader.unload();
        assertThat(scratchFolders()).isZero();
        assertThatThrownBy(() -> source.load("new")).hasMessageContaining("failed to poll from model repository");
    }

    @Test
    void theNextLoadRemovesTheFilesOfTheOneBefore() throws Exception {
        model("a");
        start(EXPLICIT);
        var unused = source.load("a", "{}", Map.of("1/model.onnx", bytes("one")));
        unused = source.load("a", "{}", Map.of("2/model.onnx", bytes("two")));
        assertThat(scratchFolders()).isEqualTo(1);
        assertThat(target.last("a").loadable()).containsExactly(2L);
        unused = source.load("a");
        assertThat(scratchFolders()).isZero();
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void closingRemovesTheFiles() throws Exception {
        start(EXPLICIT);
        var unused = source.load("a", "{}", Map.of("1/model.onnx", bytes("one")));
        source.close();
        assertThat(scratchFolders()).isZero();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "../x|Invalid file parameter 'file:../x' with normalized path '../x' must stay within model directory.",
                "1/../../b/x|Invalid file parameter 'file:1/../../b/x' with normalized path '../b/x' must stay within"
                        + " model directory.",
                "/../etc/passwd|must stay within model directory.",
                ".|must stay within model directory.",
                "1|Invalid file parameter 'file:1/model.onnx', directory has been created as a file",
            })
    void filesOutsideTheModelAreRefused(String path, String text) throws Exception {
        model("a");
        start(EXPLICIT);
        source.load("a");
        assertThatThrownBy(() -> source.load("a", "{}", Map.of(path, bytes("x"), "1/model.onnx", bytes("x"))))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining(text);
        assertThat(scratchFolders()).isZero();
        assertThat(target.count("a")).isEqualTo(1);
    }

    @Test
    void whatIsWrongWithAnOverrideIsSaidAndNothingChanges() throws Exception {
        model("a");
        start(EXPLICIT);
        source.load("a");
        assertThatThrownBy(() -> source.load("a", null, Map.of("1/model.onnx", bytes("x"))))
                .hasMessage("Load parameter 'config' must be specified for model file override");
        assertThatThrownBy(() -> source.load("a", "{\"nonsense\": 1}", Map.of()))
                .hasMessageStartingWith("Invalid config override: ")
                .hasMessageContaining("nonsense");
        assertThatThrownBy(() -> source.load("a", "{", Map.of())).hasMessageStartingWith("Invalid config override: ");
        assertThatThrownBy(() -> source.load("a", "{}", Map.of("other.txt", bytes("x"))))
                .hasMessageContaining("load failed for model 'a': ")
                .hasMessageContaining("the versions loaded before keep serving");
        assertThatThrownBy(() -> source.load("b", "{}", Map.of())).hasMessageContaining("failed to load 'b'");
        assertThatThrownBy(() -> source.load("../b", "{}", Map.of("1/x", bytes("x"))))
                .hasMessageContaining("path traversal");
        assertThat(scratchFolders()).isZero();
        assertThat(target.count("a")).isEqualTo(1);
    }

    @Test
    void anOverrideMayBeAnEnsemble() {
        model("m");
        ensemble("e", "m");
        start(EXPLICIT);
        var unused = source.load(
                "e",
                "{\"platform\": \"ensemble\", \"input\": [{\"name\": \"IN\", \"data_type\": \"TYPE_FP32\", \"dims\":"
                        + " [2]}],\"output\": [{\"name\": \"OUT\", \"data_type\": \"TYPE_FP32\", \"dims\":"
                        + " [2]}],\"ensemble_scheduling\": {\"step\": [{\"model_name\": \"m\", \"model_version\":"
                        + " -1,\"input_map\": {\"x\": \"IN\"}, \"output_map\": {\"y\": \"OUT\"}}]}}",
                Map.of());
        assertThat(emitted()).containsExactly("m", "e");
    }
}
