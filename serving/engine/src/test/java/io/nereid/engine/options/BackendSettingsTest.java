// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class BackendSettingsTest {
    /** A backend that is only asked for its settings. */
    private record Named(String name, @Nullable Set<String> own) implements Backend {
        @Override
        public Optional<Set<String>> settingNames() {
            return Optional.ofNullable(own);
        }

        @Override
        public List<String> defaultFiles() {
            return List.of();
        }

        @Override
        public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
            throw new UnsupportedOperationException();
        }
    }

    private static final List<Backend> BACKENDS = List.of(
            new Named("onnxruntime", Set.of("default-max-batch-size", "intra_op_thread_count")),
            new Named("tensorflow", Set.of("default-max-batch-size")),
            new Named("pmml", Set.of()),
            new Named("plugin", null));

    private static BackendSettings settings(Map<String, Map<String, String>> given) {
        return new BackendSettings(given, BACKENDS);
    }

    @Test
    void aBackendReceivesWhatItHas() {
        BackendSettings settings = settings(Map.of(
                "",
                Map.of("default-max-batch-size", "2", "intra_op_thread_count", "3"),
                "tensorflow",
                Map.of("default-max-batch-size", "8", "version", "2", "allow-soft-placement", "true"),
                "pmml",
                Map.of("default-max-batch-size", "3")));
        assertThat(settings.of("onnxruntime"))
                .isEqualTo(Map.of("default-max-batch-size", "2", "intra_op_thread_count", "3"));
        assertThat(settings.of("tensorflow")).isEqualTo(Map.of("default-max-batch-size", "8"));
        assertThat(settings.of("pmml")).isEmpty();
        // One that checks its settings itself.
        assertThat(settings.of("plugin")).hasSize(2);
    }

    @Test
    void aSettingHasABackendOrIsForAll() {
        assertThat(BackendSettings.parse(List.of("python,python=/a,b=c", "x=1,y=2", "python,k=")))
                .isEqualTo(Map.of("python", Map.of("python", "/a,b=c", "k", ""), "", Map.of("x", "1,y=2")));
        for (String wrong : List.of("x", "=1", "python,=1", ",x=1", "")) {
            assertThatThrownBy(() -> BackendSettings.parse(List.of(wrong)))
                    .as(wrong)
                    .hasMessageContaining("'" + wrong + "' is not [BACKEND,]KEY=VALUE");
        }
    }

    @Test
    void aSettingThatDoesNotExistIsRefusedWithTheNearest() {
        assertThatThrownBy(() -> settings(Map.of("onnxruntime", Map.of("intra_op_thread_cuont", "3"))))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("--backend-config 'onnxruntime,intra_op_thread_cuont=…'")
                .hasMessageContaining("(expected: default-max-batch-size, intra_op_thread_count)")
                .extracting(e -> ((ServingException) e).remedy())
                .asString()
                .contains("'intra_op_thread_count'");
        assertThatThrownBy(() -> settings(Map.of("", Map.of("max-batch", "3"))))
                .hasMessageContaining("there is no setting 'max-batch' of any backend");
        // Another backend's setting, and one of Triton's for another backend.
        assertThatThrownBy(() -> settings(Map.of("tensorflow", Map.of("intra_op_thread_count", "3"))))
                .hasMessageContaining("of the backend tensorflow");
        assertThatThrownBy(() -> settings(Map.of("onnxruntime", Map.of("gpu-memory-fraction", "3"))))
                .hasMessageContaining("there is no setting 'gpu-memory-fraction'");
    }

    @Test
    void aBackendThatDoesNotExistIsRefusedUnlessTritonHasIt() {
        assertThatThrownBy(() -> settings(Map.of("onnxrunime", Map.of("a", "3"))))
                .hasMessageContaining("there is no backend 'onnxrunime'")
                .extracting(e -> ((ServingException) e).remedy())
                .asString()
                .contains("'onnxruntime'");
        assertThat(settings(Map.of("openvino", Map.of("a", "3"), "plugin", Map.of("b", "4")))
                        .of("plugin"))
                .isEqualTo(Map.of("b", "4"));
    }
}
