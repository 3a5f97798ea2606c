// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import org.apache.commons.csv.CSVFormat;

/** The formats of objects that contain events. Immutable. */
public enum BatchFormat {
    /** A JSON object for each event; an array of them for a batch. */
    JSON("json") {
        @Override
        byte[] write(List<RedactedEvent> events, boolean alone) {
            ArrayNode all = JsonDocuments.MAPPER.createArrayNode();
            events.forEach(e -> all.add(tree(e)));
            try {
                return JsonDocuments.MAPPER.writeValueAsBytes(alone && all.size() == 1 ? all.get(0) : all);
            } catch (JsonProcessingException e) {
                throw new UncheckedIOException(e);
            }
        }
    },
    /** A header line, then one line for each event. */
    CSV("csv") {
        @Override
        byte[] write(List<RedactedEvent> events, boolean alone) {
            StringBuilder lines = new StringBuilder();
            try {
                CSVFormat.DEFAULT.printRecord(lines, RedactedEvent.COLUMNS.toArray());
                for (RedactedEvent event : events) {
                    CSVFormat.DEFAULT.printRecord(lines, event.row().toArray());
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return lines.toString().getBytes(StandardCharsets.UTF_8);
        }
    },
    /** A Parquet table whose columns are strings. */
    PARQUET("parquet") {
        @Override
        byte[] write(List<RedactedEvent> events, boolean alone) {
            return ParquetWriter.write(
                    RedactedEvent.COLUMNS,
                    events.stream().map(RedactedEvent::row).toList());
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
     * Writes events as the content of one object.
     *
     * @param events the events, at least one
     * @param alone whether the logger never batches events; then JSON is an object instead of an array
     */
    abstract byte[] write(List<RedactedEvent> events, boolean alone);

    private static ObjectNode tree(RedactedEvent e) {
        ObjectNode tree = JsonDocuments.MAPPER.createObjectNode();
        tree.put("specversion", "1.0");
        e.attributes().forEach((name, value) -> {
            JsonNode json = name.equals("metadata") || name.equals("annotations") ? JsonDocuments.read(value) : null;
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
        JsonNode json = text != null && e.isJson() ? JsonDocuments.read(text) : null;
        if (json != null) {
            tree.set("data", json);
        } else if (text != null) {
            tree.put("data", text);
        } else {
            tree.put("data_base64", Base64.getEncoder().encodeToString(e.data()));
        }
        return tree;
    }
}
