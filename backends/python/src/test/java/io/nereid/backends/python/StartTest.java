// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models that do not start, and the error messages. */
class StartTest {
    private static final String EXECUTE = "    def execute(self, requests):\n        return []\n";

    @TempDir
    Path directory;

    @BeforeAll
    static void python() {
        Interpreter.assumePython();
    }

    private BackendModel load(String text, ModelConfig config, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(Map.of("python", Interpreter.path()));
        all.putAll(settings);
        ModelLocation source = Fixtures.written("m", text, directory);
        return new PythonBackend().load(source, config, new BackendContext(2, directory, all));
    }

    private ServingException rejected(String text, ModelConfig config, Map<String, String> settings) {
        ServingException[] refusal = new ServingException[1];
        assertThatThrownBy(() -> load(text, config, settings).close())
                .isInstanceOfSatisfying(ServingException.class, e -> refusal[0] = e);
        return refusal[0];
    }

    private static ModelConfig config() {
        List<TensorSpec> one = List.of(new TensorSpec("x", DataType.FP32, Shape.of(1)));
        return ModelConfig.builder("m").inputs(one).outputs(one).build();
    }

    private static ModelConfig parameter(String key, String value) {
        return config().toBuilder().parameters(Map.of(key, value)).build();
    }

    @Test
    void theEndOfTheTraceIsTheReason() {
        ServingException e = rejected(
                "class TritonPythonModel:\n    def initialize(self, args):\n        self.x = {}['weights']\n" + EXECUTE,
                config(),
                Map.of());
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage())
                .startsWith("model 'm' failed to initialize model.py: KeyError: 'weights'\n")
                .contains("line 3, in initialize")
                .endsWith("KeyError: 'weights'")
                .doesNotContain("nereid_worker");
    }

    @Test
    void aMissingModuleSaysWhereToInstallIt() {
        ServingException e = rejected("import no_such_module_anywhere\n", config(), Map.of());
        assertThat(e.getMessage()).contains("No module named 'no_such_module_anywhere'");
        assertThat(e.remedy())
                .contains("'no_such_module_anywhere'")
                .contains("pip install")
                .contains("EXECUTION_ENV_PATH");
    }

    @Test
    void aFileWithoutTheClassIsRefused() {
        assertThat(rejected("x = 1\n", config(), Map.of()).getMessage()).contains("has no class TritonPythonModel");
        assertThat(rejected("class TritonPythonModel:\n    pass\n", config(), Map.of())
                        .getMessage())
                .contains("has no method execute");
    }

    @Test
    void aModelWithoutOutputsIsRefused() {
        ServingException e = rejected("class TritonPythonModel:\n" + EXECUTE, ModelConfig.unspecified("m"), Map.of());
        assertThat(e.getMessage()).isEqualTo("model 'm' names no outputs");
        assertThat(e.remedy()).contains("auto_complete_config");
    }

    @Test
    void whatAutoCompleteRefusesIsTheReason() {
        String text = "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c):\n"
                + "        c.add_input({'name': 'x', 'data_type': 'TYPE_INT8', 'dims': [1]})\n        return c\n"
                + EXECUTE;
        assertThat(rejected(text, config(), Map.of()).getMessage())
                .endsWith("unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'x', model"
                        + " provides TYPE_INT8");
    }

    @Test
    void autoCompleteMayMakeTheModelDecoupledAndBatched() {
        String text = "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c):\n"
                + "        c.add_output({'name': 'y', 'data_type': 'TYPE_STRING', 'dims': [-1, 2]})\n"
                + "        c.add_input({'name': 'o', 'data_type': 'TYPE_FP16', 'dims': [1], 'optional': True})\n"
                + "        c.set_max_batch_size(3)\n        c.set_dynamic_batching()\n"
                + "        c.set_model_transaction_policy({'decoupled': True})\n        return c\n" + EXECUTE;
        try (BackendModel model = load(text, ModelConfig.unspecified("m"), Map.of())) {
            assertThat(model.config().decoupled()).isTrue();
            assertThat(model.config().maxBatchSize()).isEqualTo(3);
            assertThat(model.config().batching()).isNotNull();
            assertThat(model.config().outputs()).containsExactly(new TensorSpec("y", DataType.BYTES, Shape.of(-1, 2)));
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("o", DataType.FP16, Shape.of(1), true));
        }
    }

    @Test
    void aProcessThatDiesWhileItStartsIsTheReason() {
        ServingException e = rejected("import os\nprint('no luck', flush=True)\nos._exit(7)\n", config(), Map.of());
        assertThat(e.getMessage()).contains("ended while it started").contains("no luck");
    }

    @Test
    void aStartThatTakesTooLongIsEnded() {
        ServingException e =
                rejected("import time\ntime.sleep(60)\n", config(), Map.of("initialize-timeout-seconds", "1"));
        assertThat(e.getMessage()).isEqualTo("model 'm' took longer than 1 s to load model.py");
    }

    @Test
    void anUnknownInterpreterIsNamed() {
        ServingException e = rejected("", config(), Map.of("python", "/no/such/python"));
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.getMessage()).contains("'/no/such/python' cannot be run");
    }

    @Test
    void settingsAreChecked() {
        assertThat(rejected("", config(), Map.of("shm-default-byte-sise", "1")).getMessage())
                .startsWith("unknown setting 'shm-default-byte-sise' of the python backend");
        assertThat(rejected("", config(), Map.of("shm-default-byte-size", "12")).getMessage())
                .contains("expected: a whole number from 1048576");
    }

    @Test
    void archivesOfEnvironmentsAreRefusedByName() throws IOException {
        Path archive = Files.writeString(directory.resolve("env.tar.gz"), "");
        ServingException e = rejected("", parameter("EXECUTION_ENV_PATH", archive.toString()), Map.of());
        assertThat(e.getMessage()).contains("env.tar.gz, is an archive");
        assertThat(e.remedy()).contains("unpack");
        assertThat(rejected("", parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/none"), Map.of())
                        .getMessage())
                .contains("/m/none, does not exist");
    }

    @Test
    void aModelMayHaveAnEnvironmentOfItsOwn() throws IOException {
        Path binaries =
                Files.createDirectories(directory.resolve("m").resolve("env").resolve("bin"));
        Path python = binaries.resolve("python");
        Files.writeString(python, "#!/bin/sh\nexport CHOSEN=yes\nexec " + Interpreter.path() + " \"$@\"\n");
        assertThat(python.toFile().setExecutable(true)).isTrue();
        String text = "import os\nassert os.environ['CHOSEN'] == 'yes'\nassert 'env' in os.environ['VIRTUAL_ENV']\n"
                + "class TritonPythonModel:\n" + EXECUTE;
        try (BackendModel model = load(
                text, parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/env"), Map.of("python", "/none"))) {
            assertThat(model.config().backend()).isEqualTo("python");
        }
    }

    @Test
    void filesBesideTheModelCanBeImported() throws IOException {
        Fixtures.written("m", "", directory);
        Files.writeString(directory.resolve("m").resolve("1").resolve("beside.py"), "WORD = 'found'\n");
        String text = "import beside\nfrom .beside import WORD\nassert beside.WORD == WORD\n"
                + "class TritonPythonModel:\n" + EXECUTE;
        load(text, config(), Map.of()).close();
        assertThat(directory.resolve("m").resolve("1").resolve("__pycache__")).doesNotExist();
    }
}
