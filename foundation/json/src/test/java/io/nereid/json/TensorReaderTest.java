// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static io.nereid.json.Documents.assertRefused;
import static io.nereid.json.Documents.direct;
import static io.nereid.json.Documents.readTensor;
import static io.nereid.json.Documents.reader;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.json.number.LittleEndian;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TensorReaderTest {
    @Test
    void readsFlatAndNestedAlike() {
        for (String json : new String[] {
            "[1,2.5,-3,4e2]", "[[1,2.5],[-3,4e2]]", "[[[1]],[2.5,[-3]], 4e2 ]", "[ 1 ,\n2.5,[],[[-3 , 4e2]] ]"
        }) {
            ByteBuffer read = readTensor(DataType.FP32, json, 4);
            assertThat(read.getFloat(0)).isEqualTo(1f);
            assertThat(read.getFloat(4)).isEqualTo(2.5f);
            assertThat(read.getFloat(8)).isEqualTo(-3f);
            assertThat(read.getFloat(12)).isEqualTo(400f);
        }
        readTensor(DataType.FP32, "[]", 0);
        readTensor(DataType.INT8, "[[],[[]]]", 0);
    }

    @Test
    void writesOnlyToTheRequestedRange() {
        for (ByteBuffer dst :
                new ByteBuffer[] {direct(64), ByteBuffer.allocate(64).order(ByteOrder.BIG_ENDIAN)}) {
            for (int i = 0; i < 64; i++) {
                dst.put(i, (byte) 0x55);
            }
            dst.position(3).limit(40);
            new TensorReader(reader("[258,-1]")).read(DataType.INT16, dst, 10, 2);
            assertThat(dst.position()).isEqualTo(3);
            assertThat(dst.limit()).isEqualTo(40);
            assertThat(new byte[] {dst.get(9), dst.get(10), dst.get(11), dst.get(12), dst.get(13), dst.get(14)})
                    .containsExactly(0x55, 2, 1, -1, -1, 0x55);
            assertThatThrownBy(() -> new TensorReader(reader("[1,2]")).read(DataType.FP64, dst, 32, 2))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void readsMoreThanOneChunk() {
        int n = 100_003;
        StringBuilder json = new StringBuilder("[");
        for (int i = 0; i < n; i++) {
            json.append(i == 0 ? "" : ",").append(i);
        }
        String text = json.append(']').toString();
        for (DataType type : new DataType[] {DataType.INT32, DataType.FP32, DataType.FP64, DataType.UINT64}) {
            ByteBuffer read = readTensor(type, text, n);
            ByteSink sink = new ByteSink(3);
            TensorReader nested = new TensorReader(reader(text));
            nested.readNested(type, sink);
            assertThat(nested.dims()).containsExactly(n);
            ByteBuffer copy = direct(sink.length());
            sink.copyTo(copy, 0);
            assertThat(copy).isEqualTo(read);
            for (int i = 0; i < n; i++) {
                double v = switch (type) {
                    case INT32 -> read.getInt(4 * i);
                    case FP32 -> read.getFloat(4 * i);
                    case FP64 -> read.getDouble(8 * i);
                    default -> read.getLong(8 * i);
                };
                assertThat(v).isEqualTo(i);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "UINT8,0,255,256", "UINT16,0,65535,65536", "UINT32,0,4294967295,4294967296",
        "UINT64,0,18446744073709551615,18446744073709551616", "INT8,-128,127,128", "INT16,-32768,32767,32768",
        "INT32,-2147483648,2147483647,2147483648", "INT64,-9223372036854775808,9223372036854775807,9223372036854775808"
    })
    void keepsIntegersInRange(DataType type, String min, String max, String tooLarge) {
        ByteBuffer read = readTensor(type, "[" + min + "," + max + ",0.0,1e1]", 4);
        assertThat(Documents.print(w -> w.flatArray(type, read, 0, 4))).isEqualTo("[" + min + "," + max + ",0,10]");
        assertRefused(() -> readTensor(type, "[" + tooLarge + "]", 1))
                .hasMessage("value " + tooLarge + " at byte offset 1 is out of range for " + type + " (expected: " + min
                        + " to " + max + ")");
        String tooSmall = min.equals("0") ? "-1" : min.substring(0, min.length() - 1) + "9";
        assertRefused(() -> readTensor(type, "[" + tooSmall + "]", 1)).hasMessageContaining("out of range for " + type);
        assertRefused(() -> readTensor(type, "[1.5]", 1))
                .hasMessageContaining("value 1.5 at byte offset 1 is not a whole number");
        assertRefused(() -> readTensor(type, "[1e-3]", 1)).hasMessageContaining("whole");
        assertRefused(() -> readTensor(type, "[NaN]", 1)).hasMessageContaining("whole");
        assertRefused(() -> readTensor(type, "[true]", 1)).hasMessageContaining("expected: a number");
        assertRefused(() -> readTensor(type, "[\"1\"]", 1)).hasMessageContaining("unexpected string");
    }

    @Test
    void readsBooleans() {
        ByteBuffer read = readTensor(DataType.BOOL, "[true, false ,0,[1],1.0,-0]", 6);
        assertThat(new byte[] {read.get(0), read.get(1), read.get(2), read.get(3), read.get(4), read.get(5)})
                .containsExactly(1, 0, 0, 1, 1, 0);
        for (String bad : new String[] {"2", "-1", "0.5", "tru", "null", "\"true\"", "NaN", "18446744073709551617"}) {
            assertRefused(() -> readTensor(DataType.BOOL, "[" + bad + "]", 1)).hasMessageContaining("expected: true");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "FP16,65504,65520,0x7bff",
        "BF16,3.38953139e38,3.4e38,0x7f7f",
        "FP32,3.4028235e38,3.4028236e38,0x7f7fffff",
        "FP64,1.7976931348623157e308,1.7976931348623159e308,0x7fefffffffffffff"
    })
    void rejectsFiniteNumbersBeyondTheType(DataType type, String max, String beyond, String bits) {
        ByteBuffer read = readTensor(type, "[" + max + ",Infinity,-Infinity,NaN,1e-5000]", 5);
        long expected = Long.decode(bits);
        assertThat(element(read, type, 0)).isEqualTo(expected);
        assertThat(Documents.print(w -> w.flatArray(type, read, type.size(), 4)))
                .isEqualTo("[Infinity,-Infinity,NaN,0.0]");
        for (String bad : new String[] {beyond, "-" + beyond, "1e5000", "1" + "0".repeat(400)}) {
            assertRefused(() -> readTensor(type, "[" + bad + "]", 1))
                    .hasMessageContaining("out of range for " + type + " (expected: magnitude <= ");
        }
    }

    private static long element(ByteBuffer b, DataType type, int i) {
        return switch (type.size()) {
            case 2 -> b.getShort(2 * i) & 0xFFFF;
            case 4 -> b.getInt(4 * i) & 0xFFFF_FFFFL;
            default -> b.getLong(8 * i);
        };
    }

    @Test
    void countsElements() {
        assertRefused(() -> readTensor(DataType.FP32, "[1,2,3]", 4))
                .hasMessage("the array that ends at byte offset 7 holds 3 elements (expected: 4)");
        assertRefused(() -> readTensor(DataType.FP32, "[1,2,3,[4]]", 3))
                .hasMessage("the array holds more than the expected 3 elements, the next at byte offset 8");
        assertRefused(() -> new TensorReader(reader("[\"a\"]")).readBytes(new ByteSink(8), 2))
                .hasMessageContaining("holds 1");
        assertRefused(() -> new TensorReader(reader("[\"a\",\"b\"]")).readBytes(new ByteSink(8), 1))
                .hasMessageContaining("more than the expected 1");
        assertRefused(() -> readTensor(DataType.FP32, "5", 1)).hasMessageContaining("expected: an array");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "[1,]",
                "[,1]",
                "[1 2]",
                "[1",
                "[1,",
                "[[1]",
                "[[1],]",
                "[1}",
                "[1:2]",
                "[null]",
                "[{}]",
                "[01]",
                "[1.]",
                "[-]",
                "[",
                "",
                "[1,,2]",
                "[[1][2]]",
                "[1[2]]"
            })
    void rejectsMalformedArrays(String json) {
        for (DataType type : DataType.values()) {
            assertRefused(() -> new TensorReader(reader(json)).readNested(type, new ByteSink(8)));
            if (type.isFixedSize()) {
                assertRefused(() -> new TensorReader(reader(json)).read(type, direct(64), 0, 2));
            } else {
                assertRefused(() -> new TensorReader(reader(json)).readBytes(new ByteSink(8), 2));
            }
        }
    }

    @Test
    void readsStringsWithTheirLengths() {
        ByteSink sink = new ByteSink(1);
        new TensorReader(reader("[\"ab\",[\"\\u00e9\"],\"\"]")).readBytes(sink, 3);
        assertThat(java.util.Arrays.copyOf(sink.array(), sink.length()))
                .containsExactly(2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 0xC3, 0xA9, 0, 0, 0, 0);
        assertRefused(() -> new TensorReader(reader("[{\"b64\":\"Zg==\"}]")).readBytes(sink, 1))
                .hasMessageContaining("unexpected object at byte offset 1 (expected: a string)");
    }

    @Test
    void readsBase64ObjectsWhereAllowed() {
        ByteSink sink = new ByteSink(1);
        TensorReader tensors = new TensorReader(reader("[ {\"b64\" : \"Zm9v\"} , \"x\"]"), true);
        tensors.readNested(DataType.BYTES, sink);
        assertThat(tensors.dims()).containsExactly(2);
        assertThat(new String(sink.array(), 0, sink.length(), StandardCharsets.ISO_8859_1))
                .isEqualTo("\3\0\0\0foo\1\0\0\0x");
        for (String bad :
                new String[] {"[{}]", "[{\"b65\":\"\"}]", "[{\"b64\":\"Zg\",\"a\":1}]", "[{\"b64\":1}]", "[1]"}) {
            assertRefused(() -> new TensorReader(reader(bad), true).readNested(DataType.BYTES, new ByteSink(1)));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "5;''",
                "[];0",
                "[1,2,3];3",
                "[[1,2],[3,4],[5,6]];3 2",
                "[[],[]];2 0",
                "[[[]],[[]]];2 1 0",
                "[[[1],[2]]];1 2 1",
                "[ [ 1 , 2 ] , [ 3 , 4 ] ];2 2"
            })
    void discoversTheShape(String json, String dims) {
        JsonReader r = reader(json);
        TensorReader tensors = new TensorReader(r);
        ByteSink sink = new ByteSink(1);
        tensors.readNested(DataType.INT32, sink);
        r.expectEnd();
        StringBuilder found = new StringBuilder();
        long count = 1;
        for (int i = 0; i < tensors.rank(); i++) {
            found.append(i == 0 ? "" : " ").append(tensors.dim(i));
            count *= tensors.dim(i);
        }
        assertThat(found).hasToString(dims);
        assertThat(tensors.count()).isEqualTo(count);
        assertThat(sink.length()).isEqualTo(4 * (int) count);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "[[1,2],[3]]",
                "[[1],[2,3]]",
                "[1,[2]]",
                "[[1],2]",
                "[[],1]",
                "[[],[1]]",
                "[[1],[]]",
                "[[],[[]]]",
                "[[[1]],[2]]",
                "[[1],[[2]]]",
                "[[1],[[]]]",
                "[[[]],[]]"
            })
    void rejectsRaggedLists(String json) {
        assertRefused(() -> new TensorReader(reader(json)).readNested(DataType.FP32, new ByteSink(8)))
                .hasMessageStartingWith("Encountered list at unexpected size: ");
    }

    @Test
    void floatsOutOfRangeBecomeInfiniteWhereThatIsAllowed() {
        TensorReader tensors = new TensorReader(reader("[1e39,-3.5e38,1,1e-60]"), false, true);
        ByteSink sink = new ByteSink(1);
        tensors.readNested(DataType.FP32, sink);
        assertThat(sink.length()).isEqualTo(16);
        assertThat(Float.intBitsToFloat(LittleEndian.getInt(sink.array(), 0))).isEqualTo(Float.POSITIVE_INFINITY);
        assertThat(Float.intBitsToFloat(LittleEndian.getInt(sink.array(), 4))).isEqualTo(Float.NEGATIVE_INFINITY);
        assertThat(Float.intBitsToFloat(LittleEndian.getInt(sink.array(), 12))).isZero();
        assertRefused(() -> new TensorReader(reader("[1e400]"), false, true).readNested(DataType.FP64, sink));
        assertRefused(() -> new TensorReader(reader("[1e39]"), false).readNested(DataType.FP32, sink));
    }

    @Test
    void staysUsableAfterAnError() {
        JsonReader r = reader("[[1,2],[3]]");
        TensorReader tensors = new TensorReader(r);
        ByteSink sink = new ByteSink(8);
        assertRefused(() -> tensors.readNested(DataType.FP32, sink));
        Documents.reset(r, "[[1],[2]]".getBytes(StandardCharsets.UTF_8));
        sink.reset();
        tensors.readNested(DataType.FP32, sink);
        assertThat(tensors.dims()).containsExactly(2, 1);
        assertThat(sink.length()).isEqualTo(8);
    }

    @Test
    void limitsTheDepthOfNesting() {
        String deep = "[".repeat(101) + "1" + "]".repeat(101);
        assertRefused(() -> readTensor(DataType.FP32, deep, 1))
                .hasMessageContaining("JSON nesting depth exceeds maximum allowed");
        assertRefused(() -> new TensorReader(reader(deep)).readNested(DataType.FP32, new ByteSink(8)))
                .hasMessageContaining("JSON nesting depth exceeds maximum allowed");
        readTensor(DataType.FP32, "[".repeat(100) + "1" + "]".repeat(100), 1);
    }

    @Test
    void nullIsAMissingValueWhereItIsAllowed() {
        String text = "[1,null,[null, 2]]";
        for (DataType type : new DataType[] {DataType.FP32, DataType.FP64}) {
            ByteBuffer to = direct(64);
            assertRefused(() -> new TensorReader(reader(text)).read(type, to, 0, 4));
            TensorReader tensors = new TensorReader(reader(text));
            tensors.missing(() -> true);
            tensors.read(type, to, 0, 4);
            for (int i = 0; i < 4; i++) {
                double v = type == DataType.FP32 ? to.getFloat(4 * i) : to.getDouble(8 * i);
                assertThat(Double.isNaN(v)).isEqualTo(i == 1 || i == 2);
            }
            TensorReader strict = new TensorReader(reader(text));
            strict.missing(() -> false);
            assertRefused(() -> strict.read(type, to, 0, 4));
        }
    }

    @Test
    void nullIsAnEmptyTextWhereItIsAllowed() {
        ByteSink sink = new ByteSink(16);
        assertRefused(() -> new TensorReader(reader("[null,\"a\"]")).readBytes(sink, 2));
        sink.reset();
        TensorReader tensors = new TensorReader(reader("[null,\"a\",[null]]"));
        tensors.missing(() -> true);
        tensors.readBytes(sink, 3);
        assertThat(Arrays.copyOf(sink.array(), sink.length())).containsExactly(0, 0, 0, 0, 1, 0, 0, 0, 'a', 0, 0, 0, 0);
    }
}
