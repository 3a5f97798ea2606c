// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The events of a server-sent event stream, from its lines to a subscriber, with the subscriber's back-pressure. The request
 * is sent with the first event that is asked for. Thread-safe; lines come one after the other.
 */
final class EventStream implements HttpCalls.LineSubscriber, Flow.Subscription {
    private final Flow.Subscriber<? super String> subscriber;
    private final AtomicBoolean ended = new AtomicBoolean();
    private final StringBuilder event = new StringBuilder();

    @GuardedBy("this") private long demand;

    @GuardedBy("this") private @Nullable Runnable start;

    @GuardedBy("this") private Flow.@Nullable Subscription source;

    @GuardedBy("this") private @Nullable Runnable cancel;

    /** Whether a line was asked for that has not come. */
    @GuardedBy("this") private boolean awaited;

    EventStream(Flow.Subscriber<? super String> subscriber) {
        this.subscriber = subscriber;
    }

    /** Subscribes; {@code send} runs once, with the first demand. */
    void begin(Runnable send) {
        synchronized (this) {
            start = send;
        }
        subscriber.onSubscribe(this);
    }

    @Override
    public void request(long n) {
        if (n <= 0) {
            cancel();
            fail(new IllegalArgumentException("request(" + n + ") (expected: more than 0)"));
            return;
        }
        Runnable first;
        synchronized (this) {
            demand = demand + n < 0 ? Long.MAX_VALUE : demand + n;
            first = start;
            start = null;
        }
        if (first != null) {
            try {
                first.run();
            } catch (RuntimeException e) {
                fail(e);
            }
        } else {
            pull();
        }
    }

    @Override
    public void cancel() {
        ended.set(true);
        Runnable stop;
        synchronized (this) {
            stop = cancel;
            start = null;
        }
        if (stop != null) {
            stop.run();
        }
    }

    @Override
    public void onCancel(Runnable stop) {
        synchronized (this) {
            cancel = stop;
        }
        if (ended.get()) {
            stop.run();
        }
    }

    @Override
    public void onSubscribe(Flow.Subscription lines) {
        synchronized (this) {
            source = lines;
        }
        pull();
    }

    private void pull() {
        Flow.Subscription lines;
        synchronized (this) {
            if (source == null || awaited || demand == 0 || ended.get()) {
                return;
            }
            awaited = true;
            lines = source;
        }
        lines.request(1);
    }

    @Override
    public void onNext(String line) {
        if (line.startsWith("data:")) {
            if (event.length() > 0) {
                event.append('\n');
            }
            event.append(line, line.startsWith("data: ") ? 6 : 5, line.length());
        }
        boolean whole = line.isEmpty() && event.length() > 0;
        synchronized (this) {
            awaited = false;
            if (whole) {
                demand--;
            }
        }
        if (whole && !ended.get()) {
            String text = event.toString();
            event.setLength(0);
            InferenceException failure = error(text);
            if (failure != null) {
                fail(failure);
                cancel();
                return;
            }
            subscriber.onNext(text);
        }
        pull();
    }

    /** A failure after the response has begun is an event with one member. */
    private static @Nullable InferenceException error(String event) {
        if (!event.startsWith("{\"error\"")) {
            return null;
        }
        JsonNode root = Json.tree(event.getBytes(StandardCharsets.UTF_8));
        return root.size() == 1 && root.path("error").isTextual()
                ? InferenceException.of(ErrorCode.INTERNAL, root.path("error").asText())
                : null;
    }

    @Override
    public void onError(Throwable e) {
        fail(e);
    }

    private void fail(Throwable e) {
        if (ended.compareAndSet(false, true)) {
            subscriber.onError(e);
        }
    }

    @Override
    public void onComplete() {
        if (ended.compareAndSet(false, true)) {
            subscriber.onComplete();
        }
    }
}
