// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.payload.PayloadMetrics.Loss;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.UpstreamClient.Header;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The payload log of one revision. The request path only copies the bodies and queues them; redaction, encoding and
 * sending happen on other threads. The queue is bounded in events and bytes: beyond that, events are dropped and
 * counted, and requests are never delayed. Thread-safe.
 *
 * <pre>{@code
 * PayloadLog log = logs.open(settings, origin);
 * PayloadLog.Recorder request = log.begin("http", "POST", exchange::header, () -> headers);
 * if (request != null) {
 *     request.request("application/json", body);
 *     request.response("application/json", responseBody);
 *     request.end(200, 0);
 * }
 * }</pre>
 */
public final class PayloadLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PayloadLog.class);
    private static final int MOST_UNDER_WAY = 5;
    private static final long FIRST_PAUSE_MILLIS = 200;
    private static final long LONGEST_PAUSE_MILLIS = 10_000;
    private static final long WARNING_INTERVAL_MILLIS = 60_000;
    private static final byte[] NOTHING = {};
    /** Errors after which a retry cannot succeed. */
    private static final Set<ErrorCode> PERMANENT = Set.of(
            ErrorCode.INVALID_ARGUMENT, ErrorCode.UNAUTHENTICATED, ErrorCode.PERMISSION_DENIED, ErrorCode.NOT_FOUND);

    private final PayloadSettings settings;
    private final PayloadOrigin origin;
    private final EventSink sink;
    private final Clock clock;
    private final Executor pool;
    private final ScheduledExecutorService timer;
    private final DoubleSupplier random;
    private final Redaction redaction;
    private final String annotations;
    private final int mostEvents;
    private final PayloadMetrics metrics;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final Object lock = new Object();

    @GuardedBy("lock") private final ArrayDeque<PayloadEvent> queue = new ArrayDeque<>();
    /** Deliveries that are under way or wait for a retry. */
    @GuardedBy("lock") private int underWay;
    /** Events that are queued or under way. */
    @GuardedBy("lock") private int events;

    /** Bytes of the bodies of those events, and of responses that are still being received. */
    @GuardedBy("lock") private long bytes;

    @GuardedBy("lock") private boolean flush;

    @GuardedBy("lock") private boolean closed;

    @GuardedBy("lock") private @Nullable Future<?> due;

    @GuardedBy("lock") private long warnedAt = Long.MIN_VALUE;

    PayloadLog(
            PayloadSettings settings,
            PayloadOrigin origin,
            EventSink sink,
            PayloadMetrics metrics,
            Clock clock,
            Executor pool,
            ScheduledExecutorService timer,
            DoubleSupplier random) {
        this.settings = settings;
        this.origin = origin;
        this.sink = sink;
        this.metrics = metrics;
        this.clock = clock;
        this.pool = pool;
        this.timer = timer;
        this.random = random;
        this.redaction = settings.redact().isEmpty() ? Redaction.NONE : Redaction.of(settings.redact());
        this.annotations = selected(settings.metadataAnnotations(), origin.annotations());
        this.mostEvents = Math.max(settings.queueEvents(), settings.batchSize());
    }

    private static String selected(List<String> names, Map<String, String> all) {
        StringBuilder json = new StringBuilder();
        for (String name : names) {
            String value = all.get(name);
            if (value != null) {
                json.append(json.isEmpty() ? "{" : ",")
                        .append(HttpReply.quote(name))
                        .append(':')
                        .append(HttpReply.quote(value));
            }
        }
        return json.isEmpty() ? "" : json.append('}').toString();
    }

    /**
     * Begins to log a request. Any thread; never blocks.
     *
     * @param transport {@code http} or {@code grpc}
     * @param method the verb; requests other than {@code POST} are not logged
     * @param header the first value of a header by lower-case name
     * @param headers all headers, with names in lower case
     * @return receives the bodies; null when the request is not logged
     */
    public @Nullable Recorder begin(
            String transport,
            String method,
            Function<String, @Nullable String> header,
            Supplier<List<Header>> headers) {
        if (!method.equals("POST")) {
            return null;
        }
        if (settings.samplingRate() < 1 && random.getAsDouble() >= settings.samplingRate()) {
            metrics.sampledOut.increment();
            return null;
        }
        String given = header.apply("ce-id");
        String id = given == null || given.isEmpty() ? UUID.randomUUID().toString() : given;
        String metadata = settings.metadataHeaders().isEmpty() ? "" : metadata(headers.get());
        return new Recorder(id, transport.equals("grpc"), metadata);
    }

    private String metadata(List<Header> headers) {
        StringBuilder json = new StringBuilder();
        for (String name : settings.metadataHeaders()) {
            String lower = name.toLowerCase(Locale.ROOT);
            StringBuilder values = new StringBuilder();
            for (Header header : headers) {
                if (header.name().equals(lower)) {
                    String value = redaction.header(lower) ? Redaction.REDACTED : header.value();
                    values.append(values.isEmpty() ? "" : ",").append(HttpReply.quote(value));
                }
            }
            if (!values.isEmpty()) {
                json.append(json.isEmpty() ? "{" : ",")
                        .append(HttpReply.quote(name))
                        .append(":[")
                        .append(values)
                        .append(']');
            }
        }
        return json.isEmpty() ? "" : json.append('}').toString();
    }

    // ---- the queue ----

    private boolean reserve(int size) {
        synchronized (lock) {
            if (bytes + size <= settings.queueBytes()) {
                bytes += size;
                return true;
            }
            // A batch that waits for more events holds memory that new events need: send it now.
            flush = !queue.isEmpty();
        }
        pump();
        return false;
    }

    private void release(long size) {
        synchronized (lock) {
            bytes -= size;
        }
    }

    /** Queues an event whose bytes are reserved. */
    private void offer(PayloadEvent event) {
        Loss loss = null;
        synchronized (lock) {
            if (closed) {
                loss = Loss.CLOSED;
            } else if (events >= mostEvents) {
                loss = Loss.QUEUE_FULL;
            } else {
                events++;
                queue.add(event);
            }
            if (loss != null) {
                bytes -= event.data().length;
            }
        }
        if (loss == null) {
            pump();
        } else {
            lost(loss, 1, null);
        }
    }

    /** Counts lost events, and logs a warning at most once a minute. */
    private void lost(Loss loss, int count, @Nullable Throwable cause) {
        metrics.lost(loss).add(count);
        long now = clock.millis();
        synchronized (lock) {
            if (warnedAt != Long.MIN_VALUE && now - warnedAt < WARNING_INTERVAL_MILLIS) {
                return;
            }
            warnedAt = now;
        }
        LOG.warn(
                "payload log of {}/{} to {}: lost {} event(s) ({}){}; {} lost so far",
                origin.namespace(),
                origin.revision(),
                settings.url(),
                count,
                PayloadMetrics.label(loss),
                cause == null ? "" : ": " + cause.getMessage(),
                metrics.lost());
    }

    /** Starts as many deliveries as are allowed at once. Any thread. */
    private void pump() {
        while (true) {
            Delivery next;
            synchronized (lock) {
                List<PayloadEvent> batch = underWay < MOST_UNDER_WAY ? batch() : List.of();
                if (batch.isEmpty()) {
                    return;
                }
                underWay++;
                next = new Delivery(batch);
            }
            execute(next);
        }
    }

    private void execute(Delivery delivery) {
        try {
            pool.execute(delivery::attempt);
        } catch (RejectedExecutionException e) {
            delivery.end(Loss.CLOSED, null);
        }
    }

    /**
     * Takes the next batch from the queue. Empty while a batch is incomplete, unless a flush or {@link #close} sends
     * incomplete batches. Call with the lock held.
     */
    @GuardedBy("lock") private List<PayloadEvent> batch() {
        int most = sink.batches() ? settings.batchSize() : 1;
        if (queue.isEmpty()) {
            flush = false;
            return List.of();
        }
        if (queue.size() < most && !flush && !closed) {
            if (settings.strategy() == PayloadSettings.Strategy.TIMED && due == null) {
                due = later(this::interval, settings.batchInterval().toMillis());
            }
            return List.of();
        }
        List<PayloadEvent> batch = new ArrayList<>();
        while (batch.size() < most && !queue.isEmpty()) {
            batch.add(queue.remove());
        }
        if (due != null) {
            due.cancel(false);
            due = null;
        }
        flush &= !queue.isEmpty();
        return batch;
    }

    /** Schedules a task; null when the timer has been shut down. */
    private @Nullable Future<?> later(Runnable then, long millis) {
        try {
            return timer.schedule(then, millis, TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException e) {
            return null;
        }
    }

    private void interval() {
        synchronized (lock) {
            due = null;
            flush = true;
        }
        pump();
    }

    /** Stops accepting events and sends the queued ones. Returns at once. */
    @Override
    public void close() {
        synchronized (lock) {
            closed = true;
            if (events == 0) {
                drained.complete(null);
            }
        }
        pump();
    }

    /** Completes after {@link #close}, when every event has been sent or lost. */
    CompletionStage<Void> drained() {
        return drained;
    }

    // ---- metrics ----

    PayloadMetrics metrics() {
        return metrics;
    }

    PayloadOrigin origin() {
        return origin;
    }

    int waitingEvents() {
        synchronized (lock) {
            return events;
        }
    }

    long waitingBytes() {
        synchronized (lock) {
            return bytes;
        }
    }

    // ---- sending ----

    private RedactedEvent outgoing(PayloadEvent event) {
        Map<String, String> attributes = new LinkedHashMap<>();
        attributes.put("id", event.id());
        attributes.put("type", "org.kubeflow.serving.inference." + event.kind());
        attributes.put("source", origin.source());
        attributes.put("time", event.time().toString());
        attributes.put("inferenceservicename", origin.service());
        attributes.put("namespace", origin.namespace());
        attributes.put("component", origin.component());
        put(attributes, "endpoint", origin.endpoint());
        put(attributes, "metadata", event.metadata());
        put(attributes, "annotations", annotations);
        attributes.put("recordedtime", Instant.ofEpochMilli(clock.millis()).toString());
        put(attributes, event.grpc() ? "grpcstatus" : "status", event.status());
        if (event.index() > 0) {
            attributes.put("messageindex", Integer.toString(event.index()));
        }
        byte[] clean = redaction.clean(event.data());
        if (clean == null) {
            metrics.withheld.increment();
            attributes.put("withheld", "unreadable");
        }
        return new RedactedEvent(event, attributes, clean == null ? NOTHING : clean);
    }

    private static void put(Map<String, String> attributes, String name, String value) {
        if (!value.isEmpty()) {
            attributes.put(name, value);
        }
    }

    /** A batch that is being sent, until it is sent or lost. Confined to one thread at a time. */
    private final class Delivery {
        private final List<PayloadEvent> batch;
        private List<RedactedEvent> made = List.of();
        private int tries;

        Delivery(List<PayloadEvent> batch) {
            this.batch = batch;
        }

        void attempt() {
            CompletionStage<Void> sending;
            try {
                if (made.isEmpty()) {
                    made = batch.stream().map(PayloadLog.this::outgoing).toList();
                }
                sending = sink.send(made);
            } catch (RuntimeException e) {
                failed(e);
                return;
            }
            sending.whenComplete((done, failure) -> {
                if (failure == null) {
                    end(null, null);
                } else {
                    failed(
                            failure instanceof CompletionException && failure.getCause() != null
                                    ? failure.getCause()
                                    : failure);
                }
            });
        }

        /** Schedules a retry with exponential backoff and jitter, or gives the batch up. */
        private void failed(Throwable failure) {
            if (failure instanceof RejectedExecutionException) {
                end(Loss.CLOSED, failure);
                return;
            }
            boolean permanent = !(failure instanceof ServingException e) || PERMANENT.contains(e.code());
            if (permanent || tries >= settings.retries()) {
                end(permanent ? Loss.REFUSED : Loss.UNDELIVERED, failure);
                return;
            }
            long pause = Math.min(LONGEST_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(tries, 16));
            tries++;
            metrics.retries.increment();
            long jittered = pause / 2 + ThreadLocalRandom.current().nextLong(pause / 2 + 1);
            if (later(() -> execute(this), jittered) == null) {
                end(Loss.CLOSED, failure);
            }
        }

        void end(@Nullable Loss loss, @Nullable Throwable cause) {
            long size = 0;
            for (PayloadEvent event : batch) {
                size += event.data().length;
            }
            if (loss == null) {
                metrics.sent.add(batch.size());
                metrics.sentBytes.add(size);
            } else {
                lost(loss, batch.size(), cause);
            }
            boolean last;
            synchronized (lock) {
                underWay--;
                events -= batch.size();
                bytes -= size;
                last = closed && events == 0;
            }
            if (last) {
                drained.complete(null);
            } else {
                pump();
            }
        }
    }

    // ---- recording ----

    /**
     * Records one request. Call it from one thread at a time; call {@link #end} last and once. An HTTP response that
     * arrives in pieces is one event; each message of a gRPC stream is an event of its own, and the last one has the
     * status.
     */
    public final class Recorder {
        private final String id;
        private final boolean grpc;
        private final String metadata;
        private int requests;
        private int responses;
        private byte[] held = NOTHING;
        private int length;
        private String type = "";
        private boolean any;
        private boolean lost;

        private Recorder(String id, boolean grpc, String metadata) {
            this.id = id;
            this.grpc = grpc;
            this.metadata = metadata;
        }

        /** Records the body of the request, or one message of it. Takes over the body's ownership. */
        public void request(String contentType, MemoryRegion body) {
            int size = body.size();
            if (!settings.requests()) {
                body.release();
            } else if (reserve(size)) {
                byte[] copy = copy(body, NOTHING, 0);
                offer(new PayloadEvent(id, true, requests++, now(), contentType, copy, metadata, "", grpc));
            } else {
                body.release();
                lost(Loss.QUEUE_BYTES, 1, null);
            }
        }

        /** Records a piece or a message of the response. Takes over the body's ownership. */
        public void response(String contentType, MemoryRegion body) {
            if (!settings.responses() || lost) {
                body.release();
                return;
            }
            // Only the last message has the status, so each message is kept until the next one or the end.
            if (grpc && any) {
                emit("");
            }
            int size = body.size();
            if (!reserve(size)) {
                body.release();
                PayloadLog.this.release(length);
                lost(Loss.QUEUE_BYTES, 1, null);
                held = NOTHING;
                length = 0;
                lost = true;
                return;
            }
            any = true;
            type = contentType;
            held = copy(body, held, length);
            length += size;
        }

        /**
         * Ends the response.
         *
         * @param status of HTTP; 0 for gRPC, and when the client went away before there was one
         * @param code of gRPC
         */
        public void end(int status, int code) {
            if (settings.responses() && !lost) {
                emit(Integer.toString(grpc ? code : status == 0 ? 499 : status));
            }
        }

        private void emit(String status) {
            byte[] data = held.length == length ? held : Arrays.copyOf(held, length);
            held = NOTHING;
            length = 0;
            any = false;
            offer(new PayloadEvent(id, false, responses++, now(), type, data, metadata, status, grpc));
        }

        private Instant now() {
            return Instant.ofEpochMilli(clock.millis());
        }

        /**
         * Appends a body to the first {@code used} bytes of an array, which grows when necessary. Releases the body.
         */
        private static byte[] copy(MemoryRegion body, byte[] into, int used) {
            int size = body.size();
            byte[] target = into;
            if (target.length - used < size) {
                int capacity = used == 0 ? size : Math.max(used + size, used + (used >> 1));
                target = Arrays.copyOf(into, capacity);
            }
            body.getBytes(0, target, used, size);
            body.release();
            return target;
        }
    }
}
