// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

/**
 * A streaming reader of a JSON-like document, independent of its encoding (JSON or UBJ). Exactly one value must be read
 * or skipped after each {@link #nextField()} or {@link #hasNext()} that returns true. Malformed bytes fail with
 * INVALID_ARGUMENT. Memory grows with the bytes that are there, never with a length that the document claims. Confined
 * to one thread.
 */
interface DocumentReader {
    /** Enters an object. */
    void beginObject();

    /** Advances to the value of the next field; false at the end of the object, which is left. */
    boolean nextField();

    /** The name of the current field. */
    String key();

    /** Enters an array. */
    void beginArray();

    /** Advances to the next element; false at the end of the array, which is left. */
    boolean hasNext();

    /** Reads a string; a number or boolean is converted to its text. */
    String text();

    /** Reads an array of numbers or booleans as floats. */
    float[] floats();

    /** Reads an array of integers or booleans. */
    int[] ints();

    /** Skips a value. */
    void skip();

    /** Checks that nothing follows the document. */
    void end();
}
