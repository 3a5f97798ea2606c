// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;

/** What may stand where in a resource. Immutable. */
final class Schema {
    private Schema() {}

    static String wrongType(String path, String expected, JsonNode found) {
        return path + ": expected " + expected + ", found " + shown(found);
    }

    static String shown(JsonNode found) {
        return switch (found.getNodeType()) {
            case OBJECT -> "an object";
            case ARRAY -> "a list";
            case STRING -> "the string " + clip(found.toString());
            case NULL, MISSING -> "nothing";
            default -> clip(found.toString());
        };
    }

    static String clip(String text) {
        return text.length() <= 80 ? text : text.substring(0, 77) + "...";
    }
}
