// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Model;
import io.nereid.control.local.workload.Fakes;
import io.nereid.repository.ManagedModel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ManagedModelBuilderTest {
    @TempDir
    Path disk;

    /** The result with its warnings. */
    private record Built(ManagedModel model, String modelName, List<String> warnings) {}

    private static Built build(Workload workload, List<Path> files) {
        List<String> warnings = new ArrayList<>();
        ManagedModelBuilder.Result result =
                ManagedModelBuilder.build(workload, (Model) workload.form(), files, warnings);
        return new Built(result.model(), result.modelName(), warnings);
    }

    private Built build(String format, String runtime, List<String> arguments, Map<String, String> environment) {
        Model model = new Model(
                List.of(Fakes.artifact("s3://models/iris")),
                format,
                null,
                "v1",
                runtime,
                arguments,
                environment,
                JsonNodeFactory.instance.objectNode());
        return build(Fakes.workload("iris-1", Component.PREDICTOR, model, Fakes.ONE), List.of(disk));
    }

    private Built sklearn(List<String> arguments, Map<String, String> environment) {
        return build("sklearn", "kserve-sklearnserver", arguments, environment);
    }

    @Test
    void aSklearnModelHasItsBackendAndItsFiles() {
        Built built = sklearn(List.of("--model_name=iris", "--model_dir=/mnt/models", "--http_port=8080"), Map.of());

        assertThat(built.model().backend()).isEqualTo("sklearn");
        assertThat(built.model().expectedFiles()).contains("*.joblib", "*.pkl", "*.pickle");
        assertThat(built.model().name()).isEqualTo("default/iris-1");
        assertThat(built.model().repository()).isFalse();
        assertThat(built.warnings()).singleElement().asString().contains("--http_port has no effect");
    }

    @Test
    void predictProbaIsTheBackendsParameter() {
        assertThat(sklearn(List.of(), Map.of("PREDICT_PROBA", "true")).model().parameters())
                .containsEntry("predict_proba", "true");
        assertThat(build("xgboost", "kserve-xgbserver", List.of(), Map.of("PREDICT_PROBA", "true"))
                        .warnings())
                .anyMatch(w -> w.contains("PREDICT_PROBA"));
    }

    @Test
    void argumentsOfTheHuggingFaceServerAreParameters() {
        Built built = build(
                "huggingface",
                "kserve-huggingfaceserver",
                List.of(
                        "--model_name=bert",
                        "--task=fill_mask",
                        "--max_length=64",
                        "--return_probabilities",
                        "--disable_special_tokens",
                        "--disable_lower_case",
                        "--backend=huggingface",
                        "--trust_remote_code",
                        "--model_id=me/bert",
                        "--tokenizer_revision=main",
                        "--dtype=bfloat16"),
                Map.of());
        assertThat(built.modelName()).isEqualTo("bert");
        assertThat(built.model().backend()).isEqualTo("huggingface");
        assertThat(built.model().parameters())
                .containsEntry("task", "fill_mask")
                .containsEntry("max_length", "64")
                .containsEntry("return_probabilities", "true")
                .containsEntry("add_special_tokens", "false")
                .containsEntry("do_lower_case", "false")
                .containsEntry("nereid.kserve_server", "true");
        assertThat(built.warnings())
                .containsExactly(
                        "the argument --trust_remote_code has no effect: no code of a model's folder runs in this server",
                        "the argument --dtype=bfloat16 has no effect: the model is computed in FP32, whose answers are"
                                + " at least as exact");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--task=text_generation|--task is 'text_generation', which this server does not run",
                "--backend=vllm|--backend is 'vllm'",
                "--backend=triton|--backend is 'triton'",
                "--dtype=int4|--dtype is 'int4' (expected: auto, float32",
                "--model_id=me/bert --tokenizer_revision=v2|(expected: that of --model_revision, 'main'",
                "--predictor_host=other|--predictor_host makes KServe's server a transformer"
            })
    void argumentsOfTheHuggingFaceServerThatCannotBeHonouredAreRefused(String arguments, String message) {
        assertThatThrownBy(() ->
                        build("huggingface", "kserve-huggingfaceserver", List.of(arguments.split(" ", -1)), Map.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining(message);
    }

    @Test
    void anUnknownArgumentIsReportedByName() {
        assertThat(sklearn(List.of("--tempreature=3"), Map.of()).warnings())
                .containsExactly("the argument --tempreature is not known and has no effect");
    }

    @Test
    void modelDirMayBeADirectoryOfTheFilesButNoneOutside() throws Exception {
        Files.createDirectories(disk.resolve("sub"));

        assertThat(sklearn(List.of("--model_dir", "/mnt/models/sub"), Map.of())
                        .model()
                        .directory())
                .isEqualTo(disk.resolve("sub"));
        assertThatThrownBy(() -> sklearn(List.of("--model_dir=/etc"), Map.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("/etc");
        assertThatThrownBy(() -> sklearn(List.of("--model_dir=/mnt/models/../../etc"), Map.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("does not exist in the files");
    }

    @Test
    void tensorflowServingsBasePathIsHonoured() {
        Built built = build(
                "tensorflow",
                "kserve-tensorflow-serving",
                List.of("--model_name=flowers", "--port=9000", "--rest_api_port=8080", "--model_base_path=/mnt/models"),
                Map.of());

        assertThat(built.modelName()).isEqualTo("flowers");
        assertThat(built.model().directory()).isEqualTo(disk);
        assertThat(built.model().backend()).isEqualTo("tensorflow");
    }

    @Test
    void tritonsStoreIsARepositoryUnlessAModelLiesInItItself() throws Exception {
        List<String> arguments = List.of("--model-store=/mnt/models", "--grpc-port=9000", "--http-port=8080");
        assertThat(build("triton", "kserve-tritonserver", arguments, Map.of())
                        .model()
                        .repository())
                .isTrue();
        assertThat(build("onnx", "kserve-tritonserver", arguments, Map.of())
                        .model()
                        .repository())
                .isTrue();

        Files.writeString(disk.resolve("style.onnx"), "x");
        Built flat = build("onnx", "kserve-tritonserver", arguments, Map.of());
        assertThat(flat.model().repository()).isFalse();
        assertThat(flat.model().backend()).isEqualTo("onnxruntime");
    }

    @Test
    void mlserversVariablesAndSettingsAreHonoured() throws Exception {
        Files.writeString(
                disk.resolve("model-settings.json"),
                "{\"name\":\"x\",\"implementation\":\"mlserver_sklearn.SKLearnModel\",\"parameters\":{\"uri\":\"./a.joblib\"}}");
        Files.writeString(disk.resolve("a.joblib"), "x");

        Built built = build(
                "sklearn",
                "kserve-mlserver",
                List.of(),
                Map.of(
                        "MLSERVER_MODEL_NAME",
                        "other",
                        "MLSERVER_MODEL_URI",
                        "/mnt/models",
                        "MLSERVER_MODEL_IMPLEMENTATION",
                        "mlserver_sklearn.SKLearnModel",
                        "MLSERVER_HTTP_PORT",
                        "8080"));

        assertThat(built.modelName()).isEqualTo("other");
        assertThat(built.model().modelFile()).isEqualTo("a.joblib");
        assertThat(built.warnings())
                .anyMatch(w -> w.contains("MLSERVER_HTTP_PORT"))
                .anyMatch(w -> w.contains("'x'"));
    }

    @Test
    void predictiveserversFrameworkIsTheFormat() {
        assertThat(build("custom", "kserve-predictiveserver", List.of("--framework=lightgbm"), Map.of())
                        .model()
                        .backend())
                .isEqualTo("lightgbm");
    }

    @Test
    void withoutFilesThereIsNothingToServe() {
        Model model = new Model(
                List.of(), "sklearn", null, "v1", "x", List.of(), Map.of(), JsonNodeFactory.instance.objectNode());

        assertThatThrownBy(() -> build(Fakes.workload("iris-1", Component.PREDICTOR, model, Fakes.ONE), List.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("storageUri");
    }

    @Test
    void theBatcherIsTheEngines() {
        Workload plain = Fakes.model("iris-1", Fakes.ONE);
        Workload batched = new Workload(
                plain.namespace(),
                plain.service(),
                plain.component(),
                plain.revision(),
                plain.modelName(),
                plain.form(),
                plain.scaling(),
                0,
                plain.timeout(),
                null,
                new Workload.Batcher(32, Duration.ofMillis(500)),
                Map.of(),
                Map.of());

        ManagedModel model = build(batched, List.of(disk)).model();
        assertThat(model.parameters()).containsEntry("nereid.batch_id", "true");

        assertThat(Objects.requireNonNull(model.batching()).maxQueueDelay()).isEqualTo(Duration.ofMillis(500));
        assertThat(model.maxBatchSize()).isEqualTo(32);
    }
}
