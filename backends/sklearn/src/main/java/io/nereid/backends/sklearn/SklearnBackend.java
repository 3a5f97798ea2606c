// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.pickle.MemoryLimit;
import io.nereid.backends.sklearn.pickle.ModelFile;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Serves scikit-learn models from pickle, joblib and skops files, and those of XGBoost, LightGBM and CatBoost that are
 * saved so, alone or as a part of a scikit-learn model. Files are read as data: no code in them is run, and types that
 * are not supported are rejected by name. A model has one input with all columns, {@code input-0} FP64
 * [columns], or, when some columns hold text, one input for each column of the data frame that it was fitted to.
 * Parameters:
 *
 * <ul>
 *   <li>{@code method}, or {@code predict_fn}: the methods to compute, one or more of {@code predict}, the default,
 *       {@code predict_proba}, {@code predict_log_proba}, {@code decision_function}, {@code transform} and
 *       {@code score_samples}, separated by commas. Outputs have these names, and a request selects among them
 *   <li>{@code inputs}: {@code matrix} or {@code columns}
 *   <li>{@code input_type}: {@code FP64}, the default, or {@code FP32}: the type of numeric inputs
 * </ul>
 *
 * For example, in {@code config.pbtxt}:
 *
 * <pre>{@code
 * backend: "sklearn"
 * parameters { key: "method" value { string_value: "predict,predict_proba" } }
 * }</pre>
 *
 * <p>Thread-safe: has no state.
 */
public final class SklearnBackend implements Backend {
    static final String NAME = "sklearn";
    private static final List<String> FILES = List.of("model.pkl", "model.pickle", "model.joblib", "model.skops");

    private final Map<String, String> environment;

    /** For {@link java.util.ServiceLoader}. */
    public SklearnBackend() {
        this(System.getenv());
    }

    SklearnBackend(Map<String, String> environment) {
        this.environment = environment;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of("sklearn_pickle", "sklearn_joblib");
    }

    @Override
    public List<String> defaultFiles() {
        return FILES;
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.of("default-max-batch-size", "predict-proba"));
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path file = file(source, config);
        try {
            return load(source.id(), file, config, context, proba(context));
        } catch (ServingException e) {
            throw e;
        } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
            throw ServingException.invalidArgument(
                    "model file '" + file + "' cannot be loaded: its contents do not fit each other ("
                            + e.getClass().getSimpleName() + ")",
                    UnsupportedModel.EXPORT);
        }
    }

    /**
     * Whether classifiers return probabilities by default: the backend's setting, or the variable of KServe's
     * sklearnserver.
     */
    private String proba(BackendContext context) {
        return context.settings()
                .getOrDefault("predict-proba", environment.getOrDefault("PREDICT_PROBA", "false"))
                .strip();
    }

    private static BackendModel load(
            ServableId id, Path file, ModelConfig config, BackendContext context, String proba) {
        DelegatedBoosters boosters = new DelegatedBoosters(id, context);
        boolean done = false;
        try {
            Estimator estimator;
            List<String> names;
            try {
                Object value = ModelFile.read(file, MemoryLimit.ofHeap());
                estimator = new EstimatorFactory(boosters).build(value);
                names = FittedColumns.namesOf(value, estimator);
            } catch (ServingException e) {
                throw ServingException.of(
                        e.code(), "model file '" + file + "' cannot be loaded: " + e.getMessage(), e.remedy());
            }
            SklearnModel model = SklearnConfig.complete(estimator, names, config, context, proba, boosters::close);
            model.validate();
            done = true;
            return model;
        } finally {
            if (!done) {
                boosters.close();
            }
        }
    }

    private static Path file(ModelLocation source, ModelConfig config) {
        Path directory = source.versionDirectory().normalize();
        if (config.modelFile().isEmpty()) {
            for (String name : FILES) {
                if (Files.isRegularFile(directory.resolve(name))) {
                    return directory.resolve(name);
                }
            }
        }
        String name = config.modelFile().isEmpty() ? FILES.get(0) : config.modelFile();
        Path file = directory.resolve(name).normalize();
        if (!file.startsWith(directory)) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' is outside the version directory", "name a file inside " + directory);
        }
        if (!Files.isRegularFile(file)) {
            throw ServingException.invalidArgument(
                    "unable to find '" + file + "' for model '" + config.name() + "'",
                    "put one of " + String.join(", ", FILES) + " there");
        }
        return file;
    }
}
