// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Plan;
import io.nereid.control.local.localmodel.LocalModelPlan.Model;
import io.nereid.control.local.localmodel.ModelDownload.Phase;
import io.nereid.control.local.localmodel.ModelDownload.State;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.WorkQueue;
import io.nereid.control.plane.reconcile.EventSink;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries out LocalModelCaches and LocalModelNamespaceCaches on this machine: downloads their models into the cache that
 * all services share, and keeps them there, whatever else the cache removes for its size. The models of a
 * LocalModelNodeGroup have its limit at most. Writes the statuses with the progress, and a LocalModelNode. Thread-safe:
 * the resources are looked at all together, by one thread at a time.
 *
 * <pre>{@code
 * try (var controller = new LocalModelController(store, artifacts, events, EventLoop.threads(clock))) {
 *     controller.start();
 * }
 * }</pre>
 */
public final class LocalModelController implements AutoCloseable {
    /** The name of this machine in statuses. */
    public static final String NODE = "localhost";

    private static final Logger LOG = LoggerFactory.getLogger(LocalModelController.class);
    private static final ResourceStore.Type GROUPS = LocalModelPlan.type(ResourceKinds.LOCAL_MODEL_NODE_GROUP.plural());
    private static final ResourceStore.Type NODES = LocalModelPlan.type(ResourceKinds.LOCAL_MODEL_NODE.plural());
    private static final ResourceStore.Type SERVICES = LocalModelPlan.type(ResourceKinds.INFERENCE_SERVICE.plural());

    /** A failed download is tried again after this time, KServe's {@code localModel.reconcilationFrequencyInSecs}. */
    private static final Duration RETRY = Duration.ofMinutes(1);

    /** Progress is written once in this time at most. */
    private static final Duration PROGRESS = Duration.ofSeconds(1);

    private static final Duration REWATCH = Duration.ofSeconds(1);
    private static final String ALL = "local models";

    private final ResourceStore store;
    private final ArtifactFetcher fetcher;
    private final EventSink events;
    private final EventLoop loop;
    private final WorkQueue<String> queue;

    /** Changed by the work alone, which one thread does at a time, and read by {@link #close}. */
    private final Map<ResourceStore.Key, ModelDownload> downloads = new ConcurrentHashMap<>();

    /** When a failed download is due again, in nanoseconds of the clock; used by the work alone. */
    private final Map<ResourceStore.Key, Long> due = new HashMap<>();

    @GuardedBy("this") private final List<ResourceStore.Watch> watches = new ArrayList<>();

    @GuardedBy("this") private boolean closed;

    /**
     * Creates a controller without starting it.
     *
     * @param fetcher downloads models, with the credentials of a namespace
     * @param loop owned by the controller, which closes it
     */
    public LocalModelController(ResourceStore store, ArtifactFetcher fetcher, EventSink events, EventLoop loop) {
        this.store = store;
        this.fetcher = fetcher;
        this.events = events;
        this.loop = loop;
        this.queue = new WorkQueue<>(loop, Retries.ofReconciliation(), all -> work());
    }

    /** Starts to watch the store. */
    public void start() {
        for (ResourceStore.Type type :
                List.of(LocalModelPlan.CACHES, LocalModelPlan.NAMESPACE_CACHES, GROUPS, SERVICES)) {
            watch(type);
        }
        queue.add(ALL);
    }

    private synchronized void watch(ResourceStore.Type type) {
        if (closed) {
            return;
        }
        try {
            watches.add(store.watch(type, null, store.list(type, null).version(), change -> queue.add(ALL)));
        } catch (ServingException e) {
            LOG.warn("{} are listed again: {}", type.plural(), e.describe());
            EventLoop.Timer unused = loop.after(REWATCH, () -> {
                watch(type);
                queue.add(ALL);
            });
        }
    }

    private void work() {
        synchronized (this) {
            if (closed) {
                return;
            }
        }
        Map<ResourceStore.Key, ObjectNode> caches = new LinkedHashMap<>();
        for (ResourceStore.Type type : List.of(LocalModelPlan.CACHES, LocalModelPlan.NAMESPACE_CACHES)) {
            for (ObjectNode cache : store.list(type, null).items()) {
                if (!cache.path("metadata").hasNonNull("deletionTimestamp")) {
                    caches.put(LocalModelPlan.key(cache, type.equals(LocalModelPlan.NAMESPACE_CACHES)), cache);
                }
            }
        }
        List<ObjectNode> groups = store.list(GROUPS, null).items();
        LocalModelPlan plan = LocalModelPlan.of(groups, caches);
        downloads.entrySet().removeIf(one -> {
            Model model = plan.models().get(one.getKey());
            boolean ends = model == null || !model.equals(one.getValue().model());
            if (ends) {
                one.getValue().close();
                due.remove(one.getKey());
            }
            return ends;
        });
        plan.models().forEach((key, model) -> {
            if (model.refusal() == null) {
                download(key, model);
            }
        });
        List<ObjectNode> services =
                caches.isEmpty() ? List.of() : store.list(SERVICES, null).items();
        caches.forEach((key, cache) -> status(key, cache, plan, services));
        groups.forEach(group -> group(group, plan));
        node(plan);
    }

    /** Starts a download, or one that has failed a while ago again. */
    private void download(ResourceStore.Key key, Model model) {
        ModelDownload running = downloads.get(key);
        if (running != null && running.state().phase() == Phase.FAILED) {
            long now = loop.clock().nanos();
            Long at = due.get(key);
            if (at == null) {
                due.put(key, now + RETRY.toNanos());
                queue.addAfter(ALL, RETRY);
                return;
            }
            if (now - at < 0) {
                queue.addAfter(ALL, Duration.ofNanos(at - now));
                return;
            }
            due.remove(key);
            running.close();
            running = null;
        }
        if (running == null) {
            ModelDownload download = new ModelDownload(model, () -> queue.addAfter(ALL, PROGRESS));
            downloads.put(key, download);
            download.start(fetcher);
        }
    }

    /** The state of a model; one that is refused has failed. */
    private State state(ResourceStore.Key key, Model model) {
        if (model.refusal() != null) {
            return new State(Phase.FAILED, model.refusal());
        }
        ModelDownload download = downloads.get(key);
        return download == null ? new State(Phase.DOWNLOADING, "") : download.state();
    }

    private void status(ResourceStore.Key key, ObjectNode cache, LocalModelPlan plan, List<ObjectNode> services) {
        Model model = plan.models().get(key);
        if (model == null) {
            return;
        }
        State state = state(key, model);
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        status.putObject("nodeStatus")
                .put(
                        NODE,
                        switch (state.phase()) {
                            case DOWNLOADING -> "NodeDownloading";
                            case DOWNLOADED -> "NodeDownloaded";
                            case FAILED -> "NodeDownloadError";
                        });
        ObjectNode copies = status.putObject("copies").put("total", 1);
        if (state.phase() == Phase.DOWNLOADED) {
            copies.put("available", 1);
        } else if (state.phase() == Phase.FAILED) {
            copies.put("failed", 1);
        }
        if (!state.message().isEmpty()) {
            status.putObject("messages").put(NODE, state.message());
        }
        ArrayNode users = JsonNodeFactory.instance.arrayNode();
        for (ObjectNode service : services) {
            JsonNode metadata = service.path("metadata");
            String namespace = metadata.path("namespace").asText("");
            if ((key.namespace().isEmpty() || key.namespace().equals(namespace))
                    && uses(service.path("spec"), model.artifact().uri())) {
                users.addObject()
                        .put("namespace", namespace)
                        .put("name", metadata.path("name").asText());
            }
        }
        if (!users.isEmpty()) {
            status.set("inferenceServices", users);
        }
        JsonNode before = cache.path("status");
        if (written(key.type(), cache, status)) {
            event(cache, before.path("nodeStatus").path(NODE).asText(""), state);
        }
    }

    private static boolean uses(JsonNode spec, String uri) {
        if (spec.findValuesAsText("storageUri").contains(uri)) {
            return true;
        }
        for (JsonNode several : spec.findValues("storageUris")) {
            if (several.findValuesAsText("uri").contains(uri)) {
                return true;
            }
        }
        return false;
    }

    private void event(ObjectNode cache, String before, State state) {
        if (state.phase() == Phase.DOWNLOADED && !before.equals("NodeDownloaded")) {
            events.record(cache, new Plan.Event("Normal", "ModelDownloaded", "the model is on this machine"));
        } else if (state.phase() == Phase.FAILED && !before.equals("NodeDownloadError")) {
            events.record(cache, new Plan.Event("Warning", "ModelDownloadError", state.message()));
        }
    }

    private void group(ObjectNode group, LocalModelPlan plan) {
        String name = group.path("metadata").path("name").asText();
        long used = plan.used().getOrDefault(name, 0L);
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        status.put("used", Long.toString(used));
        status.put("available", Long.toString(Math.max(0, plan.limits().getOrDefault(name, 0L) - used)));
        boolean unused = written(GROUPS, group, status);
    }

    /** The LocalModelNode of this machine, while there are models. */
    private void node(LocalModelPlan plan) {
        ResourceStore.Key key = new ResourceStore.Key(NODES, "", NODE);
        ObjectNode stored = store.get(key);
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        ObjectNode models = status.putObject("modelStatus");
        ObjectNode spec = JsonNodeFactory.instance.objectNode();
        ArrayNode list = spec.putArray("localModels");
        plan.models().forEach((one, model) -> {
            if (model.refusal() != null) {
                return;
            }
            ObjectNode entry = list.addObject()
                    .put("sourceModelUri", model.artifact().uri())
                    .put("modelName", one.name())
                    .put("nodeGroup", model.group());
            if (!one.namespace().isEmpty()) {
                entry.put("namespace", one.namespace());
            }
            models.put(
                    one.namespace().isEmpty() ? one.name() : one.namespace() + "/" + one.name(),
                    switch (state(one, model).phase()) {
                        case DOWNLOADING -> "ModelDownloading";
                        case DOWNLOADED -> "ModelDownloaded";
                        case FAILED -> "ModelDownloadError";
                    });
        });
        if (list.isEmpty()) {
            if (stored != null) {
                ObjectNode unused = store.delete(key, null);
            }
            return;
        }
        if (stored == null) {
            ObjectNode node = JsonNodeFactory.instance.objectNode();
            node.put("apiVersion", ResourceKinds.LOCAL_MODEL_NODE.apiVersion())
                    .put("kind", ResourceKinds.LOCAL_MODEL_NODE.kind());
            node.putObject("metadata").put("name", NODE);
            node.set("spec", spec);
            node.set("status", status);
            ObjectNode unused = store.create(NODES, node);
            return;
        }
        if (!stored.path("spec").equals(spec)) {
            stored.set("spec", spec);
            stored.set("status", status);
            ObjectNode unused = store.update(NODES, stored, null);
        } else {
            boolean unused = written(NODES, stored, status);
        }
    }

    /** Writes a status that differs from the stored one, and returns whether it did. */
    private boolean written(ResourceStore.Type type, ObjectNode resource, ObjectNode status) {
        if (resource.path("status").equals(status)) {
            return false;
        }
        resource.set("status", status);
        try {
            ObjectNode unused = store.updateStatus(
                    type,
                    resource,
                    resource.path("metadata").path("resourceVersion").asText());
            return true;
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ABORTED || e.code() == ErrorCode.NOT_FOUND) {
                queue.add(ALL);
                return false;
            }
            throw e;
        }
    }

    /** Stops watching and downloading. What is in the cache stays there, as long as the cache has space. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            watches.forEach(ResourceStore.Watch::close);
            watches.clear();
        }
        queue.close();
        loop.close();
        downloads.values().forEach(ModelDownload::close);
    }
}
