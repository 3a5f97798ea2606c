// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.options.Attempt;
import io.nereid.client.options.RequestInterceptor;
import io.nereid.client.options.RequestRetryPolicy;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import org.jspecify.annotations.Nullable;

/** What all calls of a client share. Thread-safe. */
final class CallRuntime {
    private static final Logger LOG = System.getLogger(CallRuntime.class.getName());

    private final String server;
    private final Clock clock;
    private final ScheduledExecutorService timer;
    private final Executor executor;
    private final RequestRetryPolicy retries;
    private final List<RequestInterceptor> interceptors;

    @GuardedBy("this") private final Set<RetryingCall<?>> calls = new HashSet<>();

    @GuardedBy("this") private boolean closed;

    CallRuntime(
            String server,
            Clock clock,
            ScheduledExecutorService timer,
            Executor executor,
            RequestRetryPolicy retries,
            List<RequestInterceptor> interceptors) {
        this.server = server;
        this.clock = clock;
        this.timer = timer;
        this.executor = executor;
        this.retries = retries;
        this.interceptors = List.copyOf(interceptors);
    }

    String server() {
        return server;
    }

    Clock clock() {
        return clock;
    }

    ScheduledExecutorService timer() {
        return timer;
    }

    RequestRetryPolicy retries() {
        return retries;
    }

    /** Runs a task on the executor, or here when it takes none. */
    void run(Runnable task) {
        try {
            executor.execute(task);
        } catch (RejectedExecutionException e) {
            task.run();
        }
    }

    void before(Attempt attempt) {
        for (RequestInterceptor interceptor : interceptors) {
            interceptor.before(attempt);
        }
    }

    void after(Attempt attempt, @Nullable InferenceException failure) {
        for (RequestInterceptor interceptor : interceptors) {
            try {
                interceptor.after(attempt, failure);
            } catch (RuntimeException e) {
                LOG.log(Level.WARNING, "an interceptor failed after an attempt", e);
            }
        }
    }

    /** Registers a call; false when the client is closed. */
    synchronized boolean begin(RetryingCall<?> call) {
        return !closed && calls.add(call);
    }

    synchronized void end(RetryingCall<?> call) {
        calls.remove(call);
    }

    synchronized boolean isClosed() {
        return closed;
    }

    /** Refuses further calls, and ends those in progress. */
    void close() {
        List<RetryingCall<?>> open;
        synchronized (this) {
            closed = true;
            open = List.copyOf(calls);
        }
        open.forEach(RetryingCall::close);
    }

    static InferenceException closed() {
        return InferenceException.of(ErrorCode.CANCELLED, "the client is closed");
    }
}
