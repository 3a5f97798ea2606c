// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.VersionPolicy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The model control API of the server: health, the list of models, loading and unloading. Implementations are
 * thread-safe.
 */
public interface ModelControl {
    /** Whether the process works (liveness). */
    boolean live();

    /**
     * Whether the server can take requests (readiness): it has started, is not shutting down, and every aspired model
     * is available.
     */
    boolean ready();

    /**
     * Whether a model (any version, or the referenced one) is available.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND for an unknown model or version
     */
    boolean ready(ModelRef model);

    /**
     * Returns every known model: the versions with their states, and the models of the repository that were never
     * loaded.
     */
    List<ModelStatus> index();

    /**
     * Loads or reloads a model from the repository. Completes when the model is available. Fails with
     * INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION when it cannot be loaded; an older version then continues to
     * serve.
     */
    default CompletionStage<Void> load(String model) {
        return load(model, LoadOptions.NONE);
    }

    /** As {@link #load(String)}, with another configuration or other files than those of the repository. */
    CompletionStage<Void> load(String model, LoadOptions options);

    /** Unloads every version of a model. Completes when no version is available; requests in flight still finish. */
    default CompletionStage<Void> unload(String model) {
        return unload(model, false);
    }

    /**
     * As {@link #unload(String)}.
     *
     * @param dependents whether to unload also the models that were loaded only because this ensemble is made of them
     */
    CompletionStage<Void> unload(String model, boolean dependents);

    /**
     * Replaces the list of models ({@code --model_config_file}); models that it omits are unloaded. The whole list is
     * validated before anything changes. Completes when the new models are available or have failed, or when the wait
     * for them has timed out, which the result reports.
     *
     * @param models the complete new list
     * @param dryRun whether to only report the changes, without applying them
     * @return the changes by model; fails with INVALID_ARGUMENT or FAILED_PRECONDITION for an invalid list, which
     *     changes nothing
     */
    default CompletionStage<List<ModelChange>> configure(List<ServedModel> models, boolean dryRun) {
        return CompletableFuture.failedStage(
                ServingException.of(ErrorCode.UNIMPLEMENTED, "this server has no list of models to replace"));
    }

    /**
     * An entry of the model list, as in TensorFlow Serving's {@code model_config_list}. Immutable.
     *
     * @param name the model's name
     * @param basePath the directory that contains one directory for each version
     * @param platform {@code tensorflow} for any format that is found there, or the platform or backend that must run
     *     it
     * @param versionPolicy which versions are served; null for the policy of the model's own configuration, or else
     *     the highest version
     * @param labels the version labels by name
     * @param logging which requests are logged to files; null for none
     */
    record ServedModel(
            String name,
            String basePath,
            String platform,
            @Nullable VersionPolicy versionPolicy,
            Map<String, Label> labels,
            @Nullable RequestLogging logging) {}

    /**
     * The meaning of a version label. Immutable.
     *
     * @param targets the versions that requests with this label are routed to, each with its weight; never empty
     * @param shadows versions that receive copies of requests, whose responses are measured and discarded. The weight
     *     is the fraction of the requests, 0 to 1
     */
    record Label(List<Share> targets, List<Share> shadows) {
        /** A label for one version. */
        public static Label of(long version) {
            return new Label(List.of(new Share(version, 1)), List.of());
        }
    }

    /**
     * A version with a weight. Immutable.
     *
     * @param version the version
     * @param weight above 0
     */
    record Share(long version, double weight) {}

    /**
     * Which requests are logged, and where. Immutable.
     *
     * @param type the file format: {@code tfrecord}, or empty for the same
     * @param filePrefix the path and the beginning of the files' names
     * @param samplingRate the fraction of the requests, 0 to 1
     */
    record RequestLogging(String type, String filePrefix, double samplingRate) {}

    /**
     * The effect of a new model list on one model. Immutable.
     *
     * @param model the model's name
     * @param action what happens to the model
     * @param load versions to load, as far as they are stored now, ascending
     * @param unload versions to unload, ascending
     * @param error why the model does not serve as configured; null when it does, or when that is not known yet
     */
    record ModelChange(
            String model,
            Action action,
            List<Long> load,
            List<Long> unload,
            @Nullable ServingException error) {
        /** What happens to a model. */
        public enum Action {
            /** The model is new in the list. */
            ADDED,
            /** The model was in the list with other settings. */
            CHANGED,
            /** Nothing changes. */
            KEPT,
            /** The model is no longer in the list. */
            REMOVED
        }
    }

    /**
     * Overrides of a load request. Immutable.
     *
     * @param config the configuration as JSON, instead of the stored one; null for the stored one
     * @param files contents by path inside the model's directory, instead of the stored files; empty for the stored
     *     files. Files require a {@code config}
     */
    record LoadOptions(@Nullable String config, Map<String, byte[]> files) {
        /** No overrides. */
        public static final LoadOptions NONE = new LoadOptions(null, Map.of());
    }

    /**
     * The states of one model's versions. Immutable.
     *
     * @param model the model's name
     * @param versions by descending version; empty when the model was never loaded
     * @param labels the current meaning of its version labels, by name
     */
    record ModelStatus(String model, List<ServableState> versions, Map<String, Label> labels) {
        /** The status of a model without labels. */
        public ModelStatus(String model, List<ServableState> versions) {
            this(model, versions, Map.of());
        }
    }
}
