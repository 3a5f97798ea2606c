// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Selects the routes that serve a request, so that several logical servers can share one port, distinguished by host
 * or path prefix. Called on event loops for the head of every request, before its body is read. Implementations are
 * thread-safe and must return quickly.
 */
@FunctionalInterface
public interface VirtualHosts {
    /** Only the server's own routes. */
    VirtualHosts NONE = head -> null;

    /**
     * Returns the virtual host that serves a request, or null for the server's own routes. An exception is answered
     * like that of a route.
     */
    @Nullable VirtualHost find(Head head);

    /** A set of routes that the transport has compiled. */
    interface VirtualHost {
        /**
         * Calls a route within this process, without a socket. The handler runs on the calling thread, which may be
         * any thread.
         *
         * @param target path and query
         * @param body the request body; taken over
         * @return the complete response, also for errors
         */
        CompletionStage<UpstreamResponse> call(
                String method, String target, List<UpstreamClient.Header> headers, MemoryRegion body);
    }

    /** Creates virtual hosts; implemented by the transport. */
    interface VirtualHostFactory {
        /**
         * Compiles routes. The gRPC path {@code /*} matches every method that no other entry matches;
         * {@link GrpcCall#path} then returns the method.
         *
         * @param prefix path prefix of its requests, which its routes omit, such as
         *     {@code /serving/default/iris}; empty for none. {@link HttpExchange#path} omits it as well
         */
        VirtualHost virtualHost(List<HttpRoute> routes, List<GrpcMethod> methods, String prefix);

        /**
         * Opens a port on which one virtual host serves all requests, whatever their host.
         *
         * @param port 0 for any free port
         * @throws io.nereid.base.ServingException UNAVAILABLE when the port cannot be opened
         */
        Listener listen(String address, int port, VirtualHost host);

        /**
         * As {@link #listen(String, int, VirtualHost)}, but selects the host for each request; a request without one gets
         * 404.
         */
        default Listener listen(String address, int port, VirtualHosts hosts) {
            throw io.nereid.base.ServingException.of(
                    io.nereid.base.ErrorCode.UNIMPLEMENTED, "virtual hosts on extra ports are not supported");
        }
    }

    /** An open port. Closing it lets requests in flight finish. */
    interface Listener extends AutoCloseable {
        /** The port number. */
        int port();

        @Override
        void close();
    }

    /** The head of a request. Valid only during the call. */
    interface Head {
        /** The HTTP method in capitals; {@code POST} for gRPC. */
        String method();

        /** The path as sent, without the query. */
        String path();

        /** The host that the client named, in lower case, with the port if the client gave one; null without a host. */
        @Nullable String authority();

        /** The first value of a header, by lower-case name, or null. */
        @Nullable String header(String lowerCaseName);
    }
}
