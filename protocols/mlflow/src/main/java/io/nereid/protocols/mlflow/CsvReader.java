// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;

/** Reads comma-separated values with optional quotes (RFC 4180). Holds no state. */
final class CsvReader {
    private CsvReader() {}

    /**
     * The cells by line; empty lines are skipped.
     *
     * @throws ServingException INVALID_ARGUMENT for a quote that is not closed
     */
    static List<List<String>> lines(String text) {
        List<List<String>> lines = new ArrayList<>();
        List<String> cells = new ArrayList<>();
        StringBuilder cell = new StringBuilder();
        boolean quoted = false;
        int from = text.startsWith("\uFEFF") ? 1 : 0;
        for (int i = from; i < text.length(); i++) {
            char c = text.charAt(i);
            if (quoted) {
                if (c != '"') {
                    cell.append(c);
                } else if (i + 1 < text.length() && text.charAt(i + 1) == '"') {
                    cell.append('"');
                    i++;
                } else {
                    quoted = false;
                }
            } else if (c == '"' && cell.isEmpty()) {
                quoted = true;
            } else if (c == ',') {
                cells.add(cell.toString());
                cell.setLength(0);
            } else if (c == '\n') {
                end(lines, cells, cell);
                cells = new ArrayList<>();
            } else if (c != '\r') {
                cell.append(c);
            }
        }
        if (quoted) {
            throw ServingException.invalidArgument("the table ends within a quoted cell");
        }
        end(lines, cells, cell);
        return lines;
    }

    private static void end(List<List<String>> lines, List<String> cells, StringBuilder cell) {
        if (!cells.isEmpty() || !cell.isEmpty()) {
            cells.add(cell.toString());
            lines.add(cells);
        }
        cell.setLength(0);
    }
}
