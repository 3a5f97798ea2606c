// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.tensor.DataType;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Decimal to binary, compared with the JDK and with exact arithmetic. */
class NumberReadingTest {
    private static final long SEED = Long.getLong("nereid.seed", 20261121L);

    private final Random random = new Random(SEED);

    @Test
    void readsFloatsAsTheJdkDoes() {
        List<String> numbers = new ArrayList<>();
        for (int i = 0; i < 60_000; i++) {
            float f = Float.intBitsToFloat(random.nextInt());
            if (Float.isFinite(f)) {
                numbers.add(Float.toString(f));
                numbers.add(Double.toString(f));
            }
            numbers.add(Double.toString(random.nextDouble()));
            numbers.add(Double.toString(random.nextGaussian() * Math.pow(10, random.nextInt(70) - 40)));
            numbers.add(randomDecimal(40));
        }
        for (int i = 0; i < 5_000; i++) {
            addTie(numbers, Float.intBitsToFloat(random.nextInt() & 0x7FFFFFFF), true);
            addTie(numbers, Float.intBitsToFloat(random.nextInt(1 << 24)), true);
            addTie(numbers, 4 + 4 * random.nextFloat(), true);
        }
        numbers.removeIf(s -> Float.isInfinite(Float.parseFloat(s)));
        ByteBuffer read = Documents.readTensor(DataType.FP32, numbers.toString(), numbers.size());
        for (int i = 0; i < numbers.size(); i++) {
            int expected = Float.floatToRawIntBits(Float.parseFloat(numbers.get(i)));
            if (read.getInt(4 * i) != expected) {
                assertThat(read.getFloat(4 * i))
                        .as("%s, seed %d", numbers.get(i), SEED)
                        .isEqualTo(Float.intBitsToFloat(expected));
            }
        }
        assertThat(numbers).hasSizeGreaterThan(250_000);
    }

    @Test
    void readsDoublesAsTheJdkDoes() {
        List<String> numbers = new ArrayList<>();
        for (int i = 0; i < 50_000; i++) {
            double d = Double.longBitsToDouble(random.nextLong());
            if (Double.isFinite(d)) {
                numbers.add(Double.toString(d));
            }
            numbers.add(Double.toString(random.nextDouble()));
            numbers.add(randomDecimal(300));
        }
        for (int i = 0; i < 3_000; i++) {
            addTie(numbers, Math.scalb(1 + random.nextDouble(), random.nextInt(300) - 150), false);
            addTie(numbers, random.nextInt(1 << 20) * Double.MIN_VALUE, false);
        }
        numbers.add("2.2250738585072011e-308");
        numbers.add("2.2250738585072012e-308");
        numbers.add("2.2250738585072014e-308");
        numbers.add("4.9e-324");
        numbers.add("2.4703282292062327e-324");
        numbers.add("2.4703282292062328e-324");
        numbers.add("1.7976931348623157e308");
        numbers.add("1e-400");
        numbers.add("0." + "0".repeat(1000) + "1e1001");
        numbers.removeIf(s -> Double.isInfinite(Double.parseDouble(s)));
        ByteBuffer read = Documents.readTensor(DataType.FP64, numbers.toString(), numbers.size());
        JsonReader single = new JsonReader();
        for (int i = 0; i < numbers.size(); i++) {
            double expected = Double.parseDouble(numbers.get(i));
            if (read.getLong(8 * i) != Double.doubleToRawLongBits(expected)) {
                assertThat(read.getDouble(8 * i))
                        .as("%s, seed %d", numbers.get(i), SEED)
                        .isEqualTo(expected);
            }
            if (i % 10 == 0) {
                Documents.reset(single, numbers.get(i).getBytes(StandardCharsets.US_ASCII));
                assertThat(single.readDouble()).isEqualTo(expected);
            }
        }
    }

    @Test
    void roundsSmallFloatsFromTheExactDecimal() {
        for (DataType type : new DataType[] {DataType.FP16, DataType.BF16}) {
            List<String> numbers = new ArrayList<>();
            for (int i = 0; i < 8_000; i++) {
                float f = value(type, (short) random.nextInt(infinity(type)));
                float next = value(type, (short) (bits(type, f) + 1));
                if (Float.isInfinite(next)) {
                    continue;
                }
                BigDecimal tie = new BigDecimal(f).add(new BigDecimal(next)).divide(BigDecimal.valueOf(2));
                numbers.add(tie.toString());
                numbers.add(tie + (tie.toString().contains("E") ? "" : tie.scale() > 0 ? "0".repeat(30) + "1" : ""));
                numbers.add(tie.subtract(tie.ulp().movePointLeft(25)).toString());
                numbers.add(tie.round(new MathContext(17, RoundingMode.FLOOR)).toString());
                numbers.add(Float.toString(f + (next - f) * random.nextFloat()));
            }
            ByteBuffer read = Documents.readTensor(type, numbers.toString(), numbers.size());
            for (int i = 0; i < numbers.size(); i++) {
                int expected = nearest(type, new BigDecimal(numbers.get(i)));
                assertThat((int) read.getShort(2 * i))
                        .as("%s as %s, seed %d", numbers.get(i), type, SEED)
                        .isEqualTo(expected);
            }
        }
    }

    @Test
    void readsIntegersOfEveryLength() {
        List<String> numbers = new ArrayList<>();
        List<Long> expected = new ArrayList<>();
        for (int i = 0; i < 50_000; i++) {
            long v = random.nextLong() >> random.nextInt(64);
            expected.add(v);
            numbers.add(i % 7 == 0 ? v + ".0" : i % 7 == 1 && v != 0 ? v + "00e-2" : Long.toString(v));
        }
        ByteBuffer read = Documents.readTensor(DataType.INT64, numbers.toString(), numbers.size());
        for (int i = 0; i < numbers.size(); i++) {
            assertThat(read.getLong(8 * i))
                    .as("%s, seed %d", numbers.get(i), SEED)
                    .isEqualTo(expected.get(i));
        }
    }

    private String randomDecimal(int maxExponent) {
        StringBuilder b = new StringBuilder(random.nextBoolean() ? "-" : "");
        b.append(random.nextInt(3) == 0 ? "0" : Integer.toString(1 + random.nextInt(9)));
        if (b.charAt(b.length() - 1) != '0') {
            for (int n = random.nextInt(25); n > 0; n--) {
                b.append(random.nextInt(10));
            }
        }
        if (random.nextBoolean()) {
            b.append('.');
            for (int n = random.nextInt(5); n > 0; n--) {
                b.append('0');
            }
            for (int n = 1 + random.nextInt(random.nextInt(50) == 0 ? 900 : 22); n > 0; n--) {
                b.append(random.nextInt(10));
            }
        }
        if (random.nextBoolean()) {
            b.append(random.nextBoolean() ? "e" : "E").append(random.nextInt(2 * maxExponent) - maxExponent);
        }
        return b.toString();
    }

    /** The exact midpoint above {@code v}, and decimals just beside it. */
    private static void addTie(List<String> numbers, double v, boolean ofFloats) {
        double next = ofFloats ? Math.nextUp((float) v) : Math.nextUp(v);
        if (!Double.isFinite(next)) {
            return;
        }
        BigDecimal tie = new BigDecimal(v).add(new BigDecimal(next)).divide(BigDecimal.valueOf(2));
        numbers.add(tie.toString());
        numbers.add(tie.subtract(tie.ulp()).toString());
        numbers.add(tie.add(tie.ulp()).toString());
        numbers.add(tie.round(new MathContext(19)).toString());
        numbers.add(tie.round(new MathContext(17)).toString());
        numbers.add(tie.round(new MathContext(16)).toString());
    }

    private static int infinity(DataType type) {
        return type == DataType.FP16 ? 0x7C00 : 0x7F80;
    }

    private static float value(DataType type, short bits) {
        if (type == DataType.BF16) {
            return Float.intBitsToFloat(bits << 16);
        }
        int e = bits >> 10 & 31;
        int fraction = bits & 1023;
        if (e == 31) {
            return Float.POSITIVE_INFINITY;
        }
        return e == 0 ? Math.scalb((float) fraction, -24) : Math.scalb((float) (1024 + fraction), e - 25);
    }

    private static int bits(DataType type, float f) {
        int low = 0;
        int high = infinity(type);
        while (low < high) {
            int middle = (low + high + 1) >>> 1;
            if (value(type, (short) middle) <= f) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    /** Nearest value by comparing exact distances, ties to the even neighbour. */
    private static int nearest(DataType type, BigDecimal exact) {
        int below =
                bits(type, exact.round(new MathContext(60, RoundingMode.FLOOR)).floatValue());
        while (below > 0 && new BigDecimal(value(type, (short) below)).compareTo(exact) > 0) {
            below--;
        }
        BigDecimal down = exact.subtract(new BigDecimal(value(type, (short) below)));
        BigDecimal up = new BigDecimal(value(type, (short) (below + 1))).subtract(exact);
        int side = down.compareTo(up);
        return side < 0 || side == 0 && (below & 1) == 0 ? below : below + 1;
    }
}
