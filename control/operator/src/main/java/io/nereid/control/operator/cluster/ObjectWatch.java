// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.fabric8.kubernetes.client.http.AsyncBody;
import io.fabric8.kubernetes.client.http.HttpResponse;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.plane.loop.Backoff;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows the objects of one kind: lists them in pages, then watches from the version of the list. A watch that ends is opened
 * again at the version that it has come to; when the API server does not have that version any more, everything is listed again.
 * A watch of which nothing was heard for long is given up: the API server sends a bookmark each minute.
 *
 * <p>See the Kubernetes documentation, API Concepts, Efficient detection of changes. The target is called by one thread at a
 * time.
 */
final class ObjectWatch implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ObjectWatch.class);
    private static final int PAGE = 50;
    private static final Duration FIRST_PAUSE = Duration.ofMillis(200);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);
    private static final Duration SILENCE = Duration.ofSeconds(150);

    /** The API server ends a watch then; it takes five to ten minutes by itself. */
    private static final int WATCH_SECONDS = 540;

    /** How long a right or a kind may be missing at the start: an installation makes them at the same time. */
    private static final Duration INSTALLATION = Duration.ofSeconds(10);

    private static final Duration AGAIN = Duration.ofMillis(500);

    /** Receives what exists and what changes. */
    interface Target {
        /** An object exists in this state. */
        void seen(ObjectNode object);

        /** An object is gone. */
        void ended(ObjectNode object);

        /** Up to this version, no others existed than these, by {@code namespace/name}. */
        void listed(Set<String> keys, long version);
    }

    private final ApiRequests requests;
    private final ResourceKind kind;
    private final String path;
    private final Target target;
    private final Executor executor;
    private final Clock clock = Clock.system();
    private final Backoff pauses = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
    private volatile boolean closed;

    /** The version up to which everything is known. */
    private volatile String version = "";

    @GuardedBy("this") private @Nullable Stream open;

    /**
     * Creates a watch without starting it.
     *
     * @param selection a query such as {@code labelSelector=a}, encoded; empty for all objects
     * @param executor runs what blocks
     */
    ObjectWatch(
            ApiRequests requests,
            ResourceKind kind,
            @Nullable String namespace,
            String selection,
            Target target,
            Executor executor) {
        this.requests = requests;
        this.kind = kind;
        this.path = ApiRequests.path(kind, namespace) + "?" + (selection.isEmpty() ? "" : selection + "&");
        this.target = target;
        this.executor = executor;
    }

    /**
     * Lists what exists, and watches it from then on.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    void start(Duration limit) {
        long begin = clock.nanos();
        while (true) {
            try {
                list();
                break;
            } catch (ServingException e) {
                Duration most = e.code() == ErrorCode.UNAVAILABLE ? limit : INSTALLATION;
                if (clock.nanos() - begin >= Math.min(most.toNanos(), limit.toNanos())) {
                    throw ServingException.wrap(
                            e.code() == ErrorCode.PERMISSION_DENIED
                                    ? ErrorCode.PERMISSION_DENIED
                                    : ErrorCode.UNAVAILABLE,
                            kind.plural() + " could not be listed: " + e.getMessage(),
                            e);
                }
                LockSupport.parkNanos(AGAIN.toNanos());
            }
            if (Thread.currentThread().isInterrupted()) {
                throw ServingException.of(ErrorCode.CANCELLED, "interrupted while " + kind.plural() + " were listed");
            }
        }
        open();
    }

    private void list() {
        Set<String> keys = new HashSet<>();
        String listed = "";
        String next = "";
        do {
            ObjectNode page = requests.send(
                    kind.plural(),
                    "GET",
                    path + "limit=" + PAGE + (next.isEmpty() ? "" : "&continue=" + ApiRequests.encoded(next)),
                    ApiRequests.JSON_TYPE,
                    null);
            for (JsonNode item : page.path("items")) {
                ObjectNode object = typed((ObjectNode) item);
                keys.add(ObjectCache.key(object));
                target.seen(object);
            }
            listed = page.path("metadata").path("resourceVersion").asText();
            next = page.path("metadata").path("continue").asText("");
        } while (!next.isEmpty());
        target.listed(keys, PackedObject.version(listed));
        version = listed;
    }

    /** The elements of a list do not have their kind. */
    private ObjectNode typed(ObjectNode object) {
        object.put("apiVersion", kind.apiVersion());
        object.put("kind", kind.kind());
        return object;
    }

    private void open() {
        Stream stream = new Stream();
        synchronized (this) {
            if (closed) {
                return;
            }
            open = stream;
        }
        CompletableFuture<HttpResponse<AsyncBody>> answer = requests.http()
                .consumeBytes(
                        requests.request(path + "watch=true&allowWatchBookmarks=true&timeoutSeconds=" + WATCH_SECONDS
                                        + "&resourceVersion=" + ApiRequests.encoded(version))
                                .forStreaming()
                                .build(),
                        stream);
        var unused = answer.whenComplete((response, error) -> {
            if (response == null) {
                ended(stream, error);
            } else if (!response.isSuccessful()) {
                response.body().cancel();
                stream.expired = response.code() == 410;
                ended(stream, new IOException("the API server answered with the status " + response.code()));
            } else {
                stream.start(response.body());
            }
        });
    }

    /** A watch has ended: the next one follows, after a pause unless it has lasted. */
    private void ended(Stream stream, @Nullable Throwable error) {
        synchronized (this) {
            if (closed || open != stream) {
                return;
            }
            open = null;
        }
        if (stream.heard) {
            pauses.reset();
        }
        if (error != null) {
            LOG.warn("the watch of {} is opened again: {}", kind.plural(), error.toString());
        }
        again(stream.expired, error == null && stream.heard ? Duration.ZERO : pauses.next());
    }

    private void again(boolean list, Duration pause) {
        Executor later = pause.isZero()
                ? executor
                : CompletableFuture.delayedExecutor(pause.toMillis(), TimeUnit.MILLISECONDS, executor);
        later.execute(() -> {
            if (closed) {
                return;
            }
            if (list) {
                try {
                    list();
                } catch (RuntimeException e) {
                    LOG.warn(
                            "{} are listed again: {}",
                            kind.plural(),
                            ServingException.from(e).describe());
                    again(true, pauses.next());
                    return;
                }
            }
            open();
        });
    }

    @Override
    public void close() {
        Stream last;
        synchronized (this) {
            closed = true;
            last = open;
            open = null;
        }
        if (last != null) {
            last.cancel();
        }
    }

    /** One watch: lines of JSON, each an event. Called by one thread at a time, but for {@link #cancel}. */
    private final class Stream implements AsyncBody.Consumer<List<ByteBuffer>> {
        /** The beginning of a line whose end has not arrived. */
        private final ByteArrayOutputStream part = new ByteArrayOutputStream();

        private volatile @Nullable AsyncBody body;
        private volatile boolean cancelled;
        private volatile long last = clock.nanos();

        /** Whether an event has arrived. */
        volatile boolean heard;

        /** Whether everything must be listed again. */
        volatile boolean expired;

        void start(AsyncBody source) {
            body = source;
            if (cancelled) {
                source.cancel();
                return;
            }
            var unused = source.done().whenComplete((done, error) -> ended(this, error));
            last = clock.nanos();
            check();
            source.consume();
        }

        void cancel() {
            cancelled = true;
            AsyncBody source = body;
            if (source != null) {
                source.cancel();
            }
        }

        /** Gives up when nothing has been heard for long: the connection may be dead without an end. */
        private void check() {
            CompletableFuture.delayedExecutor(SILENCE.toMillis() / 3, TimeUnit.MILLISECONDS, executor)
                    .execute(() -> {
                        synchronized (ObjectWatch.this) {
                            if (open != this) {
                                return;
                            }
                        }
                        if (clock.nanos() - last < SILENCE.toNanos()) {
                            check();
                            return;
                        }
                        cancel();
                        ended(this, new IOException("nothing was heard for " + SILENCE.toSeconds() + " s"));
                    });
        }

        @Override
        public void consume(List<ByteBuffer> buffers, AsyncBody source) throws IOException {
            last = clock.nanos();
            for (ByteBuffer buffer : buffers) {
                take(buffer);
            }
            if (expired) {
                source.cancel();
                ended(this, null);
                return;
            }
            source.consume();
        }

        private void take(ByteBuffer buffer) throws IOException {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            int from = 0;
            for (int i = 0; i < bytes.length && !expired; i++) {
                if (bytes[i] != '\n') {
                    continue;
                }
                if (part.size() == 0) {
                    event(PackedObject.JSON.readTree(bytes, from, i - from));
                } else {
                    part.write(bytes, from, i - from);
                    event(PackedObject.JSON.readTree(part.toByteArray()));
                    part.reset();
                }
                from = i + 1;
            }
            part.write(bytes, from, bytes.length - from);
        }

        private void event(JsonNode event) {
            synchronized (ObjectWatch.this) {
                if (open != this) {
                    return;
                }
            }
            heard = true;
            JsonNode object = event.path("object");
            switch (event.path("type").asText()) {
                case "ADDED", "MODIFIED" -> target.seen(typed((ObjectNode) object));
                case "DELETED" -> target.ended(typed((ObjectNode) object));
                case "BOOKMARK" -> {}
                default -> {
                    // The version is too old, or the API server has trouble of its own.
                    LOG.info(
                            "{} are listed again: {}",
                            kind.plural(),
                            object.path("message").asText(event.path("type").asText()));
                    expired = true;
                    return;
                }
            }
            version = object.path("metadata").path("resourceVersion").asText(version);
        }
    }
}
