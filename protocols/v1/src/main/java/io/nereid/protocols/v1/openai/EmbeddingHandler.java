// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v1.openai.TextRunner.Result;
import io.nereid.protocols.v1.openai.TextRunner.Texts;
import io.nereid.spi.TextTasks;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/**
 * OpenAI's embeddings: a text, a list of texts, tokens, or a list of lists of tokens become vectors, as JSON numbers or as FP32 in
 * little-endian order and Base64. With {@code dimensions} only the first numbers of a vector are returned; a vector of length 1 is
 * brought to length 1 again. Thread-safe: immutable.
 */
final class EmbeddingHandler {
    private static final String MODEL = "model";
    private static final String INPUT = "input";
    private static final String ENCODING = "encoding_format";
    private static final String DIMENSIONS = "dimensions";
    private static final String FORM =
            "a string, or a list that is not empty of strings, of tokens, or of lists of tokens";

    /** OpenAI's {@code user} names the end user for its own purposes; it changes no embedding. */
    private static final List<String> KNOWN = List.of(MODEL, INPUT, ENCODING, DIMENSIONS, "user");

    private static final double UNIT = 1e-3;

    private final TextRunner runner;
    private final FloatStyle floats;

    EmbeddingHandler(TextRunner runner, FloatStyle floats) {
        this.runner = runner;
        this.floats = floats;
    }

    /** Handles an exchange; the response is sent now or later. */
    void start(HttpExchange x) {
        BodyFields body = new BodyFields(x.body(), KNOWN);
        String model = body.required(MODEL);
        String encoding = body.text(ENCODING, "float");
        if (!encoding.equals("float") && !encoding.equals("base64")) {
            throw body.wrong(ENCODING, "float or base64");
        }
        int dimensions = body.number(DIMENSIONS, 1, 0);
        Texts texts = texts(body);
        runner.run(x, model, TextTasks.EMBED, texts, r -> encode(model, r, encoding.equals("base64"), dimensions));
    }

    private static Texts texts(BodyFields body) {
        Object input = body.get(INPUT);
        List<?> list = input instanceof List<?> given ? given : input == null ? List.of() : List.of(input);
        if (list.isEmpty()) {
            throw body.wrong(INPUT, FORM);
        }
        Object first = list.get(0);
        if (first instanceof Long) {
            return new Texts(List.of(tokens(list, body)), null, true);
        }
        boolean tokens = first instanceof List;
        List<byte[]> rows = new ArrayList<>();
        for (Object item : list) {
            if (tokens && item instanceof List<?> ids && !ids.isEmpty()) {
                rows.add(tokens(ids, body));
            } else if (!tokens && item instanceof String text) {
                rows.add(text.getBytes(StandardCharsets.UTF_8));
            } else {
                throw body.wrong(INPUT, FORM);
            }
        }
        return new Texts(rows, null, tokens);
    }

    private static byte[] tokens(List<?> ids, BodyFields body) {
        StringBuilder text = new StringBuilder();
        for (Object id : ids) {
            if (!(id instanceof Long n)) {
                throw body.wrong(INPUT, FORM);
            }
            text.append(text.isEmpty() ? "" : " ").append(n.longValue());
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    private HttpReply encode(String model, Result result, boolean base64, int dimensions) {
        JsonWriter to = new JsonWriter(1024);
        to.floatStyle(floats)
                .beginObject()
                .name("object")
                .value("list")
                .name("data")
                .beginArray();
        for (int i = 0; i < result.rows().length; i++) {
            float[] vector = cut(model, result.rows()[i], dimensions);
            to.beginObject().name("object").value("embedding").name("index").value(i);
            to.name("embedding");
            if (base64) {
                to.value(base64(vector));
            } else {
                to.beginArray();
                for (float number : vector) {
                    to.value(number);
                }
                to.endArray();
            }
            to.endObject();
        }
        to.endArray().name(MODEL).value(model);
        usage(to, result);
        to.endObject();
        return HttpReply.json(200, to.array(), to.length());
    }

    /** Writes the tokens, where they are known. */
    static void usage(JsonWriter to, Result result) {
        if (result.tokens() >= 0) {
            to.name("usage").beginObject();
            to.name("prompt_tokens").value(result.tokens());
            to.name("total_tokens").value(result.tokens()).endObject();
        }
    }

    private static String base64(float[] vector) {
        ByteBuffer bytes = ByteBuffer.allocate(vector.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float number : vector) {
            bytes.putFloat(number);
        }
        return Base64.getEncoder().encodeToString(bytes.array());
    }

    private static float[] cut(String model, float[] vector, int dimensions) {
        double squares = squares(vector);
        if (!Double.isFinite(squares)) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' returned a vector with numbers that are not finite",
                    "check the weights of the model");
        }
        if (dimensions == 0 || dimensions == vector.length) {
            return vector;
        }
        if (dimensions > vector.length) {
            throw ServingException.invalidArgument(
                    "field 'dimensions' is " + dimensions + " (expected: at most " + vector.length
                            + ", the dimensions of model '" + model + "')",
                    "lower it, or leave it out");
        }
        float[] cut = Arrays.copyOf(vector, dimensions);
        double length = Math.sqrt(squares(cut));
        if (Math.abs(Math.sqrt(squares) - 1) < UNIT && length > 0) {
            for (int i = 0; i < dimensions; i++) {
                cut[i] = (float) (cut[i] / length);
            }
        }
        return cut;
    }

    private static double squares(float[] vector) {
        double sum = 0;
        for (float number : vector) {
            sum += (double) number * number;
        }
        return sum;
    }
}
