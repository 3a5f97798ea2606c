// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Converts the text of an {@code --input} option to a request input. Immutable. */
final class InputArgument {
    private static final Pattern RANGE = Pattern.compile("(-?[0-9]+)\\.\\.(-?[0-9]+)");
    private static final int MAX_RANGE = 10_000_000;

    private final JsonNode spec;
    private final String name;
    private final String dataType;

    /** @param spec the input in the model's metadata */
    InputArgument(JsonNode spec) {
        this.spec = spec;
        this.name = spec.path("name").asText();
        this.dataType = spec.path("datatype").asText();
    }

    ObjectNode parse(String text) {
        ObjectNode input = ServerClient.JSON.createObjectNode();
        input.put("name", name);
        if (text.startsWith("@")) {
            NpyFile file = NpyFile.read(Path.of(text.substring(1)));
            input.set("shape", file.shape());
            input.put("datatype", dataType);
            input.set("data", file.data());
            return input;
        }
        ArrayNode shape = ServerClient.JSON.createArrayNode();
        ArrayNode data = ServerClient.JSON.createArrayNode();
        JsonNode value = value(text);
        if (value.isArray()) {
            measure(value, shape);
            flatten(value, data);
        } else {
            data.add(value);
        }
        input.set("shape", fit(shape, data.size()));
        input.put("datatype", dataType);
        input.set("data", data);
        return input;
    }

    private JsonNode value(String text) {
        Matcher range = RANGE.matcher(text);
        if (range.matches()) {
            long from = Long.parseLong(range.group(1));
            long to = Long.parseLong(range.group(2));
            if (to < from || to - from >= MAX_RANGE) {
                throw ServingException.invalidArgument("input '" + name + "': range " + text
                        + " is empty or has more than " + MAX_RANGE + " elements");
            }
            ArrayNode values = ServerClient.JSON.createArrayNode();
            for (long i = from; i <= to; i++) {
                values.add(i);
            }
            return values;
        }
        boolean text2 = dataType.equals("BYTES");
        try {
            JsonNode parsed = ServerClient.JSON.readTree(text);
            if (parsed.isArray() || (!text2 && !parsed.isMissingNode()) || parsed.isTextual()) {
                return parsed;
            }
        } catch (JsonProcessingException e) {
            if (!text2) {
                return list(text, e);
            }
        }
        return ServerClient.JSON.getNodeFactory().textNode(text);
    }

    private JsonNode list(String text, JsonProcessingException cause) {
        try {
            return ServerClient.JSON.readTree("[" + text + "]");
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument(
                    "input '" + name + "': '" + text + "' is neither JSON nor a list of " + dataType + " values ("
                            + cause.getOriginalMessage() + ")",
                    "for example: --input " + name + "=1,2,3 or --input " + name + "=[[1,2],[3,4]]");
        }
    }

    private static void measure(JsonNode value, ArrayNode shape) {
        JsonNode level = value;
        while (level.isArray()) {
            shape.add(level.size());
            if (level.isEmpty()) {
                return;
            }
            level = level.get(0);
        }
    }

    private static void flatten(JsonNode value, ArrayNode data) {
        for (JsonNode element : value) {
            if (element.isArray()) {
                flatten(element, data);
            } else {
                data.add(element);
            }
        }
    }

    /**
     * Returns the value's own shape if its rank is the model's; else the model's shape, with the variable size filled
     * in.
     */
    private ArrayNode fit(ArrayNode own, int count) {
        JsonNode expected = spec.path("shape");
        if (own.size() == expected.size()) {
            return own;
        }
        long fixed = 1;
        int unknown = 0;
        for (JsonNode d : expected) {
            if (d.asLong() < 0) {
                unknown++;
            } else {
                fixed *= d.asLong();
            }
        }
        if (own.size() > 1 || fixed == 0 || count % fixed != 0) {
            return own;
        }
        ArrayNode shape = ServerClient.JSON.createArrayNode();
        // Of several variable sizes the last one takes all elements, and the others are 1.
        int left = unknown;
        for (JsonNode d : expected) {
            if (d.asLong() < 0) {
                shape.add(left == 1 ? count / fixed : 1);
                left--;
            } else {
                shape.add(d.asLong());
            }
        }
        return shape;
    }
}
