// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.backend.ModelLocation;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The file that a model is loaded from. It is checked before ONNX Runtime opens it, so that the error names the format
 * of a file that is not ONNX (a zip archive, a Git LFS pointer) instead of reporting a protobuf failure. Immutable.
 */
final class OnnxFile {
    private static final int HEAD = 64;

    private final Path path;
    private final long bytes;
    private final OnnxModelInfo facts;

    private OnnxFile(Path path, long bytes, OnnxModelInfo facts) {
        this.path = path;
        this.bytes = bytes;
        this.facts = facts;
    }

    /**
     * Finds the model file, checks its first bytes and its external weight files.
     *
     * @throws ServingException INVALID_ARGUMENT when it is missing or not an ONNX model
     */
    static OnnxFile find(ModelLocation source, String modelFile) {
        String name = modelFile.isEmpty() ? OnnxBackend.DEFAULT_FILE : modelFile;
        Path directory = source.versionDirectory();
        Path path = directory.resolve(name).normalize();
        if (!path.startsWith(directory.normalize())) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' lies outside the version's directory",
                    "name a file inside " + directory);
        }
        if (Files.isDirectory(path)) {
            directory = path;
            path = path.resolve(OnnxBackend.DEFAULT_FILE);
        }
        if (!Files.exists(path)) {
            throw missing(directory, path);
        }
        try {
            long bytes = Files.size(path);
            String strange = foreign(path, bytes);
            if (strange != null) {
                throw rejected(path, strange, "put an ONNX model there");
            }
            OnnxModelInfo facts = OnnxModelInfo.read(path, bytes);
            for (String external : facts.externalFiles()) {
                Path file = path.resolveSibling(external).normalize();
                if (!file.startsWith(path.resolveSibling("").normalize())) {
                    throw rejected(
                            path,
                            "its weights are in '" + external + "', outside the model's directory",
                            "put the file with the weights beside the model");
                }
                if (!Files.isRegularFile(file)) {
                    throw rejected(
                            path,
                            "its weights are in '" + external + "', which does not exist",
                            "copy '" + external + "' beside the model, under the same name");
                }
                bytes += Files.size(file);
            }
            return new OnnxFile(path, bytes, facts);
        } catch (IOException e) {
            throw ServingException.wrap(
                    io.nereid.base.ErrorCode.INVALID_ARGUMENT,
                    "cannot read model file '" + path + "': " + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
    }

    private static ServingException missing(Path directory, Path path) {
        List<String> present = new ArrayList<>();
        try (Stream<Path> files = Files.list(directory)) {
            files.map(f -> f.getFileName().toString()).sorted().limit(20).forEach(present::add);
        } catch (IOException e) {
            return ServingException.invalidArgument(
                    "unable to find '" + path + "': cannot list " + directory, "check that the server may read it");
        }
        String there = present.isEmpty() ? directory + " is empty" : directory + " has " + String.join(", ", present);
        return ServingException.invalidArgument(
                "unable to find '" + path + "' (" + there + ")",
                NameSuggestions.didYouMean(
                        path.getFileName().toString(),
                        present,
                        "put the model there under this name, or name its file in the configuration"));
    }

    static ServingException rejected(Path path, String found, @Nullable String remedy) {
        return ServingException.invalidArgument("model file '" + path + "' cannot be loaded: " + found, remedy);
    }

    /** Describes the file if its first bytes belong to another format, else null. */
    private static @Nullable String foreign(Path path, long bytes) throws IOException {
        if (bytes == 0) {
            return "the file is empty (0 bytes)";
        }
        ByteBuffer head = ByteBuffer.allocate(HEAD);
        try (FileChannel channel = FileChannel.open(path)) {
            while (head.hasRemaining() && channel.read(head) > 0) {
                // Read until the header is complete or the file ends.
            }
        }
        String text = new String(head.array(), 0, head.position(), StandardCharsets.ISO_8859_1);
        String start = text.stripLeading();
        if (start.startsWith("version https://git-lfs")) {
            return "the file is a Git LFS pointer, not the model itself (run 'git lfs pull')";
        }
        if (text.startsWith("PK\3\4")) {
            return "the file is a zip archive, perhaps a PyTorch or Keras model";
        }
        if (text.startsWith("\u001f\u008b")) {
            return "the file is compressed with gzip";
        }
        if (text.startsWith("\u0089HDF")) {
            return "the file is HDF5, perhaps a Keras model";
        }
        if (text.startsWith("GGUF")) {
            return "the file is a GGUF model";
        }
        if (text.startsWith("TFL3", 4)) {
            return "the file is a TensorFlow Lite model";
        }
        if (text.startsWith("\u007fELF")) {
            return "the file is a program or library (ELF)";
        }
        if (text.startsWith("\u0080") && text.length() > 1 && text.charAt(1) <= 5) {
            return "the file is a Python pickle";
        }
        if (start.startsWith("<") || start.startsWith("{\"") || start.startsWith("{\n") || start.startsWith("#!")) {
            return "the file starts with '" + firstWord(start) + "', so it is text";
        }
        return null;
    }

    private static String firstWord(String text) {
        int end = 0;
        while (end < Math.min(24, text.length()) && text.charAt(end) > ' ' && text.charAt(end) < 127) {
            end++;
        }
        return text.substring(0, end);
    }

    Path path() {
        return path;
    }

    /** What the file system says about the model file and its external weight files: another text when one was replaced. */
    String state() throws IOException {
        StringBuilder state = new StringBuilder();
        append(state, path);
        for (String external : facts.externalFiles()) {
            append(state, path.resolveSibling(external));
        }
        return state.toString();
    }

    private static void append(StringBuilder state, Path file) throws IOException {
        BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
        state.append(attributes.size())
                .append(' ')
                .append(attributes.lastModifiedTime())
                .append(' ')
                .append(attributes.fileKey())
                .append(';');
    }

    /** The model file and its external weight files. */
    List<Path> files() {
        List<Path> files = new ArrayList<>(List.of(path));
        facts.externalFiles().forEach(external -> files.add(path.resolveSibling(external)));
        return List.copyOf(files);
    }

    /** Size of the model file and its external weight files. */
    long bytes() {
        return bytes;
    }

    OnnxModelInfo facts() {
        return facts;
    }
}
