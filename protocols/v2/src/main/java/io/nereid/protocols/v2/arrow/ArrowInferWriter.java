// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonWriter;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.protocols.v2.codec.CodecBuffers;
import io.nereid.protocols.v2.codec.DocumentJsonWriter;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.protocols.v2.codec.RestInferWriter;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Encodes an inference response as an Arrow IPC stream of one record batch: an output is a column. The bytes of outputs
 * are spliced into the response without a copy, where Arrow has their layout. The schema's metadata has the model, its
 * version, the request's id and the response's parameters as JSON. Holds no state.
 */
public final class ArrowInferWriter {
    private ArrowInferWriter() {}

    /**
     * Encodes a response. Takes its outputs over, unless it throws: then the caller still owns them.
     *
     * @param trace a {@link RequestTiming} is written to the parameters and to {@code server-timing}
     * @throws ServingException INVALID_ARGUMENT when the outputs have different numbers of rows
     */
    public static HttpReply write(
            InferenceResponse response, CodecBuffers buffers, @Nullable RequestTrace trace, Clock clock) {
        List<OutputColumn> columns = columns(response.outputs());
        Map<String, Object> parameters = response.parameters();
        RequestTiming timing = trace instanceof RequestTiming t ? t : null;
        if (timing != null) {
            parameters = new LinkedHashMap<>(parameters);
            parameters.putAll(timing.parameters(clock.nanos()));
        }
        ByteSink text = new ByteSink(1024);
        MessageWriter.schema(columns, metadata(response, parameters, buffers), text);
        MessageWriter.recordBatch(columns, text);
        HttpReply reply = new HttpReply(200, ArrowMediaType.STREAM, new String[0], body(columns, text));
        return timing == null
                ? reply
                : reply.withHeader(RestInferWriter.SERVER_TIMING, timing.serverTiming(clock.nanos()));
    }

    private static List<OutputColumn> columns(List<Tensor> outputs) {
        List<OutputColumn> columns = new ArrayList<>(outputs.size());
        for (int i = 0; i < outputs.size(); i++) {
            OutputColumn column = new OutputColumn(outputs.get(i));
            if (i > 0 && column.rows != columns.get(0).rows) {
                Tensor first = outputs.get(0);
                throw ServingException.invalidArgument(
                        "the outputs are not columns of one table: '" + first.name() + "' has shape " + first.shape()
                                + ", '" + column.tensor.name() + "' " + column.tensor.shape(),
                        "request one of them, with outputs=NAME, or JSON, with the header 'Accept: application/json'");
            }
            columns.add(column);
        }
        return columns;
    }

    private static Map<String, String> metadata(
            InferenceResponse response, Map<String, Object> parameters, CodecBuffers buffers) {
        Map<String, String> metadata = new LinkedHashMap<>();
        metadata.put("model_name", response.servable().model());
        long version = response.servable().version();
        if (!ModelReferences.unversioned(version)) {
            metadata.put("model_version", Long.toString(version));
        }
        if (!response.id().isEmpty()) {
            metadata.put("id", response.id());
        }
        if (!parameters.isEmpty()) {
            JsonWriter json = buffers.writer();
            DocumentJsonWriter.write(parameters, json);
            metadata.put("parameters", new String(json.array(), 0, json.length(), StandardCharsets.UTF_8));
        }
        return metadata;
    }

    /** The messages with the bodies of the columns; the tensors are taken over once nothing can fail any more. */
    private static ResponseBody body(List<OutputColumn> columns, ByteSink text) {
        byte[] zeros = new byte[MessageWriter.ALIGNMENT];
        int[] places = new int[columns.size()];
        for (int i = 0; i < columns.size(); i++) {
            OutputColumn column = columns.get(i);
            places[i] = text.length();
            for (int b = 0; b < column.buffers.length; b++) {
                byte[] own = column.buffers[b];
                if (own != null) {
                    text.append(own, 0, own.length);
                }
                int length = column.length(b);
                text.append(zeros, 0, (int) (MessageWriter.aligned(length) - length));
            }
        }
        MessageWriter.end(text);
        ResponseBody body = new ResponseBody(text.array(), text.length());
        for (int i = 0; i < columns.size(); i++) {
            OutputColumn column = columns.get(i);
            if (column.buffers[0] == null && column.tensor.byteLength() > 0) {
                body.splice(column.tensor, places[i]);
            } else {
                column.tensor.close();
            }
        }
        return body;
    }
}
