// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class UnitsTest {
    @Test
    void sizesHaveDecimalAndBinaryUnits() {
        assertThat(Units.bytes("512")).isEqualTo(512);
        assertThat(Units.bytes("64MiB")).isEqualTo(64L << 20);
        assertThat(Units.bytes("10 MB")).isEqualTo(10_000_000);
        assertThatThrownBy(() -> Units.bytes("64 megs")).hasMessageContaining("'64 megs' is not a size");
        assertThatThrownBy(() -> Units.bytes("9999999999GiB")).hasMessageContaining("too large");
        assertThatThrownBy(() -> Units.bytes("-1")).hasMessageContaining("is not a size");
    }

    @Test
    void durationsNeedAUnit() {
        assertThat(Units.duration("5ms")).isEqualTo(Duration.ofMillis(5));
        assertThat(Units.duration("2m")).isEqualTo(Duration.ofMinutes(2));
        assertThatThrownBy(() -> Units.duration("5")).hasMessageContaining("'5' is not a duration");
    }

    @Test
    void displayedValuesAreShort() {
        assertThat(Units.formatBytes(234)).isEqualTo("234 B");
        assertThat(Units.formatBytes(22_972_370)).isEqualTo("23.0 MB");
        assertThat(Units.formatBytes(999_960)).isEqualTo("1.0 MB");
        assertThat(Units.formatNanos(999_000)).isEqualTo("999 us");
        assertThat(Units.formatNanos(12_300_000)).isEqualTo("12 ms");
        assertThat(Units.formatNanos(1_400_000_000L)).isEqualTo("1.4 s");
    }
}
