// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.repository.Fakes;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RepositoryLayoutTest {
    @TempDir
    Path root;

    private final RepositoryLayout layout = new RepositoryLayout(List.of(Fakes.ONNX, Fakes.IDENTITY));

    private StoredModel one(Path place) {
        List<ModelEntry> models = layout.list(place).models();
        assertThat(models).hasSize(1);
        return layout.read(models.get(0));
    }

    private StoredModel oneWell(Path place) {
        StoredModel model = one(place);
        assertThat(model.problems()).isEmpty();
        return model;
    }

    private static List<Long> versions(StoredModel model) {
        return model.versions().stream().map(Version::version).toList();
    }

    private static String message(StoredModel model) {
        assertThat(model.problems()).hasSize(1);
        return model.problems().get(0).message();
    }

    @Test
    void aRepositoryHoldsAModelInEachDirectory() {
        Fakes.write(root.resolve("b/1/model.onnx"), "x");
        Fakes.write(root.resolve("a/config.pbtxt"), "");
        Fakes.write(root.resolve(".hidden/1/model.onnx"), "x");
        Fakes.write(root.resolve("README.md"), "x");
        assertThat(layout.list(root).models()).extracting(ModelEntry::name).containsExactly("a", "b");
    }

    @Test
    void aModelNeedsNoConfiguration() {
        Fakes.write(root.resolve("m/3/model.onnx"), "x");
        Fakes.write(root.resolve("m/10/model.onnx"), "x");
        StoredModel model = oneWell(root);
        assertThat(model.backend()).isSameAs(Fakes.ONNX);
        assertThat(model.config().platform()).isEqualTo("onnxruntime_onnx");
        assertThat(model.config().backend()).isEqualTo("onnxruntime");
        assertThat(versions(model)).containsExactly(3L, 10L);
        assertThat(model.aspired()).extracting(Version::version).containsExactly(10L);
    }

    @Test
    void aFileOnItsOwnIsAModel() {
        Path file = Fakes.write(root.resolve("my-model.onnx"), "x");
        StoredModel model = oneWell(file);
        assertThat(model.config().name()).isEqualTo("my-model");
        assertThat(model.config().modelFile()).isEqualTo("my-model.onnx");
        assertThat(model.versions()).extracting(Version::directory).containsExactly(root.toAbsolutePath());
        assertThat(versions(model)).containsExactly(1L);
    }

    @Test
    void aFileOfAnUnknownKindIsRefused() {
        Path file = Fakes.write(root.resolve("my-model.txt"), "x");
        assertThat(layout.list(file).problems())
                .singleElement()
                .matches(p -> p.message().contains("no backend"));
    }

    @Test
    void filesInARepositoryAreModelsToo() {
        Fakes.write(root.resolve("a.onnx"), "x");
        Fakes.write(root.resolve("b.onnx"), "x");
        assertThat(layout.list(root).models()).extracting(ModelEntry::name).containsExactly("a", "b");
    }

    @Test
    void aDirectoryWithVersionsOnItsOwnIsAModel() {
        Fakes.write(root.resolve("resnet/1/model.onnx"), "x");
        StoredModel model = oneWell(root.resolve("resnet"));
        assertThat(model.config().name()).isEqualTo("resnet");
        assertThat(versions(model)).containsExactly(1L);
    }

    @Test
    void aModelOnItsOwnMayBearTheNameOfItsConfiguration() {
        Fakes.write(root.resolve("download/config.pbtxt"), "name: \"resnet\"");
        Fakes.write(root.resolve("download/1/model.onnx"), "x");
        assertThat(oneWell(root.resolve("download")).config().name()).isEqualTo("resnet");
    }

    @Test
    void aModelFileMayLieDirectlyInTheModelsDirectory() {
        Fakes.write(root.resolve("m/model.onnx"), "x");
        StoredModel model = oneWell(root);
        assertThat(model.entry().name()).isEqualTo("m");
        assertThat(versions(model)).containsExactly(1L);
        assertThat(model.versions().get(0).directory()).isEqualTo(root.resolve("m"));
        assertThat(oneWell(root.resolve("m")).entry().name()).isEqualTo("m");
    }

    @Test
    void theOnlyFileOfAKindIsTheModel() {
        Fakes.write(root.resolve("m/1/resnet50.onnx"), "x");
        assertThat(oneWell(root).config().modelFile()).isEqualTo("resnet50.onnx");
        Fakes.write(root.resolve("m/1/other.onnx"), "x");
        assertThat(message(one(root))).contains("Could not determine backend for model 'm'");
    }

    @Test
    void aRepositoryMayHoldAModelNamedByANumber() {
        Fakes.write(root.resolve("1/config.pbtxt"), "backend: \"identity\"");
        Fakes.write(root.resolve("2/1/model.onnx"), "x");
        assertThat(layout.list(root).models()).extracting(ModelEntry::name).containsExactly("1", "2");
    }

    @ParameterizedTest
    @ValueSource(strings = {"01", "0", "-2", "3.bak", "99999999999999999999", "v1"})
    void aDirectoryThatIsNoVersionIsPassedOverWithAWarning(String name) {
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Fakes.write(root.resolve("m/" + name + "/model.onnx"), "x");
        StoredModel model = one(root);
        assertThat(versions(model)).containsExactly(1L);
        assertThat(message(model)).contains("'" + name + "' is not a version");
        assertThat(model.hasErrors()).isFalse();
    }

    @Test
    void reservedDirectoriesAreNotVersions() {
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Fakes.write(root.resolve("m/warmup/x"), "x");
        Fakes.write(root.resolve("m/initial_state/x"), "x");
        Fakes.write(root.resolve("m/configs/x"), "x");
        assertThat(versions(oneWell(root))).containsExactly(1L);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "backend: \"onnxruntime\"",
                "platform: \"onnxruntime_onnx\"",
                "backend: \"onnxruntime_onnx\"",
                "platform: \"onnxruntime_onnx\" backend: \"onnxruntime\""
            })
    void backendsAreFoundUnderAllTheirNames(String config) {
        Fakes.write(root.resolve("m/config.pbtxt"), config);
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        assertThat(oneWell(root).backend()).isSameAs(Fakes.ONNX);
    }

    @Test
    void anUnknownBackendIsToldWithTheNearestName() {
        Fakes.write(root.resolve("m/config.pbtxt"), "\nbackend: \"onnxruntim\"");
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        assertThat(one(root).problems().get(0).toString())
                .endsWith("config.pbtxt:2:10: unknown backend 'onnxruntim' for m (did you mean 'onnxruntime'?)");
    }

    @Test
    void anUnknownPlatformIsRefused() {
        Fakes.write(root.resolve("m/config.pbtxt"), "platform: \"tensorrt_plan\"");
        Fakes.write(root.resolve("m/1/model.plan"), "x");
        assertThat(message(one(root))).isEqualTo("unexpected platform type 'tensorrt_plan' for m");
    }

    @Test
    void aPlatformOfAnotherBackendIsRefused() {
        Fakes.write(root.resolve("m/config.pbtxt"), "platform: \"onnxruntime_onnx\" backend: \"identity\"");
        Fakes.write(root.resolve("m/1/x"), "x");
        assertThat(message(one(root)))
                .isEqualTo("unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, identity");
    }

    @Test
    void aModelOfAnAbsentTechnologyIsToldWhatItNeeds() {
        Fakes.write(root.resolve("m/1/model.pt"), "x");
        assertThat(one(root).problems().get(0).remedy()).contains("needs the backend 'pytorch'");
    }

    @Test
    void aDirectoryNameMayEndInTheBackend() {
        Fakes.write(root.resolve("m.onnxruntime/1/model.onnxruntime"), "x");
        StoredModel model = oneWell(root);
        assertThat(model.backend()).isSameAs(Fakes.ONNX);
        assertThat(model.config().modelFile()).isEqualTo("model.onnxruntime");
    }

    @Test
    void aBackendThatNeedsNoFileNeedsNoVersionDirectory() {
        Fakes.write(root.resolve("m/config.pbtxt"), "backend: \"identity\"");
        assertThat(versions(oneWell(root))).containsExactly(1L);
    }

    @Test
    void aModelWithoutVersionsIsRefused() {
        Fakes.write(root.resolve("m/config.pbtxt"), "backend: \"onnxruntime\"");
        assertThat(message(one(root)))
                .isEqualTo("at least one version must be available under the version policy of model 'm'");
    }

    @Test
    void specificVersionsThatAreMissingAreWarnedOf() {
        Fakes.write(root.resolve("m/config.pbtxt"), "version_policy { specific { versions: [ 1, 7 ] } }");
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Fakes.write(root.resolve("m/2/model.onnx"), "x");
        StoredModel model = one(root);
        assertThat(model.aspired()).extracting(Version::version).containsExactly(1L);
        assertThat(message(model)).isEqualTo("version 7 of the version policy does not exist");
        assertThat(model.hasErrors()).isFalse();
    }

    @Test
    void aVersionWithoutItsFileDoesNotHurtTheOthers() {
        Fakes.write(root.resolve("m/config.pbtxt"), "default_model_filename: \"a.onnx\" version_policy { all { } }");
        Fakes.write(root.resolve("m/1/a.onnx"), "x");
        Fakes.write(root.resolve("m/2/b.onnx"), "x");
        StoredModel model = oneWell(root);
        assertThat(model.versions().get(0).error()).isNull();
        assertThat(model.versions().get(1).error()).hasMessageContaining("version 2 of model 'm' has no file 'a.onnx'");
    }

    @Test
    void aConfigurationThatIsABrokenLinkIsAProblem() throws IOException {
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Files.createSymbolicLink(root.resolve("m/config.pbtxt"), root.resolve("gone"));
        assertThat(message(one(root))).isEqualTo("cannot read file: no such file");
    }

    @Test
    void aVersionWithABrokenLinkFailsAlone() throws IOException {
        Fakes.write(root.resolve("m/config.pbtxt"), "version_policy { all { } }");
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Fakes.write(root.resolve("m/2/model.onnx"), "x");
        Files.createSymbolicLink(root.resolve("m/2/weights"), root.resolve("gone"));
        StoredModel model = oneWell(root);
        assertThat(model.versions().get(0).error()).isNull();
        assertThat(model.versions().get(1).error()).hasMessageContaining("cannot read version 2 of model 'm'");
    }

    @Test
    void aLinkThatLeadsBackToItselfDoesNotHang() throws IOException {
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Files.createSymbolicLink(root.resolve("m/1/loop"), root.resolve("m"));
        StoredModel model = oneWell(root);
        assertThat(model.versions().get(0).error()).hasMessageContaining("leads back to itself");
    }

    @Test
    void aConfigurationThatIsTooLargeIsRefused() {
        Fakes.write(root.resolve("m/config.pbtxt"), "#".repeat((1 << 20) + 1));
        assertThat(message(one(root))).isEqualTo("the file has more than 1048576 bytes");
    }

    @Test
    void aConfigurationThatIsNoTextIsRefused() throws IOException {
        Files.createDirectories(root.resolve("m"));
        Files.write(root.resolve("m/config.pbtxt"), new byte[] {(byte) 0xff, (byte) 0xfe, 0});
        assertThat(message(one(root))).isEqualTo("the file is not UTF-8 text");
    }

    @Test
    void aRootThatIsNotThereIsNotReadable() {
        RepositoryLayout.Listing listing = layout.list(root.resolve("gone"));
        assertThat(listing.readable()).isFalse();
        assertThat(listing.problems().get(0).message()).isEqualTo("cannot read the repository: no such file");
    }

    @Test
    void theFingerprintFollowsFilesAndConfiguration() {
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        String first = oneWell(root).versions().get(0).fingerprint();
        assertThat(oneWell(root).versions().get(0).fingerprint()).isEqualTo(first);
        Fakes.write(root.resolve("m/1/model.onnx"), "xy");
        String second = oneWell(root).versions().get(0).fingerprint();
        Fakes.touch(root.resolve("m/1"), 1_000_000);
        String third = oneWell(root).versions().get(0).fingerprint();
        Fakes.write(root.resolve("m/config.pbtxt"), "max_batch_size: 4");
        String fourth = oneWell(root).versions().get(0).fingerprint();
        assertThat(List.of(first, second, third, fourth)).doesNotHaveDuplicates();
    }

    @Test
    void theFingerprintFollowsTheFilesThatTheConfigurationNames() {
        Fakes.write(root.resolve("m/1/model.onnx"), "x");
        Fakes.write(root.resolve("m/ops.so"), "x");
        Fakes.write(root.resolve("m/initial_state/s"), "1234");
        Fakes.write(root.resolve("m/config.pbtxt"), """
            model_operations { op_library_filename: "ops.so" }
            sequence_batching { state { input_name: "i" output_name: "o" data_type: TYPE_FP32 dims: 1
              initial_state { name: "s" data_type: TYPE_FP32 dims: 1 data_file: "s" } } }
            """);
        String first = oneWell(root).versions().get(0).fingerprint();
        Fakes.write(root.resolve("m/ops.so"), "xy");
        String second = oneWell(root).versions().get(0).fingerprint();
        Fakes.write(root.resolve("m/initial_state/s"), "12345");
        String third = oneWell(root).versions().get(0).fingerprint();
        assertThat(List.of(first, second, third)).doesNotHaveDuplicates();
    }
}
