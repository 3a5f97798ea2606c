// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TensorProtoCodecTest {
    private static final List<DataType> FIXED =
            Arrays.stream(DataType.values()).filter(DataType::isFixedSize).toList();

    private static String name(DataType type) {
        return switch (type) {
            case FP16 -> "float16";
            case BF16 -> "bfloat16";
            case FP32 -> "float32";
            case FP64 -> "float64";
            default -> type.name().toLowerCase(java.util.Locale.ROOT);
        };
    }

    private static byte[] hex(String text) {
        return HexFormat.of().parseHex(text.replace(" ", ""));
    }

    private static float[] floats(byte[] message) {
        try (Tensor t = TensorProtoCodec.parse("x", message)) {
            float[] values = new float[t.byteLength() / 4];
            t.buffer().asFloatBuffer().get(values);
            return values;
        }
    }

    private static void rejected(String message, String part) {
        assertThatThrownBy(() -> TensorProtoCodec.parse("x", hex(message)))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining(part)
                .satisfies(e -> assertThat(((ServingException) e).code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    @Test
    void everyTypeReadsTheSameFromItsListAndFromContent() {
        for (DataType type : FIXED) {
            try (Tensor typed = TensorProtoCodec.parse("x", Fixtures.of("typed/" + name(type)));
                    Tensor content = TensorProtoCodec.parse("x", Fixtures.of("content/" + name(type)))) {
                assertThat(typed.dataType()).isEqualTo(type).isEqualTo(content.dataType());
                assertThat(typed.shape()).isEqualTo(Shape.of(2, 2)).isEqualTo(content.shape());
                assertThat(Fixtures.bytes(typed)).as(type.name()).isEqualTo(Fixtures.bytes(content));
                assertThat(Fixtures.bytes(typed)).isNotEqualTo(new byte[typed.byteLength()]);
            }
        }
    }

    @Test
    void everyTypeIsWrittenAsTensorFlowWritesIt() {
        for (DataType type : FIXED) {
            try (Tensor t = TensorProtoCodec.parse("x", Fixtures.of("content/" + name(type)))) {
                assertThat(TensorProtoCodec.toBytes(t, false))
                        .as(type.name())
                        .isEqualTo(Fixtures.of("typed/" + name(type)));
                assertThat(TensorProtoCodec.toBytes(t, true))
                        .as(type.name())
                        .isEqualTo(Fixtures.of("content/" + name(type)));
            }
        }
        try (Tensor t = TensorProtoCodec.parse("x", Fixtures.of("content/string"))) {
            assertThat(TensorProtoCodec.toBytes(t, true)).isEqualTo(Fixtures.of("typed/string"));
        }
    }

    @Test
    void stringsAreByteExactFromListAndContent() {
        byte[] expected = hex("01000000 61 00000000 02000000 00ff 04000000 666f7572");
        for (String form : List.of("typed/string", "content/string")) {
            try (Tensor t = TensorProtoCodec.parse("x", Fixtures.of(form))) {
                assertThat(t.dataType()).isEqualTo(DataType.BYTES);
                assertThat(Fixtures.bytes(t)).isEqualTo(expected);
            }
        }
    }

    @Test
    void aShortListRepeatsItsLastValueAndAnEmptyOneIsZeros() {
        assertThat(floats(Fixtures.of("broadcast/float"))).containsExactly(7, 7, 7, 7, 7, 7);
        assertThat(floats(Fixtures.of("short/float"))).containsExactly(1, 2, 2, 2, 2);
        assertThat(floats(Fixtures.of("scalar/float"))).containsExactly(1.5f);
        try (Tensor t = TensorProtoCodec.parse("x", Fixtures.of("empty/int64"));
                Tensor strings = TensorProtoCodec.parse("s", hex("0807 1204 12020803 42 02 6162 42 01 63"));
                Tensor noStrings = TensorProtoCodec.parse("s", hex("0807 1204 12020802"))) {
            assertThat(Fixtures.bytes(t)).isEqualTo(new byte[32]);
            assertThat(Fixtures.bytes(strings)).isEqualTo(hex("02000000 6162 01000000 63 01000000 63"));
            assertThat(Fixtures.bytes(noStrings)).isEqualTo(new byte[8]);
        }
        assertThat(floats(Fixtures.of("zero/float"))).isEmpty();
    }

    @Test
    void listsMayComePackedUnpackedOrInPieces() {
        assertThat(floats(hex("0801 1204 12020803 2d0000803f 2d00000040 2d00004040")))
                .containsExactly(1, 2, 3);
        assertThat(floats(hex("0801 1204 12020803 2a040000803f 2d00000040 2a0400004040")))
                .containsExactly(1, 2, 3);
        assertThat(floats(hex("2d0000803f 0801 2d00000040 1204 12020802"))).containsExactly(1, 2);
        assertThat(floats(hex("0801 1204 12020803 2a00 2a040000803f 2a080000004000004040")))
                .containsExactly(1, 2, 3);
    }

    @Test
    void packedFloatsAndContentAreViewsOfTheMessage() {
        for (String form : List.of("typed/float32", "content/float32", "content/int64", "typed/float64")) {
            byte[] message = Fixtures.of(form);
            MemoryRegion region = MemoryRegion.copyOf(message, 0, message.length);
            ProtobufReader wire = new ProtobufReader();
            wire.reset(region.buffer(0, region.size()));
            try (Tensor t = new TensorProtoCodec(wire).read("x", region)) {
                assertThat(t.region()).isSameAs(region);
                assertThat(region.release()).isFalse();
            }
        }
    }

    @Test
    void typesThatAreNotServedAreNamed() {
        rejected("0808 1200", "tensor 'x' has dtype DT_COMPLEX64");
        rejected("0814 1200", "DT_RESOURCE");
        rejected("0865 1200", "DT_FLOAT_REF");
        rejected("1200 2d00000000", "DT_INVALID");
        rejected("08e807 1200", "number 1000");
        rejected("081d 1200", "DT_INT4");
    }

    @Test
    void invalidShapesAreRejected() {
        rejected("0801 1202 1801", "unknown rank");
        rejected("0801 120d 120b08ffffffffffffffffff01", "dimension -1");
        rejected("0801 1218 120a08ffffffffffffffff7f 120a08ffffffffffffffff7f", "more elements than fit");
        rejected("0801 1204 12020802 2a0c000000000000000000000000", "has 3 values in float_val");
        rejected("0801 1204 12020802 220400000000", "4 bytes of tensor_content");
        rejected("0801 1204 12020802 3a0101", "has its values in int_val (expected: in float_val or tensor_content)");
        rejected("0804 1200 3a02ac02", "value 300 of tensor 'x' does not fit DT_UINT8");
        rejected("0807 1204 12020802 2203050161", "that are not the 2 strings");
    }

    @Test
    void aFewBytesCannotAskForMuchMemory() {
        long before = MemoryRegion.pooledBytes();
        rejected("0801 1208 1206 0880808080 08 2a0400000000", "gives too few values");
        rejected("0801 1208 1206 0880808080 08", "gives too few values");
        rejected("0807 1208 1206 0880808080 08 420161", "gives too few values");
        assertThat(MemoryRegion.pooledBytes()).isEqualTo(before);
        // 128 Ki floats each, of which all but one are repeated: 128 of them come to just below the limit.
        byte[] message = hex("0801 1206 1204 08808008 2a040000803f");
        ProtobufReader wire = new ProtobufReader();
        MemoryRegion region = MemoryRegion.copyOf(message, 0, message.length);
        TensorProtoCodec protos = new TensorProtoCodec(wire);
        protos.begin();
        for (int i = 0; i < 128; i++) {
            wire.reset(region.buffer(0, region.size()));
            protos.read("x", region).close();
        }
        wire.reset(region.buffer(0, region.size()));
        assertThatThrownBy(() -> protos.read("x", region)).hasMessageContaining("gives too few values");
        protos.begin();
        wire.reset(region.buffer(0, region.size()));
        protos.read("x", region).close();
        region.release();
    }

    @Test
    void whatIsWrittenReadsBackForRandomTensors() {
        Random random = new Random(7);
        for (int round = 0; round < 500; round++) {
            DataType type = DataType.values()[random.nextInt(DataType.values().length)];
            Shape shape = Shape.of(random.nextInt(4), random.nextInt(5));
            byte[] bytes = randomBytes(type, (int) shape.elementCount(), random);
            Tensor tensor = Tensor.over("t", type, shape, MemoryRegion.copyOf(bytes, 0, bytes.length), 0, bytes.length);
            for (boolean content : new boolean[] {true, false}) {
                try (Tensor back = TensorProtoCodec.parse("t", TensorProtoCodec.toBytes(tensor, content))) {
                    assertThat(back.shape()).isEqualTo(shape);
                    assertThat(back.dataType()).isEqualTo(type);
                    assertThat(Fixtures.bytes(back)).isEqualTo(bytes);
                }
                ProtobufWriter out = new ProtobufWriter();
                TensorProtoCodec.write(out, 3, tensor, content);
                ProtobufReader wire = new ProtobufReader();
                wire.reset(TensorProtoCodec.view(out.toByteArray()));
                assertThat(wire.readTag()).isEqualTo(3 << 3 | ProtobufReader.BYTES);
                assertThat(wire.readLength()).isEqualTo(TensorProtoCodec.toBytes(tensor, content).length);
            }
            tensor.close();
        }
    }

    private static byte[] randomBytes(DataType type, int count, Random random) {
        if (type == DataType.BYTES) {
            ByteBuffer out = ByteBuffer.allocate(count * 204).order(ByteOrder.LITTLE_ENDIAN);
            for (int i = 0; i < count; i++) {
                byte[] value = new byte[random.nextInt(200)];
                random.nextBytes(value);
                out.putInt(value.length).put(value);
            }
            return Arrays.copyOf(out.array(), out.position());
        }
        byte[] bytes = new byte[count * type.size()];
        random.nextBytes(bytes);
        for (int i = 0; type == DataType.BOOL && i < bytes.length; i++) {
            bytes[i] &= 1;
        }
        return bytes;
    }

    @Test
    void malformedMessagesAreRejectedWithoutALeakOrAnyOtherException() {
        Random random = new Random(11);
        List<byte[]> seeds = List.copyOf(Fixtures.all().values());
        int refusals = 0;
        for (int round = 0; round < 20_000; round++) {
            byte[] message = seeds.get(random.nextInt(seeds.size())).clone();
            for (int i = random.nextInt(4); i >= 0 && message.length > 0; i--) {
                message[random.nextInt(message.length)] = (byte) random.nextInt();
            }
            if (random.nextInt(4) == 0) {
                message = Arrays.copyOf(message, random.nextInt(message.length + 1));
            }
            MemoryRegion region = MemoryRegion.copyOf(message, 0, message.length);
            ProtobufReader wire = new ProtobufReader();
            wire.reset(region.buffer(0, region.size()));
            try {
                new TensorProtoCodec(wire).read("x", region).close();
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                refusals++;
            }
            assertThat(region == MemoryRegion.empty() || region.release()).isTrue();
        }
        assertThat(refusals).isGreaterThan(1000);
    }

    @Test
    void typesHaveTheirNumbersAndNames() {
        assertThat(TfDataType.of(DataType.BF16).number()).isEqualTo(14);
        assertThat(TfDataType.of(DataType.UINT64).number()).isEqualTo(23);
        assertThat(TfDataType.ofName("DT_HALF")).isEqualTo(TfDataType.HALF);
        assertThat(TfDataType.ofName("DT_INT")).isNull();
        assertThat(TfDataType.ofName("DT_INT64X")).isNull();
        assertThat(TfDataType.ofNumber(26)).isNull();
        for (TfDataType type : TfDataType.values()) {
            assertThat(TfDataType.ofName(type.protoName())).isEqualTo(type);
            assertThat(TfDataType.ofNumber(type.number())).isEqualTo(type);
        }
    }
}
