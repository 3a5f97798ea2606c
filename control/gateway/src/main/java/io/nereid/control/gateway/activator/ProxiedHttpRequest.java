// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ServingException;
import io.nereid.control.gateway.inprocess.AggregatingCall;
import io.nereid.control.gateway.upstream.ReplicaBalancer;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * A request that a replica answers. When no connection can be made, nothing has been sent, and it is tried again.
 * Thread-safe as its exchange; the replica is set before the request is forwarded.
 */
final class ProxiedHttpRequest extends RevisionHttpRequest {
    private static final HttpHandler NONE = x -> {};

    private volatile ReplicaBalancer.@Nullable Endpoint member;
    private @Nullable ConnectionRetries retries;

    /** Whether it has been run before: it is held again then. */
    private volatile boolean again;

    ProxiedHttpRequest(RevisionActivator activator, HttpExchange exchange) {
        super(activator, exchange, NONE);
    }

    @Override
    void resume() {
        if (!again) {
            super.resume();
            return;
        }
        // Listeners and mirrors have seen it when it was admitted for the first time.
        try {
            run(NONE);
        } catch (RuntimeException e) {
            super.fail(ServingException.from(e));
        }
    }

    @Override
    void run(HttpHandler routed) {
        again = true;
        ConnectionRetries failures = retries;
        List<ReplicaBalancer.Endpoint> tried = failures == null ? List.of() : failures.tried();
        ReplicaBalancer.Endpoint chosen = activator.take(tried);
        if (chosen == null) {
            if (activator.routes().inside(this)) {
                return;
            }
            try {
                chosen = activator.takeOrHold(this, tried);
            } catch (ServingException e) {
                super.fail(e);
                return;
            }
            if (chosen == null) {
                return;
            }
        }
        ReplicaBalancer.Endpoint to = chosen;
        member = to;
        if (isEnded()) {
            released();
            return;
        }
        if (to.replica.httpPort() == 0) {
            activator.context().transcoder.overGrpc(this, (path, metadata, message) -> {
                ActivatorContext context = activator.context();
                return new AggregatingCall(path, metadata, context.clock.nanos())
                        .start(call -> context.upstream.forward(call, to.grpc, activator.forwardOptions()), message);
            });
            return;
        }
        ForwardOptions options = activator.forwardOptions();
        activator.context().upstream.forward(this, to.http, target(), options);
    }

    @Override
    public void fail(ServingException e) {
        ReplicaBalancer.Endpoint failed = member;
        if (failed == null || isEnded() || !ConnectionRetries.neverSent(e)) {
            super.fail(e);
            return;
        }
        ConnectionRetries failures = retries;
        if (failures == null) {
            failures = new ConnectionRetries(activator);
            retries = failures;
        }
        Executor next = failures.after(failed);
        if (next == null) {
            super.fail(e);
            return;
        }
        released();
        activator.retried.increment();
        try {
            next.execute(this::tryAgain);
        } catch (RejectedExecutionException closing) {
            super.fail(e);
        }
    }

    private void tryAgain() {
        try {
            run(NONE);
        } catch (RuntimeException e) {
            super.fail(ServingException.from(e));
        }
    }

    @Override
    void released() {
        ReplicaBalancer.Endpoint held;
        synchronized (this) {
            held = member;
            member = null;
        }
        if (held != null) {
            held.release();
        }
    }
}
