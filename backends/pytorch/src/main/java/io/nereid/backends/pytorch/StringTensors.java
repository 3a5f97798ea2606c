// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Converts string tensors between length-prefixed bytes and the Java strings that DJL's binding uses. Immutable. */
final class StringTensors {
    private StringTensors() {}

    /**
     * Decodes the elements of a string tensor.
     *
     * @throws ServingException INVALID_ARGUMENT for strings that the binding would change: NUL, characters beyond
     *     U+FFFF, and bytes that are not UTF-8
     */
    static List<String> decode(String input, ByteBuffer bytes) {
        List<String> texts = new ArrayList<>();
        while (bytes.hasRemaining()) {
            int length = bytes.getInt();
            String text;
            try {
                text = StandardCharsets.UTF_8
                        .newDecoder()
                        .decode(bytes.slice(bytes.position(), length))
                        .toString();
            } catch (CharacterCodingException e) {
                throw rejected(input);
            }
            bytes.position(bytes.position() + length);
            if (text.indexOf('\0') >= 0 || text.chars().anyMatch(c -> Character.isSurrogate((char) c))) {
                throw rejected(input);
            }
            texts.add(text);
        }
        return texts;
    }

    private static ServingException rejected(String input) {
        return ServingException.invalidArgument(
                "input '" + input + "' has a string that cannot be passed to libtorch",
                "send UTF-8 without NUL and without characters beyond U+FFFF");
    }

    static Tensor encode(String name, Shape shape, List<String> texts) {
        List<byte[]> all = new ArrayList<>();
        int size = 0;
        for (String text : texts) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            all.add(bytes);
            size += 4 + bytes.length;
        }
        ByteBuffer out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] bytes : all) {
            out.putInt(bytes.length).put(bytes);
        }
        return Tensor.over(
                name, io.nereid.tensor.DataType.BYTES, shape, MemoryRegion.copyOf(out.array(), 0, size), 0, size);
    }
}
