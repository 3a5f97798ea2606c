// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.SmallFloats;
import io.nereid.json.Documents;
import io.nereid.json.FloatStyle;
import io.nereid.tensor.DataType;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Binary to decimal: the result reads back to the same bits, has the fewest digits, and is the closest of these. */
class NumberPrintingTest {
    private static final long SEED = Long.getLong("nereid.seed", 20261121L);

    /** The step between the common floats that are tried; 1 tries all of them, which takes most of a minute. */
    private static final int STRIDE = Integer.getInteger("nereid.stride", 499);

    private final Random random = new Random(SEED);
    private final NumberPrinter printer = new NumberPrinter();
    private final byte[] buffer = new byte[NumberPrinter.MAX_LENGTH];
    private final byte[] expected = new byte[NumberPrinter.MAX_LENGTH];

    @Test
    void printsFloatsThatReadBack() {
        for (int i = 0; i < 600_000; i++) {
            float f = randomFloat(i);
            String text = print(f);
            if (Float.floatToIntBits(Float.parseFloat(text)) != Float.floatToIntBits(f)) {
                assertThat(text)
                        .as("%x, seed %d", Float.floatToIntBits(f), SEED)
                        .isEqualTo(Float.toString(f));
            }
        }
    }

    @Test
    void printsTheShortestAndClosestFloat() {
        for (int i = 0; i < 60_000; i++) {
            float f = Math.abs(randomFloat(i));
            if (f > 0) {
                assertThat(new BigDecimal(print(f)))
                        .as("%x, seed %d", Float.floatToIntBits(f), SEED)
                        .isEqualByComparingTo(shortest(f, true));
            }
        }
        for (int e = 1; e < 255; e++) {
            for (int fraction : new int[] {0, 1, 2, 0x7FFFFE, 0x7FFFFF, 0x400000}) {
                float f = Float.intBitsToFloat(e << 23 | fraction);
                assertThat(new BigDecimal(print(f))).as("%s", f).isEqualByComparingTo(shortest(f, true));
            }
        }
        for (int bits = 1; bits < 3000; bits++) {
            float f = Float.intBitsToFloat(bits);
            assertThat(new BigDecimal(print(f))).as("%s", f).isEqualByComparingTo(shortest(f, true));
        }
    }

    @Test
    void printsTheShortestAndClosestDouble() {
        for (int i = 0; i < 400_000; i++) {
            double d = i % 3 == 0 ? random.nextGaussian() : Double.longBitsToDouble(random.nextLong());
            if (!Double.isFinite(d)) {
                continue;
            }
            String text = print(d);
            if (Double.doubleToLongBits(Double.parseDouble(text)) != Double.doubleToLongBits(d)) {
                assertThat(text)
                        .as("%x, seed %d", Double.doubleToLongBits(d), SEED)
                        .isEqualTo(Double.toString(d));
            }
            if (i % 40 == 0) {
                assertThat(new BigDecimal(text).abs())
                        .as("%s, seed %d", d, SEED)
                        .isEqualByComparingTo(shortest(Math.abs(d), false));
            }
        }
        for (int e = -1074; e <= 1023; e++) {
            double d = Math.scalb(1.0, e);
            assertThat(new BigDecimal(print(d))).as("%s", d).isEqualByComparingTo(shortest(d, false));
        }
    }

    @Test
    void printsWidenedFloatsAsTheDoublesTheyAre() {
        for (int bits = Float.floatToIntBits(0x1p-30f); bits < Float.floatToIntBits(0x1p25f); bits += STRIDE) {
            checkWidened(bits);
        }
        int[] fractions = {0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFC, 0x7FFFFE, 0x7FFFFF};
        for (int e = 0; e < 256; e++) {
            for (int fraction : fractions) {
                checkWidened(e << 23 | fraction);
            }
            for (int bit = 0; bit < 23; bit++) {
                checkWidened(e << 23 | 1 << bit);
                checkWidened(e << 23 | -(1 << bit) & 0x7FFFFF);
            }
        }
        for (int i = 0; i < 600_000; i++) {
            checkWidened(Float.floatToRawIntBits(randomFloat(i)));
        }
    }

    @Test
    void printsWidenedFloatsOfEverydaySizeTheFastWay() {
        for (int i = 0; i < 10_000; i++) {
            float f = (float) (random.nextGaussian() * Math.pow(10, random.nextInt(10) - 6));
            if (f != (int) f && Math.abs(f) > 4e-9) {
                assertThat(WidenedFloats.print(buffer, 0, f))
                        .as("%s, seed %d", f, SEED)
                        .isPositive();
            }
        }
    }

    @Test
    void printsWidenedFloatsInReadableForms() {
        assertThat(printWidened(6.8f)).isEqualTo("6.800000190734863");
        assertThat(printWidened(-0.1f)).isEqualTo("-0.10000000149011612");
        assertThat(printWidened(0.5f)).isEqualTo("0.5");
        assertThat(printWidened(1234567.5f)).isEqualTo("1234567.5");
        assertThat(printWidened(-3f)).isEqualTo("-3.0");
        assertThat(printWidened(0f)).isEqualTo("0.0");
        assertThat(printWidened(0.00001f)).isEqualTo("9.999999747378752e-6");
        assertThat(printWidened(0.00002f)).isEqualTo("0.000019999999494757503");
        assertThat(printWidened(0x1p-24f)).isEqualTo("5.960464477539063e-8");
        assertThat(printWidened(1e-8f)).isEqualTo("9.99999993922529e-9");
        assertThat(printWidened(1e-20f)).isEqualTo("9.999999682655225e-21");
        assertThat(printWidened(Float.NaN)).isEqualTo("NaN");
    }

    @Test
    void printsEverySmallFloatSoThatItReadsBack() {
        ByteBuffer all = Documents.direct(2 << 16);
        for (DataType type : new DataType[] {DataType.FP16, DataType.BF16}) {
            int n = 0;
            for (int bits = 0; bits < 1 << 16; bits++) {
                float f = type == DataType.FP16
                        ? SmallFloats.fp16ToFloat((short) bits)
                        : SmallFloats.bf16ToFloat((short) bits);
                if (!Float.isNaN(f)) {
                    all.putShort(2 * n++, (short) bits);
                }
            }
            int count = n;
            for (FloatStyle style : FloatStyle.values()) {
                String text = Documents.print(w -> w.floatStyle(style).flatArray(type, all, 0, count));
                ByteBuffer back = Documents.readTensor(type, text, count);
                for (int i = 0; i < count; i++) {
                    assertThat(back.getShort(2 * i)).isEqualTo(all.getShort(2 * i));
                }
            }
        }
        assertThat(Documents.print(w -> w.flatArray(DataType.FP16, all.putShort(0, (short) 0x2E66), 0, 1)))
                .isEqualTo("[0.1]");
        assertThat(Documents.print(w -> w.flatArray(DataType.BF16, all.putShort(0, (short) 0x4049), 0, 1)))
                .isEqualTo("[3.14]");
    }

    @Test
    void printsReadableForms() {
        assertThat(print(0f)).isEqualTo("0.0");
        assertThat(print(-0f)).isEqualTo("-0.0");
        assertThat(print(1f)).isEqualTo("1.0");
        assertThat(print(-0.5f)).isEqualTo("-0.5");
        assertThat(print(6.8f)).isEqualTo("6.8");
        assertThat(print(0.730699f)).isEqualTo("0.730699");
        assertThat(print(123456.7f)).isEqualTo("123456.7");
        assertThat(print(16777216f)).isEqualTo("16777216.0");
        assertThat(print(1e15f)).isEqualTo("1000000000000000.0");
        assertThat(print(1e16f)).isEqualTo("1e16");
        assertThat(print(1.5e20f)).isEqualTo("1.5e20");
        assertThat(print(0.00001f)).isEqualTo("0.00001");
        assertThat(print(0.0000123f)).isEqualTo("0.0000123");
        assertThat(print(0.000001f)).isEqualTo("1e-6");
        assertThat(print(1.25e-7f)).isEqualTo("1.25e-7");
        assertThat(print(Float.MIN_VALUE)).isEqualTo("1e-45");
        assertThat(print(Float.MAX_VALUE)).isEqualTo("3.4028235e38");
        assertThat(print(Float.NaN)).isEqualTo("NaN");
        assertThat(print(Float.NEGATIVE_INFINITY)).isEqualTo("-Infinity");
        assertThat(print(6.800000190734863)).isEqualTo("6.800000190734863");
        assertThat(print(0.1)).isEqualTo("0.1");
        assertThat(print(1e22)).isEqualTo("1e22");
        assertThat(print(9007199254740993.0)).isEqualTo("9007199254740992.0");
        assertThat(print(5e-324)).isEqualTo("5e-324");
        assertThat(print(Double.POSITIVE_INFINITY)).isEqualTo("Infinity");
        assertThat(print(Double.NaN)).isEqualTo("NaN");
    }

    @Test
    void printsIntegersAsTheJdkDoes() {
        for (int i = 0; i < 300_000; i++) {
            long v = random.nextLong() >> random.nextInt(64);
            assertThat(text(NumberPrinter.printInt(buffer, 0, v))).isEqualTo(Long.toString(v));
            assertThat(text(NumberPrinter.printUnsigned(buffer, 0, v))).isEqualTo(Long.toUnsignedString(v));
        }
        assertThat(text(NumberPrinter.printInt(buffer, 0, Long.MIN_VALUE))).isEqualTo("-9223372036854775808");
    }

    private float randomFloat(int i) {
        switch (i % 4) {
            case 0:
                return random.nextFloat();
            case 1:
                return Math.round(random.nextFloat() * 1e6f) / 1e6f;
            case 2:
                return (float) (random.nextGaussian() * Math.pow(10, random.nextInt(12) - 5));
            default:
                float f = Float.intBitsToFloat(random.nextInt());
                return Float.isFinite(f) ? f : 1;
        }
    }

    private void checkWidened(int bits) {
        float f = Float.intBitsToFloat(bits);
        checkWidened(f);
        checkWidened(-f);
    }

    private void checkWidened(float f) {
        int length = printer.printWidened(buffer, 0, f);
        int expectedLength = printer.printDouble(expected, 0, f);
        if (length != expectedLength || !Arrays.equals(buffer, 0, length, expected, 0, length)) {
            assertThat(text(length))
                    .as("%x, seed %d", Float.floatToRawIntBits(f), SEED)
                    .isEqualTo(new String(expected, 0, expectedLength, StandardCharsets.US_ASCII));
        }
    }

    private String printWidened(float f) {
        return text(printer.printWidened(buffer, 0, f));
    }

    private String print(float f) {
        return text(printer.printFloat(buffer, 0, f));
    }

    private String print(double d) {
        return text(printer.printDouble(buffer, 0, d));
    }

    private String text(int length) {
        return new String(buffer, 0, length, StandardCharsets.US_ASCII);
    }

    /** By trial: the first number of digits at which a neighbouring decimal reads back; the closer of two. */
    private static BigDecimal shortest(double v, boolean asFloat) {
        BigDecimal exact = new BigDecimal(v);
        for (int n = 1; n <= 17; n++) {
            BigDecimal down = exact.round(new MathContext(n, RoundingMode.DOWN));
            BigDecimal up = exact.round(new MathContext(n, RoundingMode.UP));
            boolean downFits = readsBack(down, v, asFloat);
            boolean upFits = readsBack(up, v, asFloat);
            if (downFits || upFits) {
                if (downFits && upFits) {
                    return exact.round(new MathContext(n, RoundingMode.HALF_EVEN));
                }
                return downFits ? down : up;
            }
        }
        throw new AssertionError(v);
    }

    private static boolean readsBack(BigDecimal decimal, double v, boolean asFloat) {
        String text = decimal.toString();
        return asFloat ? Float.parseFloat(text) == (float) v : Double.parseDouble(text) == v;
    }
}
