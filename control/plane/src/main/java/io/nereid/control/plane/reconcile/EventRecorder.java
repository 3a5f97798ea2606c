// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.reconcile;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Plan.Event;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes Kubernetes events to the resource store. A repeated event increases the count of the first one; events older
 * than an hour, and the oldest beyond a few thousand, are removed. Thread-safe.
 */
public final class EventRecorder implements EventSink {
    public static final ResourceStore.Type EVENTS = new ResourceStore.Type("", "events");
    private static final Logger LOG = LoggerFactory.getLogger(EventRecorder.class);
    private static final Duration KEPT = Duration.ofHours(1);
    private static final int MOST = 4_000;
    private static final int MAX_MESSAGE = 1_024;

    private final ResourceStore store;
    private final Clock clock;

    public EventRecorder(ResourceStore store, Clock clock) {
        this.store = store;
        this.clock = clock;
    }

    /** Records an event about a resource. A failure to write it is logged only. */
    @Override
    public void record(ObjectNode about, Event event) {
        try {
            write(about, event);
        } catch (ServingException e) {
            LOG.debug("an event is lost: {}", e.describe());
        }
    }

    private void write(ObjectNode about, Event event) {
        ObjectNode tree = event(about, event, Instant.ofEpochMilli(clock.millis()));
        JsonNode metadata = tree.path("metadata");
        ObjectNode old = store.get(new ResourceStore.Key(
                EVENTS,
                metadata.path("namespace").asText(),
                metadata.path("name").asText()));
        if (old == null) {
            store.create(EVENTS, tree);
            return;
        }
        String now = tree.path("lastTimestamp").asText();
        if (!old.path("lastTimestamp").asText().equals(now)) {
            old.put("count", old.path("count").asInt(1) + 1);
            old.put("lastTimestamp", now);
            store.update(EVENTS, old, null);
        }
    }

    /**
     * Returns the resource of an event that happens for the first time. The same event gets the same name, so that
     * repetitions are found by it.
     */
    public static ObjectNode event(ObjectNode about, Event event, Instant now) {
        String namespace = about.path("metadata").path("namespace").asText("default");
        String name = about.path("metadata").path("name").asText();
        String uid = about.path("metadata").path("uid").asText();
        String message = event.message().length() > MAX_MESSAGE
                ? event.message().substring(0, MAX_MESSAGE - 3) + "..."
                : event.message();
        String key = name + "."
                + String.format(
                        Locale.ROOT,
                        "%016x",
                        hash(about.path("kind").asText() + uid + event.type() + event.reason() + message));
        String time = now.truncatedTo(ChronoUnit.SECONDS).toString();
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("apiVersion", "v1");
        tree.put("kind", "Event");
        tree.putObject("metadata").put("name", key).put("namespace", namespace);
        tree.putObject("involvedObject")
                .put("apiVersion", about.path("apiVersion").asText())
                .put("kind", about.path("kind").asText())
                .put("namespace", namespace)
                .put("name", name)
                .put("uid", uid);
        tree.put("type", event.type());
        tree.put("reason", event.reason());
        tree.put("message", message);
        tree.put("count", 1);
        tree.put("firstTimestamp", time);
        tree.put("lastTimestamp", time);
        tree.putObject("source").put("component", "nereid");
        tree.put("reportingComponent", "nereid");
        tree.put("reportingInstance", "");
        return tree;
    }

    /** FNV-1a. */
    private static long hash(String text) {
        long h = 0xcbf29ce484222325L;
        for (int i = 0; i < text.length(); i++) {
            h = (h ^ text.charAt(i)) * 0x100000001b3L;
        }
        return h;
    }

    /** Removes expired events, and the oldest events beyond the limit. */
    @Override
    public void sweep() {
        List<ObjectNode> all = store.list(EVENTS, null).items().stream()
                .sorted(Comparator.comparing(e -> e.path("lastTimestamp").asText()))
                .toList();
        String until = Instant.ofEpochMilli(clock.millis())
                .minus(KEPT)
                .truncatedTo(ChronoUnit.SECONDS)
                .toString();
        for (int i = 0; i < all.size(); i++) {
            ObjectNode event = all.get(i);
            if (all.size() - i <= MOST && event.path("lastTimestamp").asText().compareTo(until) >= 0) {
                return;
            }
            try {
                store.delete(
                        new ResourceStore.Key(
                                EVENTS,
                                event.path("metadata").path("namespace").asText(),
                                event.path("metadata").path("name").asText()),
                        null);
            } catch (ServingException e) {
                if (e.code() != ErrorCode.NOT_FOUND) {
                    throw e;
                }
            }
        }
    }
}
