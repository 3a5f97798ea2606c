// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * String tensors between our bytes and the engine's {@link String}s. Immutable.
 *
 * <p>The engine's Java interface passes strings as modified UTF-8, which changes NUL and every character outside the
 * Basic Multilingual Plane on the way in. Such inputs are refused rather than changed. On the way out such characters
 * arrive damaged beyond repair; a result that shows it is refused, too.
 */
final class StringElements {
    private StringElements() {}

    /**
     * The elements of a BYTES tensor.
     *
     * @throws ServingException INVALID_ARGUMENT for bytes that do not match the shape or that the engine would change
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
                            + ", which ONNX Runtime's Java interface would change",
                    "send text of the Basic Multilingual Plane in UTF-8");
        }
        return text;
    }

    /** A BYTES tensor of these elements. */
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
        MemoryRegion region = MemoryRegion.allocate((int) size);
        int at = 0;
        for (byte[] bytes : encoded) {
            region.setInt(at, bytes.length);
            region.setBytes(at + 4, bytes, 0, bytes.length);
            at += 4 + bytes.length;
        }
        return Tensor.over(name, DataType.BYTES, shape, region, 0, (int) size);
    }

    /**
     * Refuses what is left of a character beyond U+FFFF. Where nothing of the text follows it, a lone U+00F0 to U+00F4 is
     * all that the interface leaves, and that cannot be told from the letter.
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
                                + "which ONNX Runtime's Java interface cannot hand over",
                        "let the model give numbers or text of the Basic Multilingual Plane");
            }
        }
        return text;
    }
}
