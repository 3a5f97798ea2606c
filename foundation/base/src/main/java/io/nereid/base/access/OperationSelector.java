// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.access;

/**
 * Finds what a request of a route does. Most routes have one operation, and an {@link Operation} is its own selector; a
 * route of many paths looks at the path. Implementations are immutable.
 */
@FunctionalInterface
public interface OperationSelector {
    /**
     * The operation of a request.
     *
     * @param method the HTTP method in capitals; {@code POST} for gRPC
     * @param path the path as sent, without the query; the full method name for gRPC
     */
    Operation select(String method, String path);
}
