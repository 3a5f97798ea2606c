// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

/** The pooling model, as a backend of its own and as a built-in model of the backend {@code java}. */
class PoolingBackendTest {
    private static final Path NOWHERE = Path.of("nowhere");
    private static final ModelConfig OPEN = ModelConfig.unspecified("m");

    private static BackendModel load(Backend backend, ModelConfig config) {
        return backend.load(
                new ModelLocation(new ServableId("m", 1), NOWHERE, NOWHERE),
                config,
                new BackendContext(1, NOWHERE, Map.of()));
    }

    private static Tensor floats(String name, Shape shape, float... values) {
        Tensor t = Tensor.allocate(name, DataType.FP32, shape);
        t.buffer().asFloatBuffer().put(values);
        return t;
    }

    private static List<Float> pool(BackendModel model, Tensor vectors, long... mask) {
        Tensor marks = Tensor.allocate(
                "attention_mask",
                DataType.INT64,
                vectors.shape().rank() == 3
                        ? Shape.of(vectors.shape().dim(0), vectors.shape().dim(1))
                        : Shape.of(vectors.shape().dim(0)));
        marks.buffer().asLongBuffer().put(mask);
        try (vectors;
                marks;
                ModelInstance invocation = model.newInstance();
                Tensor out = invocation
                        .run(List.of(vectors, marks), List.of("embedding"))
                        .get(0)) {
            List<Float> values = new java.util.ArrayList<>();
            ByteBuffer bytes = out.buffer();
            while (bytes.hasRemaining()) {
                values.add(bytes.getFloat());
            }
            return values;
        }
    }

    @Test
    void poolingIsTheMeanOfTheTokensThatCount() {
        try (BackendModel model = load(new PoolingBackend(), OPEN)) {
            assertThat(model.config().maxBatchSize()).isEqualTo(64);
            assertThat(pool(
                            model,
                            floats("last_hidden_state", Shape.of(2, 2, 2), 1, 2, 3, 4, 5, 6, 100, 100),
                            1,
                            1,
                            1,
                            0))
                    .containsExactly(2f, 3f, 5f, 6f);
            assertThat(pool(model, floats("last_hidden_state", Shape.of(1, 1, 2), 7, 7), 0))
                    .containsExactly(0f, 0f);
        }
    }

    @Test
    void pooledVectorsCanBeOfLengthOne() {
        ModelConfig config = OPEN.toBuilder()
                .maxBatchSize(0)
                .parameters(Map.of("normalize", "true"))
                .build();
        try (BackendModel model = load(new PoolingBackend(), config)) {
            List<Float> v = pool(model, floats("last_hidden_state", Shape.of(2, 2), 3, 0, 3, 8), 1, 1);
            assertThat(v.get(0)).isCloseTo(0.6f, within(1e-6f));
            assertThat(v.get(1)).isCloseTo(0.8f, within(1e-6f));
        }
    }

    @Test
    void poolingRejectsMasksThatDoNotFit() {
        try (BackendModel model = load(new PoolingBackend(), OPEN);
                ModelInstance invocation = model.newInstance();
                Tensor vectors = floats("last_hidden_state", Shape.of(1, 2, 1), 1, 2);
                Tensor marks = Tensor.allocate("attention_mask", DataType.INT64, Shape.of(1, 3))) {
            assertThatThrownBy(() -> invocation.run(List.of(vectors, marks), List.of("embedding")))
                    .hasMessageContaining("expected: a mask value for each token");
        }
        List<TensorSpec> one = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 4)));
        assertThatThrownBy(() ->
                        load(new PoolingBackend(), OPEN.toBuilder().inputs(one).build()))
                .hasMessageContaining("FP32 [tokens,n] and INT64 or INT32 [tokens]");
    }

    @Test
    void thePoolingModelIsAlsoABuiltInModelOfTheJavaBackend() {
        for (String name : List.of("pooling", "mean_pool")) {
            ModelConfig config =
                    OPEN.toBuilder().parameters(Map.of("model", name)).build();
            try (BackendModel model = load(new JavaBackend(), config)) {
                assertThat(model.config().backend()).isEqualTo("java");
                assertThat(pool(model, floats("last_hidden_state", Shape.of(1, 1, 2), 7, 7), 1))
                        .containsExactly(7f, 7f);
            }
        }
    }

    @Test
    void anUnknownBuiltInModelIsReportedWithTheOneThatExists() {
        ModelConfig config =
                OPEN.toBuilder().parameters(Map.of("model", "identity")).build();
        assertThatThrownBy(() -> load(new JavaBackend(), config))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.remedy()).contains("set 'backend' to the backend that has this model");
                })
                .hasMessageContaining("unknown built-in model 'identity' (expected: pooling)");
    }

    @Test
    void theModuleOffersJavaModelsAndPooling() {
        assertThat(ServiceLoader.load(Backend.class)).extracting(Backend::name).containsExactly("java", "pooling");
    }
}
