// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The weights in a folder: of one safetensors file, of several with an index, or of PyTorch's files, in this order of preference.
 * Only their places are read. Immutable.
 */
public final class Checkpoint {
    private static final String SAFETENSORS = "model.safetensors";
    private static final String TORCH = "pytorch_model.bin";
    private static final String INDEX = ".index.json";
    private static final long MOST_INDEX = 64 << 20;
    private static final int MOST_FILES = 10_000;

    private final Path directory;
    private final Map<String, WeightTensor> tensors;

    private Checkpoint(Path directory, Map<String, WeightTensor> tensors) {
        this.directory = directory;
        this.tensors = tensors;
    }

    /**
     * Reads the places of all weights in a folder.
     *
     * @throws ServingException INVALID_ARGUMENT when there are no weights, or a file is damaged
     */
    public static Checkpoint open(Path directory) {
        Path current = directory;
        try {
            for (String name : new String[] {SAFETENSORS, TORCH}) {
                current = directory.resolve(name);
                if (Files.exists(current)) {
                    return new Checkpoint(directory, file(current));
                }
                current = directory.resolve(name + INDEX);
                if (Files.exists(current)) {
                    return new Checkpoint(directory, sharded(directory, current));
                }
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read the weights of '" + current + "': "
                            + e.getClass().getSimpleName(),
                    "check that the files are complete and that the server may read them",
                    e);
        }
        throw ServingException.invalidArgument(
                "'" + directory + "' has no weights (expected: " + SAFETENSORS + ", " + SAFETENSORS + INDEX + ", "
                        + TORCH + " or " + TORCH + INDEX + ")",
                "copy the whole folder that save_pretrained wrote");
    }

    private static Map<String, WeightTensor> file(Path file) throws IOException {
        return file.toString().endsWith(".bin") ? TorchCheckpoint.read(file) : SafetensorsHeader.read(file);
    }

    private static Map<String, WeightTensor> sharded(Path directory, Path index) throws IOException {
        if (Files.size(index) > MOST_INDEX) {
            throw SafetensorsHeader.rejected(
                    index, "it has " + Files.size(index) + " bytes (expected: at most " + MOST_INDEX + ")");
        }
        Object document;
        try {
            document = JsonValues.read(Files.readAllBytes(index));
        } catch (ServingException e) {
            throw SafetensorsHeader.rejected(index, "it is not JSON: " + e.getMessage());
        }
        if (!(document instanceof Map<?, ?> map) || !(map.get("weight_map") instanceof Map<?, ?> places)) {
            throw SafetensorsHeader.rejected(index, "it has no weight_map");
        }
        TreeSet<String> files = new TreeSet<>();
        for (Object name : places.values()) {
            if (!(name instanceof String text) || !isInside(directory, text) || files.size() > MOST_FILES) {
                throw SafetensorsHeader.rejected(index, "it names the file '" + name + "' outside its folder");
            }
            files.add(text);
        }
        Map<String, WeightTensor> all = new LinkedHashMap<>();
        for (String name : files) {
            Path file = directory.resolve(name);
            if (!Files.isRegularFile(file)) {
                throw SafetensorsHeader.rejected(index, "it names the file '" + name + "', which does not exist");
            }
            all.putAll(file(file));
        }
        return all;
    }

    private static boolean isInside(Path directory, String name) {
        try {
            return directory
                    .normalize()
                    .equals(directory.resolve(name).normalize().getParent());
        } catch (InvalidPathException e) {
            return false;
        }
    }

    /** The folder. */
    public Path directory() {
        return directory;
    }

    /** The weight of this name; null when there is none. */
    public @Nullable WeightTensor find(String name) {
        return tensors.get(name);
    }

    /** All weights, in the order of the files. */
    public Collection<WeightTensor> all() {
        return tensors.values();
    }
}
