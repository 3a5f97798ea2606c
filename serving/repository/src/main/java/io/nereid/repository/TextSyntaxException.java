// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

/** A text that does not follow the grammar. Confined to the reader that throws and catches it. */
final class TextSyntaxException extends Exception {
    private static final long serialVersionUID = 1L;

    private final transient Position at;
    private final String remedy;

    TextSyntaxException(Position at, String message, String remedy) {
        super(message, null, false, false);
        this.at = at;
        this.remedy = remedy;
    }

    Position at() {
        return at;
    }

    String message() {
        return String.valueOf(getMessage());
    }

    String remedy() {
        return remedy;
    }
}
