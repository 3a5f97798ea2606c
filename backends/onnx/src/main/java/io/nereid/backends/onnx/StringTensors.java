// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * Converts string tensors between length-prefixed bytes and ONNX Runtime's {@link String}s. Immutable.
 *
 * <p>ONNX Runtime's Java API passes strings as modified UTF-8, which changes NUL and every character outside the Basic
 * Multilingual Plane on the way in. Such inputs are rejected rather than changed. On the way out such characters are
 * damaged beyond repair; a result that shows the damage is rejected, too.
 */
final class StringTensors {
    private StringTensors() {}

    /**
     * Decodes the elements of a BYTES tensor.
     *
     * @throws ServingException INVALID_ARGUMENT for bytes that do not match the shape or that ONNX Runtime would change
     */
    static String[] decode(Tensor tensor) {
        ByteBuffer bytes = tensor.buffer();
        long count = tensor.shape().elementCount();
        if (count * 4 > bytes.remaining()) {
            throw mismatch(tensor, count);
        }
        String[] elements = new String[(int) count];
        for (int i = 0; i < elements.length; i++) {
            int length = bytes.remaining() < 4 ? -1 : bytes.getInt();
            if (length < 0 || length > bytes.remaining()) {
                throw mismatch(tensor, count);
            }
            elements[i] = text(tensor.name(), i, bytes.slice(bytes.position(), length));
            bytes.position(bytes.position() + length);
        }
        if (bytes.hasRemaining()) {
            throw mismatch(tensor, count);
        }
        return elements;
    }

    private static ServingException mismatch(Tensor tensor, long count) {
        return ServingException.invalidArgument("input '" + tensor.name() + "' of " + tensor.byteLength()
                + " bytes does not hold the " + count + " length-prefixed elements of shape " + tensor.shape());
    }

    private static String text(String input, int index, ByteBuffer bytes) {
        String found;
        String text = "";
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
            found = text.indexOf('\0') >= 0
                    ? "a NUL character"
                    : text.chars().anyMatch(c -> Character.isSurrogate((char) c))
                            ? "a character beyond U+FFFF, such as an emoji"
                            : "";
        } catch (CharacterCodingException e) {
            found = "bytes that are not UTF-8";
        }
        if (!found.isEmpty()) {
            throw ServingException.invalidArgument(
                    "element " + index + " of input '" + input + "' has " + found
                            + ", which ONNX Runtime's Java API would change",
                    "send text of the Basic Multilingual Plane in UTF-8");
        }
        return text;
    }

    /** Encodes the elements as a BYTES tensor. */
    static Tensor encode(String name, Shape shape, String[] elements) {
        byte[][] encoded = new byte[elements.length][];
        long size = 0;
        for (int i = 0; i < elements.length; i++) {
            encoded[i] = whole(name, i, elements[i]).getBytes(StandardCharsets.UTF_8);
            size += 4L + encoded[i].length;
        }
        if (size > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED, "output '" + name + "' takes " + size + " bytes (expected: < 2 GiB)");
        }
        return Tensor.ofBytes(name, shape, encoded);
    }

    /**
     * Rejects the remains of a character beyond U+FFFF: the first byte of its four-byte sequence, read as Latin-1,
     * before another one of its bytes. At the end of a text only a lone U+00F0 to U+00F4 remains, which looks like the
     * letter and is not detected.
     */
    private static String whole(String output, int index, String text) {
        for (int i = 0; i + 1 < text.length(); i++) {
            char c = text.charAt(i);
            char next = text.charAt(i + 1);
            if (c >= 0xf0 && c <= 0xf4 && next >= 0x80 && next <= 0xbf) {
                throw ServingException.of(
                        ErrorCode.UNIMPLEMENTED,
                        "element " + index + " of output '" + output
                                + "' has a character beyond U+FFFF, such as an emoji, "
                                + "which ONNX Runtime's Java API cannot return",
                        "change the model to return numbers or text of the Basic Multilingual Plane");
            }
        }
        return text;
    }
}
