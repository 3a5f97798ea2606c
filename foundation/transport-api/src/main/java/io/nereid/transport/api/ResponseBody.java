// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.Tensor;
import java.util.Arrays;

/**
 * A response body: text with tensors spliced in between, so that large tensors are never copied. Owned by one thread
 * at a time; whichever component holds the body owns its tensors, until it passes the body to the transport or
 * discards it.
 *
 * <pre>{@code
 * byte[] json = "{\"outputs\":[]}".getBytes(UTF_8);
 * ResponseBody body = new ResponseBody(json, json.length)
 *         .splice(output, json.length);                       // binary tensor data behind the JSON
 * }</pre>
 */
public final class ResponseBody {
    private static final Tensor[] NO_TENSORS = {};

    private final byte[] text;
    private final int textLength;
    private Tensor[] tensors = NO_TENSORS;
    private int[] positions = {};
    private int count;

    /** Creates a body that starts with the first {@code length} bytes of {@code text}. The array is not copied. */
    public ResponseBody(byte[] text, int length) {
        this.text = text;
        this.textLength = length;
    }

    /**
     * Inserts a tensor's bytes after the first {@code position} bytes of the text and after all tensors inserted
     * before; positions must not decrease. Takes over the tensor.
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

    /** The array of the text, valid up to {@link #textLength()}. */
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

    /** The number of bytes of text that precede the {@code i}-th tensor. */
    public int position(int i) {
        return positions[i];
    }

    /** The total number of bytes of text and tensors. */
    public long length() {
        long n = textLength;
        for (int i = 0; i < count; i++) {
            n += tensors[i].byteLength();
        }
        return n;
    }

    /** Closes the tensors of a body that is not sent. */
    public void discard() {
        for (int i = 0; i < count; i++) {
            tensors[i].close();
        }
        count = 0;
    }
}
