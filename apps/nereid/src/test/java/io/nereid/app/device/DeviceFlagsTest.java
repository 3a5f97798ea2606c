// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.device.DeviceLimits;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

class DeviceFlagsTest {
    private static DeviceFlags parse(String... arguments) {
        DeviceFlags flags = CommandLine.populateCommand(new DeviceFlags(), arguments);
        flags.check();
        return flags;
    }

    @Test
    void limitsAreThoseOfTheOptionsAndElseTritons() {
        assertThat(parse().limits())
                .isEqualTo(new DeviceLimits(268_435_456, Map.of(), Map.of(), 6, 0))
                .satisfies(limits -> assertThat(limits.poolBytes(3)).isEqualTo(67_108_864));
        DeviceFlags given = parse(
                "--pinned-memory-pool-byte-size=0",
                "--cuda-memory-pool-byte-size=0:5",
                "--cuda-memory-pool-byte-size=1:6",
                "--model-load-gpu-limit=1:0.25",
                "--min-supported-compute-capability=7.5");
        assertThat(given.limits()).isEqualTo(new DeviceLimits(0, Map.of(0, 5L, 1, 6L), Map.of(1, 0.25), 7, 5));
        assertThat(given.given()).hasSize(4);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', textBlock = """
            --cuda-memory-pool-byte-size=5           | '5' is not valid (expected: GPU:BYTES
            --cuda-memory-pool-byte-size=0:-1        | '0:-1' is not valid
            --cuda-memory-pool-byte-size=-1:1        | '-1:1' is not valid
            --model-load-gpu-limit=0:1.5             | '0:1.5' is not valid (expected: GPU:FRACTION with a fraction from 0 to 1
            --model-load-gpu-limit=0:NaN             | '0:NaN' is not valid
            --min-supported-compute-capability=seven | 'seven' is not valid
            --pinned-memory-pool-byte-size=-1        | -1 is negative
            --metrics-interval-ms=0                  | 0 is not an interval
            """)
    void badValuesAreRefused(String argument, String message) {
        assertThatThrownBy(() -> parse(argument))
                .hasMessageContaining(argument.substring(0, argument.indexOf('=')))
                .hasMessageContaining(message);
    }
}
