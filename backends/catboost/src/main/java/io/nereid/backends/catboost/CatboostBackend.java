// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Serves CatBoost models in the binary format (CBM) and in JSON. A model with numeric columns only has one input with a
 * value for each column, NaN for missing values; a model with categorical columns has one input per column, by name.
 * The output {@code predict} equals the library's {@code predict}. Further outputs are {@code predict_proba},
 * {@code predict_log_proba} and {@code margin}, the raw scores: when the configuration names them, or the parameter
 * {@code prediction_type} selects them:
 *
 * <ul>
 *   <li>{@code prediction_type}: {@code Class}, {@code Probability}, {@code LogProbability} or {@code RawFormulaVal}
 * </ul>
 *
 * For example, in {@code config.pbtxt}:
 *
 * <pre>{@code
 * backend: "catboost"
 * parameters { key: "prediction_type" value { string_value: "Probability" } }
 * }</pre>
 *
 * <p>Thread-safe: has no state.
 */
public final class CatboostBackend implements Backend {
    static final String NAME = "catboost";
    private static final List<String> FILES = List.of("model.cbm", "model.json");
    private static final String DAMAGED = "it may be damaged: save it again with model.save_model(";
    /** The number of leading bytes by which a format is recognised. */
    private static final int HEAD = 4096;

    /** For {@link java.util.ServiceLoader}. */
    public CatboostBackend() {}

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
        return FILES;
    }

    @Override
    public boolean recognises(Path file) {
        byte[] head;
        try (InputStream in = Files.newInputStream(file)) {
            head = in.readNBytes(HEAD);
        } catch (IOException e) {
            return false;
        }
        String text = new String(head, StandardCharsets.ISO_8859_1);
        int first = text.indexOf('"');
        return text.startsWith("CBM1")
                || (text.stripLeading().startsWith("{")
                        && (text.startsWith("\"ctr_data\"", first)
                                || text.startsWith("\"features_info\"", first)
                                || text.startsWith("\"oblivious_trees\"", first)));
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.of("default-max-batch-size"));
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path file = file(source, config);
        byte[] bytes;
        int length;
        try (InputStream in = Files.newInputStream(file)) {
            long size = Files.size(file);
            if (size > Integer.MAX_VALUE - 64) {
                throw invalid(file, "it has " + size + " bytes (expected: < 2 GiB)", "make the model smaller");
            }
            bytes = new byte[(int) size + JsonReader.SLACK];
            length = in.readNBytes(bytes, 0, (int) size);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read model file '" + file + "': " + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
        boolean binary = CbmReader.isCbm(bytes, length);
        String again = DAMAGED + (binary ? "\"model.cbm\")" : "\"model.json\", format=\"json\")");
        ParsedModel parsed;
        try {
            parsed = binary ? CbmReader.read(bytes, length) : JsonModelReader.read(bytes, length);
        } catch (ServingException e) {
            String own = e.remedy();
            throw invalid(file, e.getMessage(), own == null ? again : own);
        } catch (ArithmeticException
                | IndexOutOfBoundsException
                | BufferUnderflowException
                | IllegalArgumentException e) {
            throw invalid(file, "its contents do not fit each other", again);
        }
        return new CatboostModel(parsed, CatboostConfig.complete(parsed, config, context));
    }

    private static ServingException invalid(Path file, String why, String remedy) {
        return ServingException.invalidArgument("model file '" + file + "' cannot be loaded: " + why, remedy);
    }

    private static Path file(ModelLocation source, ModelConfig config) {
        Path directory = source.versionDirectory().normalize();
        List<String> names = config.modelFile().isEmpty() ? FILES : List.of(config.modelFile());
        List<Path> found = new ArrayList<>();
        for (String name : names) {
            Path file = directory.resolve(name).normalize();
            if (!file.startsWith(directory)) {
                throw ServingException.invalidArgument(
                        "model file '" + name + "' is outside the version directory",
                        "name a file inside " + directory);
            }
            if (Files.isRegularFile(file)) {
                found.add(file);
            }
        }
        if (found.isEmpty()) {
            throw ServingException.invalidArgument(
                    "unable to find '" + directory.resolve(names.get(0)) + "' for model '" + config.name() + "'",
                    "put " + names.get(0) + " there, or name the file in default_model_filename");
        }
        // When a model is there in both formats, the binary one is preferred, because it is read faster.
        return found.get(0);
    }
}
