// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.core.Plan;
import io.nereid.control.plane.reconcile.EventRecorder;
import io.nereid.control.plane.reconcile.EventSink;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes events to the cluster, on a thread of its own and best effort, so that an API server that refuses or delays
 * them delays no reconciliation. A repeated event increases the count of the first one. The API server removes old
 * events by itself. Thread-safe.
 */
public final class ClusterEventRecorder implements EventSink, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterEventRecorder.class);
    private static final int MAX_WAITING = 2_000;
    private static final int MAX_KNOWN = 4_000;

    private final ClusterClient client;
    private final Clock clock;
    private final ThreadPoolExecutor thread = Threads.pool("nereid-events", 1);

    /** The counts of recent events by namespace and name; confined to the thread. */
    private final Map<String, Integer> counts = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
            return size() > MAX_KNOWN;
        }
    };

    public ClusterEventRecorder(ClusterClient client, Clock clock) {
        this.client = client;
        this.clock = clock;
    }

    @Override
    public void record(ObjectNode about, Plan.Event event) {
        ObjectNode tree = EventRecorder.event(about, event, Instant.ofEpochMilli(clock.millis()));
        if (thread.getQueue().size() >= MAX_WAITING) {
            LOG.debug("an event is lost, too many wait: {}", event.reason());
            return;
        }
        try {
            thread.execute(() -> write(tree));
        } catch (RejectedExecutionException e) {
            LOG.debug("an event is lost, the operator ends: {}", event.reason());
        }
    }

    private void write(ObjectNode event) {
        String namespace = event.path("metadata").path("namespace").asText();
        String name = event.path("metadata").path("name").asText();
        String key = namespace + "/" + name;
        try {
            Integer count = counts.get(key);
            if (count == null) {
                try {
                    client.create(ResourceKinds.EVENT, event);
                    counts.put(key, 1);
                    return;
                } catch (ServingException e) {
                    if (e.code() != ErrorCode.ALREADY_EXISTS) {
                        throw e;
                    }
                    ObjectNode old = client.get(ResourceKinds.EVENT, namespace, name);
                    count = old == null ? 0 : old.path("count").asInt(1);
                }
            }
            ObjectNode repeated = JsonNodeFactory.instance.objectNode();
            repeated.put("count", count + 1)
                    .put("lastTimestamp", event.path("lastTimestamp").asText());
            client.merge(ResourceKinds.EVENT, namespace, name, repeated);
            counts.put(key, count + 1);
        } catch (ServingException e) {
            counts.remove(key);
            LOG.debug("an event is lost: {}", e.describe());
        }
    }

    /** Drops the events that wait. */
    @Override
    public void close() {
        thread.shutdownNow();
    }
}
