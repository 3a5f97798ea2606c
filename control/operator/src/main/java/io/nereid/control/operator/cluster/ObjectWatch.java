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

    /** After which time without a bookmark a connection counts as dead. */
    static final Duration SILENCE = Duration.ofSeconds(150);

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
    private final @Nullable String namespace;
    private final String query;
    private final Target target;
    private final Executor executor;
    private final Duration silence;
    private final Clock clock = Clock.system();

    @GuardedBy("this") private final Backoff pauses = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);

    private volatile boolean closed;

    /** The version up to which everything is known. */
    private volatile String version = "";

    @GuardedBy("this") private @Nullable Stream open;

    /**
     * Creates a watch without starting it.
     *
     * @param selection a query such as {@code labelSelector=a}, encoded; empty for all objects
     * @param executor runs what blocks
     * @param silence how long a watch may be without a sign of the API server
     */
    ObjectWatch(
            ApiRequests requests,
            ResourceKind kind,
            @Nullable String namespace,
            String selection,
            Target target,
            Executor executor,
            Duration silence) {
        this.requests = requests;
        this.kind = kind;
        this.namespace = namespace;
        this.query = selection.isEmpty() ? "" : selection + "&";
        this.target = target;
        this.executor = executor;
        this.silence = silence;
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
        String listed = requests.list(kind, namespace, query, PAGE, object -> {
            keys.add(ObjectCache.key(object));
            target.seen(object);
        });
        target.listed(keys, PackedObject.version(listed));
        version = listed;
    }

    private void open() {
        Stream stream = new Stream();
        synchronized (this) {
            if (closed) {
                return;
            }
            open = stream;
        }
        // From now on: an answer may never come.
        stream.check();
        CompletableFuture<HttpResponse<AsyncBody>> answer;
        try {
            answer = requests.http()
                    .consumeBytes(
                            requests.request(ApiRequests.path(kind, namespace) + "?" + query
                                            + "watch=true&allowWatchBookmarks=true&timeoutSeconds=" + WATCH_SECONDS
                                            + "&resourceVersion=" + ApiRequests.encoded(version))
                                    .forStreaming()
                                    .build(),
                            stream);
        } catch (RuntimeException e) {
            ended(stream, e);
            return;
        }
        stream.answer = answer;
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
        Duration pause;
        synchronized (this) {
            if (closed || open != stream) {
                return;
            }
            open = null;
            if (stream.heard) {
                pauses.reset();
            }
            pause = error == null && stream.heard ? Duration.ZERO : pauses.next();
        }
        if (error != null) {
            LOG.warn("the watch of {} is opened again: {}", kind.plural(), error.toString());
        }
        again(stream.expired, pause);
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
                    Duration next;
                    synchronized (this) {
                        next = pauses.next();
                    }
                    again(true, next);
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

        /** The answer that is waited for. */
        volatile @Nullable CompletableFuture<?> answer;

        private volatile @Nullable AsyncBody body;
        private volatile boolean cancelled;
        private volatile long last = clock.nanos();

        /** Whether an object or a bookmark has arrived. */
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
            source.consume();
        }

        void cancel() {
            cancelled = true;
            AsyncBody source = body;
            CompletableFuture<?> awaited = answer;
            if (source != null) {
                source.cancel();
            } else if (awaited != null) {
                awaited.cancel(true);
            }
        }

        /** Gives up when nothing has been heard for long: the connection may be dead without an end. */
        void check() {
            CompletableFuture.delayedExecutor(silence.toMillis() / 3, TimeUnit.MILLISECONDS, executor)
                    .execute(() -> {
                        synchronized (ObjectWatch.this) {
                            if (open != this) {
                                return;
                            }
                        }
                        if (clock.nanos() - last < silence.toNanos()) {
                            check();
                            return;
                        }
                        cancel();
                        ended(this, new IOException("no sign of the API server for " + silence.toMillis() + " ms"));
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
            JsonNode object = event.path("object");
            switch (event.path("type").asText()) {
                case "ADDED", "MODIFIED" -> target.seen(ApiRequests.typed(kind, object));
                case "DELETED" -> target.ended(ApiRequests.typed(kind, object));
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
            heard = true;
            version = object.path("metadata").path("resourceVersion").asText(version);
        }
    }
}
