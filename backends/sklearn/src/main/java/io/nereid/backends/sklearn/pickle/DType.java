// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A numpy dtype. Confined to the thread that reads the file; unchanged once its state is set. */
public final class DType {
    /** numpy's {@code dtype.kind}: b, i, u, f, c, O, U, S, V, M or m. */
    private final char kind;

    private int size;
    private boolean bigEndian;
    private boolean sub;
    private final Map<String, Field> fields = new LinkedHashMap<>();

    /** A field of a structured dtype, at a byte offset in the element. */
    record Field(DType type, int offset) {}

    private DType(char kind, int size) {
        this.kind = kind;
        this.size = size;
    }

    /** The dtype of a code such as {@code f8} or {@code <i4}, or of a name such as {@code float64}. */
    public static DType parse(String text) {
        String code = text;
        boolean big = false;
        if (!code.isEmpty() && "<>|=".indexOf(code.charAt(0)) >= 0) {
            big = code.charAt(0) == '>';
            code = code.substring(1);
        }
        DType named = named(code);
        if (named == null) {
            char kind = code.isEmpty() ? ' ' : code.charAt(0);
            if ("biufcOUSVMm".indexOf(kind) < 0 || code.length() > 10) {
                throw UnsupportedModel.unsupported("numpy type '" + shown(text) + "' is unknown");
            }
            // numpy counts characters of text, of 4 bytes each.
            named = new DType(kind, number(code, text) * (kind == 'U' ? 4 : 1));
        }
        named.bigEndian = big;
        return named;
    }

    private static int number(String code, String text) {
        int end = 1;
        while (end < code.length() && Character.isDigit(code.charAt(end))) {
            end++;
        }
        if (end == 1) {
            return code.charAt(0) == 'O' ? 8 : 0;
        }
        long n = Long.parseLong(code.substring(1, end));
        if (n > 1 << 24) {
            throw UnsupportedModel.corrupt("numpy type '" + shown(text) + "' has elements of " + n + " bytes");
        }
        return (int) n;
    }

    private static String shown(String text) {
        return text.length() > 40 ? text.substring(0, 40) + "…" : text;
    }

    private static @Nullable DType named(String name) {
        return switch (name) {
            case "float64", "float", "double" -> new DType('f', 8);
            case "float32" -> new DType('f', 4);
            case "float16" -> new DType('f', 2);
            case "int64", "int", "intp", "longlong" -> new DType('i', 8);
            case "int32", "intc" -> new DType('i', 4);
            case "int16" -> new DType('i', 2);
            case "int8" -> new DType('i', 1);
            case "uint64", "uintp", "ulonglong" -> new DType('u', 8);
            case "uint32", "uintc" -> new DType('u', 4);
            case "uint16" -> new DType('u', 2);
            case "uint8" -> new DType('u', 1);
            case "bool", "bool_" -> new DType('b', 1);
            case "object", "object_" -> new DType('O', 8);
            case "str", "str_" -> new DType('U', 0);
            default -> null;
        };
    }

    /** Sets the state that {@code dtype.__reduce__} writes: byte order, sub-array, field names, fields, size. */
    void build(Object value) {
        if (!(value instanceof PyTuple state) || state.size() < 7) {
            throw UnsupportedModel.corrupt("a numpy dtype has a malformed state");
        }
        bigEndian = state.get(1).equals(">");
        sub = state.get(2) != PyNone.NONE;
        if (state.get(5) instanceof Long given && given >= 0) {
            if (given > 1 << 24) {
                throw UnsupportedModel.corrupt("a numpy dtype has elements of " + given + " bytes");
            }
            size = given.intValue();
        }
        if (state.get(4) instanceof PyDict dict) {
            dict.items().forEach((name, field) -> {
                if (name instanceof String n
                        && field instanceof PyTuple f
                        && f.get(0) instanceof DType type
                        && f.get(1) instanceof Long offset
                        && type != this
                        && offset >= 0
                        && offset + type.size <= size) {
                    fields.put(n, new Field(type, offset.intValue()));
                } else {
                    throw UnsupportedModel.corrupt("a numpy dtype has a field outside its elements");
                }
            });
        }
    }

    char kind() {
        return kind;
    }

    int size() {
        return size;
    }

    boolean bigEndian() {
        return bigEndian;
    }

    boolean structured() {
        return !fields.isEmpty();
    }

    /** Whether elements are numbers or booleans of a size that is supported, and not sub-arrays. */
    boolean numeric() {
        boolean right = switch (kind) {
            case 'f' -> size == 2 || size == 4 || size == 8;
            case 'i', 'u' -> size == 1 || size == 2 || size == 4 || size == 8;
            case 'b' -> size == 1;
            default -> false;
        };
        return right && !sub;
    }

    @Nullable Field field(String name) {
        return fields.get(name);
    }

    List<String> fieldNames() {
        return new ArrayList<>(fields.keySet());
    }

    @Override
    public String toString() {
        return kind + Integer.toString(size);
    }
}
