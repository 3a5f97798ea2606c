// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Serves PMML documents, from {@code model.pmml} or the only {@code *.pmml} file. Every active field of the mining
 * schema is an optional input of its name and type, with one value per row. When all fields are numeric, a request can
 * send {@code input-0} instead, rows of all fields in order. An omitted field, NaN and an empty text are missing
 * values. Outputs are the model's output fields. Parameter:
 *
 * <ul>
 *   <li>{@code input_type}: the type of {@code input-0}, {@code FP32}, the default, or {@code FP64}
 * </ul>
 *
 * For example, in {@code config.pbtxt}:
 *
 * <pre>{@code
 * backend: "pmml"
 * parameters { key: "input_type" value { string_value: "FP64" } }
 * }</pre>
 *
 * <p>Thread-safe: has no state.
 */
public final class PmmlBackend implements Backend {
    static final String NAME = "pmml";
    private static final String FILE = "model.pmml";

    /** For {@link java.util.ServiceLoader}. */
    public PmmlBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(NAME);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(FILE);
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.of());
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path directory = source.versionDirectory().normalize();
        String name = config.modelFile().isEmpty() ? FILE : config.modelFile();
        Path file = directory.resolve(name).normalize();
        if (!file.startsWith(directory)) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' is outside the version directory", "name a file inside " + directory);
        }
        if (!Files.isRegularFile(file)) {
            throw ServingException.invalidArgument(
                    "unable to find '" + file + "' for model '" + config.name() + "'", "put " + FILE + " there");
        }
        PmmlDocument document = PmmlDocument.read(file);
        return PmmlConfig.complete(document, config, context);
    }
}
