// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.linear;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LinearBackendTest {
    @TempDir
    Path directory;

    private BackendModel load(ModelConfig config) {
        return new LinearBackend()
                .load(
                        LinearContractTest.laidOut(directory, "price", "bias 0.5\nweight 2\nweight -1\nend\n"),
                        config,
                        new BackendContext(2, directory, Map.of()));
    }

    @Test
    void addsTheWeightedFeaturesToTheBias() {
        try (BackendModel model = load(ModelConfig.unspecified("price"));
                ModelInstance instance = model.newInstance();
                Tensor x = Tensor.allocate("x", DataType.FP32, Shape.of(2, 2))) {
            x.buffer().putFloat(1).putFloat(3).putFloat(10).putFloat(0);
            Tensor y = instance.run(List.of(x), List.of("y")).get(0);
            assertThat(y.buffer().getFloat(0)).isEqualTo(-0.5f);
            assertThat(y.buffer().getFloat(4)).isEqualTo(20.5f);
            y.close();
        }
    }

    @Test
    void aModelWithoutConfigurationIsBatched() {
        try (BackendModel model = load(ModelConfig.unspecified("price"))) {
            assertThat(model.config().maxBatchSize()).isEqualTo(32);
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("x", DataType.FP32, Shape.of(2)));
            assertThat(model.config().batching()).isNotNull();
        }
    }

    @Test
    void aConfigurationThatContradictsTheFileIsRejected() {
        ModelConfig three = ModelConfig.builder("price")
                .maxBatchSize(8)
                .inputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(3))))
                .build();
        assertThatThrownBy(() -> load(three))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("model 'price' has input")
                .hasMessageContaining("expected: ");
    }
}
