// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SmallFloatsTest {
    @Test
    void everyHalfIsReadAndWrittenAsTheSame() {
        for (int bits = 0; bits < 0x10000; bits++) {
            float value = SmallFloats.fp16ToFloat((short) bits);
            if (!Float.isNaN(value)) {
                assertThat(SmallFloats.fp16(value)).as("%x", bits).isEqualTo((short) bits);
            } else {
                assertThat(Float.isNaN(SmallFloats.fp16ToFloat(SmallFloats.fp16(value))))
                        .isTrue();
            }
        }
    }

    @Test
    void valuesBetweenTwoHalvesAreRoundedToTheNearestAndTiesToEven() {
        for (int bits = 0; bits < 0x7bff; bits++) {
            double low = SmallFloats.fp16ToFloat((short) bits);
            double high = SmallFloats.fp16ToFloat((short) (bits + 1));
            float middle = (float) ((low + high) / 2);
            short even = (short) (bits % 2 == 0 ? bits : bits + 1);
            assertThat(SmallFloats.fp16(middle)).as("%x", bits).isEqualTo(even);
            assertThat(SmallFloats.fp16(Math.nextDown(middle))).as("%x", bits).isEqualTo((short) bits);
            assertThat(SmallFloats.fp16(Math.nextUp(middle))).as("%x", bits).isEqualTo((short) (bits + 1));
        }
        assertThat(SmallFloats.fp16(65519.99f)).isEqualTo((short) 0x7bff);
        assertThat(SmallFloats.fp16(65520f)).isEqualTo((short) 0x7c00);
        assertThat(SmallFloats.fp16(-1e9f)).isEqualTo((short) 0xfc00);
    }

    @Test
    void brainFloatsKeepTheirSignAndAreRoundedToEven() {
        assertThat(SmallFloats.bf16ToFloat(SmallFloats.bf16(-0x1.01p0))).isEqualTo(-1f);
        assertThat(SmallFloats.bf16ToFloat(SmallFloats.bf16(-0x1.03p0))).isEqualTo(-0x1.04p0f);
        assertThat(SmallFloats.bf16ToFloat(SmallFloats.bf16(-1e39))).isEqualTo(Float.NEGATIVE_INFINITY);
        assertThat(SmallFloats.bf16ToFloat(SmallFloats.bf16(-0.0))).isEqualTo(-0f);
    }
}
