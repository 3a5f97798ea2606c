// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKind.Column;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.api.store.ResourceStore.Listing;
import io.nereid.control.api.store.ResourceStore.Watch;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.ResourceAddress;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.WorkloadObserver;
import io.nereid.control.core.WorkloadState;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * A read-only view of the running workloads as pods: one pod for each revision, regardless of its number of replicas.
 * Pods are not stored: each request computes them from the observed states. Thread-safe: one lock guards the recent
 * snapshots.
 */
public final class PodView {
    private static final Pattern SESSION = Pattern.compile(
            "/api/v1/namespaces/[^/]+/pods/[^/]+/(exec|attach|portforward|proxy|ephemeralcontainers)(/.*)?");

    /** The kind Pod. */
    public static final ResourceKind KIND = new ResourceKind(
            "",
            "v1",
            "Pod",
            "pods",
            "pod",
            List.of("po"),
            true,
            List.of(
                    new Column(
                            "Ready",
                            "string",
                            "ready replicas of the desired ones",
                            0,
                            ".metadata.annotations.nereid\\.io/replicas"),
                    new Column("Status", "string", "the phase of the revision", 0, ".status.reason"),
                    new Column("Restarts", "integer", "not counted", 0, ".status.containerStatuses[0].restartCount"),
                    new Column("Age", "date", "the time of creation", 0, ".metadata.creationTimestamp"),
                    new Column("Message", "string", "the reason why it is not ready", 1, ".status.message")));

    /** The name of the only container of each pod. */
    static final String CONTAINER = "kserve-container";

    private static final ResourceStore.Type SERVICES =
            new ResourceStore.Type(ResourceKinds.SERVING, ResourceKinds.INFERENCE_SERVICE.plural());
    private static final ResourceStore.Type REVISIONS = new ResourceStore.Type("internal.nereid.io", "revisions");
    private static final int REMEMBERED = 64;
    private static final int POLL_MILLIS = 500;

    private final ResourceStore store;
    private final WorkloadObserver observer;
    private final ScheduledExecutorService timer;
    /** Recent snapshots of all pods by version, from which watches can start. */
    @GuardedBy("seen") private final LinkedHashMap<Long, Map<String, ObjectNode>> seen = new LinkedHashMap<>();

    @GuardedBy("seen") private long version;

    /**
     * @param firstVersion a version above all those of an earlier process, so that a client's old version is not found
     */
    public PodView(ResourceStore store, WorkloadObserver observer, ScheduledExecutorService timer, long firstVersion) {
        this.store = store;
        this.observer = observer;
        this.timer = timer;
        this.version = firstVersion;
    }

    /** All pods at one moment, by namespace and name. */
    private record Snapshot(long version, Map<String, ObjectNode> pods) {
        List<ObjectNode> in(@Nullable String namespace) {
            return pods.values().stream().filter(p -> within(p, namespace)).toList();
        }
    }

    private static boolean within(JsonNode pod, @Nullable String namespace) {
        return namespace == null
                || pod.path("metadata").path("namespace").asText().equals(namespace);
    }

    /** Computes all pods now; the version increases when they differ from those before. */
    private Snapshot snapshot() {
        Map<String, ObjectNode> pods = new TreeMap<>();
        for (ObjectNode service : store.list(SERVICES, null).items()) {
            String namespace = service.path("metadata").path("namespace").asText();
            String name = service.path("metadata").path("name").asText();
            Map<String, WorkloadState> states = observer.observe(namespace, name);
            if (states.isEmpty()) {
                continue;
            }
            ObjectNode kept = store.get(new ResourceStore.Key(REVISIONS, namespace, name));
            states.forEach((revision, state) ->
                    pods.put(namespace + "\u0000" + revision, pod(service, revision, state, kept(kept, revision))));
        }
        synchronized (seen) {
            if (pods.equals(seen.get(version))) {
                return new Snapshot(version, pods);
            }
            seen.put(++version, pods);
            if (seen.size() > REMEMBERED) {
                seen.remove(seen.keySet().iterator().next());
            }
            return new Snapshot(version, pods);
        }
    }

    private static JsonNode kept(@Nullable ObjectNode all, String revision) {
        if (all != null) {
            for (JsonNode one : all.path("revisions")) {
                if (one.path("name").asText().equals(revision)) {
                    return one;
                }
            }
        }
        return ApiResponse.JSON.missingNode();
    }

    private static ObjectNode pod(ObjectNode service, String revision, WorkloadState state, JsonNode kept) {
        JsonNode owner = service.path("metadata");
        String name = owner.path("name").asText();
        ObjectNode pod = ApiResponse.JSON.createObjectNode();
        pod.put("apiVersion", "v1").put("kind", "Pod");
        ObjectNode metadata = pod.putObject("metadata");
        metadata.put("name", revision)
                .put("namespace", owner.path("namespace").asText())
                .put(
                        "uid",
                        UUID.nameUUIDFromBytes((owner.path("uid").asText() + revision).getBytes(StandardCharsets.UTF_8))
                                .toString())
                .put(
                        "creationTimestamp",
                        kept.path("created")
                                .asText(owner.path("creationTimestamp").asText()));
        ObjectNode labels = metadata.putObject("labels");
        kept.path("workload")
                .path("labels")
                .properties()
                .forEach(l -> labels.put(l.getKey(), l.getValue().asText()));
        labels.put("serving.kserve.io/inferenceservice", name)
                .put("component", component(name, revision, kept))
                .put("serving.knative.dev/revision", revision);
        metadata.putObject("annotations").put("nereid.io/replicas", state.replicas() + "/" + state.desired());
        metadata.putArray("ownerReferences")
                .addObject()
                .put("apiVersion", ResourceKinds.INFERENCE_SERVICE.apiVersion())
                .put("kind", ResourceKinds.INFERENCE_SERVICE.kind())
                .put("name", name)
                .put("uid", owner.path("uid").asText())
                .put("controller", true);
        pod.putObject("spec")
                .putArray("containers")
                .addObject()
                .put("name", CONTAINER)
                .put("image", "");
        status(pod.putObject("status"), state);
        CRC32C digest = new CRC32C();
        digest.update(ApiResponse.bytes(pod));
        metadata.put("resourceVersion", Long.toString(digest.getValue()));
        return pod;
    }

    private static String component(String service, String revision, JsonNode kept) {
        String stored = kept.path("component").asText("").toLowerCase(Locale.ROOT);
        if (stored.isEmpty()) {
            String rest = revision.startsWith(service + "-") ? revision.substring(service.length() + 1) : revision;
            return rest.split("-", 2)[0];
        }
        return stored;
    }

    private static void status(ObjectNode status, WorkloadState state) {
        Phase phase = state.phase();
        boolean ready = phase == Phase.READY;
        Failure failure = state.failure();
        String reason = phase == Phase.FAILED && failure != null ? failure.reason() : shown(phase);
        status.put("phase", phase(phase)).put("reason", reason);
        if (failure != null) {
            status.put("message", failure.message());
        } else if (phase == Phase.STANDBY) {
            status.put("message", "scaled to zero; the next request starts it again");
        }
        ObjectNode condition = status.putArray("conditions").addObject();
        condition.put("type", "Ready").put("status", ready ? "True" : "False");
        if (!ready) {
            condition.put("reason", reason);
        }
        ObjectNode container = status.putArray("containerStatuses").addObject();
        container
                .put("name", CONTAINER)
                .put("ready", ready)
                .put("restartCount", 0)
                .put("image", "")
                .put("imageID", "");
        ObjectNode at = container.putObject("state");
        if (ready) {
            at.putObject("running");
        } else {
            ObjectNode waiting = at.putObject("waiting").put("reason", reason);
            if (failure != null) {
                waiting.put("message", failure.message());
            }
        }
    }

    private static String phase(Phase phase) {
        return switch (phase) {
            case PENDING, LOADING -> "Pending";
            case READY -> "Running";
            case STANDBY -> "Succeeded";
            case FAILED -> "Failed";
        };
    }

    private static String shown(Phase phase) {
        return switch (phase) {
            case PENDING -> "Pending";
            case LOADING -> "Loading";
            case READY -> "Running";
            case STANDBY -> "Standby";
            case FAILED -> "Failed";
        };
    }

    /** As {@link ResourceStore#list}. */
    public Listing list(@Nullable String namespace) {
        Snapshot now = snapshot();
        return new Listing(now.version(), now.in(namespace));
    }

    /** The pod that a request is for. */
    public ObjectNode get(ResourceAddress target) {
        ObjectNode found = get(target.namespace(), target.name());
        if (found == null) {
            throw target.notFound();
        }
        return found;
    }

    /** A pod by name; null if it does not exist. */
    @Nullable ObjectNode get(String namespace, String name) {
        return snapshot().pods().get(namespace + "\u0000" + name);
    }

    /** As {@link ResourceStore#watch}, but polls twice a second. */
    public Watch watch(@Nullable String namespace, long from, Consumer<Change> listener) {
        Map<String, ObjectNode> before;
        synchronized (seen) {
            before = seen.get(from);
        }
        if (before == null) {
            throw ServingException.of(
                    ErrorCode.OUT_OF_RANGE, "too old resource version: " + from, "list the pods and watch from there");
        }
        Watching watching = new Watching(namespace, before, listener);
        Future<?> polls = timer.scheduleWithFixedDelay(watching::poll, 0, POLL_MILLIS, TimeUnit.MILLISECONDS);
        return () -> polls.cancel(false);
    }

    /** The state of one watch: the pods of the last poll. Confined to the timer. */
    private final class Watching {
        private final @Nullable String namespace;
        private final Consumer<Change> listener;
        private Map<String, ObjectNode> before;

        Watching(@Nullable String namespace, Map<String, ObjectNode> before, Consumer<Change> listener) {
            this.namespace = namespace;
            this.before = before;
            this.listener = listener;
        }

        void poll() {
            Snapshot now = snapshot();
            List<Change> changes = new ArrayList<>();
            before.forEach((key, pod) -> {
                if (!now.pods().containsKey(key)) {
                    changes.add(new Change(Change.Kind.DELETED, now.version(), pod));
                }
            });
            now.pods().forEach((key, pod) -> {
                ObjectNode old = before.get(key);
                if (old == null) {
                    changes.add(new Change(Change.Kind.ADDED, now.version(), pod));
                } else if (!old.equals(pod)) {
                    changes.add(new Change(Change.Kind.MODIFIED, now.version(), pod));
                }
            });
            before = now.pods();
            for (Change change : changes) {
                if (within(change.resource(), namespace)) {
                    listener.accept(change);
                }
            }
        }
    }

    /** The last log lines of a pod, oldest first. */
    List<String> tail(String namespace, String name, int most) {
        return observer.logs(namespace, name, most);
    }

    /** Whether a path is for a session inside a pod, such as that of {@code kubectl exec}, of which there are none. */
    public static boolean isSession(String path) {
        return SESSION.matcher(path).matches();
    }
}
