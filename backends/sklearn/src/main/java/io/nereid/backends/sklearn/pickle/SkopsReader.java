// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * Reads skops archives: {@code schema.json} describes the objects, and each array is a {@code .npy} file. The result is
 * the same data that {@link PickleReader} makes of a pickle of the same model, under the same list of allowed types.
 * Confined to one thread.
 */
final class SkopsReader {
    /** Nesting of the schema; deeper would overflow the stack of the recursive reader. */
    private static final int DEEPEST = 900;

    private static final int CHUNK = 1 << 16;

    private final ZipFile archive;
    private final MemoryLimit memory;
    private final Map<Object, Object> made = new HashMap<>();

    private SkopsReader(ZipFile archive, MemoryLimit memory) {
        this.archive = archive;
        this.memory = memory;
    }

    /** @throws ServingException INVALID_ARGUMENT for a file that cannot be read; the message does not name the file */
    static Object read(Path file, MemoryLimit memory) {
        try (ZipFile archive = new ZipFile(file.toFile())) {
            if (archive.getEntry("schema.json") == null) {
                throw ServingException.invalidArgument(
                        "it is a zip archive without a schema.json (of PyTorch?), which is not supported",
                        "save the model with joblib.dump or skops.io.dump");
            }
            SkopsReader reader = new SkopsReader(archive, memory);
            return reader.node(parse(reader.bytes("schema.json")));
        } catch (IOException e) {
            throw UnsupportedModel.corrupt("its archive is damaged");
        }
    }

    private byte[] bytes(String name) throws IOException {
        ZipEntry entry = archive.getEntry(name);
        if (entry == null) {
            throw UnsupportedModel.corrupt("it lacks '" + shown(name) + "'");
        }
        try (InputStream in = archive.getInputStream(entry)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] chunk = new byte[CHUNK];
            for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
                // Charged by what is decompressed, not by the sizes in the zip directory, which may lie.
                memory.charge(2L * n);
                out.write(chunk, 0, n);
            }
            return out.toByteArray();
        }
    }

    private static String shown(String text) {
        return text.length() > 60 ? text.substring(0, 60) + "…" : text;
    }

    // ---------------------------------------------------------------- JSON as maps and lists

    private static Object parse(byte[] json) {
        byte[] text = Arrays.copyOf(json, json.length + JsonReader.SLACK);
        JsonReader reader = new JsonReader(DEEPEST);
        reader.reset(text, 0, json.length);
        try {
            Object value = JsonValues.read(reader);
            reader.expectEnd();
            return value;
        } catch (ServingException e) {
            throw UnsupportedModel.corrupt("its schema is damaged: " + e.getMessage());
        }
    }

    // ---------------------------------------------------------------- objects

    private Object node(@Nullable Object json) throws IOException {
        if (!(json instanceof Map<?, ?> state)) {
            throw UnsupportedModel.corrupt(
                    "its schema has " + (json == null ? "nothing" : "no object") + " where an object is described");
        }
        memory.charge(160);
        Object id = state.get("__id__");
        String loader = text(state, "__loader__");
        if (loader.equals("CachedNode")) {
            Object known = id == null ? null : made.get(id);
            if (known == null) {
                throw UnsupportedModel.corrupt("its schema refers to an object that it does not describe");
            }
            return known;
        }
        Object value = made(loader, state);
        if (id != null) {
            made.put(id, value);
        }
        return value;
    }

    private Object made(String loader, Map<?, ?> state) throws IOException {
        Object content = state.get("content");
        switch (loader) {
            case "JsonNode":
                return parse(text(state, "content").getBytes(StandardCharsets.UTF_8));
            case "DictNode":
            case "_DictWithDeprecatedKeysNode":
            case "DefaultDictNode":
                return content instanceof Map<?, ?> of
                                && of.get("main") instanceof Map<?, ?> main
                                && main.containsKey("__loader__")
                                && !loader.equals("DictNode")
                        ? node(main)
                        : dict(state);
            case "ListNode":
            case "SetNode":
                PyList list = new PyList();
                list.items().addAll(nodes(content));
                return list;
            case "TupleNode":
                return new PyTuple(nodes(content));
            case "ObjectNode":
                PyObject object = new PyObject(type(state), List.of());
                if (content != null) {
                    object.build(node(content));
                }
                return object;
            case "TreeNode":
            case "LossNode":
            case "ReduceNode":
                return reduced(state, content);
            case "ConstructorFromReduceNode":
                return new PyObject(type(state), node(content) instanceof PyTuple args ? args.items() : List.of());
            case "NdArrayNode":
                return array(state);
            case "DTypeNode":
                if (node(content) instanceof NdArray sample) {
                    return sample.type();
                }
                throw UnsupportedModel.corrupt("a numpy dtype has no sample array");
            case "TypeNode":
            case "FunctionNode":
                return type(state);
            case "SliceNode":
                return slice(content);
            case "BytesNode":
            case "BytearrayNode":
                return bytes(text(state, "file"));
            case "RandomStateNode":
            case "RandomGeneratorNode":
                return new PyObject(type(state), List.of());
            default:
                PyGlobal unknown = type(state);
                throw UnsupportedModel.unsupported(
                        "it contains " + shown(unknown.path()) + " as skops' " + shown(loader));
        }
    }

    private PyGlobal type(Map<?, ?> state) {
        return PickleTypes.allowed(text(state, "__module__"), text(state, "__class__"));
    }

    private static String text(Map<?, ?> state, String key) {
        if (state.get(key) instanceof String text) {
            return text;
        }
        throw UnsupportedModel.corrupt("its schema describes an object without " + key);
    }

    private List<Object> nodes(@Nullable Object content) throws IOException {
        if (!(content instanceof List<?> list)) {
            throw UnsupportedModel.corrupt("its schema has a list without elements");
        }
        List<Object> items = new ArrayList<>(list.size());
        for (Object item : list) {
            items.add(node(item));
        }
        return items;
    }

    private PyDict dict(Map<?, ?> state) throws IOException {
        if (!(state.get("content") instanceof Map<?, ?> content)) {
            throw UnsupportedModel.corrupt("its schema has a dict without items");
        }
        List<Object> types = state.get("key_types") instanceof Map<?, ?> given && node(given) instanceof PyList known
                ? known.items()
                : List.of();
        PyDict dict = new PyDict();
        int i = 0;
        for (Map.Entry<?, ?> item : content.entrySet()) {
            Object type = i < types.size() ? types.get(i) : PyNone.NONE;
            dict.items().put(key(String.valueOf(item.getKey()), type), node(item.getValue()));
            i++;
        }
        return dict;
    }

    private static Object key(String text, Object type) {
        if (!(type instanceof PyGlobal global) || global.name().startsWith("str")) {
            return text;
        }
        try {
            return switch (global.name()) {
                case "bool", "bool_" -> text.equals("True");
                case "float", "float64", "float32" -> Double.parseDouble(text);
                default -> Long.parseLong(text);
            };
        } catch (NumberFormatException e) {
            return text;
        }
    }

    private PyObject reduced(Map<?, ?> state, @Nullable Object content) throws IOException {
        Object args = state.get("__reduce__") instanceof Map<?, ?> reduce ? node(reduce.get("args")) : PyNone.NONE;
        PyObject object = new PyObject(type(state), args instanceof PyTuple tuple ? tuple.items() : List.of());
        if (content != null) {
            object.build(node(content));
        }
        return object;
    }

    /** As a pickle has a slice: a type with three arguments. */
    private static PyObject slice(@Nullable Object content) {
        List<Object> ends = new ArrayList<>();
        for (String end : List.of("start", "stop", "step")) {
            Object value = content instanceof Map<?, ?> map ? map.get(end) : null;
            ends.add(value == null ? PyNone.NONE : value);
        }
        return new PyObject(new PyGlobal("builtins", "slice"), ends);
    }

    // ---------------------------------------------------------------- arrays

    private Object array(Map<?, ?> state) throws IOException {
        PyGlobal type = type(state);
        if (text(state, "type").equals("json")) {
            List<Object> items = new ArrayList<>();
            for (Object item : nodes(state.get("content"))) {
                flatten(item, items);
            }
            PyList list = new PyList();
            list.items().addAll(items);
            NdArray array = new NdArray();
            array.build(new PyTuple(List.of(1L, node(state.get("shape")), DType.parse("O"), false, list)));
            return array;
        }
        NdArray array = npy(bytes(text(state, "file")));
        return type.name().equals("ndarray") || array.rank() > 0 ? array : array.values()[0];
    }

    private static void flatten(Object item, List<Object> into) {
        if (item instanceof PyList list) {
            list.items().forEach(i -> flatten(i, into));
        } else {
            into.add(item);
        }
    }

    private static NdArray npy(byte[] file) {
        if (file.length < 12 || file[0] != (byte) 0x93 || file[1] != 'N' || file[5] != 'Y') {
            throw UnsupportedModel.corrupt("an array is not in the .npy format");
        }
        int wide = file[6] > 1 ? 4 : 2;
        int length = (file[8] & 0xff) | (file[9] & 0xff) << 8;
        if (wide == 4) {
            length |= (file[10] & 0xff) << 16 | (file[11] & 0x7f) << 24;
        }
        int from = 8 + wide;
        if (length > file.length - from) {
            throw UnsupportedModel.corrupt("an array's header is cut off");
        }
        NpyHeader header = new NpyHeader(new String(file, from, length, StandardCharsets.ISO_8859_1));
        return new NdArray(
                header.shape(), header.type(), header.fortran(), Arrays.copyOfRange(file, from + length, file.length));
    }
}
