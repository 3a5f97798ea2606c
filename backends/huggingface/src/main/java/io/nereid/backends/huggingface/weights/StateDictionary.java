// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads the pickle of a state dictionary as data: nothing is imported or called. It knows the operations that Python writes for
 * dictionaries of tensors (pickle protocols 2 to 5), and refuses all others. Confined to one thread.
 */
final class StateDictionary {
    private static final int MOST_RANK = 8;
    private static final int MOST_ITEMS = 1 << 22;

    /** A tensor: where it is in a storage, in elements, and its shape. */
    record Weight(String storage, WeightType type, long offset, List<Long> shape, long bytes) {}

    private record Global(String name) {}

    private record Storage(String key, WeightType type) {}

    private record Other(String what) {}

    /** Types of storages and dtypes, by the names of torch. */
    private static final Map<String, WeightType> TYPES = Map.ofEntries(
            Map.entry("torch FloatStorage", WeightType.F32),
            Map.entry("torch HalfStorage", WeightType.F16),
            Map.entry("torch BFloat16Storage", WeightType.BF16),
            Map.entry("torch DoubleStorage", WeightType.F64),
            Map.entry("torch LongStorage", WeightType.I64),
            Map.entry("torch IntStorage", WeightType.I32),
            Map.entry("torch ShortStorage", WeightType.I16),
            Map.entry("torch CharStorage", WeightType.I8),
            Map.entry("torch ByteStorage", WeightType.U8),
            Map.entry("torch BoolStorage", WeightType.BOOL));

    private static final Object MARK = new Object();
    private static final Object NONE = new Object();

    private final ByteBuffer in;
    private final List<Object> stack = new ArrayList<>();
    private final Map<Integer, Object> memo = new HashMap<>();

    StateDictionary(byte[] pickle) {
        in = ByteBuffer.wrap(pickle).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** @throws ServingException INVALID_ARGUMENT for anything but a dictionary of tensors */
    Map<String, Weight> read() {
        try {
            Object result = run();
            Map<String, Weight> weights = new LinkedHashMap<>();
            collect(result, weights);
            return weights;
        } catch (java.nio.BufferUnderflowException | IndexOutOfBoundsException e) {
            throw ServingException.invalidArgument("ends early, or is damaged");
        }
    }

    private static void collect(Object result, Map<String, Weight> into) {
        if (!(result instanceof Map<?, ?> map)) {
            throw refused("is not a dictionary of tensors");
        }
        map.forEach((key, value) -> {
            if (key instanceof String name && value instanceof Weight weight) {
                into.put(name, weight);
            }
        });
        if (into.isEmpty() && map.get("state_dict") instanceof Map<?, ?> inner && inner != map) {
            inner.forEach((key, value) -> {
                if (key instanceof String name && value instanceof Weight weight) {
                    into.put(name, weight);
                }
            });
        }
    }

    private static ServingException refused(String why) {
        return ServingException.invalidArgument(why);
    }

    private Object run() {
        while (true) {
            int op = in.get() & 0xff;
            switch (op) {
                case '.' -> {
                    return pop();
                }
                case 0x80 -> in.get();
                case 0x95 -> in.getLong();
                case '(' -> push(MARK);
                case '}' -> push(new LinkedHashMap<>());
                case ']' -> push(new ArrayList<>());
                case ')' -> push(List.of());
                case 'N' -> push(NONE);
                case 0x88 -> push(true);
                case 0x89 -> push(false);
                case 'K' -> push((long) (in.get() & 0xff));
                case 'M' -> push((long) (in.getShort() & 0xffff));
                case 'J' -> push((long) in.getInt());
                case 'G' -> {
                    in.getLong();
                    push(new Other("a number"));
                }
                case 0x8a -> push(number(in.get() & 0xff));
                case 'X' -> push(text(in.getInt()));
                case 0x8c -> push(text(in.get() & 0xff));
                case 'c' -> push(new Global(line() + " " + line()));
                case 0x93 -> {
                    String name = String.valueOf(pop());
                    push(new Global(pop() + " " + name));
                }
                case 'q' -> memo(in.get() & 0xff);
                case 'r' -> memo(in.getInt());
                case 0x94 -> memo(memo.size());
                case 'h' -> push(recall(in.get() & 0xff));
                case 'j' -> push(recall(in.getInt()));
                case 't' -> push(marked());
                case 0x85 -> push(new ArrayList<>(last(1)));
                case 0x86 -> push(new ArrayList<>(last(2)));
                case 0x87 -> push(new ArrayList<>(last(3)));
                case 'Q' -> push(storage(pop()));
                case 'R' -> {
                    Object arguments = pop();
                    push(call(pop(), arguments));
                }
                case 'b' -> pop();
                case 's' -> {
                    Object value = pop();
                    Object key = pop();
                    put(key, value);
                }
                case 'u' -> {
                    List<Object> items = marked();
                    for (int i = 0; i + 1 < items.size(); i += 2) {
                        put(items.get(i), items.get(i + 1));
                    }
                }
                case 'a' -> {
                    Object value = pop();
                    append(List.of(value));
                }
                case 'e' -> append(marked());
                default ->
                    throw refused("has the operation 0x" + Integer.toHexString(op)
                            + ", which a dictionary of tensors does not need");
            }
        }
    }

    private void push(Object value) {
        if (stack.size() >= MOST_ITEMS) {
            throw refused("is too large");
        }
        stack.add(value);
    }

    private Object pop() {
        return stack.remove(stack.size() - 1);
    }

    private List<Object> last(int count) {
        List<Object> items = new ArrayList<>(stack.subList(stack.size() - count, stack.size()));
        stack.subList(stack.size() - count, stack.size()).clear();
        return items;
    }

    private List<Object> marked() {
        Deque<Object> items = new ArrayDeque<>();
        Object item = pop();
        while (item != MARK) {
            items.addFirst(item);
            item = pop();
        }
        return new ArrayList<>(items);
    }

    private void memo(int key) {
        if (memo.size() >= MOST_ITEMS) {
            throw refused("is too large");
        }
        memo.put(key, stack.get(stack.size() - 1));
    }

    private Object recall(int key) {
        Object value = memo.get(key);
        if (value == null) {
            throw refused("refers to a value that it does not have");
        }
        return value;
    }

    private String text(int length) {
        if (length < 0 || length > in.remaining()) {
            throw refused("ends early, or is damaged");
        }
        String text = new String(in.array(), in.position(), length, StandardCharsets.UTF_8);
        in.position(in.position() + length);
        return text;
    }

    private String line() {
        int from = in.position();
        while (in.get() != '\n') {
            // Up to the end of the line.
        }
        return new String(in.array(), from, in.position() - from - 1, StandardCharsets.UTF_8);
    }

    private long number(int bytes) {
        if (bytes > Long.BYTES) {
            throw refused("has a number of " + bytes + " bytes");
        }
        long value = 0;
        for (int i = 0; i < bytes; i++) {
            value |= (in.get() & 0xffL) << (8 * i);
        }
        return bytes == 0 || bytes == Long.BYTES ? value : value << (64 - 8 * bytes) >> (64 - 8 * bytes);
    }

    @SuppressWarnings("unchecked")
    private void put(Object key, Object value) {
        // A tensor's dictionary of hooks and the like are not looked at.
        if (stack.get(stack.size() - 1) instanceof LinkedHashMap<?, ?> map && key instanceof String) {
            ((Map<Object, Object>) map).put(key, value);
        }
    }

    @SuppressWarnings("unchecked")
    private void append(List<?> values) {
        if (stack.get(stack.size() - 1) instanceof ArrayList<?> list) {
            ((List<Object>) list).addAll(values);
        }
    }

    /** {@code ('storage', type, key, location, count)}. */
    private static Object storage(Object id) {
        if (id instanceof List<?> list
                && list.size() >= 3
                && "storage".equals(list.get(0))
                && list.get(1) instanceof Global type
                && list.get(2) instanceof String key) {
            WeightType known = TYPES.get(type.name);
            return known == null ? new Other(type.name) : new Storage(key, known);
        }
        throw refused("refers to something that is not a storage");
    }

    private static Object call(Object function, Object arguments) {
        if (!(function instanceof Global global) || !(arguments instanceof List<?> list)) {
            throw refused("calls what is not a function");
        }
        return switch (global.name) {
            case "collections OrderedDict" -> new LinkedHashMap<>();
            case "torch._utils _rebuild_tensor_v2" -> tensor(list);
            case "torch._utils _rebuild_parameter" -> list.isEmpty() ? NONE : list.get(0);
            default ->
                throw refused("calls '" + global.name.replace(' ', '.')
                        + "', which is not run (expected: a dictionary of tensors alone)");
        };
    }

    private static Object tensor(List<?> arguments) {
        if (arguments.size() < 4) {
            throw refused("has a tensor without its shape");
        }
        if (arguments.get(0) instanceof Other other) {
            return other;
        }
        if (!(arguments.get(0) instanceof Storage storage) || !(arguments.get(1) instanceof Long offset)) {
            throw refused("has a tensor without its storage");
        }
        List<Long> shape = longs(arguments.get(2));
        List<Long> strides = longs(arguments.get(3));
        if (offset < 0 || shape.size() != strides.size()) {
            throw refused(
                    "has a tensor with the offset " + offset + ", the shape " + shape + " and the strides " + strides);
        }
        long count = 1;
        try {
            for (int i = shape.size() - 1; i >= 0; i--) {
                if (shape.get(i) != 1 && strides.get(i) != count) {
                    throw refused("has a tensor whose elements are not in order: the shape " + shape
                            + " and the strides " + strides);
                }
                count = Math.multiplyExact(count, shape.get(i));
            }
            count = Math.multiplyExact(count, (long) storage.type.bytes());
            Math.addExact(count, Math.multiplyExact(offset, (long) storage.type.bytes()));
        } catch (ArithmeticException e) {
            throw refused("has a tensor of the impossible shape " + shape);
        }
        return new Weight(storage.key, storage.type, offset, shape, count);
    }

    private static List<Long> longs(@Nullable Object value) {
        if (!(value instanceof List<?> list) || list.size() > MOST_RANK) {
            throw refused("has a tensor of more than " + MOST_RANK + " dimensions");
        }
        List<Long> out = new ArrayList<>();
        for (Object item : list) {
            if (!(item instanceof Long n) || n < 0) {
                throw refused("has a tensor with the dimension '" + item + "'");
            }
            out.add(n);
        }
        return out;
    }
}
