// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.options.Attempt;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.Futures;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** One call with its attempts, its deadline and its cancellation. Thread-safe. */
final class RetryingCall<T> {
    private final CallRuntime runtime;
    private final String operation;
    private final String model;
    private final boolean repeatable;
    private final Map<String, String> headers;
    private final Duration timeout;
    private final long deadlineNanos;
    private final Function<CallContext, CompletableFuture<T>> action;
    private final CompletableFuture<T> result = new CompletableFuture<>();

    @GuardedBy("this") private @Nullable Future<?> current;

    @GuardedBy("this") private int attempts;

    RetryingCall(
            CallRuntime runtime,
            String operation,
            String model,
            boolean repeatable,
            Map<String, String> headers,
            Duration timeout,
            Function<CallContext, CompletableFuture<T>> action) {
        this.runtime = runtime;
        this.operation = operation;
        this.model = model;
        this.repeatable = repeatable;
        this.headers = headers;
        this.timeout = timeout;
        this.deadlineNanos = runtime.clock().nanos() + timeout.toNanos();
        this.action = action;
    }

    CompletableFuture<T> start() {
        if (!runtime.begin(this)) {
            return CompletableFuture.failedFuture(CallRuntime.closed());
        }
        Future<?> timer;
        try {
            timer = runtime.timer().schedule(this::expire, timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException e) {
            runtime.end(this);
            return CompletableFuture.failedFuture(CallRuntime.closed());
        }
        Futures.whenDone(result, (v, e) -> {
            timer.cancel(false);
            runtime.end(this);
            Future<?> attempt = attempt();
            if (attempt != null) {
                attempt.cancel(true);
            }
        });
        attempt(1, null);
        return result;
    }

    private synchronized @Nullable Future<?> attempt() {
        return current;
    }

    private synchronized int attempts() {
        return Math.max(1, attempts);
    }

    private void attempt(int number, @Nullable Attempt before) {
        if (result.isDone()) {
            return;
        }
        Attempt attempt = new Attempt(operation, model, number, headers, before);
        synchronized (this) {
            attempts = number;
        }
        CompletableFuture<T> sent;
        try {
            runtime.before(attempt);
            sent = action.apply(new CallContext(attempt.headers(), deadlineNanos));
        } catch (RuntimeException e) {
            ended(attempt, e);
            return;
        }
        synchronized (this) {
            current = sent;
        }
        if (result.isDone()) {
            sent.cancel(true);
        }
        Futures.whenDone(sent, (value, e) -> {
            if (e == null) {
                runtime.after(attempt, null);
                result.complete(value);
            } else {
                ended(attempt, e);
            }
        });
    }

    private void ended(Attempt attempt, Throwable thrown) {
        Throwable e = thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        InferenceException failure;
        if (e instanceof InferenceException known) {
            failure = known;
        } else if (e instanceof CancellationException) {
            failure = InferenceException.of(ErrorCode.CANCELLED, "the call was cancelled", e);
        } else {
            runtime.after(attempt, InferenceException.of(ErrorCode.UNKNOWN, String.valueOf(e.getMessage()), e));
            result.completeExceptionally(e);
            return;
        }
        runtime.after(attempt, failure);
        long delay = delayNanos(attempt.number(), failure);
        if (delay < 0) {
            result.completeExceptionally(attempt.number() > 1 ? failure.after(attempt.number()) : failure);
            return;
        }
        try {
            Future<?> later = runtime.timer()
                    .schedule(
                            () -> runtime.run(() -> attempt(attempt.number() + 1, attempt)),
                            delay,
                            TimeUnit.NANOSECONDS);
            synchronized (this) {
                current = later;
            }
            if (result.isDone()) {
                later.cancel(false);
            }
        } catch (RejectedExecutionException rejected) {
            result.completeExceptionally(CallRuntime.closed());
        }
    }

    /** The delay before the next attempt; negative when there must not be one. */
    private long delayNanos(int number, InferenceException failure) {
        RequestRetryPolicy policy = runtime.retries();
        if (!repeatable || !failure.isTransient() || number >= policy.maxAttempts()) {
            return -1;
        }
        long delay = policy.delayNanos(number, ThreadLocalRandom.current().nextDouble());
        Duration asked = failure.retryAfter();
        if (asked != null) {
            delay = Math.max(delay, asked.toNanos());
        }
        return delay < deadlineNanos - runtime.clock().nanos() ? delay : -1;
    }

    private void expire() {
        int number = attempts();
        String what = model.isEmpty() ? operation : operation + " of model '" + model + "'";
        InferenceException failure = InferenceException.of(
                ErrorCode.DEADLINE_EXCEEDED, what + ": no response from " + runtime.server() + " within " + timeout);
        runtime.run(() -> result.completeExceptionally(number > 1 ? failure.after(number) : failure));
    }

    /** Ends the call because the client is closed. */
    void close() {
        result.completeExceptionally(CallRuntime.closed());
    }
}
