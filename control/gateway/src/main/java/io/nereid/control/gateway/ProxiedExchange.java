// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.UpstreamClient.Terms;
import java.net.ConnectException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A request that a child process answers. When no connection can be made, nothing has been sent, and another process is
 * tried. Thread-safe as its exchange; the replica is written before the request is sent on.
 */
final class ProxiedExchange extends HttpPassage {
    private static final HttpHandler NONE = x -> {};
    private static final int MOST_TRIES = 3;

    private volatile Replicas.@Nullable Member member;
    private List<Replicas.Member> tried = List.of();

    ProxiedExchange(RevisionGate gate, HttpExchange exchange) {
        super(gate, exchange, NONE);
    }

    @Override
    void run(HttpHandler routed) {
        Replicas.Member chosen =
                gate.replicas().take(gate.settings().containerConcurrency(), tried, gate.context().chance);
        if (chosen == null && gate.site().inside(this)) {
            return;
        }
        if (chosen == null) {
            super.fail(ServingException.of(
                    ErrorCode.UNAVAILABLE, "no process of revision " + gate.revision() + " answers", "try again"));
            return;
        }
        member = chosen;
        if (isEnded()) {
            released();
            return;
        }
        if (chosen.replica.httpPort() == 0) {
            gate.context().bridge.overGrpc(this, (path, metadata, message) -> {
                GatewayContext context = gate.context();
                return new GatheredCall(path, metadata, context.clock.nanos())
                        .start(call -> context.upstream.forward(call, chosen.grpc, gate.terms()), message);
            });
            return;
        }
        Terms terms = gate.terms();
        gate.context().upstream.forward(this, chosen.http, target(), terms);
    }

    @Override
    public void fail(ServingException e) {
        Replicas.Member failed = member;
        if (failed == null
                || isEnded()
                || !neverSent(e)
                || tried.size() + 1 >= MOST_TRIES
                || tried.size() + 1 >= gate.replicas().size()) {
            super.fail(e);
            return;
        }
        List<Replicas.Member> more = new ArrayList<>(tried);
        more.add(failed);
        tried = more;
        released();
        gate.retried.increment();
        try {
            run(NONE);
        } catch (RuntimeException another) {
            super.fail(ServingException.from(another));
        }
    }

    /** Whether an error says that there was no connection, so that nothing can have been done. */
    static boolean neverSent(ServingException e) {
        return e.code() == ErrorCode.UNAVAILABLE && e.getCause() instanceof ConnectException;
    }

    @Override
    void released() {
        Replicas.Member held;
        synchronized (this) {
            held = member;
            member = null;
        }
        if (held != null) {
            held.release();
        }
    }
}
