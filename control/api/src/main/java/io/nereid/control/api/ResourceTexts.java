// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.util.List;

/** Reads files of resources. Immutable. */
public final class ResourceTexts {
    private ResourceTexts() {}

    /**
     * Reads the documents of a YAML file, or a JSON document; those of a {@code List} one by one; empty ones are left out.
     *
     * @param where the file's name, for messages
     * @throws ServingException INVALID_ARGUMENT with the line
     */
    public static List<ObjectNode> parse(String text, String where) {
        throw ServingException.invalidArgument(where + ": not read yet: " + text.length());
    }
}
