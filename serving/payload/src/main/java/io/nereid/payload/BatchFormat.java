// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;

/** How events are written into objects. Immutable. */
public enum BatchFormat {
    /** An object alone; an array of them for a batch. */
    JSON("json") {
        @Override
        byte[] write(List<Outgoing> events, boolean alone) {
            ArrayNode all = Trees.MAPPER.createArrayNode();
            events.forEach(e -> all.add(tree(e)));
            try {
                return Trees.MAPPER.writeValueAsBytes(alone && all.size() == 1 ? all.get(0) : all);
            } catch (JsonProcessingException e) {
                throw new UncheckedIOException(e);
            }
        }
    },
    /** A line with the columns' names, then one for each event. */
    CSV("csv") {
        @Override
        byte[] write(List<Outgoing> events, boolean alone) {
            StringBuilder lines = new StringBuilder();
            line(lines, Outgoing.COLUMNS);
            events.forEach(e -> line(lines, e.row()));
            return lines.toString().getBytes(StandardCharsets.UTF_8);
        }
    },
    /** A table of texts. */
    PARQUET("parquet") {
        @Override
        byte[] write(List<Outgoing> events, boolean alone) {
            return ParquetTable.write(
                    Outgoing.COLUMNS, events.stream().map(Outgoing::row).toList());
        }
    };

    private final String extension;

    BatchFormat(String extension) {
        this.extension = extension;
    }

    String extension() {
        return extension;
    }

    /**
     * The bytes of an object.
     *
     * @param alone whether events are never written together
     */
    abstract byte[] write(List<Outgoing> events, boolean alone);

    private static ObjectNode tree(Outgoing e) {
        ObjectNode tree = Trees.MAPPER.createObjectNode();
        tree.put("specversion", "1.0");
        e.attributes().forEach((name, value) -> {
            JsonNode json = name.equals("metadata") || name.equals("annotations") ? Trees.read(value) : null;
            if (json == null) {
                tree.put(name, value);
            } else {
                tree.set(name, json);
            }
        });
        if (!e.event().contentType().isEmpty()) {
            tree.put("datacontenttype", e.event().contentType());
        }
        String text = e.text();
        JsonNode json = text != null && e.isJson() ? Trees.read(text) : null;
        if (json != null) {
            tree.set("data", json);
        } else if (text != null) {
            tree.put("data", text);
        } else {
            tree.put("data_base64", Base64.getEncoder().encodeToString(e.data()));
        }
        return tree;
    }

    private static void line(StringBuilder lines, List<String> values) {
        for (int i = 0; i < values.size(); i++) {
            String v = values.get(i);
            lines.append(i == 0 ? "" : ",");
            if (v.chars().noneMatch(c -> c == '"' || c == ',' || c == '\n' || c == '\r')) {
                lines.append(v);
            } else {
                lines.append('"').append(v.replace("\"", "\"\"")).append('"');
            }
        }
        lines.append("\r\n");
    }
}
