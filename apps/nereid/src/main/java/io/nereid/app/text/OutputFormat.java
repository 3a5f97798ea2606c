// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.PrintWriter;
import java.util.Locale;

/** How a command prints its data: for people, or as a document for programs. */
public enum OutputFormat {
    TABLE,
    JSON,
    YAML;

    /** Whether the data is printed as a document. */
    public boolean isDocument() {
        return this != TABLE;
    }

    /** Prints a document and nothing else. Only for formats that are documents. */
    public void print(JsonNode document, PrintWriter out) {
        out.print(this == YAML ? YamlWriter.of(document) : document.toPrettyString() + "\n");
        out.flush();
    }

    /** The name on a command line. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
