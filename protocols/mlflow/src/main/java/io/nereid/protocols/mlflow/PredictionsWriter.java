// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.BytesStyle;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonWriter;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;

/**
 * Encodes <code>{"predictions": …}</code>: the array of the only output; for several outputs, rows of named values if
 * the request was a data frame, and named arrays otherwise. Holds no state.
 */
final class PredictionsWriter {
    private PredictionsWriter() {}

    /** Encodes a response; the caller still owns the outputs. */
    static HttpReply encode(List<Tensor> outputs, boolean frame) {
        JsonWriter writer = new JsonWriter(1024);
        writer.floatStyle(FloatStyle.WIDENED).bytesStyle(BytesStyle.REJECT_MALFORMED);
        writer.beginObject().name("predictions");
        if (outputs.size() == 1) {
            array(writer, outputs.get(0));
        } else if (frame && rows(outputs)) {
            records(writer, outputs);
        } else {
            writer.beginObject();
            for (Tensor output : outputs) {
                writer.name(output.name());
                array(writer, output);
            }
            writer.endObject();
        }
        writer.endObject();
        byte[] bytes = Arrays.copyOf(writer.array(), writer.length());
        return HttpReply.json(200, bytes, bytes.length);
    }

    private static void array(JsonWriter writer, Tensor output) {
        try {
            int unused = writer.nestedArray(
                    output.dataType(), output.buffer(), 0, output.shape().dims(), 0);
        } catch (ServingException e) {
            throw text(output, e);
        }
    }

    private static boolean rows(List<Tensor> outputs) {
        for (Tensor output : outputs) {
            if (output.shape().rank() == 0
                    || output.shape().dim(0) != outputs.get(0).shape().dim(0)) {
                return false;
            }
        }
        return true;
    }

    private static void records(JsonWriter writer, List<Tensor> outputs) {
        ByteBuffer[] from = new ByteBuffer[outputs.size()];
        int[] at = new int[outputs.size()];
        for (int i = 0; i < from.length; i++) {
            from[i] = outputs.get(i).buffer();
        }
        long rows = outputs.get(0).shape().dim(0);
        writer.beginArray();
        for (long row = 0; row < rows; row++) {
            writer.beginObject();
            for (int i = 0; i < from.length; i++) {
                Tensor output = outputs.get(i);
                writer.name(output.name());
                try {
                    at[i] = writer.nestedArray(
                            output.dataType(), from[i], at[i], output.shape().dims(), 1);
                } catch (ServingException e) {
                    throw text(output, e);
                }
            }
            writer.endObject();
        }
        writer.endArray();
    }

    private static ServingException text(Tensor output, ServingException e) {
        return e.code() == ErrorCode.INVALID_ARGUMENT
                ? ServingException.invalidArgument(
                        "output '" + output.name() + "' holds bytes that are not UTF-8 text",
                        "request it over the V2 protocol")
                : e;
    }
}
