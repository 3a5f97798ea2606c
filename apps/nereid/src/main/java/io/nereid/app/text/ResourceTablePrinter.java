// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Prints the tables that the control API returns. Consecutive tables keep the same column widths. Confined to one
 * thread.
 */
public final class ResourceTablePrinter {
    private final boolean wide;
    private final boolean namespaces;
    private final List<Integer> widths = new ArrayList<>();
    private boolean headed;
    /** The columns of the last table that had some: of a watch, only the first event has them. */
    private JsonNode columns = MissingNode.getInstance();

    public ResourceTablePrinter(boolean wide, boolean namespaces) {
        this.wide = wide;
        this.namespaces = namespaces;
    }

    public void print(JsonNode table, String prefix, PrintWriter out) {
        List<List<String>> rows = new ArrayList<>();
        if (!table.path("columnDefinitions").isEmpty()) {
            columns = table.path("columnDefinitions");
        }
        if (!headed) {
            List<String> heads = new ArrayList<>();
            if (namespaces) {
                heads.add("NAMESPACE");
            }
            for (JsonNode column : columns) {
                if (shown(column)) {
                    heads.add(column.path("name").asText().toUpperCase(Locale.ROOT));
                }
            }
            rows.add(heads);
            headed = true;
        }
        for (JsonNode row : table.path("rows")) {
            List<String> cells = new ArrayList<>();
            if (namespaces) {
                cells.add(row.path("object").path("metadata").path("namespace").asText(""));
            }
            for (int i = 0; i < row.path("cells").size(); i++) {
                JsonNode column = columns.path(i);
                if (shown(column)) {
                    JsonNode cell = row.path("cells").path(i);
                    String text = cell.isNull() ? "" : cell.asText();
                    cells.add(column.path("format").asText().equals("name") ? prefix + text : text);
                }
            }
            rows.add(cells);
        }
        for (List<String> row : rows) {
            for (int i = 0; i < row.size(); i++) {
                int length = row.get(i).length();
                if (i == widths.size()) {
                    widths.add(length);
                } else {
                    widths.set(i, Math.max(widths.get(i), length));
                }
            }
        }
        for (List<String> row : rows) {
            StringBuilder line = new StringBuilder();
            for (int i = 0; i < row.size(); i++) {
                line.append(row.get(i))
                        .append(" ".repeat(widths.get(i) - row.get(i).length() + 3));
            }
            out.println(line.toString().stripTrailing());
        }
        out.flush();
    }

    private boolean shown(JsonNode column) {
        return wide || column.path("priority").asInt(0) == 0;
    }
}
