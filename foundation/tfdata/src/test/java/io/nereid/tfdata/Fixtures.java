// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/** Bytes serialized by TensorFlow, as {@code make_fixtures.py} wrote them. Immutable. */
final class Fixtures {
    private Fixtures() {}

    static Map<String, byte[]> all() {
        Map<String, byte[]> all = new HashMap<>();
        try (InputStream in = Fixtures.class.getResourceAsStream("messages.txt")) {
            for (String line : new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                String[] parts = line.split(" ", -1);
                all.put(parts[0], HexFormat.of().parseHex(parts[1]));
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return all;
    }

    static byte[] of(String name) {
        byte[] message = all().get(name);
        if (message == null) {
            throw new AssertionError("no fixture " + name);
        }
        return message;
    }

    static byte[] bytes(Tensor tensor) {
        byte[] bytes = new byte[tensor.byteLength()];
        tensor.region().getBytes(tensor.offset(), bytes, 0, bytes.length);
        return bytes;
    }
}
