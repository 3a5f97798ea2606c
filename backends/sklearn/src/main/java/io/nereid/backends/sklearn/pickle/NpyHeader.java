// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.util.ArrayList;
import java.util.List;

/**
 * Parses the header of a {@code .npy} file: a Python dict literal with the keys {@code descr}, {@code fortran_order}
 * and {@code shape}. Only the literals that numpy writes there are accepted. Confined to one thread.
 */
final class NpyHeader {
    private final String text;
    private int at;
    private DType type = DType.parse("f8");
    private boolean fortran;
    private int[] shape = {};

    /** @throws io.nereid.base.ServingException INVALID_ARGUMENT for text that is not such a dict */
    NpyHeader(String text) {
        this.text = text;
        expect('{');
        int seen = 0;
        while (next() == '\'') {
            String key = string();
            expect(':');
            switch (key) {
                case "descr" -> type = descr();
                case "fortran_order" -> fortran = word().equals("True");
                case "shape" -> shape = NdArray.shape(new PyTuple(numbers()));
                default -> throw damaged();
            }
            seen++;
            if (next() == ',') {
                at++;
            }
        }
        expect('}');
        if (seen < 3) {
            throw damaged();
        }
    }

    DType type() {
        return type;
    }

    boolean fortran() {
        return fortran;
    }

    int[] shape() {
        return shape;
    }

    /** A dtype code, or a list of contiguous fields; fields without a name are padding. */
    private DType descr() {
        if (next() == '\'') {
            return DType.parse(string());
        }
        expect('[');
        PyDict fields = new PyDict();
        List<Object> names = new ArrayList<>();
        long offset = 0;
        while (next() == '(') {
            at++;
            String name = string();
            expect(',');
            if (next() != '\'') {
                throw UnsupportedModel.unsupported("an array has nested structured fields");
            }
            DType field = DType.parse(string());
            if (next() == ',') {
                throw UnsupportedModel.unsupported("an array has fields that are sub-arrays");
            }
            expect(')');
            if (!name.isEmpty()) {
                names.add(name);
                fields.items().put(name, new PyTuple(List.of(field, offset)));
            }
            offset += field.size();
            if (offset > 1 << 20) {
                throw damaged();
            }
            if (next() == ',') {
                at++;
            }
        }
        expect(']');
        DType structured = DType.parse("V" + offset);
        structured.build(new PyTuple(List.of(3L, "|", PyNone.NONE, new PyTuple(names), fields, offset, 1L)));
        return structured;
    }

    private List<Object> numbers() {
        List<Object> numbers = new ArrayList<>();
        expect('(');
        while (next() != ')') {
            try {
                numbers.add(Long.parseLong(word()));
            } catch (NumberFormatException e) {
                throw damaged();
            }
            if (next() == ',') {
                at++;
            }
        }
        at++;
        return numbers;
    }

    private String word() {
        int from = at;
        next();
        from = Math.max(from, at);
        while (at < text.length() && Character.isLetterOrDigit(text.charAt(at))) {
            at++;
        }
        if (at == from) {
            throw damaged();
        }
        return text.substring(from, at);
    }

    private String string() {
        expect('\'');
        int end = text.indexOf('\'', at);
        if (end < 0) {
            throw damaged();
        }
        String string = text.substring(at, end);
        at = end + 1;
        return string;
    }

    private char next() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char c) {
        if (next() != c) {
            throw damaged();
        }
        at++;
    }

    private static io.nereid.base.ServingException damaged() {
        return UnsupportedModel.corrupt("an array's .npy header is malformed");
    }
}
