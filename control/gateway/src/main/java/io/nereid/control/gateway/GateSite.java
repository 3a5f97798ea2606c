// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.gateway.Destination.Handler;
import io.nereid.control.gateway.Destination.Models;
import io.nereid.control.gateway.Destination.Processes;
import io.nereid.endpoint.GrpcMethod;
import io.nereid.endpoint.GrpcMethod.GrpcHandler;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.HttpRoute.HttpHandler;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.endpoint.VirtualHosts.Site;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The routes of one revision, each of which goes through its gate; built when the first request comes, and once for each path
 * prefix. Thread-safe: what is built is immutable and replaced whole.
 */
final class GateSite {
    /** The path of a gRPC method that takes every call. */
    private static final String ANY_CALL = "/*";

    /** gRPC methods that ask about the server: they need no replica and count as no request. */
    private static final Set<String> ABOUT = Set.of(
            "ServerLive",
            "ServerReady",
            "ServerMetadata",
            "RepositoryIndex",
            "RepositoryModelLoad",
            "RepositoryModelUnload",
            "LogSettings",
            "TraceSetting",
            "SystemSharedMemoryStatus",
            "SystemSharedMemoryRegister",
            "SystemSharedMemoryUnregister",
            "CudaSharedMemoryStatus",
            "CudaSharedMemoryRegister",
            "CudaSharedMemoryUnregister",
            "HandleReloadConfigRequest");

    private record Built(List<HttpRoute> routes, List<GrpcMethod> methods, Map<String, GrpcMethod> byPath) {}

    private final GatewayContext context;
    private final RevisionGate gate;
    private volatile @Nullable Built built;
    private volatile Map<String, Site> sites = Map.of();

    GateSite(GatewayContext context, RevisionGate gate) {
        this.context = context;
        this.gate = gate;
    }

    /** Forgets what was built; requests under way go on with it. */
    synchronized void rebuild() {
        built = null;
        sites = Map.of();
    }

    Site at(String prefix) {
        Site site = sites.get(prefix);
        return site == null ? make(prefix) : site;
    }

    private synchronized Site make(String prefix) {
        Site site = sites.get(prefix);
        if (site == null) {
            Built now = built();
            site = context.factory().site(now.routes, now.methods, prefix);
            Map<String, Site> more = new HashMap<>(sites);
            more.put(prefix, site);
            sites = Map.copyOf(more);
        }
        return site;
    }

    /** The gRPC method that takes calls of a path, or null. */
    @Nullable GrpcMethod method(String path) {
        Map<String, GrpcMethod> all = built().byPath;
        GrpcMethod found = all.get(path);
        return found == null ? all.get(ANY_CALL) : found;
    }

    private Built built() {
        Built now = built;
        return now == null ? build() : now;
    }

    private synchronized Built build() {
        Built now = built;
        if (now != null) {
            return now;
        }
        List<HttpRoute> routes = new ArrayList<>();
        List<GrpcMethod> methods = new ArrayList<>();
        Destination destination = gate.destination();
        if (destination instanceof Processes) {
            routes.add(new HttpRoute(HttpRoute.ANY, "/{rest...}", x -> gate.enter(new ProxiedExchange(gate, x))));
            methods.add(new GrpcMethod(
                    ANY_CALL, GrpcMethod.Kind.BIDI_STREAMING, call -> GrpcPassage.start(gate, call, null)));
        } else {
            List<ProtocolCodec> codecs;
            if (destination instanceof Models models) {
                RevisionView view = new RevisionView(gate, models, context.engine, context.control);
                codecs = context.codecs.build(view, view);
            } else {
                codecs = ((Handler) destination).codecs();
            }
            for (ProtocolCodec codec : codecs) {
                for (HttpRoute route : codec.httpRoutes()) {
                    routes.add(new HttpRoute(route.method(), route.template(), through(route)));
                }
                for (GrpcMethod method : codec.grpcMethods()) {
                    methods.add(new GrpcMethod(method.path(), method.kind(), through(method)));
                }
            }
        }
        Map<String, GrpcMethod> byPath = new HashMap<>();
        methods.forEach(m -> byPath.put(m.path(), m));
        now = new Built(List.copyOf(routes), List.copyOf(methods), Map.copyOf(byPath));
        built = now;
        return now;
    }

    private HttpHandler through(HttpRoute route) {
        HttpHandler handler = route.handler();
        boolean any = route.method().equals(HttpRoute.ANY);
        if (!any && isRequest(route)) {
            return x -> gate.enter(new HttpPassage(gate, x, handler));
        }
        if (route.template().indexOf('{') < 0) {
            return handler;
        }
        // what is asked of a model needs the model; where it is there the question is free
        return x -> {
            if (gate.flowing() && !(any && x.method().equals("POST"))) {
                handler.handle(x);
            } else {
                gate.enter(new HttpPassage(gate, x, handler));
            }
        };
    }

    /** Whether a route makes a model work: a POST that is not about the server. */
    private static boolean isRequest(HttpRoute route) {
        String path = route.template();
        return route.method().equals("POST")
                && !path.startsWith("/v2/repository/")
                && !path.startsWith("/v2/logging")
                && !path.startsWith("/v2/trace/")
                && !path.contains("sharedmemory");
    }

    private GrpcHandler through(GrpcMethod method) {
        GrpcHandler handler = method.handler();
        String path = method.path();
        boolean about = path.startsWith("/grpc.") || ABOUT.contains(path.substring(path.lastIndexOf('/') + 1));
        return about ? handler : call -> GrpcPassage.start(gate, call, handler);
    }
}
