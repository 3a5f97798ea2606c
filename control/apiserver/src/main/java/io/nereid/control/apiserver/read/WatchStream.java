// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.api.store.ResourceStore.Watch;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The response stream of one watch, with one event per line. With a selector, events depend on what the client has
 * seen: a resource that starts to match is ADDED for the client, and one that stops to match is DELETED. Thread-safe:
 * one lock guards its state.
 */
final class WatchStream {
    /** The maximum number of unsent bytes; a slower client is disconnected and must list again. */
    private static final long MOST_UNSENT = 16L << 20;

    @GuardedBy("this") private final ResponseStream stream;

    private final ResourceSelector selectors;
    private final Function<JsonNode, JsonNode> form;

    @GuardedBy("this") private final Set<String> known;

    private final boolean initialEnd;
    private final long replayed;

    @GuardedBy("this") private long last;

    @GuardedBy("this") private boolean ended;

    @GuardedBy("this") private @Nullable Watch watch;

    @GuardedBy("this") private @Nullable Future<?> timeout;

    @GuardedBy("this") private @Nullable Future<?> bookmarks;

    /**
     * Creates a stream.
     *
     * @param form converts a resource to the object of an event
     * @param known uids of the matching resources that the client has seen
     * @param replayed changes up to this version are older than {@code known}, so it is unknown whether the client has
     *     seen a resource; a superfluous DELETED event is sent rather than none
     * @param initialEnd whether the first bookmark marks the end of the initial events
     */
    WatchStream(
            ResponseStream stream,
            ResourceSelector selectors,
            Function<JsonNode, JsonNode> form,
            Set<String> known,
            long replayed,
            boolean initialEnd,
            long last) {
        this.stream = stream;
        this.selectors = selectors;
        this.form = form;
        this.known = known;
        this.replayed = replayed;
        this.initialEnd = initialEnd;
        this.last = last;
    }

    /** Sets the watch and the timers that end with the stream. */
    synchronized void with(Watch watch, @Nullable Future<?> timeout, @Nullable Future<?> bookmarks) {
        this.watch = watch;
        this.timeout = timeout;
        this.bookmarks = bookmarks;
        if (ended) {
            release();
        }
    }

    /** Sends an event for a change of the store, if it concerns the client. */
    synchronized void change(Change change) {
        if (ended) {
            return;
        }
        last = Math.max(last, change.version());
        JsonNode resource = change.resource();
        if (selectors.selectsAll()) {
            send(change.kind().name(), form.apply(resource));
            return;
        }
        String uid = resource.path("metadata").path("uid").asText();
        boolean before = known.contains(uid);
        boolean now = selectors.matches(resource) && change.kind() != Change.Kind.DELETED;
        if (now) {
            known.add(uid);
            send(before ? "MODIFIED" : "ADDED", form.apply(resource));
        } else if (before || change.version() <= replayed) {
            known.remove(uid);
            send("DELETED", form.apply(resource));
        } else if (change.kind() == Change.Kind.DELETED && selectors.matches(resource)) {
            send("DELETED", form.apply(resource));
        }
    }

    /**
     * Sends a bookmark: the latest version, from which the client can resume although no matching resource has changed.
     */
    synchronized void bookmark(ObjectNode resource, boolean first) {
        if (ended) {
            return;
        }
        ObjectNode metadata = resource.withObject("/metadata");
        metadata.put("resourceVersion", Long.toString(last));
        metadata.putNull("creationTimestamp");
        if (first && initialEnd) {
            metadata.withObject("/annotations").put("k8s.io/initial-events-end", "true");
        }
        send("BOOKMARK", resource);
    }

    @GuardedBy("this") private void send(String type, JsonNode object) {
        ObjectNode event = ApiResponse.JSON.createObjectNode();
        event.put("type", type);
        event.set("object", object);
        byte[] bytes = (event + "\n").getBytes(StandardCharsets.UTF_8);
        stream.send(new ResponseBody(bytes, bytes.length));
        if (stream.unsentBytes() > MOST_UNSENT) {
            abort();
        }
    }

    /** Ends the response normally; the client watches again from its last version. */
    synchronized void end() {
        if (!ended) {
            ended = true;
            stream.end();
            release();
        }
    }

    /**
     * Aborts the response, because the client has disconnected or is too slow. The transport must be notified too,
     * because it counts the request as running until then.
     */
    synchronized void abort() {
        if (!ended) {
            ended = true;
            stream.abort();
            release();
        }
    }

    @GuardedBy("this") private void release() {
        if (watch != null) {
            watch.close();
        }
        if (timeout != null) {
            timeout.cancel(false);
        }
        if (bookmarks != null) {
            bookmarks.cancel(false);
        }
    }
}
