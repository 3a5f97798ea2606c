// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/** Formats text in columns, each as wide as its widest cell. Confined to one thread. */
public final class TextTable {
    private final List<String[]> rows = new ArrayList<>();

    public TextTable(String... heads) {
        rows.add(heads);
    }

    public void row(String... cells) {
        rows.add(cells);
    }

    public void print(PrintWriter out) {
        int[] widths = new int[rows.get(0).length];
        for (String[] row : rows) {
            for (int i = 0; i < row.length; i++) {
                widths[i] = Math.max(widths[i], row[i].length());
            }
        }
        for (String[] row : rows) {
            StringBuilder line = new StringBuilder("  ");
            for (int i = 0; i < row.length; i++) {
                line.append(row[i]).append(" ".repeat(widths[i] - row[i].length() + 2));
            }
            out.println(line.toString().stripTrailing());
        }
    }
}
