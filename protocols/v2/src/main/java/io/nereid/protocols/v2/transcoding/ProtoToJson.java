// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import com.google.protobuf.ByteString;
import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.protocols.v2.memory.RawTensors;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.InferTensorContents;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferInputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest.InferRequestedOutputTensor;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse.InferOutputTensor;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Converts {@code ModelInferRequest} and {@code ModelInferResponse} to V2 JSON. Confined to one message. */
final class ProtoToJson {
    private final JsonWriter json = new JsonWriter(1024).floatStyle(FloatStyle.SHORTEST);

    /** Creates the exception for an inconsistent message from a description of the inconsistency. */
    private final Function<String, ServingException> wrong;

    ProtoToJson(Function<String, ServingException> wrong) {
        this.wrong = wrong;
    }

    byte[] answer(ModelInferResponse response) {
        json.beginObject().name("model_name").value(response.getModelName());
        if (!response.getModelVersion().isEmpty()) {
            json.name("model_version").value(response.getModelVersion());
        }
        id(response.getId());
        parameters(response.getParametersMap());
        int raw = raws("outputs", response.getOutputsCount(), response.getRawOutputContentsCount());
        json.name("outputs").beginArray();
        for (int i = 0; i < response.getOutputsCount(); i++) {
            InferOutputTensor output = response.getOutputs(i);
            tensor(
                    "output",
                    output.getName(),
                    output.getDatatype(),
                    output.getShapeList(),
                    output.getParametersMap(),
                    output.getContents(),
                    raw > 0 ? response.getRawOutputContents(i) : null);
        }
        return end();
    }

    byte[] request(ModelInferRequest request) {
        json.beginObject();
        id(request.getId());
        parameters(request.getParametersMap());
        int raw = raws("inputs", request.getInputsCount(), request.getRawInputContentsCount());
        json.name("inputs").beginArray();
        for (int i = 0; i < request.getInputsCount(); i++) {
            InferInputTensor input = request.getInputs(i);
            if (input.containsParameters("shared_memory_region")) {
                throw wrong.apply("input '" + input.getName() + "' is in shared memory, which the service cannot read");
            }
            tensor(
                    "input",
                    input.getName(),
                    input.getDatatype(),
                    input.getShapeList(),
                    input.getParametersMap(),
                    input.getContents(),
                    raw > 0 ? request.getRawInputContents(i) : null);
        }
        if (request.getOutputsCount() > 0) {
            json.endArray().name("outputs").beginArray();
            for (InferRequestedOutputTensor output : request.getOutputsList()) {
                json.beginObject().name("name").value(output.getName());
                parameters(output.getParametersMap());
                json.endObject();
            }
        }
        return end();
    }

    private byte[] end() {
        json.endArray().endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    private void id(String id) {
        if (!id.isEmpty()) {
            json.name("id").value(id);
        }
    }

    private int raws(String list, int tensors, int raw) {
        if (raw > 0 && raw != tensors) {
            throw wrong.apply("it has " + tensors + " " + list + " and " + raw + " raw contents");
        }
        return raw;
    }

    private void parameters(Map<String, InferParameter> parameters) {
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

    private void tensor(
            String kind,
            String name,
            String typeName,
            List<Long> shapeList,
            Map<String, InferParameter> parameters,
            InferTensorContents contents,
            @Nullable ByteString raw) {
        DataType type = DataType.ofWireName(typeName);
        String label = kind + " '" + name + "'";
        if (type == null) {
            throw wrong.apply(label + " has the datatype '" + typeName + "'");
        }
        long[] dims = shapeList.stream().mapToLong(Long::longValue).toArray();
        for (long dim : dims) {
            if (dim < 0) {
                throw wrong.apply(label + " has a dimension below 0");
            }
        }
        Shape shape = Shape.of(dims);
        byte[] bytes = raw != null ? raw.toByteArray() : contents(type, contents);
        json.beginObject().name("name").value(name).name("shape").beginArray();
        for (long dim : dims) {
            json.value(dim);
        }
        json.endArray().name("datatype").value(type.name());
        parameters(parameters);
        json.name("data");
        MemoryRegion region = MemoryRegion.copyOf(bytes, 0, bytes.length);
        try (Tensor tensor = RawTensors.view(name, type, shape, region, 0, bytes.length, "")) {
            RestInferWriter.writeData(tensor, false, json);
        } catch (ServingException e) {
            throw wrong.apply("the contents of " + label + " and its shape " + shape + " do not agree");
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
}
