// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.OnnxBackend;
import io.nereid.json.JsonValues;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/** The folders of {@code models.zip}, which {@code src/test/models/make.py} makes, and runs of them. */
final class EncoderFolders {
    static final Backend BACKEND = new HuggingFaceBackend(List.of(new OnnxBackend()));
    private static final Map<String, byte[]> FILES = files();

    private EncoderFolders() {}

    private static Map<String, byte[]> files() {
        Map<String, byte[]> files = new LinkedHashMap<>();
        try (InputStream in = Objects.requireNonNull(EncoderFolders.class.getResourceAsStream("/models.zip"));
                ZipInputStream zip = new ZipInputStream(in)) {
            for (ZipEntry e = zip.getNextEntry(); e != null; e = zip.getNextEntry()) {
                files.put(e.getName(), zip.readAllBytes());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return files;
    }

    /** Names of the folders that begin or end so. */
    static List<String> names(String part) {
        TreeSet<String> names = new TreeSet<>();
        for (String file : FILES.keySet()) {
            int slash = file.indexOf('/');
            if (slash > 0
                    && (file.substring(0, slash).startsWith(part)
                            || file.substring(0, slash).endsWith(part))) {
                names.add(file.substring(0, slash));
            }
        }
        return List.copyOf(names);
    }

    /** Writes a folder as save_pretrained does. */
    static Path write(Path to, String name) {
        try {
            for (Map.Entry<String, byte[]> file : FILES.entrySet()) {
                if (file.getKey().startsWith(name + "/")) {
                    Path path = to.resolve(file.getKey().substring(name.length() + 1));
                    Files.createDirectories(path.getParent());
                    Files.write(path, file.getValue());
                }
            }
            boolean bpe = name.startsWith("roberta")
                    || name.startsWith("mpnet")
                    || name.startsWith("xlm-roberta")
                    || name.startsWith("camembert");
            String tokenizer = name.startsWith("deberta") ? "unigram" : bpe ? "bpe" : "wordpiece";
            Files.write(to.resolve("tokenizer.json"), Objects.requireNonNull(FILES.get(tokenizer + ".json")));
            return to;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ModelLocation location(Path root, String name) {
        Path version = write(root.resolve(name).resolve("1"), name);
        return new ModelLocation(new ServableId(name, 1), root.resolve(name), version);
    }

    /** Loads a folder as it is. */
    static BackendModel load(Path folder, String name) {
        return BACKEND.load(
                new ModelLocation(new ServableId(name, 1), folder, folder),
                ModelConfig.builder(name).build(),
                new BackendContext(2, folder.resolveSibling("scratch"), Map.of()));
    }

    static BackendModel load(Path root, String name, Map<String, String> parameters) {
        ModelConfig config = ModelConfig.builder(name).parameters(parameters).build();
        return BACKEND.load(location(root, name), config, new BackendContext(2, root.resolve("scratch"), Map.of()));
    }

    static Map<?, ?> expected(String name) {
        return (Map<?, ?>)
                Objects.requireNonNull(JsonValues.read(Objects.requireNonNull(FILES.get(name + "/expected.json"))));
    }

    static Tensor texts(String name, List<String> texts) {
        byte[][] elements =
                texts.stream().map(t -> t.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
        return Tensor.ofBytes(name, Shape.of(elements.length, 1), elements);
    }

    /** Runs a model; the values of each output are Float, Long, Double or String, in one list. */
    static Map<String, List<Object>> run(BackendModel model, Tensor... inputs) {
        List<String> names =
                model.config().outputs().stream().map(TensorSpec::name).toList();
        Map<String, List<Object>> values = new LinkedHashMap<>();
        try (ModelInstance instance = model.newInstance()) {
            List<Tensor> outputs = instance.run(List.of(inputs), names);
            outputs.forEach(t -> values.put(t.name(), values(t)));
            Tensor.closeAll(outputs);
        } finally {
            Tensor.closeAll(List.of(inputs));
        }
        return values;
    }

    private static List<Object> values(Tensor t) {
        List<Object> values = new ArrayList<>();
        ByteBuffer in = t.buffer();
        while (in.hasRemaining()) {
            if (t.dataType() == DataType.FP32) {
                values.add((double) in.getFloat());
            } else if (t.dataType() == DataType.FP64) {
                values.add(in.getDouble());
            } else if (t.dataType() == DataType.INT64) {
                values.add(in.getLong());
            } else {
                byte[] text = new byte[in.getInt()];
                in.get(text);
                values.add(new String(text, StandardCharsets.UTF_8));
            }
        }
        return values;
    }

    /** All numbers of nested lists. */
    static List<Double> numbers(Object nested) {
        List<Double> out = new ArrayList<>();
        if (nested instanceof List<?> list) {
            list.forEach(i -> out.addAll(numbers(i)));
        } else {
            out.add(((Number) nested).doubleValue());
        }
        return out;
    }

    static List<String> strings(Object list) {
        return ((List<?>) list).stream().map(String::valueOf).toList();
    }
}
