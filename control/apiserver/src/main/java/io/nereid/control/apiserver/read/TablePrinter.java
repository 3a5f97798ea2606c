// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKind.Column;
import io.nereid.control.apiserver.http.ApiResponse;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Locale;

/** Renders resources as tables of {@code meta.k8s.io/v1}, which {@code kubectl get} prints. Immutable. */
final class TablePrinter {
    private final Clock clock;

    TablePrinter(Clock clock) {
        this.clock = clock;
    }

    /**
     * Renders a table.
     *
     * @param include what a row contains beside its cells: nothing for {@code None}, the resource for {@code Object},
     *     else its metadata
     */
    ObjectNode table(ResourceKind kind, List<? extends JsonNode> resources, JsonNode listMetadata, String include) {
        ObjectNode table = ApiResponse.JSON.createObjectNode();
        table.put("kind", "Table").put("apiVersion", "meta.k8s.io/v1");
        table.set("metadata", listMetadata);
        ArrayNode columns = table.putArray("columnDefinitions");
        boolean named = !kind.kind().equals("Event");
        if (named) {
            columns.addObject()
                    .put("name", "Name")
                    .put("type", "string")
                    .put("format", "name")
                    .put("description", "unique in its namespace")
                    .put("priority", 0);
        }
        for (Column column : kind.columns()) {
            columns.addObject()
                    .put("name", column.name())
                    .put("type", column.type())
                    .put("format", "")
                    .put("description", column.description())
                    .put("priority", column.priority());
        }
        ArrayNode rows = table.putArray("rows");
        for (JsonNode resource : resources) {
            ObjectNode row = rows.addObject();
            ArrayNode cells = row.putArray("cells");
            if (named) {
                cells.add(resource.path("metadata").path("name").asText());
            }
            for (Column column : kind.columns()) {
                cell(kind, column, resource, cells);
            }
            if (include.equals("Object")) {
                row.set("object", resource);
            } else if (!include.equals("None")) {
                row.set("object", metadataOnly(resource));
            }
        }
        return table;
    }

    /** A {@code PartialObjectMetadata} of the resource. */
    static ObjectNode metadataOnly(JsonNode resource) {
        ObjectNode partial = ApiResponse.JSON.createObjectNode();
        partial.put("kind", "PartialObjectMetadata").put("apiVersion", "meta.k8s.io/v1");
        partial.set("metadata", resource.path("metadata"));
        return partial;
    }

    private void cell(ResourceKind kind, Column column, JsonNode resource, ArrayNode cells) {
        if (kind.kind().equals("Event") && column.path().equals(".involvedObject.name")) {
            JsonNode about = resource.path("involvedObject");
            cells.add(about.path("kind").asText("").toLowerCase(Locale.ROOT) + "/"
                    + about.path("name").asText(""));
            return;
        }
        if (column.path().equals(".data")) {
            cells.add(resource.path("data").size() + resource.path("binaryData").size());
            return;
        }
        List<JsonNode> found = JsonPath.find(resource, column.path());
        if (column.type().equals("date")) {
            cells.add(found.isEmpty() ? "<unknown>" : age(found.get(0).asText()));
        } else if (found.isEmpty()) {
            if (column.type().equals("boolean") || column.type().equals("integer")) {
                cells.addNull();
            } else {
                cells.add("");
            }
        } else if (found.size() == 1
                && found.get(0).isValueNode()
                && !column.type().equals("string")) {
            cells.add(found.get(0));
        } else {
            // of several values, Kubernetes shows the first one
            JsonNode first = found.get(0);
            cells.add(first.isValueNode() ? first.asText() : first.toString());
        }
    }

    private String age(String time) {
        try {
            return shown(
                    Duration.between(OffsetDateTime.parse(time).toInstant(), Instant.ofEpochMilli(clock.millis())));
        } catch (DateTimeException e) {
            return "<unknown>";
        }
    }

    /** A duration as kubectl prints it: the longer it is, the coarser. */
    static String shown(Duration span) {
        long s = Math.max(0, span.toSeconds());
        long m = s / 60;
        long h = m / 60;
        long d = h / 24;
        if (s < 120) {
            return s + "s";
        } else if (m < 10) {
            return m + "m" + rest(s % 60, "s");
        } else if (h < 3) {
            return m + "m";
        } else if (h < 8) {
            return h + "h" + rest(m % 60, "m");
        } else if (h < 48) {
            return h + "h";
        } else if (d < 8) {
            return d + "d" + rest(h % 24, "h");
        } else if (d < 730) {
            return d + "d";
        }
        return d / 365 + "y" + rest(d % 365, "d");
    }

    private static String rest(long number, String unit) {
        return number == 0 ? "" : number + unit;
    }
}
