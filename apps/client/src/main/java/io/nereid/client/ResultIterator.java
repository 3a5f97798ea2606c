// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The results of a stream, for a thread that waits for them. One result is asked for at a time, so a slow reader slows the
 * server down. Closing it ends the stream. Used by one thread, except {@link #close()}, which any thread may call.
 *
 * <pre>{@code
 * try (ResultIterator<InferResult> results = client.inferAll(request)) {
 *     while (results.hasNext()) {
 *         System.out.println(results.next().output("OUT"));
 *     }
 * }
 * }</pre>
 *
 * @param <T> what the stream has
 */
public final class ResultIterator<T> implements Iterator<T>, AutoCloseable {
    /** A result, a failure, or the end, which is neither. */
    private record Event<T>(@Nullable T value, @Nullable Throwable failure) {}

    private final LinkedBlockingQueue<Event<T>> events = new LinkedBlockingQueue<>();
    private final AtomicReference<Flow.@Nullable Subscription> subscription = new AtomicReference<>();
    private @Nullable Event<T> next;
    private boolean asked;

    ResultIterator(Flow.Publisher<T> source) {
        source.subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription given) {
                subscription.set(given);
            }

            @Override
            public void onNext(T value) {
                events.add(new Event<>(value, null));
            }

            @Override
            public void onError(Throwable e) {
                events.add(new Event<>(null, e));
            }

            @Override
            public void onComplete() {
                events.add(new Event<>(null, null));
            }
        });
    }

    /**
     * Waits for the next result.
     *
     * @throws InferenceException when the stream fails, or when this thread is interrupted
     */
    @Override
    public boolean hasNext() {
        Event<T> event = next;
        if (event == null) {
            Flow.Subscription source = subscription.get();
            if (source != null && !asked) {
                source.request(1);
            }
            asked = true;
            try {
                event = events.take();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                close();
                throw InferenceException.of(ErrorCode.CANCELLED, "the thread was interrupted", e);
            }
            next = event;
        }
        Throwable failure = event.failure();
        if (failure != null) {
            throw NereidClient.thrown(failure);
        }
        return event.value() != null;
    }

    @Override
    public T next() {
        Event<T> event = hasNext() ? next : null;
        T value = event == null ? null : event.value();
        if (value == null) {
            throw new NoSuchElementException("the stream has ended");
        }
        next = null;
        asked = false;
        return value;
    }

    /** Ends the stream; a thread that waits gets the end. */
    @Override
    public void close() {
        Flow.Subscription source = subscription.get();
        if (source != null) {
            source.cancel();
        }
        events.add(new Event<>(null, null));
    }
}
