// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An HTTP request that has gone through the activator of another component and needs this revision too: it is not
 * reported to listeners and not mirrored. As thread-safe as its exchange.
 */
public final class NestedRevisionRequest extends RevisionHttpRequest {
    public NestedRevisionRequest(RevisionActivator activator, HttpExchange exchange, HttpHandler handler) {
        super(activator, exchange, handler);
    }

    @Override
    @Nullable PayloadListener listener() {
        return null;
    }

    @Override
    List<MirrorTarget> mirrors() {
        return List.of();
    }
}
