// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api.access;

import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import org.jspecify.annotations.Nullable;

/**
 * Decides who may do what, for every request of every protocol, from its head and its connection and before its body is
 * read. Called on event loops; must return at once. Implementations are thread-safe.
 *
 * <pre>{@code
 * AccessPolicy policy = (head, connection, operation, model) -> {
 *     if (operation.permission().guarded() && !"secret".equals(head.header("x-key"))) {
 *         throw ServingException.of(ErrorCode.UNAUTHENTICATED, "x-key is missing");
 *     }
 *     return Caller.ANONYMOUS;
 * };
 * }</pre>
 */
@FunctionalInterface
public interface AccessPolicy {
    /** Everything is allowed to everyone; for tests and for servers within a process. */
    AccessPolicy OPEN = (head, connection, operation, model) -> Caller.INTERNAL;

    /**
     * Admits a request.
     *
     * @param model the model that the path names; null when it names none. The caller must hold the permission for it,
     *     or for any model when it is null
     * @return who makes the request
     * @throws io.nereid.base.ServingException UNAUTHENTICATED, PERMISSION_DENIED or RESOURCE_EXHAUSTED to reject it
     */
    Caller admit(RequestHead head, ClientConnection connection, Operation operation, @Nullable String model);
}
