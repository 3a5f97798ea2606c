// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ArrowStreamTest {
    private static final long LIMIT = 1 << 20;
    private static final int MUTATIONS = 15_000;

    private long buffersBefore;

    @BeforeEach
    void countBuffers() {
        buffersBefore = Wire.pooledBuffers();
    }

    @AfterEach
    void everyBufferWasGivenBack() {
        assertThat(Wire.pooledBuffers()).isEqualTo(buffersBefore);
    }

    private static List<String> read(byte[] stream, long limit) {
        MemoryRegion body = MemoryRegion.copyOf(stream, 0, stream.length);
        try {
            List<Tensor> tensors = ArrowFixtures.tensors(body, limit);
            List<String> shown = new ArrayList<>();
            for (Tensor tensor : tensors) {
                shown.add(tensor.name() + " " + tensor.dataType() + tensor.shape() + " " + values(tensor));
            }
            Tensor.closeAll(tensors);
            return shown;
        } finally {
            body.release();
        }
    }

    private static List<String> read(String fixture) {
        return read(ArrowFixtures.stream(fixture), LIMIT);
    }

    private static List<Object> values(Tensor tensor) {
        ByteBuffer bytes = tensor.buffer();
        List<Object> values = new ArrayList<>();
        while (bytes.hasRemaining()) {
            switch (tensor.dataType()) {
                case BYTES -> {
                    byte[] text = new byte[bytes.getInt()];
                    bytes.get(text);
                    values.add(new String(text, StandardCharsets.UTF_8));
                }
                case FP32 -> values.add(bytes.getFloat());
                case FP64 -> values.add(bytes.getDouble());
                case INT64, UINT64 -> values.add(bytes.getLong());
                case INT32, UINT32 -> values.add(bytes.getInt());
                case FP16, BF16 -> values.add(Integer.toHexString(bytes.getShort()));
                case INT16, UINT16 -> values.add((int) bytes.getShort());
                default -> values.add((int) bytes.get());
            }
        }
        return values;
    }

    @ParameterizedTest
    @ValueSource(strings = {"types", "batches"})
    void everyTypeIsReadWhateverTheRecordBatches(String fixture) {
        String text = "[a, , a text that is longer than a view]";
        assertThat(read(fixture))
                .containsExactly(
                        "int8 INT8[3] [1, 2, 3]",
                        "int16 INT16[3] [1, 2, 3]",
                        "int32 INT32[3] [1, 2, 3]",
                        "int64 INT64[3] [1, 2, 3]",
                        "uint8 UINT8[3] [1, 2, 3]",
                        "uint16 UINT16[3] [1, 2, 3]",
                        "uint32 UINT32[3] [1, 2, 3]",
                        "uint64 UINT64[3] [1, 2, 3]",
                        "float32 FP32[3] [1.0, 2.0, 3.0]",
                        "float64 FP64[3] [1.0, 2.0, 3.0]",
                        "float16 FP16[3] [3c00, 4000, 4200]",
                        "bool BOOL[3] [1, 0, 1]",
                        "utf8 BYTES[3] " + text,
                        "large_utf8 BYTES[3] " + text,
                        "binary BYTES[3] " + text,
                        "large_binary BYTES[3] " + text,
                        "utf8_view BYTES[3] " + text,
                        "binary_view BYTES[3] " + text,
                        "list FP32[3,2] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]",
                        "nested INT32[3,3,2] [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]",
                        "tensor FP32[3,2,3] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0,"
                                + " 14.0, 15.0, 16.0, 17.0]");
    }

    @Test
    void textsOfPolarsAreViews() {
        assertThat(read("polars")).containsExactly("x BYTES[3] [short, a text that is longer than a view, ]");
    }

    @Test
    void theFormatBeforeArrow015IsRead() {
        assertThat(read("legacy")).hasSize(10).contains("int64 INT64[3] [1, 2, 3]", "float64 FP64[3] [1.0, 2.0, 3.0]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"empty", "schema"})
    void aTableWithoutRowsHasTensorsWithoutElements(String fixture) {
        assertThat(read(fixture)).hasSize(21).contains("int8 INT8[0] []", "utf8 BYTES[0] []", "nested INT32[0,3,2] []");
    }

    @Test
    void columnsOfOneBatchAreViewsOfTheBody() {
        byte[] stream = ArrowFixtures.stream("iris");
        MemoryRegion body = MemoryRegion.copyOf(stream, 0, stream.length);
        List<Tensor> tensors = ArrowFixtures.tensors(body, 0);
        assertThat(tensors).hasSize(4).allMatch(t -> t.region() == body);
        Tensor.closeAll(tensors);
        body.release();
    }

    @Test
    void aNullOfAFloatIsNaN() {
        assertThat(read("nulls"))
                .containsExactly("real FP64[3] [1.5, NaN, 2.5]", "list FP32[3,2] [1.0, NaN, 3.0, 4.0, NaN, 6.0]");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "null_int | column 'x' has a null in row 2, which input 'x' of type INT32 cannot hold",
                "null_text | column 'x' has a null in row 1, which input 'x' of type BYTES cannot hold",
                "null_list | column 'x' has a null in place of a list, in row 1 of a record batch",
                "dictionary | column 'x' has a type that is not supported: dictionary",
                "timestamp | column 'x' has a type that is not supported: timestamp",
                "decimal | column 'x' has a type that is not supported: decimal",
                "lists | column 'x' has a type that is not supported: list",
                "struct | column 'x' has a type that is not supported: struct",
                "lz4 | the buffers of the Arrow stream are compressed with LZ4",
                "zstd | the buffers of the Arrow stream are compressed with ZSTD",
            })
    void whatTensorsCannotHoldIsRefusedByName(String fixture, String message) {
        assertThatThrownBy(() -> read(fixture)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).startsWith(message);
            assertThat(e.remedy()).isNotEmpty();
        });
    }

    @Test
    void aFileIsRefusedWithTheWayToWriteAStream() {
        assertThatThrownBy(() -> read(ArrowFixtures.read("file.arrow"), LIMIT))
                .isInstanceOf(ServingException.class)
                .hasMessage("the body is an Arrow file (expected: an Arrow IPC stream)");
    }

    @Test
    void copiesStayWithinTheirLimit() {
        assertThatThrownBy(() -> read(ArrowFixtures.stream("types"), 100))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("which exceeds the maximum allowed value of 100 bytes");
    }

    /** The bytes or the client's error; everything else fails the test. */
    private static boolean survives(byte[] stream) {
        try {
            read(stream, LIMIT);
            return true;
        } catch (ServingException e) {
            assertThat(e.code()).as(e.getMessage()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            return false;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"types", "batches", "legacy", "nulls", "polars"})
    void aStreamThatIsCutIsRefusedOrHasItsFirstBatches(String fixture) {
        byte[] whole = ArrowFixtures.stream(fixture);
        int read = 0;
        for (int length = 0; length < whole.length; length++) {
            read += survives(Arrays.copyOf(whole, length)) ? 1 : 0;
        }
        // after the schema and after each batch
        assertThat(read).isBetween(1, 4);
    }

    @Test
    void changedBytesAreTheClientsFault() {
        String[] fixtures = {"types", "batches", "legacy", "nulls", "polars", "mixed", "options", "null_text", "zstd"};
        List<byte[]> streams =
                Arrays.stream(fixtures).map(ArrowFixtures::stream).toList();
        int good = 0;
        for (int seed = 0; seed < MUTATIONS; seed++) {
            Random random = new Random(seed);
            byte[] stream = streams.get(random.nextInt(streams.size())).clone();
            ByteBuffer bytes = ByteBuffer.wrap(stream).order(ByteOrder.LITTLE_ENDIAN);
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                int at = random.nextInt(stream.length / 4) * 4;
                switch (random.nextInt(4)) {
                    case 0 -> stream[at + random.nextInt(4)] = (byte) random.nextInt(256);
                    case 1 -> stream[at] ^= (byte) (1 << random.nextInt(8));
                    case 2 -> bytes.putInt(at, random.nextInt());
                    default -> bytes.putInt(at, new int[] {-1, Integer.MAX_VALUE, Integer.MIN_VALUE, 0}[at / 4 & 3]);
                }
            }
            good += survives(stream) ? 1 : 0;
        }
        assertThat(good).isBetween(MUTATIONS / 10, MUTATIONS * 9 / 10);
    }

    private static Tensor numbers(String name, DataType type, Shape shape, double... values) {
        return Tensor.ofDoubles(name, type, shape, values);
    }

    /** Writes tensors as a response and returns its bytes. */
    private static byte[] written(Map<String, Object> parameters, Tensor... outputs) {
        InferenceResponse response = new InferenceResponse(new ServableId("m", 3), "r-1", List.of(outputs), parameters);
        FakeEngine engine = new FakeEngine();
        CodecContext context = new CodecContext(
                engine,
                engine,
                Observability.NONE,
                Clock.system(),
                Runnable::run,
                V2Options.defaults("1", LIMIT),
                Path.of("/dev/shm"));
        return Wire.bytes(ArrowInferWriter.write(response, context.buffers(), null, Clock.system())
                .content());
    }

    @Test
    void everyTypeIsWrittenAsItIsRead() {
        Shape two = Shape.of(2);
        List<Tensor> outputs = new ArrayList<>();
        for (DataType type : DataType.values()) {
            if (type.isInteger() || type == DataType.FP32 || type == DataType.FP64 || type == DataType.BOOL) {
                outputs.add(numbers(type.name(), type, two, 1, 0));
            }
        }
        Tensor half = Tensor.allocate("FP16", DataType.FP16, two);
        half.buffer().putShort((short) 0x3c00).putShort((short) 0x4000);
        outputs.add(half);
        Tensor brain = Tensor.allocate("BF16", DataType.BF16, two);
        brain.buffer().putShort((short) 0x3f80).putShort((short) 0xc000);
        outputs.add(brain);
        byte[][] texts = {"é".getBytes(StandardCharsets.UTF_8), {}};
        outputs.add(Tensor.ofBytes("text", two, texts));
        outputs.add(Tensor.ofBytes("bytes", two, new byte[][] {{(byte) 0xff}, {'a'}}));
        outputs.add(numbers("column", DataType.INT32, Shape.of(2, 1), 1, 2));
        outputs.add(numbers("matrix", DataType.FP32, Shape.of(2, 3), 1, 2, 3, 4, 5, 6));
        outputs.add(numbers("cube", DataType.FP64, Shape.of(2, 1, 2), 1, 2, 3, 4));
        outputs.add(numbers("nothing", DataType.FP32, Shape.of(2, 0)));
        byte[] stream = written(Map.of(), outputs.toArray(new Tensor[0]));
        assertThat(read(stream, LIMIT))
                .contains(
                        "BOOL BOOL[2] [1, 0]",
                        "UINT8 UINT8[2] [1, 0]",
                        "UINT64 UINT64[2] [1, 0]",
                        "INT16 INT16[2] [1, 0]",
                        "FP16 FP16[2] [3c00, 4000]",
                        "BF16 FP32[2] [1.0, -2.0]",
                        "FP64 FP64[2] [1.0, 0.0]",
                        "text BYTES[2] [é, ]",
                        "column INT32[2] [1, 2]",
                        "matrix FP32[2,3] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]",
                        "cube FP64[2,1,2] [1.0, 2.0, 3.0, 4.0]",
                        "nothing FP32[2,0] []")
                .hasSize(outputs.size());
    }

    @Test
    void theSchemaNamesTypesAndModel() {
        byte[] stream = written(
                Map.of("n", 7L),
                Tensor.ofBytes("text", Shape.of(1), new byte[][] {{'a'}}),
                Tensor.ofBytes("bytes", Shape.of(1), new byte[][] {{(byte) 0xff}}));
        MemoryRegion body = MemoryRegion.copyOf(stream, 0, stream.length);
        ArrowTable table = ArrowStreamReader.read(body);
        body.release();
        assertThat(table.columns()).extracting(c -> c.field().typeName()).containsExactly("utf8", "binary");
        assertThat(table.metadata())
                .isEqualTo(Map.of("model_name", "m", "model_version", "3", "id", "r-1", "parameters", "{\"n\":7}"));
    }

    @Test
    void buffersOfAResponseAreAlignedWithinItsBody() {
        byte[] stream = written(
                Map.of(),
                numbers("a", DataType.INT8, Shape.of(3), 1, 2, 3),
                numbers("b", DataType.FP64, Shape.of(3), 1, 2, 3));
        MemoryRegion body = MemoryRegion.copyOf(stream, 0, stream.length);
        ArrowTable table = ArrowStreamReader.read(body);
        body.release();
        int first = table.columns().get(0).chunks().get(0).values();
        int second = table.columns().get(1).chunks().get(0).values();
        assertThat(first % 8).isZero();
        assertThat(second - first).isEqualTo(64);
    }
}
