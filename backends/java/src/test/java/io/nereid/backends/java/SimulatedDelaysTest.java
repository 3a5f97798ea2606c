// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The delays that a configuration asks for. */
class SimulatedDelaysTest {
    @Test
    void delaysGrowWithTheInstance() {
        SimulatedDelays delays = SimulatedDelays.read(ModelConfig.unspecified("m").toBuilder()
                .parameters(Map.of("execute_delay_ms", "20", "instance_wise_delay_multiplier", "1"))
                .build());
        assertThat(List.of(delays.of(0), delays.of(1), delays.of(3)))
                .containsExactly(Duration.ofMillis(20), Duration.ofMillis(20), Duration.ofMillis(60));
        assertThat(SimulatedDelays.read(ModelConfig.unspecified("m")).none()).isTrue();
    }
}
