// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

/** The kinds of tokens in a JSON document. Immutable. */
public enum JsonToken {
    OBJECT,
    ARRAY,
    STRING,
    NUMBER,
    BOOLEAN,
    NULL,
    END_OBJECT,
    END_ARRAY,
    END_OF_INPUT
}
