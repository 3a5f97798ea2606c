// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class GoDurationTest {
    @ParameterizedTest
    @CsvSource({
        "0, PT0S",
        "1h15m30.5s, PT1H15M30.5S",
        "42.5s, PT42.5S",
        ".5s, PT0.5S",
        "1.s, PT1S",
        "82ms, PT0.082S",
        "10us, PT0.00001S",
        "10µs, PT0.00001S",
        "3ns, PT0.000000003S",
        "-3h, PT-3H",
        "+1m, PT1M"
    })
    void goSyntaxIsParsed(String text, Duration expected) {
        assertThat(GoDuration.parse(text)).isEqualTo(expected);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "5", "1 s", "s", "1d", "1h-1m", "-", ".", "1e3s", "999999999h"})
    void otherTextsAreNotDurations(String text) {
        assertThat(GoDuration.parse(text)).isNull();
    }

    @ParameterizedTest
    @CsvSource({"PT6S, 6s", "PT1M, 1m0s", "PT1H, 1h0m0s", "PT0S, 0s"})
    void durationsAreFormattedInWholeSeconds(Duration duration, String expected) {
        assertThat(GoDuration.format(duration)).isEqualTo(expected);
    }
}
