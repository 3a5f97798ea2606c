// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig.VersionPolicy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** The door for control: which models there are, loading and unloading them. Implementations are thread-safe. */
public interface ModelControl {
    /** Whether the process works at all. */
    boolean live();

    /** Whether requests are welcome: started, not shutting down, and every wanted model answers. */
    boolean ready();

    /**
     * Whether a model (any version, or the one named) answers.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND for a model or version nobody knows
     */
    boolean ready(ModelRef model);

    /** Every known model: versions with their states, and names in the repository that were never loaded. */
    List<ModelStatus> index();

    /**
     * Loads or reloads a model from the repository. Completes when it answers; fails with INVALID_ARGUMENT,
     * NOT_FOUND or FAILED_PRECONDITION when that cannot be, an old version going on to serve.
     */
    default CompletionStage<Void> load(String model) {
        return load(model, LoadOptions.NONE);
    }

    /** As {@link #load(String)}, with another configuration or other files than the repository's. */
    CompletionStage<Void> load(String model, LoadOptions options);

    /** Unloads every version of a model. Completes when none is available; requests under way still finish. */
    default CompletionStage<Void> unload(String model) {
        return unload(model, false);
    }

    /**
     * As {@link #unload(String)}.
     *
     * @param dependents whether the models that were loaded only because this one is made of them go too
     */
    CompletionStage<Void> unload(String model, boolean dependents);

    /**
     * Replaces the whole list of models that were configured by list ({@code --model_config_file}); what it leaves out is
     * unloaded. Checked whole before anything changes. Completes when the new models have settled, or when
     * waiting for them has taken too long, which the report says.
     *
     * @param dryRun whether to tell only what would change
     * @return fails with INVALID_ARGUMENT or FAILED_PRECONDITION, nothing having changed, for a list that cannot be
     */
    default CompletionStage<List<ModelChange>> configure(List<ServedModel> models, boolean dryRun) {
        return CompletableFuture.failedStage(
                ServingException.of(ErrorCode.UNIMPLEMENTED, "this server has no list of models to replace"));
    }

    /**
     * A model of the list. Immutable.
     *
     * @param name the model's name
     * @param basePath the directory with a directory for each version
     * @param platform {@code tensorflow} for whatever is found there, or a platform or backend that must run it
     * @param versionPolicy which versions are wanted; null for what the model's own configuration says, else the highest
     * @param labels by name
     * @param logging which requests are written to files; null for none
     */
    record ServedModel(
            String name,
            String basePath,
            String platform,
            @Nullable VersionPolicy versionPolicy,
            Map<String, Label> labels,
            @Nullable RequestLogging logging) {}

    /**
     * What a label stands for. Immutable.
     *
     * @param targets versions by turns: each with a share of its weight; never empty
     * @param shadows versions that get copies of requests, whose answers are measured and thrown away; the weight is
     *     the share of requests, 0 to 1
     */
    record Label(List<Share> targets, List<Share> shadows) {
        /** One version. */
        public static Label of(long version) {
            return new Label(List.of(new Share(version, 1)), List.of());
        }
    }

    /**
     * A version with a weight.
     *
     * @param version the version
     * @param weight above 0
     */
    record Share(long version, double weight) {}

    /**
     * Which requests are written down, and where. Immutable.
     *
     * @param type the kind of file; {@code tfrecord}, or empty for the same
     * @param filePrefix path and beginning of the files' names
     * @param samplingRate share of the requests, 0 to 1
     */
    record RequestLogging(String type, String filePrefix, double samplingRate) {}

    /**
     * What a new list does, or would do, to one model. Immutable.
     *
     * @param model its name
     * @param action what becomes of the model
     * @param load versions that are loaded for it, as far as they are stored now, ascending
     * @param unload versions that are unloaded, ascending
     * @param error why it does not serve as wanted; null when it does, or when that is not known yet
     */
    record ModelChange(
            String model,
            Action action,
            List<Long> load,
            List<Long> unload,
            @Nullable ServingException error) {
        /** What becomes of a model. */
        public enum Action {
            /** It was not in the list before. */
            ADDED,
            /** It was, with something else said of it. */
            CHANGED,
            /** Nothing. */
            KEPT,
            /** It is not in the list any more. */
            REMOVED
        }
    }

    /**
     * What a load request may replace. Immutable.
     *
     * @param config the configuration as JSON, instead of the stored one; null for the stored one
     * @param files contents by path inside the model's directory, instead of the stored files; empty for these.
     *     They need a {@code config}
     */
    record LoadOptions(@Nullable String config, Map<String, byte[]> files) {
        /** What is stored. */
        public static final LoadOptions NONE = new LoadOptions(null, Map.of());
    }

    /**
     * One model's states.
     *
     * @param model its name
     * @param versions by descending version; empty when it was never loaded
     * @param labels what its labels stand for now, by name
     */
    record ModelStatus(String model, List<ServableState> versions, Map<String, Label> labels) {
        /** A model without labels. */
        public ModelStatus(String model, List<ServableState> versions) {
            this(model, versions, Map.of());
        }
    }
}
