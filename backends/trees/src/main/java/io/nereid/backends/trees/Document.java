// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

/**
 * What is read of a JSON-like document, whatever its bytes look like. Exactly one value is read after each
 * {@link #nextField()} or {@link #hasNext()} that is true. Malformed bytes are refused with INVALID_ARGUMENT. Memory
 * grows with what is there, never with what is announced. Confined to one thread.
 */
interface Document {
    /** Enters an object. */
    void beginObject();

    /** Goes to the next field's value; false when the object has ended. */
    boolean nextField();

    /** The name of the field. */
    String key();

    /** Enters an array. */
    void beginArray();

    /** Goes to the next element; false when the array has ended. */
    boolean hasNext();

    /** A text; a number or a truth value as text. */
    String text();

    /** An array of numbers or truth values, as floats. */
    float[] floats();

    /** An array of numbers or truth values, each a whole number. */
    int[] ints();

    /** Passes over a value. */
    void skip();

    /** Nothing may follow. */
    void end();
}
