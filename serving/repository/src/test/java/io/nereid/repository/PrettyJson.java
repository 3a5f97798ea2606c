// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Writes a tree of maps, lists and scalars as readable JSON; short lists on one line. Immutable. */
public final class PrettyJson {
    private PrettyJson() {}

    public static String of(Object tree) {
        StringBuilder b = new StringBuilder();
        write(tree, "", b);
        return b.append('\n').toString();
    }

    private static void write(Object value, String indent, StringBuilder b) {
        if (value instanceof Map<?, ?> map && !map.isEmpty()) {
            Iterator<? extends Map.Entry<?, ?>> entries = map.entrySet().iterator();
            b.append("{\n");
            while (entries.hasNext()) {
                Map.Entry<?, ?> e = entries.next();
                b.append(indent).append("  ");
                text(e.getKey().toString(), b);
                write(e.getValue(), indent + "  ", b.append(": "));
                b.append(entries.hasNext() ? ",\n" : "\n");
            }
            b.append(indent).append('}');
        } else if (value instanceof List<?> list) {
            b.append('[');
            String separator = "";
            for (Object member : list) {
                write(member, indent, b.append(separator));
                separator = ", ";
            }
            b.append(']');
        } else if (value instanceof String s) {
            text(s, b);
        } else if (value instanceof Double d && !Double.isFinite(d)) {
            text(d.toString(), b);
        } else {
            b.append(value);
        }
    }

    private static void text(String s, StringBuilder b) {
        b.append('"');
        for (char c : s.toCharArray()) {
            if (c < ' ' || c == '"' || c == '\\') {
                b.append(String.format(java.util.Locale.ROOT, "\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        b.append('"');
    }
}
