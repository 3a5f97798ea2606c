// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads pickles of protocols 0 to 5, and the arrays that joblib writes between the opcodes. It is the stack machine
 * that Python's {@code pickletools} documents, reduced to data: nothing that a pickle names is looked up, loaded or
 * called; types become {@link PyObject}s, arrays become {@link NdArray}s. That is what makes a pickle from an untrusted
 * source safe to read here. Every object made is charged to a {@link MemoryLimit}. Confined to one thread.
 */
final class PickleReader {
    /** Pickles inside pickles: joblib writes an array of objects as a pickle of its own. */
    private static final int MAX_NESTED = 16;
    /** Marks where the values of a collection begin on the stack; never handed out. */
    private static final Object MARK = new Object();

    private final ByteSource in;
    private final MemoryLimit memory;
    private final int nested;
    private final List<Object> stack = new ArrayList<>();
    private final Map<Long, Object> memo = new HashMap<>();

    PickleReader(ByteSource in) {
        this(in, 0);
    }

    private PickleReader(ByteSource in, int nested) {
        this.in = in;
        this.memory = in.memory();
        this.nested = nested;
    }

    /**
     * Reads the pickle up to its STOP opcode and returns the object that it describes.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a file that is damaged, too large, or names a type
     *     that {@link PickleTypes} does not allow
     */
    Object read() {
        while (true) {
            int op = in.read();
            if (op == '.') {
                return pop();
            }
            step(op);
        }
    }

    private void step(int op) {
        switch (op) {
            case 0x80 -> protocol(in.read());
            case 0x95 -> in.number(8);
            case '(' -> push(MARK);
            case 'N' -> push(PyNone.NONE);
            case 0x88 -> push(true);
            case 0x89 -> push(false);
            case 'K' -> push(in.number(1));
            case 'M' -> push(in.number(2));
            case 'J' -> push((long) (int) in.number(4));
            case 'I' -> push(integer(in.line()));
            case 'L' -> push(integer(in.line()));
            case 0x8a -> push(big(in.read(in.number(1))));
            case 0x8b -> push(big(in.read(in.number(4))));
            case 'G' -> push(ByteBuffer.wrap(in.read(8)).getDouble());
            case 'F' -> push(decimal(in.line()));
            case 'S' -> push(quoted(in.line()));
            case 'V' -> push(in.line());
            case 'X' -> push(text(in.number(4)));
            case 0x8c -> push(text(in.number(1)));
            case 0x8d -> push(text(in.number(8)));
            case 'T' -> push(new String(in.read(in.number(4)), StandardCharsets.ISO_8859_1));
            case 'U' -> push(new String(in.read(in.number(1)), StandardCharsets.ISO_8859_1));
            case 'B' -> push(in.read(in.number(4)));
            case 'C' -> push(in.read(in.number(1)));
            case 0x8e, 0x96 -> push(in.read(in.number(8)));
            case 0x98 -> {
                // READONLY_BUFFER: a read-only view holds the same data as its buffer.
            }
            default -> structure(op);
        }
    }

    private void structure(int op) {
        switch (op) {
            case ']', 0x8f -> push(new PyList());
            case '}' -> push(new PyDict());
            case ')' -> push(new PyTuple(List.of()));
            case 't' -> push(new PyTuple(toMark()));
            case 0x85 -> tuple(1);
            case 0x86 -> tuple(2);
            case 0x87 -> tuple(3);
            case 'l', 0x91 -> {
                List<Object> items = toMark();
                PyList list = new PyList();
                list.items().addAll(items);
                push(list);
            }
            case 'd' -> {
                List<Object> items = toMark();
                PyDict dict = new PyDict();
                put(dict, items);
                push(dict);
            }
            case 'a' -> append(List.of(pop()));
            case 'e', 0x90 -> append(toMark());
            case 's' -> {
                Object value = pop();
                set(List.of(pop(), value));
            }
            case 'u' -> set(toMark());
            case '0' -> pop();
            case '1' -> toMark();
            case '2' -> push(top());
            default -> memorize(op);
        }
    }

    private void memorize(int op) {
        switch (op) {
            case 'p' -> memo.put(index(in.line()), remembered());
            case 'q' -> memo.put(in.number(1), remembered());
            case 'r' -> memo.put(in.number(4), remembered());
            case 0x94 -> memo.put((long) memo.size(), remembered());
            case 'g' -> push(recall(index(in.line())));
            case 'h' -> push(recall(in.number(1)));
            case 'j' -> push(recall(in.number(4)));
            default -> object(op);
        }
    }

    private void object(int op) {
        switch (op) {
            case 'c' -> {
                String module = in.line();
                push(PickleTypes.allowed(module, in.line()));
            }
            case 0x93 -> {
                Object name = pop();
                if (!(pop() instanceof String module) || !(name instanceof String n)) {
                    throw UnsupportedModel.corrupt("the name of a type is not a string");
                }
                push(PickleTypes.allowed(module, n));
            }
            case 'i' -> {
                String module = in.line();
                PyGlobal type = PickleTypes.allowed(module, in.line());
                push(PickleTypes.make(type, new PyTuple(toMark()), memory));
            }
            case 'o' -> {
                List<Object> items = toMark();
                if (items.isEmpty()) {
                    throw UnsupportedModel.corrupt("an object has no type");
                }
                push(PickleTypes.make(items.get(0), new PyTuple(items.subList(1, items.size())), memory));
            }
            case 'R', 0x81 -> {
                Object arguments = pop();
                push(PickleTypes.make(pop(), arguments, memory));
            }
            case 0x92 -> {
                pop();
                Object arguments = pop();
                push(PickleTypes.make(pop(), arguments, memory));
            }
            case 'b' -> build();
            case 'P', 'Q' -> throw UnsupportedModel.unsupported("it refers to objects outside the file");
            case 0x82, 0x83, 0x84 -> throw UnsupportedModel.unsupported("it uses registered extensions of pickle");
            case 0x97 -> throw UnsupportedModel.unsupported("its arrays are kept outside the file");
            default -> throw UnsupportedModel.corrupt("byte 0x" + Integer.toHexString(op) + " is not a pickle opcode");
        }
    }

    private static void protocol(int version) {
        if (version > 5) {
            throw UnsupportedModel.unsupported("its pickle protocol is " + version + " (expected: 0 to 5)");
        }
    }

    private void build() {
        Object state = pop();
        Object target = top();
        if (target instanceof NdArray array) {
            array.build(state);
            memory.charge(8L * array.count());
        } else if (target instanceof DType type) {
            type.build(state);
        } else if (target instanceof PyObject object) {
            object.build(state);
            if (object.type().name().equals("NumpyArrayWrapper")) {
                NdArray array = joblibArray(object);
                memory.charge(8L * array.count());
                stack.set(stack.size() - 1, array);
            }
        } else if (!(target instanceof PyDict || target instanceof PyList)) {
            throw UnsupportedModel.corrupt(PythonValues.kind(target) + " cannot take a state");
        }
    }

    /**
     * Reads an array that joblib wrote into the pickle. Its bytes follow the opcode that builds its wrapper, so they
     * have to be consumed here, before the next opcode.
     */
    private NdArray joblibArray(PyObject wrapper) {
        Map<String, Object> a = wrapper.attributes();
        if (!(a.get("dtype") instanceof DType type)) {
            throw UnsupportedModel.corrupt("a joblib array has no dtype");
        }
        Object shapeValue = a.get("shape");
        int[] shape = NdArray.shape(shapeValue == null ? PyNone.NONE : shapeValue);
        if (type.kind() == 'O') {
            if (nested >= MAX_NESTED) {
                throw UnsupportedModel.corrupt("more than " + MAX_NESTED + " pickles are nested in each other");
            }
            if (new PickleReader(in, nested + 1).read() instanceof NdArray array) {
                return array;
            }
            throw UnsupportedModel.corrupt("a joblib array of objects does not contain an array");
        }
        // Since joblib 1.2 a length byte and that much padding stand before the data, for memory mapping.
        Object alignment = a.get("numpy_array_alignment_bytes");
        if (alignment != null && alignment != PyNone.NONE) {
            int padding = in.read();
            for (int i = 0; i < padding; i++) {
                in.read();
            }
        }
        return new NdArray(shape, type, "F".equals(a.get("order")), in.read(NdArray.count(shape) * type.size()));
    }

    private void append(List<Object> items) {
        Object target = top();
        PyList list = target instanceof PyList l ? l : target instanceof PyObject o ? o.elements() : null;
        if (list == null) {
            throw UnsupportedModel.corrupt("elements are added to " + PythonValues.kind(target));
        }
        list.items().addAll(items);
    }

    private void set(List<Object> items) {
        Object target = top();
        PyDict dict = target instanceof PyDict d ? d : target instanceof PyObject o ? o.entries() : null;
        if (dict == null) {
            throw UnsupportedModel.corrupt("entries are added to " + PythonValues.kind(target));
        }
        put(dict, items);
    }

    private void put(PyDict dict, List<Object> items) {
        if (items.size() % 2 != 0) {
            throw UnsupportedModel.corrupt("a dict has a key without a value");
        }
        memory.charge(40L * items.size());
        for (int i = 0; i < items.size(); i += 2) {
            dict.items().put(items.get(i), items.get(i + 1));
        }
    }

    private void tuple(int size) {
        Object[] items = new Object[size];
        for (int i = size - 1; i >= 0; i--) {
            items[i] = pop();
        }
        push(new PyTuple(List.of(items)));
    }

    private void push(Object value) {
        memory.charge(32);
        stack.add(value);
    }

    private Object pop() {
        Object top = top();
        stack.remove(stack.size() - 1);
        return top;
    }

    private Object top() {
        Object top = stack.isEmpty() ? MARK : stack.get(stack.size() - 1);
        if (top == MARK) {
            throw UnsupportedModel.corrupt("it is not a pickle: an opcode lacks its operands");
        }
        return top;
    }

    /** Pops all values above the topmost mark, and the mark. */
    private List<Object> toMark() {
        int mark = stack.size() - 1;
        while (mark >= 0 && stack.get(mark) != MARK) {
            mark--;
        }
        if (mark < 0) {
            throw UnsupportedModel.corrupt("it is not a pickle: an opcode lacks its operands");
        }
        List<Object> tail = stack.subList(mark, stack.size());
        List<Object> items = new ArrayList<>(tail.subList(1, tail.size()));
        tail.clear();
        memory.charge(8L * items.size() + 32);
        return items;
    }

    private Object remembered() {
        memory.charge(64);
        return top();
    }

    private Object recall(long key) {
        @Nullable Object value = memo.get(key);
        if (value == null) {
            throw UnsupportedModel.corrupt("it reads memo entry " + key + ", which was never written");
        }
        return value;
    }

    private String text(long length) {
        return new String(in.read(length), StandardCharsets.UTF_8);
    }

    /** LONG1 and LONG4: two's complement, least significant byte first. */
    private static Object big(byte[] littleEndian) {
        if (littleEndian.length > 1024) {
            throw UnsupportedModel.corrupt("a number of " + littleEndian.length + " bytes is too large");
        }
        byte[] bytes = new byte[littleEndian.length + 1];
        for (int i = 0; i < littleEndian.length; i++) {
            bytes[littleEndian.length - i] = littleEndian[i];
        }
        bytes[0] = (byte) (littleEndian.length > 0 && littleEndian[littleEndian.length - 1] < 0 ? -1 : 0);
        BigInteger value = new BigInteger(bytes);
        return value.bitLength() < 64 ? (Object) value.longValue() : value;
    }

    private static Object integer(String line) {
        // Protocol 0 writes False and True as the integers 00 and 01.
        if (line.equals("00") || line.equals("01")) {
            return line.equals("01");
        }
        String digits = line.endsWith("L") ? line.substring(0, line.length() - 1) : line;
        try {
            return Long.parseLong(digits.strip());
        } catch (NumberFormatException e) {
            throw UnsupportedModel.corrupt("an integer is not in decimal notation");
        }
    }

    private static long index(String line) {
        return integer(line) instanceof Long n ? n : -1;
    }

    private static double decimal(String line) {
        try {
            return Double.parseDouble(line.strip());
        } catch (NumberFormatException e) {
            throw UnsupportedModel.corrupt("a float is not in decimal notation");
        }
    }

    private static String quoted(String line) {
        if (line.length() < 2 || line.indexOf('\\') >= 0) {
            throw UnsupportedModel.corrupt("a quoted string has escapes or no quotes");
        }
        return line.substring(1, line.length() - 1);
    }
}
