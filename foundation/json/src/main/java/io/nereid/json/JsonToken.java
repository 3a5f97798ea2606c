// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

/** What comes next in a document. Immutable. */
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
