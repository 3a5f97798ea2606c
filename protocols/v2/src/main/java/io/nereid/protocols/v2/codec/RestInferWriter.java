// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.Clock;
import io.nereid.json.BytesStyle;
import io.nereid.json.JsonWriter;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.memory.SharedMemoryOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Encodes inference responses for HTTP: as JSON, or as JSON followed by binary tensor data for the outputs that request
 * it. The order of members is KServe's, which differs between the two. Holds no state.
 */
public final class RestInferWriter {
    private static final byte[] ID = ascii("\"id\":");
    private static final byte[] MODEL_NAME = ascii("\"model_name\":");
    private static final byte[] MODEL_VERSION = ascii("\"model_version\":");
    private static final byte[] PARAMETERS = ascii("\"parameters\":");
    private static final byte[] OUTPUTS = ascii("\"outputs\":");
    private static final byte[] NAME = ascii("\"name\":");
    private static final byte[] SHAPE = ascii("\"shape\":");
    private static final byte[] DATATYPE = ascii("\"datatype\":");
    private static final byte[] DATA = ascii("\"data\":");
    private static final byte[] BINARY_DATA_SIZE = ascii("\"binary_data_size\":");

    /** The header of the W3C's Server Timing. */
    public static final String SERVER_TIMING = "server-timing";

    private static final long[] SCALAR = {};

    private RestInferWriter() {}

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /** The number of bytes of outputs that have to be printed as JSON. */
    public static long jsonBytes(InferenceResponse response, OutputEncoding form) {
        long bytes = 0;
        List<Tensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            Tensor output = outputs.get(i);
            if (!form.isBinary(output.name()) && form.place(output.name()) == null) {
                bytes += output.byteLength();
            }
        }
        return bytes;
    }

    /**
     * Encodes a response. Takes its outputs over, unless it throws: then the caller still owns them.
     *
     * @param trace a {@link RequestTiming} is written to the response's parameters and to {@code server-timing}
     */
    public static HttpReply write(
            InferenceResponse response,
            OutputEncoding form,
            CodecBuffers buffers,
            @Nullable RequestTrace trace,
            Clock clock) {
        if (!(trace instanceof RequestTiming timing)) {
            return write(response, form, buffers, null);
        }
        HttpReply reply = write(response, form, buffers, () -> {
            Map<String, Object> parameters = new LinkedHashMap<>(response.parameters());
            parameters.putAll(timing.parameters(clock.nanos()));
            return parameters;
        });
        return reply.withHeader(SERVER_TIMING, timing.serverTiming(clock.nanos()));
    }

    /**
     * Encodes a response.
     *
     * @param times parameters in the place of the response's, asked for once its outputs have been printed; null for none
     */
    private static HttpReply write(
            InferenceResponse response,
            OutputEncoding form,
            CodecBuffers buffers,
            @Nullable Supplier<Map<String, Object>> times) {
        List<Tensor> outputs = response.outputs();
        if (!form.shared().isEmpty()) {
            SharedMemoryOutput.writeAll(form.shared(), response);
        }
        int binary = 0;
        for (int i = 0; i < outputs.size(); i++) {
            if (form.isBinary(outputs.get(i).name())) {
                binary++;
            }
        }
        JsonWriter json = buffers.writer();
        if (binary == 0) {
            writeJson(response, form, json, times);
            for (int i = 0; i < outputs.size(); i++) {
                outputs.get(i).close();
            }
            return HttpReply.json(200, json.array(), json.length());
        }
        writeHeader(response, form, json, times);
        int length = json.length();
        String[] headers = {"inference-header-content-length", Integer.toString(length)};
        ResponseBody content = new ResponseBody(json.array(), length);
        for (int i = 0; i < outputs.size(); i++) {
            Tensor output = outputs.get(i);
            if (form.isBinary(output.name()) && output.byteLength() > 0) {
                content.splice(output, length);
            } else {
                output.close();
            }
        }
        return new HttpReply(200, "application/octet-stream", headers, content);
    }

    private static void writeJson(
            InferenceResponse response,
            OutputEncoding form,
            JsonWriter json,
            @Nullable Supplier<Map<String, Object>> times) {
        json.beginObject();
        writeModel(response, json);
        writeId(response, json);
        if (times == null) {
            writeParameters(response.parameters(), json);
        }
        json.name(OUTPUTS).beginArray();
        List<Tensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            writeOutput(outputs.get(i), false, form.place(outputs.get(i).name()), json);
        }
        json.endArray();
        if (times != null) {
            writeParameters(times.get(), json);
        }
        json.endObject();
    }

    private static void writeHeader(
            InferenceResponse response,
            OutputEncoding form,
            JsonWriter json,
            @Nullable Supplier<Map<String, Object>> times) {
        json.beginObject();
        writeId(response, json);
        writeModel(response, json);
        json.name(OUTPUTS).beginArray();
        List<Tensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            Tensor output = outputs.get(i);
            writeOutput(output, form.isBinary(output.name()), form.place(output.name()), json);
        }
        json.endArray();
        writeParameters(times == null ? response.parameters() : times.get(), json);
        json.endObject();
    }

    private static void writeModel(InferenceResponse response, JsonWriter json) {
        json.name(MODEL_NAME).value(response.servable().model());
        long version = response.servable().version();
        json.name(MODEL_VERSION);
        if (ModelReferences.unversioned(version)) {
            json.nullValue();
        } else {
            json.value(Long.toString(version));
        }
    }

    private static void writeId(InferenceResponse response, JsonWriter json) {
        if (!response.id().isEmpty()) {
            json.name(ID).value(response.id());
        }
    }

    private static void writeParameters(Map<String, Object> parameters, JsonWriter json) {
        if (parameters.isEmpty()) {
            return;
        }
        json.name(PARAMETERS);
        DocumentJsonWriter.write(parameters, json);
    }

    private static void writeOutput(
            Tensor output, boolean binary, @Nullable SharedMemoryOutput place, JsonWriter json) {
        json.beginObject().name(NAME).value(output.name()).name(SHAPE).beginArray();
        for (int i = 0; i < output.shape().rank(); i++) {
            json.value(output.shape().dim(i));
        }
        json.endArray().name(DATATYPE).value(output.dataType().name());
        if (binary) {
            json.name(PARAMETERS)
                    .beginObject()
                    .name(BINARY_DATA_SIZE)
                    .value(output.byteLength())
                    .endObject();
        } else if (place == null) {
            json.name(DATA);
            writeData(output, false, json);
        }
        // Nothing more for an output in shared memory: Triton's C++ client fails on parameters other than a size.
        json.endObject();
    }

    /** Writes the elements as a flat array, or the only element without an array if {@code bare}. */
    public static void writeData(Tensor output, boolean bare, JsonWriter json) {
        if (output.dataType() == DataType.BYTES) {
            writeBytes(output, bare, json);
        } else if (bare) {
            json.nestedArray(output.dataType(), output.buffer(), 0, SCALAR, 0);
        } else {
            json.flatArray(output.dataType(), output.buffer(), 0, output.shape().elementCount());
        }
    }

    /** Writes BYTES elements as strings; those that are not UTF-8 as {@code {"b64": …}}, as requests may do. */
    private static void writeBytes(Tensor output, boolean bare, JsonWriter json) {
        ByteBuffer buffer = output.buffer();
        byte[] all = new byte[buffer.remaining()];
        buffer.get(0, all);
        if (!bare) {
            json.beginArray();
        }
        int at = 0;
        while (at < all.length) {
            int length = buffer.getInt(at);
            at += 4;
            json.value(all, at, length, isText(all, at, length) ? BytesStyle.REJECT_MALFORMED : BytesStyle.BASE64);
            at += length;
        }
        if (!bare) {
            json.endArray();
        }
    }

    /** Whether bytes are text in UTF-8. */
    public static boolean isText(byte[] bytes, int from, int length) {
        int or = 0;
        for (int i = 0; i < length; i++) {
            or |= bytes[from + i];
        }
        if (or >= 0) {
            return true;
        }
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, from, length));
            return true;
        } catch (CharacterCodingException e) {
            return false;
        }
    }
}
