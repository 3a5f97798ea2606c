// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import java.net.URL;
import java.util.List;
import org.jspecify.annotations.Nullable;

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

    /**
     * Where the descriptions of the HTTP routes are, for the OpenAPI document of the server; null without any. The text
     * is JSON: {@code paths} has the path items of OpenAPI 3.0 by the templates of the routes, {@code components} and
     * {@code tags} are OpenAPI's. It has neither path parameters, which follow from the templates, nor errors, whose
     * schema {@code x-nereid-error} refers to, for all routes or in an operation for its own, nor access. The description of a route is also that of its variants with
     * {@code /versions/{version}} and {@code /labels/{label}}. {@code x-nereid-prefixes} has a {@code summary} for routes
     * that end in <code>{rest...}</code>.
     */
    default @Nullable URL openApi() {
        return null;
    }

    /** The gRPC methods. */
    default List<GrpcMethod> grpcMethods() {
        return List.of();
    }
}
