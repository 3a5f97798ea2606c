// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class HalfFloatsTest {
    @Test
    void everyHalfSurvivesTheWayThereAndBack() {
        for (int i = 0; i < 1 << 16; i++) {
            short half = (short) i;
            float wide = HalfFloats.fromHalf(half);
            if (!Float.isNaN(wide)) {
                assertThat(HalfFloats.toHalf(wide)).as("%04x", i).isEqualTo(half);
            }
        }
    }

    @Test
    void halvesRoundToTheNearestAndToEven() {
        for (int i = 0; i < 0x7bff; i++) {
            float low = HalfFloats.fromHalf((short) i);
            float high = HalfFloats.fromHalf((short) (i + 1));
            float middle = (low + high) / 2;
            assertThat(HalfFloats.toHalf(middle)).as("%04x", i).isEqualTo((short) ((i & 1) == 0 ? i : i + 1));
            assertThat(HalfFloats.toHalf(Math.nextDown(middle))).as("%04x", i).isEqualTo((short) i);
            assertThat(HalfFloats.toHalf(Math.nextUp(middle))).as("%04x", i).isEqualTo((short) (i + 1));
        }
    }

    @Test
    void whatIsTooLargeBecomesInfinite() {
        assertThat(HalfFloats.toHalf(65519.996f)).isEqualTo((short) 0x7bff);
        assertThat(HalfFloats.toHalf(65520f)).isEqualTo((short) 0x7c00);
        assertThat(HalfFloats.toHalf(Float.NEGATIVE_INFINITY)).isEqualTo((short) 0xfc00);
        assertThat(HalfFloats.fromHalf(HalfFloats.toHalf(Float.NaN))).isNaN();
    }

    @Test
    void everyBrainFloatSurvivesTheWayThereAndBack() {
        for (int i = 0; i < 1 << 16; i++) {
            float wide = HalfFloats.fromBrain((short) i);
            if (!Float.isNaN(wide)) {
                assertThat(HalfFloats.toBrain(wide)).as("%04x", i).isEqualTo((short) i);
            }
        }
        assertThat(HalfFloats.toBrain(Float.intBitsToFloat(0x3f808000))).isEqualTo((short) 0x3f80);
        assertThat(HalfFloats.toBrain(Float.intBitsToFloat(0x3f818000))).isEqualTo((short) 0x3f82);
        assertThat(HalfFloats.fromBrain(HalfFloats.toBrain(Float.NaN))).isNaN();
    }
}
