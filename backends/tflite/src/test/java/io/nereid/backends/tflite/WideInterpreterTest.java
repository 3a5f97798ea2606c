// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.BackendContext;
import io.nereid.backend.ModelInstance;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The interpreter with several threads; WideRunsTest in io.nereid.backend has the rule of its use. */
@Engine
class WideInterpreterTest {
    private static LiteModel model(Map<String, String> parameters, boolean spareMemory) {
        ModelConfig config =
                ModelConfig.builder("several").parameters(parameters).build();
        return (LiteModel) Models.BACKEND.load(
                Models.source("several"),
                config,
                new BackendContext(2, Models.root(), Map.of()).withSpareMemory(spareMemory));
    }

    private static float[] answer(ModelInstance instance, int rows, int idleThreads) {
        try (Tensor input = Tensor.allocate("rows", DataType.FP32, Shape.of(rows, 4))) {
            for (int i = 0; i < 4 * rows; i++) {
                input.buffer().putFloat(4 * i, i / 8f);
            }
            List<Tensor> outputs = instance.run(List.of(input), List.of("scores"), idleThreads);
            float[] values = new float[outputs.get(0).byteLength() / 4];
            outputs.get(0).buffer().asFloatBuffer().get(values);
            Tensor.closeAll(outputs);
            return values;
        }
    }

    @Test
    void answersAreTheSameWithBothWidths() {
        try (LiteModel model = model(Map.of(), true);
                ModelInstance narrow = model.newInstance()) {
            WideInterpreter wide = model.openWide(2);
            for (int rows : new int[] {1, 3, 2}) {
                assertThat(wide.hold()).isTrue();
                assertThat(answer(wide.instance(), rows, 0))
                        .hasSize(3 * rows)
                        .usingComparatorWithPrecision(1e-6f)
                        .containsExactly(answer(narrow, rows, 0));
                wide.drop();
            }
            wide.drop();
        }
    }

    @Test
    void aRunThatFindsItInUseIsNarrow() {
        try (LiteModel model = model(Map.of(), true)) {
            WideInterpreter wide = model.openWide(2);
            assertThat(wide.hold()).isTrue();
            assertThat(wide.hold()).isFalse();
            wide.drop();
            assertThat(wide.hold()).isTrue();
            wide.drop();
            wide.drop();
        }
    }

    @Test
    void itOutlivesTheModelsClose() {
        LiteModel model = model(Map.of(), true);
        WideInterpreter wide = model.openWide(2);
        assertThat(wide.hold()).isTrue();
        model.close();
        assertThat(answer(wide.instance(), 2, 0)).hasSize(6);
        wide.drop();
        wide.drop();
        assertThat(model.openWide(2)).as("the file has been freed").isNull();
    }

    @Test
    void configuredThreadsAndScarceMemoryWin() {
        assertThat(wide(Map.of(), true)).isTrue();
        assertThat(wide(Map.of("num_threads", "1"), true)).isFalse();
        assertThat(wide(Map.of("num_threads", "2"), true)).isFalse();
        assertThat(wide(Map.of(), false)).isFalse();
    }

    private static boolean wide(Map<String, String> parameters, boolean spareMemory) {
        try (LiteModel model = model(parameters, spareMemory);
                ModelInstance instance = model.newInstance()) {
            float[] expected = answer(instance, 1, 0);
            for (int idle = 0; idle < 40; idle++) {
                assertThat(answer(instance, 1, idle % 2)).containsExactly(expected);
            }
            return model.choosesWidth();
        }
    }
}
