// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.BytesStyle;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Encodes <code>{"predictions": …}</code>: the array of the only output; for several outputs, rows of named values if
 * the request was a data frame, and named arrays otherwise. Holds no state.
 */
final class PredictionsWriter {
    private PredictionsWriter() {}

    /**
     * Encodes a response; the caller still owns the outputs.
     *
     * @param frame whether the request was a data frame: several outputs are then rows of named values
     * @param columns the names of the columns of a data frame that a Python function returned, a list in JSON, whose rows
     *     are named values; null for another result
     */
    static HttpReply encode(List<Tensor> outputs, boolean frame, @Nullable Object columns) {
        JsonWriter writer = new JsonWriter(1024);
        writer.floatStyle(FloatStyle.WIDENED).bytesStyle(BytesStyle.REJECT_MALFORMED);
        writer.beginObject().name("predictions");
        if (columns instanceof String names && rows(outputs)) {
            records(writer, outputs, names(names));
        } else if (outputs.size() == 1) {
            array(writer, outputs.get(0));
        } else if (frame && rows(outputs)) {
            records(writer, outputs, List.of());
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

    private static List<String> names(String json) {
        byte[] utf8 = json.getBytes(StandardCharsets.UTF_8);
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(utf8, utf8.length + JsonReader.SLACK), 0, utf8.length);
        List<String> names = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) {
            names.add(reader.readString());
        }
        return names;
    }

    /**
     * Writes rows of named values.
     *
     * @param columns the names of the columns of the only output; empty for the names of the outputs
     */
    private static void records(JsonWriter writer, List<Tensor> outputs, List<String> columns) {
        Tensor only = outputs.get(0);
        boolean matrix =
                outputs.size() == 1 && only.shape().rank() == 2 && only.shape().dim(1) == columns.size();
        boolean vector = outputs.size() == 1 && only.shape().rank() == 1 && columns.size() == 1;
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
                if (matrix) {
                    for (String column : columns) {
                        writer.name(column);
                        at[i] = value(writer, output, from[i], at[i], 2);
                    }
                    continue;
                }
                writer.name(vector ? columns.get(0) : output.name());
                at[i] = value(writer, output, from[i], at[i], 1);
            }
            writer.endObject();
        }
        writer.endArray();
    }

    /** Writes the values below one index of the first dimensions; returns the position after them. */
    private static int value(JsonWriter writer, Tensor output, ByteBuffer from, int at, int dimension) {
        try {
            return writer.nestedArray(
                    output.dataType(), from, at, output.shape().dims(), dimension);
        } catch (ServingException e) {
            throw text(output, e);
        }
    }

    private static ServingException text(Tensor output, ServingException e) {
        return e.code() == ErrorCode.INVALID_ARGUMENT
                ? ServingException.invalidArgument(
                        "output '" + output.name() + "' holds bytes that are not UTF-8 text",
                        "request it over the V2 protocol")
                : e;
    }
}
