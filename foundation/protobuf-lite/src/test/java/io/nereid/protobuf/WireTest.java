// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protobuf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** The writer against the reader, and the reader against malformed input. */
class WireTest {
    private static final long SEED = 20260131;

    private final StringInterner names = new StringInterner();

    private static ProtobufReader reader(byte... bytes) {
        ProtobufReader reader = new ProtobufReader();
        reader.reset(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
        return reader;
    }

    private static byte[] bytes(int... values) {
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = (byte) values[i];
        }
        return bytes;
    }

    private static void rejects(byte[] message, String part) {
        assertThatThrownBy(() -> {
                    ProtobufReader wire = reader(message);
                    while (wire.hasMore()) {
                        wire.skipField(wire.readTag());
                    }
                })
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining(part);
    }

    @Test
    void numbersOfAnySizeComeBackAsTheyWere() {
        SplittableRandom random = new SplittableRandom(SEED);
        List<Long> numbers = new ArrayList<>(List.of(0L, 1L, 127L, 128L, -1L, Long.MAX_VALUE, Long.MIN_VALUE));
        for (int bits = 0; bits < 64; bits++) {
            numbers.add(random.nextLong() >>> bits);
        }
        ProtobufWriter out = new ProtobufWriter();
        for (long n : numbers) {
            out.varintField(1, n);
            out.doubleField(536_870_911, Double.longBitsToDouble(n));
            out.floatField(16, Float.intBitsToFloat((int) n));
        }
        ProtobufReader wire = reader(out.toByteArray());
        for (long n : numbers) {
            assertThat(wire.readTag()).isEqualTo(1 << 3 | ProtobufReader.VARINT);
            assertThat(wire.readVarint()).isEqualTo(n);
            assertThat(wire.readTag()).isEqualTo(536_870_911 << 3 | ProtobufReader.FIXED64);
            assertThat(wire.readFixed64()).isEqualTo(Double.doubleToRawLongBits(Double.longBitsToDouble(n)));
            assertThat(wire.readTag()).isEqualTo(16 << 3 | ProtobufReader.FIXED32);
            assertThat(wire.readFixed32()).isEqualTo(Float.floatToRawIntBits(Float.intBitsToFloat((int) n)));
        }
        assertThat(wire.hasMore()).isFalse();
    }

    @Test
    void textsOfAnyLengthAndScriptComeBackAsTheyWere() {
        SplittableRandom random = new SplittableRandom(SEED);
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < 400; i++) {
            StringBuilder text = new StringBuilder();
            int script = new int[] {0x80, 0x800, 0xD800, 0x10_FFFF}[random.nextInt(4)];
            for (int n = random.nextInt(i < 390 ? 200 : 100_000); n > 0; n--) {
                int c = random.nextInt(script);
                text.appendCodePoint(c >= 0xD800 && c < 0xE000 ? 'x' : c);
            }
            texts.add(text.toString());
        }
        ProtobufWriter out = new ProtobufWriter();
        texts.forEach(t -> out.presentTextField(3, t));
        out.textField(4, "");
        ProtobufReader wire = reader(out.toByteArray());
        for (String text : texts) {
            assertThat(wire.readTag()).isEqualTo(3 << 3 | ProtobufReader.BYTES);
            assertThat(wire.readText(names)).isEqualTo(text);
        }
        assertThat(wire.hasMore()).isFalse();
    }

    @Test
    void messagesInMessagesAreMeasuredOnceTheyEnd() {
        for (int size : new int[] {0, 1, 127, 128, 16_383, 16_384, 3_000_000}) {
            ProtobufWriter out = new ProtobufWriter();
            int outer = out.begin(1);
            int inner = out.begin(2);
            int at = out.reserve(size);
            Arrays.fill(out.array(), at, at + size, (byte) 8);
            out.end(inner);
            out.varintField(3, size);
            out.end(outer);
            out.varintField(4, 9);
            ProtobufReader wire = reader(out.toByteArray());
            assertThat(wire.readTag()).isEqualTo(1 << 3 | ProtobufReader.BYTES);
            int end = wire.enter();
            wire.skipField(wire.readTag());
            assertThat(wire.readTag()).isEqualTo(3 << 3);
            assertThat(wire.readVarint()).isEqualTo(size);
            assertThat(wire.hasMore()).isFalse();
            wire.leave(end);
            assertThat(wire.readTag()).isEqualTo(4 << 3);
            assertThat(wire.readVarint()).isEqualTo(9);
            assertThat(wire.hasMore()).isFalse();
        }
    }

    @Test
    void aMessageMayEndInBytesThatTheSenderAppends() {
        ProtobufWriter out = new ProtobufWriter();
        int message = out.begin(1);
        out.bytesHeader(2, 300);
        out.end(message, 300);
        byte[] whole = Arrays.copyOf(out.array(), out.length() + 300);
        ProtobufReader wire = reader(whole);
        assertThat(wire.readTag()).isEqualTo(1 << 3 | ProtobufReader.BYTES);
        assertThat(wire.readLength()).isEqualTo(whole.length - wire.position());
    }

    @Test
    void anOverlongNumberIsReadUpToTenBytes() {
        assertThat(reader(bytes(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00))
                        .readVarint())
                .isZero();
        assertThat(reader(bytes(0x88, 0x80, 0x80, 0x00)).readTag()).isEqualTo(8);
        assertThatThrownBy(() -> reader(bytes(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00))
                        .readVarint())
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("more than 10 bytes");
    }

    @Test
    void malformedMessagesAreRejectedWithTheirPosition() {
        rejects(bytes(0x00, 0x01), "field number 0 at byte 0");
        rejects(bytes(0x08), "ends inside a number at byte 1");
        rejects(bytes(0x08, 0x01, 0x0D, 1, 2, 3), "ends inside a value at byte 3");
        rejects(bytes(0x09, 1, 2, 3, 4, 5, 6, 7), "ends inside a value");
        rejects(bytes(0x0A, 0x05, 1, 2), "a length of 5 bytes where 2 are left");
        rejects(bytes(0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01), "18446744073709551615");
        rejects(bytes(0x0A, 0x82, 0x80, 0x80, 0x80, 0x10, 1, 2), "a length of 4294967298 bytes");
        rejects(bytes(0x0E), "wire type 6");
        rejects(bytes(0x0C), "wire type 4");
        rejects(bytes(0x0B, 0x10, 0x01), "ends inside a number");
        rejects(bytes(0x0B, 0x14), "wire type 4");
    }

    @Test
    void groupsArePassedOverAsDeepAsOthersDo() {
        byte[] deep = new byte[200];
        Arrays.fill(deep, 0, 100, (byte) 0x0B);
        Arrays.fill(deep, 100, 200, (byte) 0x0C);
        ProtobufReader wire = reader(deep);
        wire.skipField(wire.readTag());
        assertThat(wire.hasMore()).isFalse();
        byte[] hostile = new byte[1 << 20];
        Arrays.fill(hostile, (byte) 0x0B);
        rejects(hostile, "groups nested too deeply");
    }

    @Test
    void textThatIsNotUtf8IsRefused() {
        for (byte[] wrong : List.of(bytes(0xFF), bytes(0xC0, 0x80), bytes(0xED, 0xA0, 0x80), bytes(0xE2, 0x82))) {
            ProtobufWriter out = new ProtobufWriter();
            out.bytesField(1, wrong);
            ProtobufReader wire = reader(out.toByteArray());
            assertThat(wire.readTag()).isEqualTo(1 << 3 | ProtobufReader.BYTES);
            assertThatThrownBy(() -> wire.readText(names))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("not valid UTF-8");
        }
    }

    @Test
    void shortNamesAreTheSameStringAgainAndNeverAnothers() {
        SplittableRandom random = new SplittableRandom(SEED);
        for (int i = 0; i < 20_000; i++) {
            String name = Integer.toString(random.nextInt(2000), 36) + "é".repeat(random.nextInt(3));
            ByteBuffer utf8 = ByteBuffer.wrap(name.getBytes(StandardCharsets.UTF_8));
            String first = names.text(utf8, 0, utf8.limit());
            assertThat(first).isEqualTo(name);
            assertThat(names.text(utf8, 0, utf8.limit())).isSameAs(first);
        }
    }

    @Test
    void randomBytesAreReadOrRejectedWithoutOtherErrors() {
        SplittableRandom random = new SplittableRandom(SEED);
        ProtobufWriter out = new ProtobufWriter();
        int message = out.begin(1);
        out.presentTextField(2, "model");
        out.varintField(3, 1L << 40);
        out.doubleField(4, 2.5);
        out.end(message);
        byte[] good = out.toByteArray();
        for (int i = 0; i < 50_000; i++) {
            byte[] made = random.nextInt(4) == 0 ? new byte[random.nextInt(64)] : good.clone();
            if (made.length != good.length) {
                random.nextBytes(made);
            } else {
                made[random.nextInt(made.length)] = (byte) random.nextInt();
                made = Arrays.copyOf(made, 1 + random.nextInt(made.length));
            }
            byte[] given = made;
            assertThatCode(() -> walk(reader(given))).doesNotThrowAnyExceptionExcept(ServingException.class);
        }
    }

    private void walk(ProtobufReader wire) {
        while (wire.hasMore()) {
            int tag = wire.readTag();
            if (tag == (1 << 3 | ProtobufReader.BYTES)) {
                int outer = wire.enter();
                walk(wire);
                wire.leave(outer);
            } else if (tag == (2 << 3 | ProtobufReader.BYTES)) {
                assertThat(wire.readText(names)).isNotNull();
            } else {
                wire.skipField(tag);
            }
            assertThat(wire.position()).isLessThanOrEqualTo(wire.end());
        }
    }
}
