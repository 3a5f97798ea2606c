// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.backend.ModelMetric;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.engine.cache.VersionResponseCache;
import io.nereid.engine.request.Classification;
import io.nereid.engine.request.RequestValidator;
import io.nereid.engine.request.ScalarShapes;
import io.nereid.engine.request.TabularInputs;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.scheduling.objective.ObjectiveStatus;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.TextTasks;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ExampleTensors;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The common part of every loaded version, whether it is a model on a backend or an ensemble: metadata, request
 * validation, statistics and the response cache. Thread-safe.
 */
public abstract class EngineServable implements Servable {
    private volatile Description description;
    private final ModelStatistics statistics;
    private final @Nullable ScalarShapes scalarShapes;
    private volatile ModelConfig config;
    private volatile long loadNanos;
    private volatile @Nullable VersionResponseCache cache;

    /** What clients may read of the model, and the checks of requests by it. Immutable. */
    private record Description(ModelMetadata metadata, RequestValidator validator) {
        Description(ModelMetadata metadata, ModelConfig config) {
            this(metadata, new RequestValidator(metadata, config.batchSizePolicy()));
        }

        /** Returns the same with another maximum batch size; with the same one this object. */
        Description of(ModelConfig config) {
            ModelMetadata m = metadata;
            return config.maxBatchSize() == m.maxBatchSize()
                    ? this
                    : new Description(
                            new ModelMetadata(
                                    m.id(),
                                    m.platform(),
                                    m.inputs(),
                                    m.outputs(),
                                    config.maxBatchSize(),
                                    m.properties(),
                                    m.signatures()),
                            config);
        }
    }

    /** A version with a complete configuration and without the optional metrics. */
    public EngineServable(ServableId id, ModelConfig config) {
        this(id, config, new ModelStatistics(id));
    }

    /** A version with a complete configuration. */
    public EngineServable(ServableId id, ModelConfig config, ModelStatistics statistics) {
        this(id, config, statistics, Map.of());
    }

    /** The backends of the models that KServe's Python servers serve. */
    private static final Set<String> KSERVE_BACKENDS =
            Set.of("sklearn", "xgboost", "lightgbm", "pmml", "paddle", "huggingface");

    /** The backends of models whose tables may have missing values. */
    private static final Set<String> TABLE_BACKENDS =
            Set.of("sklearn", "xgboost", "lightgbm", "catboost", "pmml", "mlflow");

    /**
     * A version whose model describes its signatures in more detail. Shapes exclude the batch dimension where the
     * model is batched.
     */
    EngineServable(ServableId id, ModelConfig config, ModelStatistics statistics, Map<String, Signature> signatures) {
        this.config = config;
        this.description = new Description(describe(id, config, signatures), config);
        this.statistics = statistics;
        this.scalarShapes = ScalarShapes.of(config);
    }

    private static ModelMetadata describe(ServableId id, ModelConfig config, Map<String, Signature> own) {
        List<TensorSpec> inputs = onWire(config.inputs(), config.batched());
        List<TensorSpec> outputs = onWire(config.outputs(), config.batched());
        Map<String, Signature> signatures = new LinkedHashMap<>();
        own.forEach((name, s) -> signatures.put(
                name,
                new Signature(
                        s.method(),
                        onWire(s.inputs(), config.batched()),
                        onWire(s.outputs(), config.batched()),
                        s.tensors())));
        signatures.putIfAbsent(
                ModelMetadata.DEFAULT_SIGNATURE, new Signature(Signature.PREDICT, inputs, outputs, Map.of()));
        ScalarShapes scalars = ScalarShapes.of(config);
        if (scalars != null) {
            signatures.computeIfPresent(ModelMetadata.DEFAULT_SIGNATURE, (name, s) -> scalars.describe(s));
        }
        return new ModelMetadata(
                id,
                config.platform().isEmpty() ? config.backend() : config.platform(),
                inputs,
                outputs,
                config.maxBatchSize(),
                properties(config),
                Collections.unmodifiableMap(signatures));
    }

    /**
     * The metadata that protocols need besides the tensors: the names of a matrix's columns, whether the model answers as
     * those of KServe's Python servers do, whether its tables may have missing values, whether it is a function of MLflow, and what
     * it does with texts.
     */
    private static Map<String, String> properties(ModelConfig config) {
        Map<String, String> properties = new HashMap<>();
        String columns = config.parameters().getOrDefault(ExampleTensors.COLUMNS, "");
        if (!columns.isEmpty()) {
            properties.put(ExampleTensors.COLUMNS, columns);
        }
        if (KSERVE_BACKENDS.contains(config.backend())
                && config.parameters()
                        .getOrDefault(ModelMetadata.KSERVE_SERVER, "")
                        .equals("true")) {
            properties.put(ModelMetadata.KSERVE_SERVER, config.backend());
        }
        if (TABLE_BACKENDS.contains(config.backend())) {
            properties.put(ModelMetadata.MISSING_VALUES, "true");
        }
        String documents = config.parameters().getOrDefault(ModelMetadata.JSON_OUTPUTS, "");
        if (!documents.isEmpty()) {
            properties.put(ModelMetadata.JSON_OUTPUTS, documents);
        }
        String function = config.parameters().getOrDefault(ModelMetadata.PYTHON_FUNCTION, "");
        if (!function.isEmpty()) {
            properties.put(ModelMetadata.PYTHON_FUNCTION, function);
        }
        String task = config.parameters().getOrDefault(TextTasks.PROPERTY, "");
        if (!task.isEmpty()) {
            properties.put(TextTasks.PROPERTY, task);
        }
        return Map.copyOf(properties);
    }

    private static List<TensorSpec> onWire(List<TensorSpec> specs, boolean batched) {
        return specs.stream()
                .map(s -> new TensorSpec(
                        s.name(),
                        s.dataType(),
                        batched ? s.shape().prepend(-1) : s.shape(),
                        s.optional(),
                        false,
                        null,
                        s.unchecked()))
                .toList();
    }

    @Override
    public final ModelMetadata metadata() {
        return description.metadata();
    }

    @Override
    public final ModelConfig config() {
        return config;
    }

    /**
     * Replaces the configuration by one that differs only in the maximum batch size, and in settings that nothing was built from.
     * Requests that were checked before keep the result.
     */
    protected final void config(ModelConfig next) {
        config = next;
        description = description.of(next);
    }

    public final RequestValidator validator() {
        return description.validator();
    }

    /** The conversion of scalar shapes for requests that name the default signature; null for none. */
    public final @Nullable ScalarShapes scalarShapes() {
        return scalarShapes;
    }

    /** The adapter for tabular requests; null when the model does not take tables. */
    public @Nullable TabularInputs tabularInputs() {
        return null;
    }

    /** Whether the model itself can take requests. */
    public boolean ready() {
        return true;
    }

    /**
     * Whether the inputs of a step of an ensemble may be in the memory of a GPU. What reads them on the way to the model, such
     * as a response cache, must not be there.
     *
     * @param device the ordinal of the GPU
     */
    public boolean takesDeviceTensors(int device) {
        return false;
    }

    /** The metrics that the model reports itself. */
    public List<ModelMetric> metrics() {
        return List.of();
    }

    public final ModelStatistics statistics() {
        return statistics;
    }

    /**
     * Returns the servable for a signature.
     *
     * @throws ServingException FAILED_PRECONDITION for an unknown name
     */
    public final EngineServable signature(String name) {
        EngineServable found = name.isEmpty() || name.equals(ModelMetadata.DEFAULT_SIGNATURE)
                ? this
                : signatures().get(name);
        if (found == null) {
            ModelMetadata metadata = metadata();
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "Serving signature key \"" + name + "\" not found.",
                    NameSuggestions.didYouMean(
                            name,
                            metadata.signatures().keySet(),
                            "model '" + metadata.id().model() + "' has "
                                    + metadata.signatures().keySet()));
        }
        return found;
    }

    /** Returns the name of the signature with outputs that the default one lacks; empty when it has them, or none has. */
    public String signatureWith(List<RequestedOutput> outputs) {
        return "";
    }

    /** Returns the name of the signature that a request's parameters select; empty for the default one. */
    public String signatureFor(Map<String, Object> parameters) {
        return "";
    }

    /** The servables of the signatures other than the default one, by name. */
    Map<String, ? extends EngineServable> signatures() {
        return Map.of();
    }

    /** How long loading and warm-up took. */
    public final long loadNanos() {
        return loadNanos;
    }

    public final void loadNanos(long nanos) {
        loadNanos = nanos;
    }

    /** The response cache for this version; null when responses are not cached. */
    public final @Nullable VersionResponseCache cache() {
        return cache;
    }

    public final void cache(@Nullable VersionResponseCache keeps) {
        cache = keeps;
    }

    /** Whether responses are cached. */
    public final boolean cached() {
        return cache != null;
    }

    /** The statistics for clients. */
    public final ModelStatisticsSnapshot report() {
        return statistics.report(config.decoupled(), memoryBytes());
    }

    /**
     * Returns the error if the servable would refuse a job now because of overload, and counts it as arrived; null if it
     * would accept the job.
     */
    public @Nullable ServingException refusal(InferenceJob job) {
        return null;
    }

    /** What is done to keep the latency objective of the default signature; null without an objective. */
    public @Nullable ObjectiveStatus objective() {
        return null;
    }

    /** The number of queued requests. */
    public abstract int queued();

    /** Frees everything; no request is in flight. */
    public abstract void unload();

    /** The class labels of an output; empty without labels. */
    public List<String> labels(String output) {
        return config.labels().getOrDefault(output, List.of());
    }

    /**
     * Replaces the outputs for which classes were requested by their top classes and returns the response's outputs.
     * When it throws, the caller keeps the outputs.
     */
    final List<Tensor> classify(List<RequestedOutput> wanted, List<Tensor> outputs) {
        boolean any = false;
        for (int i = 0; i < wanted.size(); i++) {
            any |= wanted.get(i).classes() > 0;
        }
        if (!any) {
            return outputs;
        }
        List<Tensor> answer = new ArrayList<>(outputs);
        List<Tensor> replaced = new ArrayList<>();
        List<Tensor> made = new ArrayList<>();
        try {
            for (RequestedOutput w : wanted) {
                for (int i = 0; w.classes() > 0 && i < answer.size(); i++) {
                    Tensor scores = answer.get(i);
                    if (scores.name().equals(w.name())) {
                        Tensor top = Classification.top(scores, w.classes(), config.batched(), labels(w.name()));
                        made.add(top);
                        replaced.add(scores);
                        answer.set(i, top);
                    }
                }
            }
        } catch (RuntimeException e) {
            Tensor.closeAll(made);
            throw e;
        }
        Tensor.closeAll(replaced);
        return answer;
    }
}
