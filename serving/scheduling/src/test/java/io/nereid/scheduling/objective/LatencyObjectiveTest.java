// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LatencyObjectiveTest {
    @ParameterizedTest
    @CsvSource({
        "p99=20ms, 99, 20000000, p99=20ms",
        "p50 = 500us, 50, 500000, p50=0.5ms",
        "P99.9<=1.5s, 99.9, 1500000000, p99.9=1500ms",
        "p999=1s, 99.9, 1000000000, p99.9=1000ms"
    })
    void formsThatAreRead(String text, double percentile, long nanos, String shown) {
        LatencyObjective objective = LatencyObjective.parse(text);
        assertThat(objective).isEqualTo(new LatencyObjective(percentile, nanos)).hasToString(shown);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "p99", "20ms", "p99=20", "p0=1ms", "p100=1ms", "p99=0ms", "p99=-1ms", "p99=20min", "q99=1ms"
            })
    void otherTextsAreRefusedWithWhatIsExpected(String text) {
        ModelConfig config =
                ModelConfig.builder("m").parameters(Map.of("slo", text)).build();
        assertThatThrownBy(() -> LatencyObjective.of(config))
                .hasMessageContaining("parameter slo of model 'm': '" + text + "'")
                .hasMessageContaining("such as p99=20ms");
    }

    @Test
    void aModelHasNoneByDefault() {
        assertThat(LatencyObjective.of(ModelConfig.builder("m").build())).isNull();
    }
}
