// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A backend for a format that the server recognises but does not run. Every load fails with FAILED_PRECONDITION, a
 * message that names the format, and a remedy: how to convert the model, or which file beside it can be served.
 * Immutable.
 */
abstract class UnsupportedBackend implements Backend {
    private final String name;
    private final List<String> platforms;
    private final List<String> files;

    UnsupportedBackend(String name, List<String> platforms, List<String> files) {
        this.name = name;
        this.platforms = platforms;
        this.files = files;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final List<String> platforms() {
        return platforms;
    }

    @Override
    public final List<String> defaultFiles() {
        return files;
    }

    /** Null, so that the server calls {@link #load}, whose message depends on the model's files. */
    @Override
    public final @Nullable String unavailableReason() {
        return null;
    }

    /**
     * The rest of a sentence that begins with the file's name: what the file is, and why the server does not run it.
     */
    abstract String reason(Path file, FileHeader head);

    /** How to serve the model in another way. */
    abstract String remedy(Path file);

    @Override
    public final BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path directory = source.versionDirectory();
        Path file = find(directory, config.modelFile());
        if (file == null) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' is for the backend '" + name + "', but " + directory
                            + " does not contain any of " + String.join(", ", files),
                    "export the model to ONNX and put it there as model.onnx");
        }
        FileHeader head = FileHeader.of(file);
        String wrong = head.strange();
        if (wrong != null) {
            throw ServingException.invalidArgument(
                    "model file '" + file + "' cannot be loaded: " + wrong, "put the model itself there");
        }
        String onnx = onnxBeside(directory);
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "': '" + file.getFileName() + "' " + reason(file, head),
                onnx == null
                        ? remedy(file)
                        : "there is an ONNX model in the same directory: select it with 'backend: \"onnxruntime\""
                                + (onnx.equals("model.onnx") ? "" : " default_model_filename: \"" + onnx + "\"")
                                + "' in config.pbtxt, or remove '" + file.getFileName() + "'");
    }

    private @Nullable Path find(Path directory, String modelFile) {
        if (!modelFile.isEmpty()) {
            Path given = directory.resolve(modelFile).normalize();
            return given.startsWith(directory.normalize()) && Files.exists(given) ? given : null;
        }
        for (String file : files) {
            if (Files.exists(directory.resolve(file))) {
                return directory.resolve(file);
            }
        }
        try (Stream<Path> all = Files.list(directory)) {
            return all.filter(f -> files.stream().anyMatch(n -> ending(n).equals(ending(f.toString()))))
                    .filter(this::recognises)
                    .sorted()
                    .findFirst()
                    .orElse(null);
        } catch (IOException e) {
            return null;
        }
    }

    private static String ending(String name) {
        int dot = name.lastIndexOf('.');
        return dot < 0 ? name : name.substring(dot).toLowerCase(Locale.ROOT);
    }

    private static @Nullable String onnxBeside(Path directory) {
        try (Stream<Path> all = Files.list(directory)) {
            return all.map(f -> f.getFileName().toString())
                    .filter(f -> f.endsWith(".onnx"))
                    .sorted()
                    .findFirst()
                    .orElse(null);
        } catch (IOException e) {
            return null;
        }
    }
}
