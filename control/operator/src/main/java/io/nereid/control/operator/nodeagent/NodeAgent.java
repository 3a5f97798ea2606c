// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.localmodel.CachedModels;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.operator.health.HealthServer;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.WorkQueue;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The agent of one node for one LocalModelNodeGroup: keeps the models that the LocalModelNode of the node lists for the
 * group, within the group's limit, and writes their states into its status. It needs no permanent connection: what it
 * keeps stays while the API server is away. Thread-safe.
 *
 * <pre>{@code
 * try (NodeAgent agent = new NodeAgent(options, client, fetcher, Clock.system())) {
 *     agent.start(Duration.ofMinutes(2));
 *     ended.await();
 * }
 * }</pre>
 */
public final class NodeAgent implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NodeAgent.class);

    /** Progress is written once in this time at most. */
    private static final Duration PACE = Duration.ofSeconds(1);

    private static final int TRIES = 5;
    private static final String LIST = "models of the node";
    private static final String STATUS = "status of the node";

    private final NodeAgentOptions options;
    private final ClusterClient client;
    private final EventLoop loop;
    private final ObjectCache nodes;
    private final ObjectCache groups;
    private final ModelKeeper keeper;
    private final WorkQueue<String> queue;
    private final HealthServer health;
    private volatile boolean ready;

    /**
     * Creates an agent without starting it.
     *
     * @param client used by this object, closed by the caller
     */
    public NodeAgent(NodeAgentOptions options, KubernetesClient client, ModelFetcher fetcher, Clock clock) {
        this.options = options;
        this.client = new ClusterClient(client);
        this.loop = EventLoop.threads(clock);
        this.nodes = new ObjectCache(
                this.client,
                ResourceKinds.LOCAL_MODEL_NODE,
                Set.of(),
                "",
                options.node(),
                ObjectCache.ObjectFilter.ALL);
        this.groups = new ObjectCache(
                this.client,
                ResourceKinds.LOCAL_MODEL_NODE_GROUP,
                Set.of(),
                "",
                options.group(),
                ObjectCache.ObjectFilter.ALL);
        this.queue = new WorkQueue<>(loop, Retries.ofReconciliation(), this::work);
        this.health = new HealthServer(options.healthPort(), () -> true, () -> ready, format -> "");
        this.keeper = new ModelKeeper(
                options.directory(), fetcher, options.retry(), loop, () -> queue.addAfter(STATUS, PACE));
    }

    /**
     * Begins to keep models.
     *
     * @param limit how long it waits for the API server
     * @throws ServingException UNAVAILABLE when that takes longer; PERMISSION_DENIED
     */
    public void start(Duration limit) {
        LOG.info(
                "agent of node {} for the group {}; probes on port {}", options.node(), options.group(), health.port());
        ObjectCache.startAll(List.of(nodes, groups), limit);
        for (ObjectCache cache : List.of(nodes, groups)) {
            AutoCloseable unused = cache.listen((change, object) -> queue.add(LIST));
        }
        ready = true;
        queue.add(LIST);
    }

    /** The port of probes. */
    public int healthPort() {
        return health.port();
    }

    private void work(String what) {
        if (what.equals(LIST)) {
            list();
        } else {
            report();
        }
    }

    private void list() {
        ObjectNode group = groups.get("", options.group());
        if (group == null) {
            // Perhaps it is being replaced; the DaemonSet of a group that is gone ends with it.
            LOG.warn("there is no LocalModelNodeGroup {}; the models stay as they are", options.group());
            return;
        }
        ObjectNode node = nodes.get("", options.node());
        List<ModelKeeper.Wanted> wanted = new ArrayList<>();
        Set<String> known = new HashSet<>();
        for (JsonNode model : listed(node)) {
            String folder = CachedModels.folder(model.path("sourceModelUri").asText());
            if (isOwn(model) && known.add(folder)) {
                wanted.add(new ModelKeeper.Wanted(folder, source(model), bytes(model.path("modelSize"))));
            }
        }
        keeper.keep(wanted, bytes(group.path("spec").path("storageLimit")));
        queue.add(STATUS);
    }

    private static JsonNode listed(@Nullable ObjectNode node) {
        return node == null ? Trees.object() : node.path("spec").path("localModels");
    }

    private boolean isOwn(JsonNode model) {
        return model.path("nodeGroup").asText("").equals(options.group());
    }

    private ModelFetcher.Source source(JsonNode model) {
        String namespace = model.path("namespace").asText("");
        JsonNode storage = model.path("storage");
        return new ModelFetcher.Source(
                model.path("sourceModelUri").asText(),
                namespace.isEmpty() ? options.credentials() : namespace,
                model.path("serviceAccountName").asText(null),
                storage.path("key").asText(null),
                Trees.map(storage.path("parameters")));
    }

    private static long bytes(JsonNode quantity) {
        try {
            return Quantity.parse(quantity.asText("0")).units();
        } catch (ServingException e) {
            return 0;
        }
    }

    /** Writes the states of this group's models; those of other groups are of other agents. */
    private void report() {
        for (int tries = 1; ; tries++) {
            ObjectNode node = client.get(ResourceKinds.LOCAL_MODEL_NODE, null, options.node());
            if (node == null) {
                return;
            }
            ObjectNode status = node.path("status") instanceof ObjectNode there ? there.deepCopy() : Trees.object();
            ObjectNode states = Trees.object(status, "modelStatus");
            ObjectNode messages = Trees.object(status, "messages");
            JsonNode listed = listed(node);
            List<String> keys = CachedModels.statusKeys(listed);
            for (int i = 0; i < keys.size(); i++) {
                JsonNode model = listed.path(i);
                ModelKeeper.State state = isOwn(model)
                        ? keeper.state(
                                CachedModels.folder(model.path("sourceModelUri").asText()))
                        : null;
                if (state != null) {
                    states.put(keys.get(i), name(state.phase()));
                    messages.put(keys.get(i), state.message());
                    if (state.message().isEmpty()) {
                        messages.remove(keys.get(i));
                    }
                }
            }
            states.retain(keys);
            messages.retain(keys);
            if (messages.isEmpty()) {
                status.remove("messages");
            }
            if (status.equals(node.path("status"))) {
                return;
            }
            node.set("status", status);
            try {
                ObjectNode unused = client.updateStatus(ResourceKinds.LOCAL_MODEL_NODE, node);
                return;
            } catch (ServingException e) {
                if (e.code() == ErrorCode.NOT_FOUND) {
                    return;
                }
                if (e.code() != ErrorCode.ABORTED || tries == TRIES) {
                    throw e;
                }
            }
        }
    }

    /** KServe's name of a phase. */
    private static String name(ModelKeeper.Phase phase) {
        return switch (phase) {
            case PENDING -> "ModelDownloadPending";
            case DOWNLOADING -> "ModelDownloading";
            case DOWNLOADED -> "ModelDownloaded";
            case FAILED -> "ModelDownloadError";
        };
    }

    /** Ends. Models stay, and a download that was not complete is continued by the next agent. */
    @Override
    public void close() {
        keeper.close();
        queue.close();
        nodes.close();
        groups.close();
        loop.close();
        health.close();
    }
}
