// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads a document in Universal Binary JSON (draft 12), in the forms that XGBoost writes: lengths before names and texts,
 * arrays of one type with their count. Objects become maps, arrays lists, or arrays of doubles where they have one type.
 * Confined to one thread.
 */
final class UbjValues {
    private static final int DEEPEST = 64;

    private final ByteBuffer in;
    private int depth;

    private UbjValues(ByteBuffer in) {
        this.in = in;
    }

    /**
     * The value of a document.
     *
     * @throws ServingException INVALID_ARGUMENT for a document that is damaged
     */
    static Object read(byte[] document) {
        try {
            return new UbjValues(ByteBuffer.wrap(document)).value();
        } catch (BufferUnderflowException e) {
            throw bad();
        }
    }

    /**
     * The bytes of a field's value in the outermost object; null when it has no such field.
     *
     * @throws ServingException INVALID_ARGUMENT for a document that is damaged
     */
    static byte @Nullable [] field(byte[] document, String name) {
        try {
            UbjValues values = new UbjValues(ByteBuffer.wrap(document));
            if (values.in.get() != '{') {
                throw bad();
            }
            while (values.in.get(values.in.position()) != '}') {
                String key = values.text();
                int from = values.in.position();
                values.value();
                if (key.equals(name)) {
                    return java.util.Arrays.copyOfRange(document, from, values.in.position());
                }
            }
            return null;
        } catch (BufferUnderflowException | IndexOutOfBoundsException e) {
            throw bad();
        }
    }

    private static ServingException bad() {
        return UnsupportedModel.corrupt("the snapshot of an XGBoost model is damaged");
    }

    private Object value() {
        return value(in.get());
    }

    private Object value(byte type) {
        if (++depth > DEEPEST) {
            throw bad();
        }
        Object value = switch (type) {
            case '{' -> object();
            case '[' -> array();
            case 'S' -> text();
            case 'T' -> true;
            case 'F' -> false;
            case 'Z', 'N' -> "";
            default -> number(type);
        };
        depth--;
        return value;
    }

    private double number(byte type) {
        return switch (type) {
            case 'i' -> in.get();
            case 'U' -> in.get() & 0xff;
            case 'I' -> in.getShort();
            case 'l' -> in.getInt();
            case 'L' -> in.getLong();
            case 'd' -> in.getFloat();
            case 'D' -> in.getDouble();
            default -> throw bad();
        };
    }

    private int length() {
        double length = number(in.get());
        if (!(length >= 0 && length <= in.remaining())) {
            throw bad();
        }
        return (int) length;
    }

    private String text() {
        byte[] text = new byte[length()];
        in.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }

    private Map<String, Object> object() {
        Map<String, Object> map = new LinkedHashMap<>();
        while (true) {
            in.mark();
            if (in.get() == '}') {
                return map;
            }
            in.reset();
            String key = text();
            map.put(key, value());
        }
    }

    private Object array() {
        byte first = in.get();
        if (first == '$') {
            byte type = in.get();
            if (in.get() != '#') {
                throw bad();
            }
            double[] values = new double[length()];
            for (int i = 0; i < values.length; i++) {
                values[i] = number(type);
            }
            return values;
        }
        List<Object> list = new ArrayList<>();
        if (first == '#') {
            for (int left = length(); left > 0; left--) {
                list.add(value());
            }
            return list;
        }
        for (byte type = first; type != ']'; type = in.get()) {
            list.add(value(type));
        }
        return list;
    }
}
