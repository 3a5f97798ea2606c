// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Whose routes serve a request: a server behind one port may be many, told apart by host or by the beginning of the path.
 * Asked on event loops for the head of every request, before its body is let in; implementations are thread-safe and quick.
 */
@FunctionalInterface
public interface VirtualHosts {
    /** Nobody but the server itself. */
    VirtualHosts NONE = head -> null;

    /** The site that serves a request, or null for the server's own routes. What it throws is answered as a route's own. */
    @Nullable
    Site find(Head head);

    /** Routes of their own, made ready by the transport. */
    interface Site {
        /**
         * Calls a route from inside this process, without a socket; the handler runs on the calling thread, which may be any.
         *
         * @param target path and query
         * @param body taken over
         * @return the whole answer; errors are answers too
         */
        CompletionStage<UpstreamClient.Answer> call(
                String method, String target, List<UpstreamClient.Header> headers, MemoryRegion body);
    }

    /** What makes sites; the transport is one. */
    interface SiteFactory {
        /**
         * Makes routes ready. Among the gRPC methods the path {@code /*} takes every method that no other one names; then
         * {@link GrpcCall#path} tells which.
         *
         * @param prefix what the paths of its requests begin with and its routes leave out, such as
         *     {@code /serving/default/iris}; empty for nothing. {@link HttpExchange#path} is without it
         */
        Site site(List<HttpRoute> routes, List<GrpcMethod> methods, String prefix);

        /**
         * Opens a port where one site answers everything, whatever host is named.
         *
         * @param port 0 for any that is free
         * @throws io.nereid.base.ServingException UNAVAILABLE when the port cannot be had
         */
        Listener listen(String address, int port, Site site);

        /** As {@link #listen(String, int, Site)}, but the site is found for each request; one without a site gets 404. */
        default Listener listen(String address, int port, VirtualHosts hosts) {
            throw io.nereid.base.ServingException.of(
                    io.nereid.base.ErrorCode.UNIMPLEMENTED, "this server has no ports on which many sites answer");
        }
    }

    /** An open port; closing it lets requests under way finish. */
    interface Listener extends AutoCloseable {
        /** Its number. */
        int port();

        @Override
        void close();
    }

    /** The beginning of a request. Valid during the call only. */
    interface Head {
        /** The verb in capitals; {@code POST} for gRPC. */
        String method();

        /** The path as sent, without the query. */
        String path();

        /** The host that the client named, in lower case, with its port if it gave one; null when it named none. */
        @Nullable
        String authority();

        /** The first value of a header, by lower-case name, or null. */
        @Nullable
        String header(String lowerCaseName);
    }
}
