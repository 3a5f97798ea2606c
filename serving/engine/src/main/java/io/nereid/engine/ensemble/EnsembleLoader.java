// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.VersionPolicy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Loads an ensemble after its composing models have become available or have failed. Called by one thread at a time,
 * except {@link #newLoader}, which any thread may call.
 */
public final class EnsembleLoader implements Loader {
    private final ServableId id;
    private volatile ModelConfig config;
    private volatile String fingerprint;
    private final ComposingModels members;
    private final ServableFactory servables;
    private long loadNanos;
    private @Nullable EnsembleServable servable;

    /**
     * Creates the loader.
     *
     * @param config the configuration as far as it is given
     */
    public EnsembleLoader(
            ServableId id, ModelConfig config, String fingerprint, ComposingModels members, ServableFactory servables) {
        this.id = id;
        this.config = config;
        this.fingerprint = fingerprint;
        this.members = members;
        this.servables = servables;
    }

    @Override
    public ServableId id() {
        return id;
    }

    @Override
    public String fingerprint() {
        return fingerprint;
    }

    @Override
    public String backend() {
        return "";
    }

    @Override
    public long estimateBytes() {
        return 0;
    }

    @Override
    public List<String> dependencies() {
        EnsembleScheduling ensemble = config.ensemble();
        return ensemble == null
                ? List.of()
                : ensemble.steps().stream().map(EnsembleStep::model).distinct().toList();
    }

    @Override
    public Loader newLoader() {
        return new EnsembleLoader(id, config, fingerprint, members, servables);
    }

    /** A change of the maximum batch size and of the version policy needs no reload; every other change does. */
    @Override
    public boolean updateInPlace(Loader next) {
        EnsembleServable serving = servable;
        if (serving == null
                || !(next instanceof EnsembleLoader other)
                || !other.id.equals(id)
                || !rest(config).equals(rest(other.config))
                || (other.config.batched() && servables.inLargerEnsemble(id.model(), other.config.maxBatchSize()))) {
            return false;
        }
        try {
            new EnsembleValidator(other.config, members).check();
        } catch (ServingException e) {
            return false; // the load fails for the same reason, and reports it
        }
        serving.configure(servables.completed(serving.config().toBuilder()
                .maxBatchSize(Math.max(0, other.config.maxBatchSize()))
                .versionPolicy(other.config.versionPolicy())
                .build()));
        config = other.config;
        fingerprint = other.fingerprint;
        return true;
    }

    private static ModelConfig rest(ModelConfig config) {
        return config.toBuilder()
                .maxBatchSize(Math.min(1, config.maxBatchSize()))
                .versionPolicy(VersionPolicy.LATEST)
                .document(Map.of())
                .build();
    }

    @Override
    public Servable load() {
        long from = servables.clock().nanos();
        EnsembleValidator checks = new EnsembleValidator(config, members);
        checks.check();
        EnsembleGraph graph = EnsembleGraph.compile(config, checks::member);
        ModelConfig complete = complete(graph, checks);
        if (complete.responseCache() && complete.decoupled()) {
            throw ServingException.invalidArgument("Response Cache does not currently support model "
                    + config.name()
                    + " with 'decoupled' transaction policy. Please disable the response cache.");
        }
        EnsembleServable made = new EnsembleServable(
                id, complete, servables.statistics(id, complete), graph, members, servables.clock());
        servable = made;
        loadNanos = servables.clock().nanos() - from;
        return made;
    }

    /**
     * Completes the configuration from the composing models: whether the ensemble is decoupled, and the labels of
     * outputs that have no labels of their own.
     */
    private ModelConfig complete(EnsembleGraph graph, EnsembleValidator checks) {
        Map<String, List<String>> labels = new HashMap<>(config.labels());
        EnsembleScheduling ensemble = config.ensemble();
        for (TensorSpec output : config.outputs()) {
            EnsembleGraph.Step producer = graph.producer(output.name());
            if (producer != null && ensemble != null && !labels.containsKey(output.name())) {
                EnsembleStep step = ensemble.steps().get(producer.index());
                step.outputs().forEach((name, tensor) -> {
                    List<String> inherited = checks.member(step).labels().get(name);
                    if (tensor.equals(output.name()) && inherited != null) {
                        labels.put(output.name(), inherited);
                    }
                });
            }
        }
        return servables.completed(config.toBuilder()
                .platform("ensemble")
                .backend("")
                .maxBatchSize(Math.max(0, config.maxBatchSize()))
                .decoupled(graph.decoupled())
                .labels(Map.copyOf(labels))
                .build());
    }

    @Override
    public void warm() {
        EnsembleServable made = servable;
        if (made != null) {
            made.loadNanos(loadNanos);
            servables.register(made, fingerprint);
        }
    }

    @Override
    public void unload() {
        EnsembleServable made = servable;
        servable = null;
        if (made != null) {
            servables.unregister(made);
            made.unload();
        }
    }
}
