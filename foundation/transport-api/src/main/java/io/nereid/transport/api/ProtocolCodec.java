// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import java.util.List;

/**
 * The implementation of one protocol: its routes, the decoding of requests, the encoding of responses, and the form of
 * errors. The application creates it around an engine. Its handlers run on event loops and must not block.
 * Implementations are thread-safe.
 *
 * <pre>{@code
 * final class PingCodec implements ProtocolCodec {
 *     public String name() {
 *         return "ping";
 *     }
 *
 *     public List<HttpRoute> httpRoutes() {
 *         return List.of(HttpRoute.get("/ping", exchange -> exchange.reply(HttpReply.json(200, "{}"))));
 *     }
 * }
 * }</pre>
 */
public interface ProtocolCodec {
    /** A short name for logs and {@code --help}, such as {@code v2}. */
    String name();

    /** The HTTP routes, which are served over HTTP/1.1 and HTTP/2. */
    default List<HttpRoute> httpRoutes() {
        return List.of();
    }

    /** The gRPC methods. */
    default List<GrpcMethod> grpcMethods() {
        return List.of();
    }
}
