// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse.InferOutputTensor;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.wire.WireWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Lets a server that speaks gRPC alone be asked with V2 JSON: bodies of REST become {@code ModelInferRequest}, and
 * {@code ModelInferResponse} a body of REST. Nothing is lost but the form of numbers; parameters of tensors go along. Holds
 * nothing; every call is of its own.
 */
public final class V2Transcoder {
    /** The method that the messages are for. */
    public static final String MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer";

    private V2Transcoder() {}

    /**
     * The message for a body. Contents are typed, which every server takes, but for a request with FP16 or BF16 inputs, which
     * have no typed form.
     *
     * @param model the model's name
     * @throws ServingException INVALID_ARGUMENT for a body that is no V2 request in JSON
     */
    public static byte[] request(String model, byte[] body) {
        Request request = new Request(body);
        try {
            request.read();
            return request.message(model);
        } finally {
            Tensor.closeAll(request.tensors);
        }
    }

    /**
     * The body for a message.
     *
     * @throws ServingException INTERNAL for a message that is no right answer
     */
    public static byte[] answer(byte[] message) {
        ModelInferResponse response;
        try {
            response = ModelInferResponse.parseFrom(message);
        } catch (InvalidProtocolBufferException e) {
            throw wrong("it is no ModelInferResponse");
        }
        JsonWriter json = new JsonWriter(1024).floatStyle(FloatStyle.SHORTEST);
        json.beginObject().name("model_name").value(response.getModelName());
        if (!response.getModelVersion().isEmpty()) {
            json.name("model_version").value(response.getModelVersion());
        }
        if (!response.getId().isEmpty()) {
            json.name("id").value(response.getId());
        }
        parameters(response.getParametersMap(), json);
        json.name("outputs").beginArray();
        int raw = response.getRawOutputContentsCount();
        if (raw > 0 && raw != response.getOutputsCount()) {
            throw wrong("it has " + response.getOutputsCount() + " outputs and " + raw + " raw_output_contents");
        }
        for (int i = 0; i < response.getOutputsCount(); i++) {
            output(response.getOutputs(i), raw > 0 ? response.getRawOutputContents(i) : null, json);
        }
        json.endArray().endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    private static ServingException wrong(String why) {
        return ServingException.of(Code.INTERNAL, "the service's answer cannot be read: " + why);
    }

    private static void parameters(Map<String, InferParameter> parameters, JsonWriter json) {
        if (parameters.isEmpty()) {
            return;
        }
        json.name("parameters").beginObject();
        parameters.forEach((name, value) -> {
            json.name(name);
            switch (value.getParameterChoiceCase()) {
                case BOOL_PARAM -> json.value(value.getBoolParam());
                case INT64_PARAM -> json.value(value.getInt64Param());
                case UINT64_PARAM -> json.unsignedValue(value.getUint64Param());
                case DOUBLE_PARAM -> json.value(value.getDoubleParam());
                case STRING_PARAM -> json.value(value.getStringParam());
                case PARAMETERCHOICE_NOT_SET -> json.nullValue();
            }
        });
        json.endObject();
    }

    private static void output(InferOutputTensor output, @Nullable ByteString raw, JsonWriter json) {
        DataType type = DataType.ofWireName(output.getDatatype());
        String label = "output '" + output.getName() + "'";
        if (type == null) {
            throw wrong(label + " has the datatype '" + output.getDatatype() + "'");
        }
        long[] dims = output.getShapeList().stream().mapToLong(Long::longValue).toArray();
        for (long dim : dims) {
            if (dim < 0) {
                throw wrong(label + " has a dimension below 0");
            }
        }
        Shape shape = Shape.of(dims);
        byte[] bytes = raw != null ? raw.toByteArray() : contents(type, output.getContents());
        json.beginObject().name("name").value(output.getName()).name("shape").beginArray();
        for (long dim : dims) {
            json.value(dim);
        }
        json.endArray().name("datatype").value(type.name());
        parameters(output.getParametersMap(), json);
        json.name("data");
        MemoryRegion region = MemoryRegion.copyOf(bytes, 0, bytes.length);
        try (Tensor tensor = ByteElements.view(output.getName(), type, shape, region, 0, bytes.length, "")) {
            RestInferWriter.writeData(tensor, false, json);
        } catch (ServingException e) {
            throw wrong("the contents of " + label + " and its shape " + shape + " do not agree");
        } finally {
            region.release();
        }
        json.endObject();
    }

    /** Typed contents as they would be raw. */
    private static byte[] contents(DataType type, InferTensorContents contents) {
        ByteSink sink = new ByteSink(256);
        switch (type) {
            case BOOL -> contents.getBoolContentsList().forEach(v -> sink.append((byte) (v ? 1 : 0)));
            case INT8 -> contents.getIntContentsList().forEach(v -> sink.append(v.byteValue()));
            case UINT8 -> contents.getUintContentsList().forEach(v -> sink.append(v.byteValue()));
            case INT16 -> contents.getIntContentsList().forEach(v -> little(sink, v, 2));
            case UINT16 -> contents.getUintContentsList().forEach(v -> little(sink, v, 2));
            case INT32 -> contents.getIntContentsList().forEach(sink::appendIntLE);
            case UINT32 -> contents.getUintContentsList().forEach(sink::appendIntLE);
            case INT64 -> contents.getInt64ContentsList().forEach(v -> little(sink, v, 8));
            case UINT64 -> contents.getUint64ContentsList().forEach(v -> little(sink, v, 8));
            case FP32 -> contents.getFp32ContentsList().forEach(v -> sink.appendIntLE(Float.floatToRawIntBits(v)));
            case FP64 -> contents.getFp64ContentsList().forEach(v -> little(sink, Double.doubleToRawLongBits(v), 8));
            case BYTES ->
                contents.getBytesContentsList().forEach(v -> {
                    sink.appendIntLE(v.size());
                    sink.append(v.toByteArray(), 0, v.size());
                });
            case FP16, BF16 -> {
                // They come raw only; a tensor without elements has nothing at all.
            }
        }
        return Arrays.copyOf(sink.array(), sink.length());
    }

    private static void little(ByteSink sink, long value, int bytes) {
        for (int i = 0; i < bytes; i++) {
            sink.append((byte) (value >>> (8 * i)));
        }
    }

    /** A request that is read. Confined to one thread; used once. */
    private static final class Request {
        final List<Tensor> tensors = new ArrayList<>();
        private final List<Map<String, Object>> tensorParameters = new ArrayList<>();
        private final Map<String, Map<String, Object>> outputs = new LinkedHashMap<>();
        private final byte[] text;
        private final int length;
        private final JsonReader json = new JsonReader();
        private final TensorReader reader = new TensorReader(json, true);
        private Map<String, Object> parameters = Map.of();
        private String id = "";

        Request(byte[] body) {
            length = body.length;
            text = Arrays.copyOf(body, Math.addExact(length, JsonReader.SLACK));
        }

        void read() {
            json.reset(text, 0, length);
            Map<String, Integer> members = members();
            json.expectEnd();
            Integer inputs = members.get("inputs");
            if (inputs == null) {
                throw ServingException.invalidArgument("the request has no 'inputs', which one of V2 has");
            }
            id = text(members.get("id"));
            parameters = parameters(members.get("parameters"));
            json.seek(inputs);
            json.beginArray();
            while (json.hasNext()) {
                input();
            }
            Integer wanted = members.get("outputs");
            if (wanted != null) {
                json.seek(wanted);
                if (!json.tryNull()) {
                    json.beginArray();
                    while (json.hasNext()) {
                        Map<String, Integer> output = members();
                        int after = json.position();
                        outputs.put(text(output.get("name")), parameters(output.get("parameters")));
                        json.seek(after);
                    }
                }
            }
        }

        /** Where the values of an object's members are. */
        private Map<String, Integer> members() {
            Map<String, Integer> members = new LinkedHashMap<>();
            json.beginObject();
            while (json.nextField()) {
                String key = json.key();
                members.put(key, json.position());
                json.skipValue();
            }
            return members;
        }

        private String text(@Nullable Integer at) {
            if (at == null) {
                return "";
            }
            json.seek(at);
            return json.tryNull() ? "" : json.readString();
        }

        private Map<String, Object> parameters(@Nullable Integer at) {
            if (at == null) {
                return Map.of();
            }
            json.seek(at);
            if (json.tryNull()) {
                return Map.of();
            }
            Map<String, Object> all = new LinkedHashMap<>();
            json.beginObject();
            while (json.nextField()) {
                String key = json.key();
                JsonToken kind = json.peek();
                if (kind == JsonToken.STRING) {
                    all.put(key, json.readString());
                } else if (kind == JsonToken.BOOLEAN) {
                    all.put(key, json.readBoolean());
                } else if (kind == JsonToken.NUMBER) {
                    all.put(key, json.isIntegral() ? (Object) json.readLong() : (Object) json.readDouble());
                } else {
                    int from = json.position();
                    json.skipValue();
                    if (kind != JsonToken.NULL) {
                        all.put(key, new String(text, from, json.position() - from, StandardCharsets.UTF_8));
                    }
                }
            }
            return all;
        }

        private void input() {
            Map<String, Integer> members = members();
            int after = json.position();
            String name = text(members.get("name"));
            String label = "input '" + name + "'";
            String typeName = text(members.get("datatype"));
            DataType type = DataType.ofWireName(typeName);
            if (type == null) {
                throw RestInput.unknownType(label, typeName);
            }
            Integer dims = members.get("shape");
            Integer data = members.get("data");
            if (dims == null || data == null) {
                throw ServingException.invalidArgument(
                        label + " has no '" + (dims == null ? "shape" : "data") + "'",
                        "the service speaks gRPC alone, and is asked with JSON: send the data in it");
            }
            json.seek(dims);
            Shape shape = shape(label);
            json.seek(data);
            json.describe(label);
            tensors.add(tensor(name, type, shape));
            json.describe(null);
            tensorParameters.add(parameters(members.get("parameters")));
            json.seek(after);
        }

        private Shape shape(String label) {
            long[] dims = new long[8];
            int rank = 0;
            json.beginArray();
            while (json.hasNext()) {
                if (rank == dims.length) {
                    dims = Arrays.copyOf(dims, rank * 2);
                }
                dims[rank++] = json.readLong();
            }
            return RestInput.shape(label, dims, rank);
        }

        private Tensor tensor(String name, DataType type, Shape shape) {
            long count = shape.elementCount();
            if (count > length) {
                // a shape must not make us allocate what the text cannot fill
                throw ServingException.invalidArgument("input '" + name + "' has " + count + " elements by its shape "
                        + shape + ", more than its 'data' can hold");
            }
            return reader.readTensor(name, type, shape, new ByteSink(256));
        }

        byte[] message(String model) {
            WireWriter out = new WireWriter();
            out.textField(1, model);
            out.textField(3, id);
            parameters.forEach((name, value) -> GrpcInferWriter.writeParameter(out, 4, name, value));
            boolean raw = tensors.stream().anyMatch(t -> TypedContents.field(t.dataType()) == 0);
            for (int i = 0; i < tensors.size(); i++) {
                Tensor tensor = tensors.get(i);
                int at = out.begin(5);
                out.textField(1, tensor.name());
                out.textField(2, tensor.dataType().name());
                if (tensor.shape().rank() > 0) {
                    int shape = out.begin(3);
                    for (int d = 0; d < tensor.shape().rank(); d++) {
                        out.varint(tensor.shape().dim(d));
                    }
                    out.end(shape);
                }
                tensorParameters.get(i).forEach((name, value) -> GrpcInferWriter.writeParameter(out, 4, name, value));
                if (!raw) {
                    int contents = out.begin(5);
                    GrpcInferWriter.writeContents(tensor, out);
                    out.end(contents);
                }
                out.end(at);
            }
            outputs.forEach((name, asked) -> {
                int at = out.begin(6);
                out.textField(1, name);
                asked.forEach((key, value) -> GrpcInferWriter.writeParameter(out, 2, key, value));
                out.end(at);
            });
            if (raw) {
                for (Tensor tensor : tensors) {
                    out.bytesHeader(7, tensor.byteLength());
                    int to = out.room(tensor.byteLength());
                    tensor.buffer().get(0, out.array(), to, tensor.byteLength());
                }
            }
            return out.toByteArray();
        }
    }
}
