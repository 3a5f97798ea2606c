// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.upstream.RevisionTarget.Models;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The engine as the clients of one revision see it: only its own models, under the names that clients use. Thread-safe:
 * immutable, but for a cache of names.
 */
public final class RevisionEngineView implements InferenceEngine, ModelControl {
    /** The size of the cache of names: requests for unknown models must not fill the memory. */
    private static final int MOST_NAMES = 1024;

    private final RevisionActivator activator;
    private final Models models;
    private final InferenceEngine engine;
    private final ModelControl control;
    private final long timeoutNanos;

    /** The single model's name in the engine, any version. */
    private final ModelRef single;

    private final String prefix;
    private final Map<String, ModelRef> latest = new ConcurrentHashMap<>();

    public RevisionEngineView(
            RevisionActivator activator, Models models, InferenceEngine engine, ModelControl control) {
        this.activator = activator;
        this.models = models;
        this.engine = engine;
        this.control = control;
        this.timeoutNanos = activator.settings().timeout().toNanos();
        this.single = ModelRef.latest(models.prefix());
        this.prefix = models.prefix() + "/";
    }

    // ---- names ----

    /** The engine's name of a model. */
    private ModelRef ref(ModelRef requested) {
        if (models.repository()) {
            if (requested.version() != ModelRef.ANY || requested.label() != null) {
                return new ModelRef(prefix + requested.model(), requested.version(), requested.label());
            }
            ModelRef known = latest.get(requested.model());
            if (known == null) {
                known = ModelRef.latest(prefix + requested.model());
                if (latest.size() < MOST_NAMES) {
                    latest.put(requested.model(), known);
                }
            }
            return known;
        }
        if (!requested.model().equals(models.modelName())) {
            throw unknown(requested.model());
        }
        return requested.version() == ModelRef.ANY && requested.label() == null
                ? single
                : new ModelRef(models.prefix(), requested.version(), requested.label());
    }

    private ServingException unknown(String model) {
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                "Model with name " + model + " does not exist.",
                models.repository() ? null : "this service has the model '" + models.modelName() + "'");
    }

    /** The clients' name of a model of the engine. */
    private String outer(String name) {
        if (models.repository()) {
            return name.startsWith(prefix) ? name.substring(prefix.length()) : name;
        }
        return name.equals(models.prefix()) ? models.modelName() : name;
    }

    /** Whether a model of the engine, by its name there, is one of this revision. */
    public boolean owns(String name) {
        return models.repository() ? name.startsWith(prefix) : name.equals(models.prefix());
    }

    private ServableId outer(ServableId id) {
        return new ServableId(outer(id.model()), id.version());
    }

    private ServableState outer(ServableState s) {
        String reason = s.reason();
        return new ServableState(
                outer(s.id()),
                s.phase(),
                reason == null ? null : renamed(reason),
                s.backend(),
                s.loadNanos(),
                s.memoryBytes());
    }

    private String renamed(String text) {
        return models.repository() ? text.replace(prefix, "") : text.replace(models.prefix(), models.modelName());
    }

    /** An error of the engine with the clients' names in its message. */
    private ServingException renamed(ServingException e, String requested) {
        if (e.code() == ErrorCode.NOT_FOUND && models.repository() && !exists(requested)) {
            return unknown(requested);
        }
        String remedy = e.remedy();
        boolean names =
                e.getMessage().contains(models.prefix()) || (remedy != null && remedy.contains(models.prefix()));
        if (!names) {
            return e;
        }
        String renamedRemedy = remedy == null ? null : renamed(remedy);
        Throwable cause = e.getCause();
        return cause == null
                ? ServingException.of(e.code(), renamed(e.getMessage()), renamedRemedy)
                : ServingException.wrap(e.code(), renamed(e.getMessage()), renamedRemedy, cause);
    }

    private boolean exists(String model) {
        for (ModelStatus status : control.index()) {
            if (status.model().equals(prefix + model)) {
                return true;
            }
        }
        return false;
    }

    // ---- the engine ----

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        ModelRef requested = request.model();
        ModelRef model;
        try {
            model = ref(requested);
        } catch (ServingException e) {
            request.release();
            sink.fail(e);
            return () -> {};
        }
        long deadline = request.deadlineNanos();
        if (timeoutNanos > 0) {
            long mine = request.arrivedNanos() + timeoutNanos;
            if (deadline == Long.MAX_VALUE || mine - deadline < 0) {
                deadline = mine;
            }
        }
        return engine.infer(
                new InferenceRequest(
                        model,
                        request.id(),
                        request.inputs(),
                        request.outputs(),
                        request.parameters(),
                        deadline,
                        request.arrivedNanos(),
                        request.options(),
                        request.caller()),
                new Renaming(this, requested.model(), sink));
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelRef inside = ref(model);
        try {
            ModelMetadata m = engine.metadata(inside);
            return new ModelMetadata(
                    outer(m.id()),
                    m.platform(),
                    m.inputs(),
                    m.outputs(),
                    m.maxBatchSize(),
                    m.properties(),
                    m.signatures());
        } catch (ServingException e) {
            throw renamed(e, model.model());
        }
    }

    @Override
    public ModelConfig config(ModelRef model) {
        ModelRef inside = ref(model);
        try {
            return renamed(engine.config(inside), model.model());
        } catch (ServingException e) {
            throw renamed(e, model.model());
        }
    }

    // ---- the control ----

    @Override
    public boolean live() {
        return control.live();
    }

    @Override
    public boolean ready() {
        if (activator.standby()) {
            return control.live();
        }
        if (!activator.hasReplica()) {
            return false;
        }
        if (!models.repository()) {
            return isReady(single);
        }
        for (ModelStatus status : index()) {
            if (!status.versions().isEmpty() && !isReady(ModelRef.latest(prefix + status.model()))) {
                return false;
            }
        }
        return true;
    }

    private boolean isReady(ModelRef model) {
        try {
            return control.ready(model);
        } catch (ServingException e) {
            return false;
        }
    }

    @Override
    public boolean ready(ModelRef model) {
        ModelRef inside = ref(model);
        try {
            return control.ready(inside);
        } catch (ServingException e) {
            throw renamed(e, model.model());
        }
    }

    @Override
    public List<ModelStatus> index() {
        List<ModelStatus> mine = new ArrayList<>();
        for (ModelStatus status : control.index()) {
            if (owns(status.model())) {
                mine.add(new ModelStatus(
                        outer(status.model()),
                        status.versions().stream().map(this::outer).toList(),
                        status.labels()));
            }
        }
        if (mine.isEmpty() && !models.repository()) {
            mine.add(new ModelStatus(models.modelName(), List.of()));
        }
        return mine;
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return managed(model, "load");
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return managed(model, "unload");
    }

    private CompletionStage<Void> managed(String model, String verb) {
        return CompletableFuture.failedStage(ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "cannot " + verb + " model '" + model + "': its service decides which models it has",
                "apply a changed InferenceService, or change the files at its storageUri"));
    }

    private static ModelConfig renamed(ModelConfig c, String model) {
        Map<String, Object> document = c.document();
        if (document.containsKey("name")) {
            document = new LinkedHashMap<>(document);
            document.put("name", model);
        }
        return new ModelConfig(
                model,
                c.platform(),
                c.backend(),
                c.modelFile(),
                c.capabilityFiles(),
                c.maxBatchSize(),
                c.inputs(),
                c.outputs(),
                c.batchInputs(),
                c.batchOutputs(),
                c.versionPolicy(),
                c.batching(),
                c.sequence(),
                c.ensemble(),
                c.queue(),
                c.instanceGroups(),
                c.decoupled(),
                c.responseCache(),
                c.parameters(),
                c.labels(),
                c.warmups(),
                c.optimization(),
                c.operatorLibraries(),
                c.metricTags(),
                c.histogramBuckets(),
                document);
    }

    /** Passes responses on under the name that the client used. As thread-safe as the sink. */
    private static final class Renaming implements ResponseSink {
        private final RevisionEngineView view;
        private final String model;
        private final ResponseSink sink;

        Renaming(RevisionEngineView view, String model, ResponseSink sink) {
            this.view = view;
            this.model = model;
            this.sink = sink;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            sink.next(
                    new InferenceResponse(
                            new ServableId(model, response.servable().version()),
                            response.id(),
                            response.outputs(),
                            response.parameters()),
                    last);
        }

        @Override
        public void fail(ServingException e) {
            sink.fail(view.renamed(e, model));
        }
    }
}
