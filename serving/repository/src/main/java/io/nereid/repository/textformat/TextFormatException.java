// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.textformat;

import io.nereid.repository.problem.SourcePosition;

/** A syntax error in a text. Confined to the reader that throws and catches it. */
public final class TextFormatException extends Exception {
    private static final long serialVersionUID = 1L;

    private final transient SourcePosition at;
    private final String remedy;

    public TextFormatException(SourcePosition at, String message, String remedy) {
        super(message, null, false, false);
        this.at = at;
        this.remedy = remedy;
    }

    public SourcePosition at() {
        return at;
    }

    public String message() {
        return String.valueOf(getMessage());
    }

    public String remedy() {
        return remedy;
    }
}
