// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.textformat;

import io.nereid.repository.problem.SourcePosition;
import java.util.List;

/** A node of the syntax tree of protobuf's text format, before a schema is applied. Immutable. */
public sealed interface TextFormatNode {
    /** Where it starts. */
    SourcePosition at();

    /** How a scalar was written. */
    enum Kind {
        WORD,
        NUMBER,
        STRING
    }

    /**
     * A scalar.
     *
     * @param kind how it was written
     * @param text the word, the number's digits without sign, or the string's contents
     * @param negative whether a minus stood before it
     * @param at where it starts
     */
    record Scalar(Kind kind, String text, boolean negative, SourcePosition at) implements TextFormatNode {
        /** As it was written, more or less, for messages. */
        public String shown() {
            return kind == Kind.STRING ? '"' + text + '"' : negative ? '-' + text : text;
        }
    }

    /**
     * A message.
     *
     * @param fields in the order written
     * @param at where it starts
     */
    record Block(List<Field> fields, SourcePosition at) implements TextFormatNode {}

    /**
     * A field with its value, or with the values of a list.
     *
     * @param name as written
     * @param colon whether a colon follows the name
     * @param list whether the values stand in brackets
     * @param values one, or any number in a list
     * @param at where the name starts
     */
    record Field(String name, boolean colon, boolean list, List<TextFormatNode> values, SourcePosition at) {}
}
