// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.languagemodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Plan;
import io.nereid.control.core.languagemodel.LanguageModelStatus;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.StoreWatches;
import io.nereid.control.plane.loop.WorkQueue;
import io.nereid.control.plane.reconcile.EventSink;
import java.time.Instant;
import java.util.List;

/**
 * Writes the statuses of LLMInferenceServices and LLMInferenceServiceConfigs, which say that they are not carried out,
 * and an event when that is said first. A resource with KServe's own finalizer is one of KServe's controller and is left
 * alone, so that two controllers never write one status. All state is in the store. Thread-safe.
 *
 * <pre>{@code
 * EventLoop loop = EventLoop.threads(clock);
 * try (var controller = new LanguageModelController(store, "kserve", Site.ONE_MACHINE, events, loop)) {
 *     controller.start();
 * }
 * }</pre>
 */
public final class LanguageModelController implements AutoCloseable {
    private static final ResourceStore.Type SERVICES = type(ResourceKinds.LLM_INFERENCE_SERVICE);
    private static final ResourceStore.Type CONFIGS = type(ResourceKinds.LLM_INFERENCE_SERVICE_CONFIG);
    private static final List<String> OF_KSERVE =
            List.of("serving.kserve.io/llmisvc-finalizer", "serving.kserve.io/llmisvcconfig-finalizer");

    private final ResourceStore store;
    private final String home;
    private final Site site;
    private final EventSink events;
    private final EventLoop loop;
    private final WorkQueue<ResourceStore.Key> queue;

    private final StoreWatches watches;

    private volatile boolean closed;

    /**
     * Creates a controller without starting it.
     *
     * @param home the namespace of the configurations for all namespaces
     * @param site where the control plane is
     * @param loop owned by the controller, which closes it
     */
    public LanguageModelController(ResourceStore store, String home, Site site, EventSink events, EventLoop loop) {
        this.store = store;
        this.home = home;
        this.site = site;
        this.events = events;
        this.loop = loop;
        this.watches = new StoreWatches(store, loop);
        this.queue = new WorkQueue<>(loop, Retries.ofReconciliation(), this::work);
    }

    private static ResourceStore.Type type(ResourceKind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    /** Starts to watch the store. */
    public void start() {
        watches.follow(CONFIGS, change -> {
            ResourceStore.Key key = key(CONFIGS, change.resource());
            queue.add(key);
            queue.add(affected(SERVICES, key));
        });
        watches.follow(SERVICES, change -> {
            ResourceStore.Key key = key(SERVICES, change.resource());
            queue.add(key);
            queue.add(affected(CONFIGS, key));
        });
    }

    /** The key without a name under which all resources of a type that another one may concern are queued. */
    private static ResourceStore.Key affected(ResourceStore.Type type, ResourceStore.Key by) {
        return new ResourceStore.Key(type, by.namespace(), "");
    }

    private void queueAffected(ResourceStore.Key by) {
        boolean everywhere = by.namespace().equals(home);
        for (ObjectNode resource : store.list(by.type(), null).items()) {
            ResourceStore.Key key = key(by.type(), resource);
            boolean shared = by.type().equals(CONFIGS) && key.namespace().equals(home);
            if (everywhere || shared || key.namespace().equals(by.namespace())) {
                queue.add(key);
            }
        }
    }

    private static ResourceStore.Key key(ResourceStore.Type type, ObjectNode resource) {
        JsonNode metadata = resource.path("metadata");
        return new ResourceStore.Key(
                type,
                metadata.path("namespace").asText(""),
                metadata.path("name").asText(""));
    }

    private void work(ResourceStore.Key key) {
        if (closed) {
            return;
        }
        if (key.name().isEmpty()) {
            queueAffected(key);
            return;
        }
        ObjectNode resource = store.get(key);
        if (resource == null || resource.path("metadata").hasNonNull("deletionTimestamp") || isOfKserve(resource)) {
            return;
        }
        Instant now = Instant.ofEpochMilli(loop.clock().millis());
        boolean service = key.type().equals(SERVICES);
        ObjectNode status = service
                ? LanguageModelStatus.service(
                        resource,
                        home,
                        (namespace, name) -> store.get(new ResourceStore.Key(CONFIGS, namespace, name)),
                        site,
                        now)
                : LanguageModelStatus.config(
                        resource, store.list(SERVICES, null).items(), home, now);
        JsonNode before = resource.path("status");
        if (isSame(status, before)) {
            return;
        }
        String reason = ready(status).path("reason").asText("");
        boolean said = ready(before).path("reason").asText("").equals(reason);
        String message = ready(status).path("message").asText("");
        resource.set("status", status);
        try {
            ObjectNode unused = store.updateStatus(
                    key.type(),
                    resource,
                    resource.path("metadata").path("resourceVersion").asText());
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ABORTED || e.code() == ErrorCode.NOT_FOUND) {
                queue.add(key);
                return;
            }
            throw e;
        }
        if (service && !said && !reason.isEmpty()) {
            events.record(resource, new Plan.Event("Warning", reason, message));
        }
    }

    /** Whether KServe's controller carries the resource out. */
    private static boolean isOfKserve(ObjectNode resource) {
        for (JsonNode finalizer : resource.path("metadata").path("finalizers")) {
            if (OF_KSERVE.contains(finalizer.asText())) {
                return true;
            }
        }
        return false;
    }

    /** Whether two statuses say the same; a number that was read may have another type than one that was computed. */
    private static boolean isSame(ObjectNode status, JsonNode stored) {
        return status.equals(
                (one, other) -> one.isNumber() && other.isNumber()
                        ? one.decimalValue().compareTo(other.decimalValue())
                        : one.equals(other) ? 0 : 1,
                stored);
    }

    private static JsonNode ready(JsonNode status) {
        for (JsonNode condition : status.path("conditions")) {
            if (condition.path("type").asText().equals("Ready")) {
                return condition;
            }
        }
        return status.path("none");
    }

    /** Stops watching. What was written stays. */
    @Override
    public synchronized void close() {
        closed = true;
        watches.close();
        queue.close();
        loop.close();
    }
}
