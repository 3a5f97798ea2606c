// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.access;

import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import java.util.concurrent.Executor;

/**
 * Holds the requests of {@link PendingCaller}s back until it is decided whether they may pass. All others pass at the cost
 * of one look at the class of their caller. Immutable.
 *
 * <p>The bodies of HTTP requests are within the server's own budget; the messages of calls that wait are within the budget
 * given here.
 */
public final class PendingRequests {
    private final Executor executor;
    private final ByteBudget budget;

    /**
     * Creates it.
     *
     * @param executor runs the requests that have waited
     * @param budget limits the memory of the messages of calls that wait
     */
    public PendingRequests(Executor executor, ByteBudget budget) {
        this.executor = executor;
        this.budget = budget;
    }

    /** The route, whose requests wait for the decision about their callers. */
    public HttpRoute guard(HttpRoute route) {
        return new HttpRoute(route.method(), route.template(), route.operations(), new Guarded(route.handler()));
    }

    /** The method, whose calls wait for the decision about their callers. */
    public GrpcMethod guard(GrpcMethod method) {
        GrpcHandler handler = method.handler();
        return new GrpcMethod(
                method.path(),
                method.kind(),
                method.operations(),
                call -> call.caller() instanceof PendingCaller caller && !caller.isAdmitted()
                        ? PendingGrpcCall.start(call, handler, caller, executor, budget)
                        : handler.start(call));
    }

    /** As thread-safe as the handler behind it. */
    private final class Guarded implements HttpHandler {
        private final HttpHandler handler;

        Guarded(HttpHandler handler) {
            this.handler = handler;
        }

        @Override
        public void handle(HttpExchange exchange) {
            if (exchange.caller() instanceof PendingCaller caller && !caller.isAdmitted()) {
                caller.whenDecided(refusal -> {
                    if (refusal == null) {
                        executor.execute(() -> run(exchange));
                    } else {
                        exchange.reply(handler.denied(refusal));
                    }
                });
            } else {
                handler.handle(exchange);
            }
        }

        private void run(HttpExchange exchange) {
            try {
                handler.handle(exchange);
            } catch (RuntimeException e) {
                exchange.fail(ServingException.from(e));
            }
        }

        @Override
        public HttpReply denied(ServingException e) {
            return handler.denied(e);
        }
    }
}
