// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

/** How the bytes of a string or of a BYTES element are written as JSON. Immutable. */
public enum BytesStyle {
    /** A string; bytes that are not UTF-8 are an error. */
    REJECT_MALFORMED,
    /** A string; each malformed byte becomes U+FFFD. */
    REPLACE_MALFORMED,
    /** A string; malformed bytes are copied unchanged, so the document may not be valid UTF-8. */
    VERBATIM,
    /** The object {@code {"b64":"..."}}. */
    BASE64
}
