// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.Tensor;
import java.util.Arrays;

/**
 * A body in the making: bytes with tensors spliced in between, so that large tensors are never copied. Owned by one
 * thread at a time; whoever is handed it owns its tensors.
 */
public final class ResponseBody {
    private static final Tensor[] NO_TENSORS = {};

    private final byte[] text;
    private final int textLength;
    private Tensor[] tensors = NO_TENSORS;
    private int[] positions = {};
    private int count;

    /** Content that starts with the first {@code length} bytes of {@code text}, which it refers to without a copy. */
    public ResponseBody(byte[] text, int length) {
        this.text = text;
        this.textLength = length;
    }

    /**
     * Splices a tensor's bytes in after the first {@code position} bytes of the text, and after every tensor spliced in
     * before; positions never decrease. Takes over the tensor.
     */
    public ResponseBody splice(Tensor tensor, int position) {
        if (count == tensors.length) {
            tensors = Arrays.copyOf(tensors, Math.max(2, count * 2));
            positions = Arrays.copyOf(positions, tensors.length);
        }
        tensors[count] = tensor;
        positions[count] = position;
        count++;
        return this;
    }

    /** The text's array, valid up to {@link #textLength()}. */
    public byte[] text() {
        return text;
    }

    /** Bytes of text. */
    public int textLength() {
        return textLength;
    }

    /** Number of tensors. */
    public int tensorCount() {
        return count;
    }

    /** The {@code i}-th tensor. */
    public Tensor tensor(int i) {
        return tensors[i];
    }

    /** How many bytes of text come before the {@code i}-th tensor. */
    public int position(int i) {
        return positions[i];
    }

    /** Bytes of text and tensors together. */
    public long length() {
        long n = textLength;
        for (int i = 0; i < count; i++) {
            n += tensors[i].byteLength();
        }
        return n;
    }

    /** Closes the tensors; for whoever drops the content unsent. */
    public void discard() {
        for (int i = 0; i < count; i++) {
            tensors[i].close();
        }
        count = 0;
    }
}
