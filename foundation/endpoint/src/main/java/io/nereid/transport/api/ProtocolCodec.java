// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import java.util.List;

/**
 * One API family: the routes it serves, how requests are decoded and answers encoded, and how its clients see an error.
 * Built by the roof around the engine; its handlers run on event loops and must not block. Implementations are
 * thread-safe.
 */
public interface ProtocolCodec {
    /** A short name for logs and {@code --help}, such as {@code v2}. */
    String name();

    /** The HTTP routes it serves, over HTTP/1.1 and HTTP/2 alike. */
    default List<HttpRoute> httpRoutes() {
        return List.of();
    }

    /** The gRPC methods it serves. */
    default List<GrpcMethod> grpcMethods() {
        return List.of();
    }
}
