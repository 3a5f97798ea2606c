// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.util.List;
import java.util.Map;

/**
 * What a {@link ModelConverter} says about a model. Immutable; the contents of files must not be modified.
 *
 * @param description what the file is, as a sentence without its full stop
 * @param files files to write beside it, by name; empty when the model is served as it is
 * @param next what to do then, one command or remark in a line
 */
public record Conversion(String description, Map<String, byte[]> files, List<String> next) {
    /** Keeps copies of the collections. */
    public Conversion {
        files = Map.copyOf(files);
        next = List.copyOf(next);
    }
}
