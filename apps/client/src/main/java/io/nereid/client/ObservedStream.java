// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.options.Attempt;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A subscriber between a protocol and a subscriber of the application, which reports the end of the stream to interceptors. Thread-safe. */
final class ObservedStream<T> implements Flow.Subscriber<T>, Flow.Subscription {
    private final Flow.Subscriber<? super T> subscriber;
    private final CallRuntime runtime;
    private final Attempt attempt;
    private final AtomicBoolean reported = new AtomicBoolean();
    private volatile Flow.@Nullable Subscription source;

    ObservedStream(Flow.Subscriber<? super T> subscriber, CallRuntime runtime, Attempt attempt) {
        this.subscriber = subscriber;
        this.runtime = runtime;
        this.attempt = attempt;
    }

    private void report(@Nullable InferenceException failure) {
        if (reported.compareAndSet(false, true)) {
            runtime.after(attempt, failure);
        }
    }

    /** Ends a stream that could not begin. */
    void refuse(RuntimeException e) {
        if (source == null) {
            subscriber.onSubscribe(this);
        }
        onError(e);
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        source = given;
        subscriber.onSubscribe(this);
    }

    @Override
    public void onNext(T value) {
        subscriber.onNext(value);
    }

    @Override
    public void onError(Throwable e) {
        report(
                e instanceof InferenceException known
                        ? known
                        : InferenceException.of(ErrorCode.UNKNOWN, String.valueOf(e.getMessage()), e));
        subscriber.onError(e);
    }

    @Override
    public void onComplete() {
        report(null);
        subscriber.onComplete();
    }

    @Override
    public void request(long n) {
        Flow.Subscription from = source;
        if (from != null) {
            from.request(n);
        }
    }

    @Override
    public void cancel() {
        report(InferenceException.of(ErrorCode.CANCELLED, "the subscriber has cancelled"));
        Flow.Subscription from = source;
        if (from != null) {
            from.cancel();
        }
    }
}
