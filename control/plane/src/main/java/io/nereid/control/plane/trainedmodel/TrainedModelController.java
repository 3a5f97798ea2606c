// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.trainedmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.trainedmodel.MultiModelService;
import io.nereid.control.core.trainedmodel.TrainedModelPlan;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.StoreWatches;
import io.nereid.control.plane.loop.WorkQueue;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Carries out TrainedModels: decides which of them each service loads, gives them to its servers, and writes their
 * statuses. The models of an InferenceService that is deleted are deleted with it; one that was applied before its service
 * waits for it. All models of a service are looked at
 * together, by one thread at a time. Thread-safe.
 *
 * <pre>{@code
 * try (var controller = new TrainedModelController(store, store, servers, loop)) {
 *     controller.start();
 * }
 * }</pre>
 */
public final class TrainedModelController implements AutoCloseable {
    private static final ResourceStore.Type MODELS = type(ResourceKinds.TRAINED_MODEL);
    private static final ResourceStore.Type SERVICES = type(ResourceKinds.INFERENCE_SERVICE);

    /** KServe's controller keeps its models by it; this one needs none. */
    private static final String KSERVE_FINALIZER = "trainedmodel.finalizer";

    /** Statuses of services and models change in groups. */
    private static final Duration PACE = Duration.ofMillis(100);

    private static final Duration AGAIN = Duration.ofSeconds(1);

    /** Another writer may have changed what the servers read. */
    private static final Duration RESYNC = Duration.ofMinutes(1);

    private final ResourceStore models;
    private final ResourceStore services;
    private final TrainedModelServers servers;
    private final EventLoop loop;
    private final StoreWatches modelWatches;
    private final StoreWatches serviceWatches;
    private final WorkQueue<ResourceStore.Key> queue;
    private volatile boolean closed;

    /**
     * Creates a controller without starting it.
     *
     * @param models has the TrainedModels
     * @param services has the InferenceServices and the runtimes; may be the same store
     * @param loop owned by the controller, which closes it
     */
    public TrainedModelController(
            ResourceStore models, ResourceStore services, TrainedModelServers servers, EventLoop loop) {
        this.models = models;
        this.services = services;
        this.servers = servers;
        this.loop = loop;
        this.modelWatches = new StoreWatches(models, loop);
        this.serviceWatches = new StoreWatches(services, loop);
        this.queue = new WorkQueue<>(loop, Retries.ofReconciliation(), this::work);
    }

    private static ResourceStore.Type type(ResourceKind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    /** Starts to watch the stores. */
    public void start() {
        servers.onChange((namespace, service) -> queue.addAfter(service(namespace, service), PACE));
        modelWatches.follow(
                MODELS,
                change -> queue.addAfter(
                        service(
                                change.resource()
                                        .path("metadata")
                                        .path("namespace")
                                        .asText(""),
                                change.resource()
                                        .path("spec")
                                        .path("inferenceService")
                                        .asText("")),
                        PACE));
        serviceWatches.follow(SERVICES, change -> {
            JsonNode metadata = change.resource().path("metadata");
            queue.addAfter(
                    service(
                            metadata.path("namespace").asText(""),
                            metadata.path("name").asText("")),
                    PACE);
        });
    }

    private static ResourceStore.Key service(String namespace, String name) {
        return new ResourceStore.Key(SERVICES, namespace, name);
    }

    private List<TrainedModel> of(ResourceStore.Key service) {
        List<TrainedModel> all = new ArrayList<>();
        for (ObjectNode one : models.list(MODELS, service.namespace()).items()) {
            if (!one.path("spec").path("inferenceService").asText("").equals(service.name())) {
                continue;
            }
            if (one.path("metadata").hasNonNull("deletionTimestamp")) {
                release(one);
            } else {
                all.add(TrainedModel.read(one));
            }
        }
        return all;
    }

    private void work(ResourceStore.Key key) {
        if (closed) {
            return;
        }
        ObjectNode service = services.get(key);
        List<TrainedModel> all = of(key);
        if (service == null || service.path("metadata").hasNonNull("deletionTimestamp")) {
            servers.forget(key.namespace(), key.name());
            Instant at = Instant.ofEpochMilli(loop.clock().millis());
            for (TrainedModel model : all) {
                if (TrainedModelPlan.hadService(model)) {
                    delete(model);
                } else {
                    status(key, model, TrainedModelPlan.withoutService(model, at));
                }
            }
            return;
        }
        boolean multi = MultiModelService.isMultiModel(service);
        if (!multi) {
            servers.forget(key.namespace(), key.name());
        }
        if (all.isEmpty() && !multi) {
            return;
        }
        MultiModelService parent = MultiModelService.of(service, runtime(service));
        if (servers.isPooled(service)) {
            parent = parent.withoutLimit();
        }
        Instant now = Instant.ofEpochMilli(loop.clock().millis());
        Function<String, TrainedModelPlan.State> states = model -> servers.state(key.namespace(), key.name(), model);
        TrainedModelPlan plan = TrainedModelPlan.of(parent, all, states, now);
        if (multi) {
            boolean taken = servers.place(service, plan.admitted());
            queue.addAfter(key, taken ? RESYNC : AGAIN);
            // What was placed just now has a state.
            plan = TrainedModelPlan.of(parent, all, states, now);
        }
        for (TrainedModel model : all) {
            status(key, model, Objects.requireNonNull(plan.statuses().get(model.name())));
        }
    }

    private @Nullable ServingRuntime runtime(ObjectNode service) {
        String name = MultiModelService.runtime(service);
        if (name.isEmpty()) {
            return null;
        }
        String namespace = service.path("metadata").path("namespace").asText("");
        ObjectNode found = services.get(new ResourceStore.Key(type(ResourceKinds.SERVING_RUNTIME), namespace, name));
        if (found == null) {
            found = services.get(new ResourceStore.Key(type(ResourceKinds.CLUSTER_SERVING_RUNTIME), "", name));
        }
        if (found != null) {
            return ServingRuntime.read(found);
        }
        for (ServingRuntime one : BuiltInRuntimes.all()) {
            if (one.name().equals(name)) {
                return one;
            }
        }
        return null;
    }

    private void status(ResourceStore.Key service, TrainedModel model, ObjectNode status) {
        if (model.tree().path("status").equals(status)) {
            return;
        }
        ObjectNode written = model.tree().deepCopy();
        written.set("status", status);
        try {
            ObjectNode unused = models.updateStatus(MODELS, written, version(model.tree()));
        } catch (ServingException e) {
            if (e.code() != ErrorCode.ABORTED && e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
            queue.addAfter(service, PACE);
        }
    }

    private static String version(ObjectNode resource) {
        return resource.path("metadata").path("resourceVersion").asText();
    }

    private void delete(TrainedModel model) {
        try {
            ObjectNode last = models.delete(
                    new ResourceStore.Key(MODELS, model.namespace(), model.name()), version(model.tree()));
            release(last);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND && e.code() != ErrorCode.ABORTED) {
                throw e;
            }
        }
    }

    /** Removes the finalizer of KServe's controller from a model that is being deleted. */
    private void release(ObjectNode model) {
        ArrayNode rest = model.arrayNode();
        boolean kept = false;
        for (JsonNode finalizer : model.path("metadata").path("finalizers")) {
            if (finalizer.asText().equals(KSERVE_FINALIZER)) {
                kept = true;
            } else {
                rest.add(finalizer);
            }
        }
        if (!kept) {
            return;
        }
        ObjectNode changed = model.deepCopy();
        changed.withObject("/metadata").set("finalizers", rest);
        try {
            ObjectNode unused = models.update(MODELS, changed, version(model));
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND && e.code() != ErrorCode.ABORTED) {
                throw e;
            }
        }
    }

    /** Stops. What is loaded stays. */
    @Override
    public synchronized void close() {
        closed = true;
        modelWatches.close();
        serviceWatches.close();
        queue.close();
        loop.close();
    }
}
