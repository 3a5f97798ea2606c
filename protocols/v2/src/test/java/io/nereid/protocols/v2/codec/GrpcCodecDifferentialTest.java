// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.UnknownFieldSet;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.memory.SharedMemoryManager;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferRequestedOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse.InferOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelStreamInferResponse;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Our reader and writer of inference messages against the generated classes, on random messages. */
class GrpcCodecDifferentialTest {
    private static final int CASES = 12_000;

    private final CodecBuffers buffers = new CodecBuffers(
            V2Options.defaults("1", 1 << 26), new SharedMemoryManager(java.nio.file.Path.of("/nowhere"), null, null));

    private static String text(Random random) {
        return switch (random.nextInt(5)) {
            case 0 -> "";
            case 1 -> "INPUT" + random.nextInt(3);
            case 2 -> "é\uD83D\uDE00" + random.nextInt(9);
            case 3 -> "long".repeat(random.nextInt(60));
            default -> Integer.toString(random.nextInt());
        };
    }

    private static InferParameter parameter(Random random) {
        InferParameter.Builder b = InferParameter.newBuilder();
        return switch (random.nextInt(6)) {
            case 0 -> b.setBoolParam(random.nextBoolean()).build();
            case 1 -> b.setInt64Param(random.nextLong()).build();
            case 2 -> b.setStringParam(text(random)).build();
            case 3 -> b.setDoubleParam(random.nextDouble()).build();
            case 4 -> b.setUint64Param(random.nextLong() >>> 1).build();
            default -> b.build();
        };
    }

    private static Object value(InferParameter p) {
        return switch (p.getParameterChoiceCase()) {
            case BOOL_PARAM -> p.getBoolParam();
            case INT64_PARAM -> p.getInt64Param();
            case STRING_PARAM -> p.getStringParam();
            case DOUBLE_PARAM -> p.getDoubleParam();
            case UINT64_PARAM -> p.getUint64Param();
            case PARAMETERCHOICE_NOT_SET -> null;
        };
    }

    private static byte[] bytes(Random random, int size) {
        byte[] b = new byte[size];
        random.nextBytes(b);
        return b;
    }

    /** Little-endian elements of a type, and the same as typed contents; null contents for types without. */
    private record Data(byte[] raw, InferTensorContents contents) {}

    private static Data data(DataType type, int count, Random random) {
        InferTensorContents.Builder b = InferTensorContents.newBuilder();
        ByteBuffer raw = ByteBuffer.allocate(count * 64).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            long bits = random.nextLong() >> random.nextInt(64);
            switch (type) {
                case BOOL -> {
                    b.addBoolContents(bits < 0);
                    raw.put((byte) (bits < 0 ? 1 : 0));
                }
                case INT8 -> {
                    b.addIntContents((byte) bits);
                    raw.put((byte) bits);
                }
                case INT16 -> {
                    b.addIntContents((short) bits);
                    raw.putShort((short) bits);
                }
                case INT32 -> {
                    b.addIntContents((int) bits);
                    raw.putInt((int) bits);
                }
                case INT64 -> {
                    b.addInt64Contents(bits);
                    raw.putLong(bits);
                }
                case UINT8 -> {
                    b.addUintContents((int) bits & 0xFF);
                    raw.put((byte) bits);
                }
                case UINT16 -> {
                    b.addUintContents((int) bits & 0xFFFF);
                    raw.putShort((short) bits);
                }
                case UINT32 -> {
                    b.addUintContents((int) bits);
                    raw.putInt((int) bits);
                }
                case UINT64 -> {
                    b.addUint64Contents(bits);
                    raw.putLong(bits);
                }
                case FP16, BF16 -> raw.putShort((short) bits);
                case FP32 -> {
                    b.addFp32Contents((float) bits);
                    raw.putFloat((float) bits);
                }
                case FP64 -> {
                    b.addFp64Contents(bits / 7.0);
                    raw.putDouble(bits / 7.0);
                }
                case BYTES -> {
                    byte[] element = bytes(random, random.nextInt(40));
                    b.addBytesContents(ByteString.copyFrom(element));
                    raw.putInt(element.length).put(element);
                }
            }
        }
        byte[] exact = new byte[raw.position()];
        raw.get(0, exact);
        return new Data(exact, TypedContentsReader.field(type) == 0 ? null : b.build());
    }

    private static Tensor tensor(String name, DataType type, Shape shape, byte[] raw) {
        return Tensor.over(name, type, shape, MemoryRegion.copyOf(raw, 0, raw.length), 0, raw.length);
    }

    private static byte[] raw(Tensor tensor) {
        byte[] bytes = new byte[tensor.byteLength()];
        tensor.region().getBytes(tensor.offset(), bytes, 0, bytes.length);
        return bytes;
    }

    private static Shape shape(Random random) {
        long[] dims = new long[random.nextInt(4)];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = random.nextInt(12) == 0 ? 0 : 1 + random.nextInt(4);
        }
        return Shape.of(dims);
    }

    /** The same message in another spelling: fields shuffled or cut into mergeable parts, strangers mixed in. */
    private static byte[] respell(ModelInferRequest request, Random random) throws IOException {
        List<byte[]> parts = new ArrayList<>();
        if (random.nextBoolean()) {
            parts.add(ModelInferRequest.newBuilder()
                    .setModelName("overwritten")
                    .build()
                    .toByteArray());
        }
        List<byte[]> late = new ArrayList<>();
        late.add(ModelInferRequest.newBuilder()
                .setModelName(request.getModelName())
                .setModelVersion(request.getModelVersion())
                .build()
                .toByteArray());
        late.add(ModelInferRequest.newBuilder().setId(request.getId()).build().toByteArray());
        for (Map.Entry<String, InferParameter> e : request.getParametersMap().entrySet()) {
            late.add(ModelInferRequest.newBuilder()
                    .putParameters(e.getKey(), e.getValue())
                    .build()
                    .toByteArray());
        }
        late.add(UnknownFieldSet.newBuilder()
                .addField(
                        99,
                        UnknownFieldSet.Field.newBuilder()
                                .addFixed32(1)
                                .addVarint(2)
                                .build())
                .addField(
                        100,
                        UnknownFieldSet.Field.newBuilder()
                                .addGroup(UnknownFieldSet.newBuilder()
                                        .addField(
                                                1,
                                                UnknownFieldSet.Field.newBuilder()
                                                        .addFixed64(1)
                                                        .build())
                                        .build())
                                .addLengthDelimited(ByteString.copyFromUtf8("strange"))
                                .build())
                .build()
                .toByteArray());
        // Entries of one list keep their order; different lists may be interleaved in any way.
        List<byte[]> inputs = new ArrayList<>();
        for (InferInputTensor input : request.getInputsList()) {
            inputs.add(field(5, respell(input, random)));
        }
        List<byte[]> outputs = new ArrayList<>();
        for (InferRequestedOutputTensor output : request.getOutputsList()) {
            outputs.add(field(6, output.toByteArray()));
        }
        List<byte[]> raws = new ArrayList<>();
        for (ByteString raw : request.getRawInputContentsList()) {
            raws.add(field(7, raw.toByteArray()));
        }
        List<List<byte[]>> lists = new ArrayList<>(List.of(inputs, outputs, raws));
        late.forEach(part -> lists.add(new ArrayList<>(List.of(part))));
        while (!lists.isEmpty()) {
            List<byte[]> list = lists.get(random.nextInt(lists.size()));
            if (list.isEmpty()) {
                lists.remove(list);
            } else {
                parts.add(list.remove(0));
            }
        }
        return Wire.join(parts.toArray(new byte[0][]));
    }

    private static byte[] field(int number, byte[] value) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        CodedOutputStream coded = CodedOutputStream.newInstance(out);
        coded.writeByteArray(number, value);
        coded.flush();
        return out.toByteArray();
    }

    private static byte[] respell(InferInputTensor input, Random random) throws IOException {
        List<byte[]> parts = new ArrayList<>();
        parts.add(InferInputTensor.newBuilder().setName(input.getName()).build().toByteArray());
        parts.add(InferInputTensor.newBuilder()
                .setDatatype(input.getDatatype())
                .build()
                .toByteArray());
        if (random.nextBoolean()) {
            parts.add(InferInputTensor.newBuilder()
                    .addAllShape(input.getShapeList())
                    .build()
                    .toByteArray());
        } else {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            CodedOutputStream coded = CodedOutputStream.newInstance(out);
            for (long d : input.getShapeList()) {
                coded.writeInt64(3, d);
            }
            coded.flush();
            parts.add(out.toByteArray());
        }
        Collections.shuffle(parts, random);
        if (input.hasContents()) {
            // Halves of the contents, in order: a parser merges them.
            InferTensorContents all = input.getContents();
            parts.add(field(5, half(all, true, random)));
            parts.add(random.nextInt(parts.size()), field(5, new byte[0]));
            parts.add(field(5, half(all, false, random)));
        }
        return Wire.join(parts.toArray(new byte[0][]));
    }

    private static byte[] half(InferTensorContents all, boolean first, Random random) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        CodedOutputStream coded = CodedOutputStream.newInstance(out);
        boolean packed = random.nextBoolean();
        InferTensorContents.Builder b = InferTensorContents.newBuilder();
        for (boolean v : part(all.getBoolContentsList(), first)) {
            if (packed) {
                b.addBoolContents(v);
            } else {
                coded.writeBool(1, v);
            }
        }
        for (int v : part(all.getIntContentsList(), first)) {
            if (packed) {
                b.addIntContents(v);
            } else {
                coded.writeInt32(2, v);
            }
        }
        for (long v : part(all.getInt64ContentsList(), first)) {
            if (packed) {
                b.addInt64Contents(v);
            } else {
                coded.writeInt64(3, v);
            }
        }
        for (int v : part(all.getUintContentsList(), first)) {
            if (packed) {
                b.addUintContents(v);
            } else {
                coded.writeUInt32(4, v);
            }
        }
        for (long v : part(all.getUint64ContentsList(), first)) {
            if (packed) {
                b.addUint64Contents(v);
            } else {
                coded.writeUInt64(5, v);
            }
        }
        for (float v : part(all.getFp32ContentsList(), first)) {
            if (packed) {
                b.addFp32Contents(v);
            } else {
                coded.writeFloat(6, v);
            }
        }
        for (double v : part(all.getFp64ContentsList(), first)) {
            if (packed) {
                b.addFp64Contents(v);
            } else {
                coded.writeDouble(7, v);
            }
        }
        b.addAllBytesContents(part(all.getBytesContentsList(), first));
        coded.flush();
        return Wire.join(out.toByteArray(), b.build().toByteArray());
    }

    private static <T> List<T> part(List<T> list, boolean first) {
        int middle = list.size() / 2;
        return first ? list.subList(0, middle) : list.subList(middle, list.size());
    }

    @Test
    void ourReaderAgreesWithTheGeneratedParser() throws Exception {
        long before = Wire.pooledBuffers();
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(seed);
            boolean raw = random.nextBoolean();
            ModelInferRequest.Builder b = ModelInferRequest.newBuilder()
                    .setModelName(text(random))
                    .setModelVersion(random.nextBoolean() ? "" : Integer.toString(random.nextInt(100)))
                    .setId(text(random));
            Map<String, Object> parameters = new LinkedHashMap<>();
            for (int i = random.nextInt(4); i > 0; i--) {
                String key = text(random);
                InferParameter value = parameter(random);
                b.putParameters(key, value);
                parameters.remove(key);
                if (value(value) != null) {
                    parameters.put(key, value(value));
                }
            }
            List<byte[]> expected = new ArrayList<>();
            int count = random.nextInt(4);
            for (int i = 0; i < count; i++) {
                DataType type = DataType.values()[random.nextInt(DataType.values().length)];
                if (!raw && TypedContentsReader.field(type) == 0) {
                    type = DataType.FP64;
                }
                Shape shape = shape(random);
                Data data = data(type, (int) shape.elementCount(), random);
                InferInputTensor.Builder input =
                        InferInputTensor.newBuilder().setName(i + text(random)).setDatatype(type.name());
                for (long d : shape.dims()) {
                    input.addShape(d);
                }
                if (raw) {
                    b.addRawInputContents(ByteString.copyFrom(data.raw()));
                } else {
                    input.setContents(data.contents());
                }
                b.addInputs(input);
                expected.add(data.raw());
            }
            for (int i = random.nextInt(3); i > 0; i--) {
                b.addOutputs(InferRequestedOutputTensor.newBuilder()
                        .setName(i + text(random))
                        .putParameters(text(random), parameter(random)));
            }
            ModelInferRequest request = b.build();
            byte[] wire = random.nextInt(4) == 0 ? request.toByteArray() : respell(request, random);
            ModelInferRequest parsed = ModelInferRequest.parseFrom(wire);
            MemoryRegion region = MemoryRegion.copyOf(wire, 0, wire.length);
            buffers.grpcReader.scan(region);
            InferenceRequest ours = buffers.grpcReader.read(Long.MAX_VALUE, 0, null, Map.of(), Caller.INTERNAL);
            assertThat(ours.model().model()).as("seed %d", seed).isEqualTo(parsed.getModelName());
            assertThat(ours.model().version())
                    .isEqualTo(parsed.getModelVersion().isEmpty() ? -1 : Long.parseLong(parsed.getModelVersion()));
            assertThat(ours.id()).isEqualTo(parsed.getId());
            assertThat(ours.parameters()).as("seed %d", seed).isEqualTo(parameters);
            assertThat(ours.outputs().stream().map(InferenceRequest.RequestedOutput::name))
                    .isEqualTo(parsed.getOutputsList().stream()
                            .map(InferRequestedOutputTensor::getName)
                            .toList());
            assertThat(ours.inputs()).hasSize(count);
            for (int i = 0; i < count; i++) {
                Tensor input = ours.inputs().get(i);
                assertThat(input.name()).isEqualTo(parsed.getInputs(i).getName());
                assertThat(input.dataType().name())
                        .isEqualTo(parsed.getInputs(i).getDatatype());
                assertThat(input.shape().dims())
                        .containsExactly(parsed.getInputs(i).getShapeList().toArray(new Long[0]));
                assertThat(raw(input)).as("seed %d", seed).isEqualTo(expected.get(i));
            }
            ours.release();
            region.release();
        }
        assertThat(Wire.pooledBuffers()).isEqualTo(before);
    }

    @Test
    void theGeneratedParserReadsWhatOurWriterWrites() throws Exception {
        long before = Wire.pooledBuffers();
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(~seed);
            boolean raw = random.nextBoolean();
            boolean half = raw;
            Map<String, Object> parameters = new LinkedHashMap<>();
            Map<String, InferParameter> expectedParameters = new LinkedHashMap<>();
            for (int i = random.nextInt(4); i > 0; i--) {
                InferParameter p = parameter(random);
                if (value(p) != null && !p.hasUint64Param()) {
                    String key = text(random);
                    parameters.put(key, value(p));
                    expectedParameters.put(key, p);
                }
            }
            List<Tensor> outputs = new ArrayList<>();
            List<Data> expected = new ArrayList<>();
            for (int i = random.nextInt(4); i > 0; i--) {
                DataType type = DataType.values()[random.nextInt(DataType.values().length)];
                Shape shape = random.nextInt(50) == 0 ? Shape.of(700) : shape(random);
                Data data = data(type, (int) shape.elementCount(), random);
                half |= data.contents() == null;
                outputs.add(tensor(text(random), type, shape, data.raw()));
                expected.add(data);
            }
            List<Tensor> kept = new ArrayList<>(outputs);
            InferenceResponse response = new InferenceResponse(
                    new ServableId(text(random), random.nextInt(5)), text(random), outputs, parameters);
            OutputEncoding form = raw ? OutputEncoding.BINARY : OutputEncoding.JSON;
            ModelInferResponse parsed;
            if (random.nextBoolean()) {
                parsed = ModelInferResponse.parseFrom(
                        Wire.bytes(GrpcInferWriter.unary(response, form, buffers, null, Clock.system())));
            } else {
                boolean last = random.nextBoolean();
                expectedParameters.put(
                        "triton_final_response",
                        InferParameter.newBuilder().setBoolParam(last).build());
                parsed = ModelStreamInferResponse.parseFrom(
                                Wire.bytes(GrpcInferWriter.stream(response, form, last, buffers, null, Clock.system())))
                        .getInferResponse();
            }
            assertThat(parsed.getModelName()).isEqualTo(response.servable().model());
            long version = response.servable().version();
            assertThat(parsed.getModelVersion()).isEqualTo(version == 0 ? "" : Long.toString(version));
            assertThat(parsed.getId()).isEqualTo(response.id());
            assertThat(parsed.getParametersMap()).as("seed %d", seed).isEqualTo(expectedParameters);
            assertThat(parsed.getUnknownFields().asMap()).isEmpty();
            assertThat(parsed.getOutputsCount()).isEqualTo(kept.size());
            assertThat(parsed.getRawOutputContentsCount()).isEqualTo(half ? kept.size() : 0);
            for (int i = 0; i < kept.size(); i++) {
                InferOutputTensor output = parsed.getOutputs(i);
                assertThat(output.getName()).isEqualTo(kept.get(i).name());
                assertThat(output.getDatatype())
                        .isEqualTo(kept.get(i).dataType().name());
                assertThat(kept.get(i).shape().dims())
                        .containsExactly(output.getShapeList().toArray(new Long[0]));
                if (half) {
                    assertThat(parsed.getRawOutputContents(i).toByteArray())
                            .isEqualTo(expected.get(i).raw());
                } else {
                    assertThat(output.getContents())
                            .as("seed %d", seed)
                            .isEqualTo(expected.get(i).contents());
                }
            }
        }
        assertThat(Wire.pooledBuffers()).isEqualTo(before);
    }

    @Test
    void whatTheGeneratedParserRejectsIsRejected() {
        int refused = 0;
        for (int seed = 0; seed < CASES; seed++) {
            Random random = new Random(seed * 31L);
            byte[] wire = bytes(random, random.nextInt(12));
            boolean theirs = true;
            try {
                ModelInferRequest.parseFrom(wire);
            } catch (IOException e) {
                theirs = false;
            }
            MemoryRegion region = MemoryRegion.copyOf(wire, 0, wire.length);
            try {
                buffers.grpcReader.scan(region);
                buffers.grpcReader
                        .read(Long.MAX_VALUE, 0, null, Map.of(), Caller.INTERNAL)
                        .release();
                assertThat(theirs)
                        .as("seed %d: %s", seed, java.util.HexFormat.of().formatHex(wire))
                        .isTrue();
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                refused++;
            } finally {
                region.release();
            }
        }
        assertThat(refused).isGreaterThan(CASES / 2).isLessThan(CASES);
    }
}
