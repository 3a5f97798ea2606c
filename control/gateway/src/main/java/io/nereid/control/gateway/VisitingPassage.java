// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A request that came through another part's gate and goes through this one too: neither is it told of again nor copied. As
 * thread-safe as its exchange.
 */
final class VisitingPassage extends HttpPassage {
    VisitingPassage(RevisionGate gate, HttpExchange exchange, HttpHandler handler) {
        super(gate, exchange, handler);
    }

    @Override
    @Nullable
    PayloadTap tap() {
        return null;
    }

    @Override
    List<Mirror> mirrors() {
        return List.of();
    }
}
