// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.ResourceStore.Change;
import io.nereid.control.core.ResourceStore.Watch;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** One client that hears of changes, an event a line. Thread-safe: one lock guards it. */
final class WatchStream {
    /** A client that is so far behind is cut off; it lists again. */
    private static final long MOST_UNSENT = 16L << 20;

    private final ResponseStream stream;
    private final Selectors selectors;
    private final Function<JsonNode, JsonNode> form;
    private final Set<String> known;
    private final boolean initialEnd;
    private final long replayed;
    private long last;
    private boolean ended;
    private @Nullable Watch watch;
    private @Nullable Future<?> timeout;
    private @Nullable Future<?> bookmarks;

    /**
     * A stream on which nothing was sent yet.
     *
     * @param form what an event carries of a resource
     * @param known uids of the resources that the client has seen and that are selected
     * @param replayed up to this version changes are older than {@code known}; whether the client has seen a resource is
     *     not known then, and it is told rather once too often that one is gone
     * @param initialEnd whether the next bookmark says that everything that was there has been told
     */
    WatchStream(
            ResponseStream stream,
            Selectors selectors,
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

    /** What is to end with the stream. */
    synchronized void with(Watch watch, @Nullable Future<?> timeout, @Nullable Future<?> bookmarks) {
        this.watch = watch;
        this.timeout = timeout;
        this.bookmarks = bookmarks;
        if (ended) {
            release();
        }
    }

    /** A change of the store. */
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

    /** Tells how far the client has come although nothing of its concern has changed. */
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

    private void send(String type, JsonNode object) {
        ObjectNode event = Answer.JSON.createObjectNode();
        event.put("type", type);
        event.set("object", object);
        byte[] bytes = (event + "\n").getBytes(StandardCharsets.UTF_8);
        stream.send(new ResponseBody(bytes, bytes.length));
        if (stream.unsentBytes() > MOST_UNSENT) {
            gone();
        }
    }

    /** Ends in good order; the client watches again from where it is. */
    synchronized void end() {
        if (!ended) {
            ended = true;
            stream.end();
            release();
        }
    }

    /** Nobody listens any more. The transport is told too: until then the request counts as one that is under way. */
    synchronized void gone() {
        if (!ended) {
            ended = true;
            stream.abort();
            release();
        }
    }

    private void release() {
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
