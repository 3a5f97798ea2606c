// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.Fakes;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.VersionPolicy.Kind;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ModelServerConfigTest {
    private static final String GOOD_MODEL_CONFIG = """
        model_config_list: {
          config: {
            name: "half_plus_two",
            base_path: "/models/half_plus_two",
            model_platform: "tensorflow"
          },
          config: {
            name: "half_plus_three",
            base_path: "/models/half_plus_three",
            model_platform: "tensorflow"
          }
        }
        """;

    private static final String BAD_MODEL_CONFIG = """
        improperly formatted file!
        """;

    private static final String EVERYTHING = """
        # all fields
        model_config_list {
          config {
            name: 'm' base_path: "/b" model_platform: "onnxruntime"
            model_version_policy { specific { versions: [ 3, 1 ] versions: 0 } }
            version_labels { key: "stable" value: 1 }
            version_labels { key: "first" }
            weighted_labels {
              key: "canary"
              value {
                targets { version: 1 weight: 90 }
                targets { version: 2 weight: 10 }
                shadows { version: 3 weight: 0.1 }
              }
            }
            logging_config {
              log_collector_config { type: "tfrecord" filename_prefix: "/logs/m" }
              sampling_config { sampling_rate: 0.25 }
            }
          }
        }
        """;

    private static ModelListEntry one(String fields) {
        return ModelServerConfig.parse("model_config_list { config { " + fields + " } }", "list")
                .get(0);
    }

    private static final String BASICS = "name: 'm' base_path: '/b' model_platform: 'tensorflow' ";

    private static void refused(ThrowingCallable call, String... parts) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(parts);
        });
    }

    private static ModelListEntry model(String name, String basePath, String platform) {
        return new ModelListEntry(name, basePath, platform, null, Map.of(), null);
    }

    private static ModelListEntry model(String name) {
        return model(name, "/models/" + name, "tensorflow");
    }

    @Test
    void aTextThatIsNoListIsReportedInTheWordsOfTensorFlowServing() {
        for (String text : new String[] {"improper model config", "model_config_list { config { color: 1 } }", "{"}) {
            assertThatThrownBy(() -> ModelServerConfig.parse(text, "/models.config"))
                    .as(text)
                    .hasMessageStartingWith("Error parsing text-format tensorflow.serving.ModelServerConfig: ")
                    .hasMessageContaining("/models.config:1:");
        }
        assertThatThrownBy(
                        () -> ModelServerConfig.parse("model_config_list { config { name: \"m\" } }", "/models.config"))
                .hasMessageNotContaining("text-format");
    }

    @Test
    void theGoodModelConfigOfTheOriginalIsRead() {
        assertThat(ModelServerConfig.parse(GOOD_MODEL_CONFIG, "good"))
                .containsExactly(
                        model("half_plus_two", "/models/half_plus_two", "tensorflow"),
                        model("half_plus_three", "/models/half_plus_three", "tensorflow"));
    }

    @Test
    void theBadModelConfigOfTheOriginalIsRefusedWithItsPlace() {
        refused(() -> ModelServerConfig.parse(BAD_MODEL_CONFIG, "bad_model_config.txt"), "bad_model_config.txt:1:12: ");
    }

    @Test
    void everyFieldIsRead() {
        List<ModelListEntry> models = ModelServerConfig.parse(EVERYTHING, "list");
        assertThat(models)
                .containsExactly(new ModelListEntry(
                        "m",
                        "/b",
                        "onnxruntime",
                        new VersionPolicy(Kind.SPECIFIC, 0, List.of(0L, 1L, 3L)),
                        Map.of(
                                "stable", VersionLabel.of(1),
                                "first", VersionLabel.of(0),
                                "canary",
                                        new VersionLabel(
                                                List.of(new WeightedVersion(1, 90), new WeightedVersion(2, 10)),
                                                List.of(new WeightedVersion(3, 0.1)))),
                        new LoggingConfig("tfrecord", "/logs/m", 0.25)));
        ModelServerConfig.check(models, List.of(), List.of(Fakes.ONNX));
    }

    @Test
    void latestZeroIsLatestOne() {
        assertThat(one(BASICS + "model_version_policy { latest { num_versions: 0 } }")
                        .versionPolicy())
                .isEqualTo(VersionPolicy.LATEST);
        assertThat(one(BASICS + "model_version_policy { latest {} }").versionPolicy())
                .isEqualTo(VersionPolicy.LATEST);
        assertThat(one(BASICS + "model_version_policy { latest { num_versions: 3 } }")
                        .versionPolicy())
                .isEqualTo(new VersionPolicy(Kind.LATEST, 3, List.of()));
        assertThat(one(BASICS + "model_version_policy { all {} }").versionPolicy())
                .isEqualTo(new VersionPolicy(Kind.ALL, 0, List.of()));
        assertThat(one(BASICS + "model_version_policy { all: {} }").versionPolicy())
                .isEqualTo(new VersionPolicy(Kind.ALL, 0, List.of()));
        assertThat(one(BASICS + "model_version_policy {}").versionPolicy()).isNull();
        assertThat(one(BASICS).versionPolicy()).isNull();
    }

    @Test
    void theDeprecatedModelTypeIsAPlatform() {
        assertThat(one("name: 'm' base_path: '/b' model_type: TENSORFLOW").platform())
                .isEqualTo("tensorflow");
        assertThat(one("name: 'm' base_path: '/b' model_type: 1").platform()).isEqualTo("tensorflow");
        assertThat(one(BASICS + "model_type: MODEL_TYPE_UNSPECIFIED").platform())
                .isEqualTo("tensorflow");
    }

    @Test
    void illegalModelTypesAreRefusedInTheWordsOfTheOriginal() {
        refused(
                () -> one(BASICS + "model_type: TENSORFLOW"),
                "Illegal setting both ModelServerConfig::model_type (deprecated) and"
                        + " ModelServerConfig::model_platform.");
        refused(
                () -> one("name: 'm' base_path: '/b'"),
                "Illegal setting neither ModelServerConfig::model_type (deprecated) nor"
                        + " ModelServerConfig::model_platform");
        refused(
                () -> one("name: 'm' base_path: '/b' model_type: OTHER"),
                "ModelServerConfig::model_type choice OTHER not supported.");
    }

    @Test
    void aTextThatSaysNothingIsAnEmptyListAndAsksForNoChange() {
        for (String text : List.of("", "  \n", "# nothing\n")) {
            assertThat(ModelServerConfig.parse(text, "empty")).isEmpty();
            assertThat(ModelServerConfig.parseIfAny(text, "empty")).isEmpty();
        }
        assertThat(ModelServerConfig.parseIfAny("model_config_list {}", "none")).contains(List.of());
    }

    @Test
    void anUnknownFieldIsRefusedWithTheNearestName() {
        refused(
                () -> ModelServerConfig.parse("model_config_list {\n  config { nam: 'm' }\n}", "list"),
                "list:2:12: unknown field 'nam' in 'model_config_list.config'",
                "did you mean 'name'?");
        refused(
                () -> ModelServerConfig.parse("config { name: 'm' }", "list"),
                "list:1:1: unknown field 'config' (it belongs into 'model_config_list')");
        refused(
                () -> one(BASICS + "logging_config { sampling_config { sampling_rat: 1 } }"),
                "did you mean 'sampling_rate'?");
    }

    @Test
    void aCustomModelConfigIsRefusedByName() {
        refused(
                () -> ModelServerConfig.parse("\n custom_model_config { [type.googleapis.com/x.Y] { a: 1 } }", "list"),
                "list:2:2: field 'custom_model_config' is not supported",
                "write model_config_list");
    }

    @Test
    void theWordInsideAnotherBlockIsAnUnknownFieldLikeAnyOther() {
        refused(
                () -> ModelServerConfig.parse("model_config_list { custom_model_config {} }", "list"),
                "unknown field 'custom_model_config' in 'model_config_list'");
    }

    @Test
    void everyMistakeIsToldAtOnceWithItsPlace() {
        refused(
                () -> ModelServerConfig.parse(
                        "model_config_list {\n config { base_path: '/b' model_platform: 'tensorflow' }\n"
                                + " config { name: 'x' base_path: 7 model_platform: 'tensorflow' }\n"
                                + " config { name: 'y' model_platform: 'tensorflow' }\n}",
                        "list"),
                "list:2:9: a model of the list has no name",
                "list:3:32: '7' is not a value of 'base_path' (expected: a string in quotes)",
                "list:4:9: model 'y' has no base_path");
    }

    @Test
    void policiesLabelsAndSpecificListsThatCannotBeAreRefusedWithTheirPlace() {
        refused(() -> one(BASICS + "model_version_policy { all {} latest {} }"), "cannot be given together with 'all'");
        refused(() -> one(BASICS + "model_version_policy { specific {} }"), "names no version");
        refused(() -> one(BASICS + "model_version_policy { specific { versions: -1 } }"), "version -1 in 'specific'");
        refused(
                () -> one(BASICS + "version_labels { key: 'a' value: 1 } version_labels { key: 'a' value: 2 }"),
                "label 'a' of model 'm' is given twice");
        refused(
                () -> one(BASICS + "version_labels { key: 'a' value: 1 } weighted_labels { key: 'a' value {} }"),
                "label 'a' of model 'm' is given twice");
        refused(() -> one(BASICS + "version_labels { key: 'a' value: 'x' }"), "is not a value of 'value'");
    }

    @Test
    void illegalToListTheSameModelTwice() {
        refused(
                () -> ModelServerConfig.check(List.of(model("a"), model("b"), model("a")), List.of()),
                "Illegal to list model a multiple times in config list");
    }

    @Test
    void aRelativePathIsRefusedAndAnAbsoluteOneIsNot() {
        ModelServerConfig.check(List.of(model("a")), List.of());
        ModelServerConfig.check(List.of(model("a", "file:///models/a", "tensorflow")), List.of());
        refused(
                () -> ModelServerConfig.check(List.of(model("a", "models/a", "tensorflow")), List.of()),
                "Expected model a to have an absolute path or URI; got base_path()=models/a");
        refused(
                () -> ModelServerConfig.check(List.of(model("a", "", "tensorflow")), List.of()),
                "Expected model a to have an absolute path or URI; got base_path()=");
    }

    @ParameterizedTest
    @CsvSource({"s3://bucket/m,s3", "gs://bucket/m,gs", "hdfs://h/m,hdfs", "S3://b/m,s3"})
    void aBasePathInARemoteStoreIsRefusedByName(String path, String scheme) {
        refused(
                () -> ModelServerConfig.check(List.of(model("a", path, "tensorflow")), List.of()),
                "Model a has its base path in '" + scheme + "', which this server does not read; got base_path()="
                        + path,
                "mount it as a directory, or copy it to one");
    }

    @Test
    void illegalToChangeAModelsPlatform() {
        refused(
                () -> ModelServerConfig.check(List.of(model("a", "/a", "onnxruntime")), List.of(model("a"))),
                "Illegal to change a model's platform. For model a platform was tensorflow and new platform requested"
                        + " is onnxruntime");
        ModelServerConfig.check(List.of(model("b", "/a", "onnxruntime")), List.of(model("a")));
    }

    @Test
    void anUnsupportedPlatformIsRefusedWithWhatThereIs() {
        List<ModelListEntry> next = List.of(model("a", "/a", "onnxruntme"));
        refused(
                () -> ModelServerConfig.check(next, List.of(), List.of(Fakes.ONNX)),
                "Model a requests unsupported platform onnxruntme",
                "did you mean 'onnxruntime'?");
        for (String platform : List.of("tensorflow", "onnxruntime", "onnxruntime_onnx")) {
            ModelServerConfig.check(List.of(model("a", "/a", platform)), List.of(), List.of(Fakes.ONNX));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "../a", "a/b", "..", "a\u0000"})
    void aNameThatIsAPathIsRefused(String name) {
        refused(() -> ModelServerConfig.check(List.of(model(name, "/a", "tensorflow")), List.of()), "name");
    }

    private static void refusedLabel(VersionLabel label, String... parts) {
        refused(
                () -> ModelServerConfig.check(
                        List.of(new ModelListEntry("a", "/a", "tensorflow", null, Map.of("l", label), null)),
                        List.of()),
                parts);
    }

    @Test
    void labelsThatCannotBeAreRefused() {
        refusedLabel(new VersionLabel(List.of(), List.of()), "label 'l' of model a has no targets");
        refusedLabel(new VersionLabel(List.of(new WeightedVersion(1, 0)), List.of()), "the weight 0.0", "more than 0");
        refusedLabel(new VersionLabel(List.of(new WeightedVersion(1, Double.NaN)), List.of()), "the weight NaN");
        refusedLabel(new VersionLabel(List.of(new WeightedVersion(-1, 1)), List.of()), "version -1");
        refusedLabel(
                new VersionLabel(List.of(new WeightedVersion(1, 1), new WeightedVersion(1, 2)), List.of()),
                "names version 1 twice");
        refusedLabel(
                new VersionLabel(List.of(new WeightedVersion(1, 1)), List.of(new WeightedVersion(2, 1.5))),
                "with 1.5 of the requests");
    }

    private static void refusedLogging(LoggingConfig logging, String... parts) {
        refused(
                () -> ModelServerConfig.check(
                        List.of(new ModelListEntry("a", "/a", "tensorflow", null, Map.of(), logging)), List.of()),
                parts);
    }

    @Test
    void loggingThatCannotBeIsRefused() {
        refusedLogging(new LoggingConfig("", "/l", 1.5), "sampling_rate of 1.5", "0 to 1");
        refusedLogging(new LoggingConfig("", "/l", Double.NaN), "sampling_rate of NaN");
        refusedLogging(new LoggingConfig("kafka", "/l", 1), "a log of type 'kafka'", "tfrecord");
        refusedLogging(new LoggingConfig("", "", 1), "has no filename_prefix");
    }

    @Test
    void policiesThatCannotBeAreRefusedWhoeverMakesTheList() {
        for (VersionPolicy policy : List.of(
                new VersionPolicy(Kind.SPECIFIC, 0, List.of()),
                new VersionPolicy(Kind.SPECIFIC, 0, List.of(-3L)),
                new VersionPolicy(Kind.LATEST, 0, List.of()))) {
            refused(
                    () -> ModelServerConfig.check(
                            List.of(new ModelListEntry("a", "/a", "tensorflow", policy, Map.of(), null)), List.of()),
                    "version policy of model a");
        }
    }

    @Test
    void aFileIsReadAndOneThatIsNotThereIsNamed(@TempDir Path directory) {
        Path file = Fakes.write(directory.resolve("models.config"), GOOD_MODEL_CONFIG);
        assertThat(ModelServerConfig.read(file)).hasSize(2);
        refused(
                () -> ModelServerConfig.read(directory.resolve("none")),
                directory.resolve("none") + ": cannot read file");
    }

    @Test
    void tenThousandModelsAreReadAtOnce() {
        StringBuilder text = new StringBuilder("model_config_list {");
        for (int i = 0; i < 10_000; i++) {
            text.append("config { name: 'm")
                    .append(i)
                    .append("' base_path: '/m")
                    .append(i);
            text.append("' model_platform: 'tensorflow' }\n");
        }
        List<ModelListEntry> models = ModelServerConfig.parse(text.append('}').toString(), "list");
        assertThat(models).hasSize(10_000);
        ModelServerConfig.check(models, models, List.of(Fakes.ONNX));
    }
}
