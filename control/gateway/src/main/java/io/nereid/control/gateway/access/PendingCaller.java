// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.access;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A caller about whom another server is asked. An access policy, which must not block, returns it in place of a
 * decision; the gateway passes the request on once the decision is there. Until then it may do nothing, and its name is
 * {@code anonymous}. Implementations are thread-safe.
 *
 * <pre>{@code
 * pending.whenDecided(refusal -> {
 *     if (refusal == null) {
 *         handler.handle(exchange);
 *     } else {
 *         exchange.fail(refusal);
 *     }
 * });
 * }</pre>
 */
public interface PendingCaller extends Caller {
    /** Whether the decision is there and lets the request pass. */
    boolean isAdmitted();

    /**
     * Calls an action once with the decision: null when the request may pass, otherwise the reason of its refusal. At once
     * when the decision is there, otherwise on the thread that brings it, which the action must not block.
     */
    void whenDecided(Consumer<@Nullable ServingException> action);
}
