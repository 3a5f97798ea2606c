// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.samples.AddSubBackend;
import io.nereid.samples.IdentityBackend;
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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class SampleModelsTest {
    private static final Path NOWHERE = Path.of("nowhere");

    private static BackendModel load(Backend backend, ModelConfig config) {
        return backend.load(
                new ModelLocation(new ServableId("m", 1), NOWHERE, NOWHERE),
                config,
                new BackendContext(1, NOWHERE, Map.of()));
    }

    private static ModelConfig config(
            Map<String, String> parameters, int maxBatchSize, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        ModelConfig c = ModelConfig.unspecified("m");
        return c.toBuilder()
                .maxBatchSize(maxBatchSize)
                .inputs(inputs)
                .outputs(outputs)
                .parameters(parameters)
                .build();
    }

    private static BackendModel addSub(DataType type) {
        return load(
                new AddSubBackend(),
                config(Map.of(), 8, List.of(spec("INPUT0", type, -1), spec("INPUT1", type, -1)), List.of()));
    }

    private static TensorSpec spec(String name, DataType type, long... dims) {
        return new TensorSpec(name, type, Shape.of(dims));
    }

    @Test
    void everySampleIsFoundAsABackend() {
        assertThat(ServiceLoader.load(Backend.class))
                .extracting(Backend::name)
                .contains(
                        "identity",
                        "add_sub",
                        "repeat",
                        "square",
                        "sequence",
                        "dyna_sequence",
                        "implicit_state",
                        "iterative_sequence");
    }

    @Test
    void identityWithoutConfigurationGivesBackTheSameMemory() {
        try (BackendModel model = load(new IdentityBackend(), ModelConfig.unspecified("m"));
                ModelInstance invocation = model.newInstance();
                Tensor in = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(16))) {
            assertThat(model.config().inputs()).containsExactly(spec("INPUT0", DataType.FP32, -1));
            assertThat(model.config().outputs()).containsExactly(spec("OUTPUT0", DataType.FP32, -1));
            assertThat(model.traits().inline()).isTrue();
            try (Tensor out = invocation.run(List.of(in), List.of("OUTPUT0")).get(0)) {
                assertThat(out.address()).isEqualTo(in.address());
                assertThat(out.name()).isEqualTo("OUTPUT0");
                assertThat(out.shape()).isEqualTo(in.shape());
            }
        }
    }

    @Test
    void identityTakesAnyNumberOfTensorsInAnyWantedOrder() {
        ModelConfig config = config(
                Map.of("response_parameters", "false"),
                4,
                List.of(spec("INPUT0", DataType.FP32, 2), spec("INPUT1", DataType.BYTES, -1)),
                List.of());
        try (BackendModel model = load(new IdentityBackend(), config);
                ModelInstance invocation = model.newInstance();
                Tensor a = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1, 2));
                Tensor b = Tensor.over(
                        "INPUT1", DataType.BYTES, Shape.of(1, 0), io.nereid.tensor.MemoryRegion.empty(), 0, 0)) {
            List<Tensor> out = invocation.run(List.of(a, b), List.of("OUTPUT1", "OUTPUT0"));
            assertThat(out).extracting(Tensor::name).containsExactly("OUTPUT1", "OUTPUT0");
            assertThat(out.get(1).address()).isEqualTo(a.address());
            Tensor.closeAll(out);
        }
    }

    @Test
    void anOptionalInputLeftOutComesBackAsZeros() {
        ModelConfig config = config(
                Map.of(),
                4,
                List.of(
                        spec("INPUT0", DataType.FP32, 2),
                        new TensorSpec("INPUT1", DataType.BYTES, Shape.of(-1, 3), true)),
                List.of());
        try (BackendModel model = load(new IdentityBackend(), config);
                ModelInstance invocation = model.newInstance();
                Tensor a = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(2, 2))) {
            try (Tensor out = invocation.run(List.of(a), List.of("OUTPUT1")).get(0)) {
                assertThat(out.shape()).isEqualTo(Shape.of(2, 1, 3));
                assertThat(out.byteLength()).isEqualTo(24);
                assertThat(out.buffer().getLong(0)).isZero();
            }
        }
    }

    @Test
    void identityRejectsTensorsThatDoNotPair() {
        assertThatThrownBy(() -> load(
                        new IdentityBackend(),
                        config(
                                Map.of(),
                                0,
                                List.of(spec("INPUT0", DataType.FP32, 2)),
                                List.of(spec("OUTPUT0", DataType.FP64, 2)))))
                .hasMessage("model 'm' has output 'OUTPUT0' FP64[2] for input 'INPUT0' FP32[2]; expected input and"
                        + " output datatype to match, got TYPE_FP32 and TYPE_FP64 (expected: the same type and dims)");
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            mode = EnumSource.Mode.EXCLUDE,
            names = {"BOOL", "BYTES"})
    void addSubWorksOnEveryNumericType(DataType type) {
        try (BackendModel model = addSub(type);
                ModelInstance invocation = model.newInstance();
                Tensor a = Tensor.allocate("INPUT0", type, Shape.of(1, 3));
                Tensor b = Tensor.allocate("INPUT1", type, Shape.of(1, 3))) {
            for (int i = 0; i < 3; i++) {
                put(a, i, 40 + i);
                put(b, i, 2 * i);
            }
            List<Tensor> out = invocation.run(List.of(a, b), List.of("OUTPUT1", "OUTPUT0"));
            for (int i = 0; i < 3; i++) {
                assertThat(get(out.get(0), i)).isEqualTo(40 - i);
                assertThat(get(out.get(1), i)).isEqualTo(40 + 3 * i);
            }
            Tensor.closeAll(out);
        }
    }

    private static void put(Tensor t, int i, int value) {
        ByteBuffer to = t.buffer();
        switch (t.dataType()) {
            case INT8, UINT8 -> to.put(i, (byte) value);
            case INT16, UINT16 -> to.putShort(2 * i, (short) value);
            case INT32, UINT32 -> to.putInt(4 * i, value);
            case INT64, UINT64 -> to.putLong(8 * i, value);
            case FP16 -> to.putShort(2 * i, HalfFloats.toHalf(value));
            case BF16 -> to.putShort(2 * i, HalfFloats.toBrain(value));
            case FP32 -> to.putFloat(4 * i, value);
            case FP64 -> to.putDouble(8 * i, value);
            case BOOL, BYTES -> throw new AssertionError();
        }
    }

    private static double get(Tensor t, int i) {
        ByteBuffer from = t.buffer();
        return switch (t.dataType()) {
            case INT8, UINT8 -> from.get(i);
            case INT16, UINT16 -> from.getShort(2 * i);
            case INT32, UINT32 -> from.getInt(4 * i);
            case INT64, UINT64 -> from.getLong(8 * i);
            case FP16 -> HalfFloats.fromHalf(from.getShort(2 * i));
            case BF16 -> HalfFloats.fromBrain(from.getShort(2 * i));
            case FP32 -> from.getFloat(4 * i);
            case FP64 -> from.getDouble(8 * i);
            case BOOL, BYTES -> throw new AssertionError();
        };
    }

    @Test
    void addSubRejectsShapesThatDiffer() {
        try (BackendModel model = addSub(DataType.FP32);
                ModelInstance invocation = model.newInstance();
                Tensor a = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1, 3));
                Tensor b = Tensor.allocate("INPUT1", DataType.FP32, Shape.of(1, 2))) {
            assertThatThrownBy(() -> invocation.run(List.of(a, b), List.of("OUTPUT0")))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessageContaining("expected: equal shapes");
        }
    }

    @Test
    void addSubRejectsStrings() {
        assertThatThrownBy(() -> addSub(DataType.BYTES)).hasMessageContaining("adds tensors of type BYTES");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "no", "1"})
    void responseParametersThatAreNeitherTrueNorFalseAreRefused(String text) {
        assertThatThrownBy(() -> load(
                        new IdentityBackend(), config(Map.of("response_parameters", text), -1, List.of(), List.of())))
                .hasMessageContaining("response_parameters '" + text + "' (expected: true or false)");
    }

    @Test
    void aDelayMakesRunsTakeLonger() {
        try (BackendModel model = load(
                        new IdentityBackend(), config(Map.of("execute_delay_ms", "30"), -1, List.of(), List.of()));
                ModelInstance invocation = model.newInstance();
                Tensor in = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1))) {
            long before = Clock.system().nanos();
            Tensor.closeAll(invocation.run(List.of(in), List.of("OUTPUT0")));
            assertThat(Clock.system().nanos() - before).isGreaterThanOrEqualTo(29_000_000L);
            assertThat(model.traits().inline()).isFalse();
            assertThat(model.traits().cancellable()).isTrue();
        }
    }

    @Test
    void aDelayedRunCanBeCancelled() throws Exception {
        ExecutorService thread = Threads.single("cancel");
        try (BackendModel model = load(
                        new IdentityBackend(), config(Map.of("execute_delay_ms", "60000"), -1, List.of(), List.of()));
                ModelInstance invocation = model.newInstance();
                Tensor in = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1))) {
            Future<ErrorCode> code = thread.submit(() -> {
                try {
                    Tensor.closeAll(invocation.run(List.of(in), List.of("OUTPUT0")));
                    return ErrorCode.OK;
                } catch (ServingException e) {
                    return e.code();
                }
            });
            while (!code.isDone()) {
                invocation.cancel();
                Thread.onSpinWait();
            }
            assertThat(code.get(1, TimeUnit.SECONDS)).isEqualTo(ErrorCode.CANCELLED);
        } finally {
            thread.shutdown();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "soon", "99999999999999999999"})
    void aDelayThatIsNoneIsRefused(String delay) {
        assertThatThrownBy(() -> load(
                        new IdentityBackend(), config(Map.of("execute_delay_ms", delay), -1, List.of(), List.of())))
                .hasMessageContaining("execute_delay_ms '" + delay + "'");
    }
}
