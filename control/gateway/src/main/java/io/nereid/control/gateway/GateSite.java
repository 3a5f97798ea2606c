// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.Destination.Handler;
import io.nereid.control.gateway.Destination.Models;
import io.nereid.control.gateway.Destination.Processes;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.VirtualHosts.Site;
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

    /**
     * What was built.
     *
     * @param handlers of the routes without the gate, by verb and template
     * @param inner of the methods without the gate, by path
     * @param inside the routes without the gate, for requests that were let in before these were known; null for processes
     */
    private record Built(
            List<HttpRoute> routes,
            List<GrpcMethod> methods,
            Map<String, GrpcMethod> byPath,
            Map<String, HttpHandler> handlers,
            Map<String, GrpcHandler> inner,
            @Nullable Site inside) {}

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
    @Nullable
    GrpcMethod method(String path) {
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
        Map<String, HttpHandler> handlers = new HashMap<>();
        Map<String, GrpcHandler> inner = new HashMap<>();
        Site inside = null;
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
            boolean changing = destination instanceof Handler;
            for (ProtocolCodec codec : codecs) {
                for (HttpRoute route : codec.httpRoutes()) {
                    handlers.put(key(route), route.handler());
                    routes.add(new HttpRoute(
                            route.method(), route.template(), through(changing ? present(route) : route)));
                }
                for (GrpcMethod method : codec.grpcMethods()) {
                    inner.put(method.path(), method.handler());
                    methods.add(
                            new GrpcMethod(method.path(), method.kind(), through(changing ? present(method) : method)));
                }
            }
            if (changing) {
                List<HttpRoute> bare =
                        codecs.stream().flatMap(c -> c.httpRoutes().stream()).toList();
                Site rest = context.factory().site(bare, List.of(), "");
                inside = rest;
                if (methods.isEmpty()) {
                    GrpcMethod bridged = new GrpcMethod(
                            ANY_CALL, GrpcMethod.Kind.BIDI_STREAMING, call -> context.bridge.overRest(call, rest));
                    inner.put(ANY_CALL, bridged.handler());
                    methods.add(new GrpcMethod(ANY_CALL, bridged.kind(), through(present(bridged))));
                }
            }
        }
        Map<String, GrpcMethod> byPath = new HashMap<>();
        methods.forEach(m -> byPath.put(m.path(), m));
        now = new Built(
                List.copyOf(routes),
                List.copyOf(methods),
                Map.copyOf(byPath),
                Map.copyOf(handlers),
                Map.copyOf(inner),
                inside);
        built = now;
        return now;
    }

    private static String key(HttpRoute route) {
        return route.method() + " " + route.template();
    }

    /** A route whose handler is the one that answers when the request is let through, which may be another by then. */
    private HttpRoute present(HttpRoute route) {
        String key = key(route);
        return new HttpRoute(route.method(), route.template(), x -> {
            HttpHandler handler = built().handlers.get(key);
            if (handler == null) {
                throw ServingException.of(ErrorCode.NOT_FOUND, "revision " + gate.revision() + " has no " + x.path());
            }
            handler.handle(x);
        });
    }

    private GrpcMethod present(GrpcMethod method) {
        return new GrpcMethod(method.path(), method.kind(), call -> inside(call).start(call));
    }

    /** What takes a call that is inside of the gate. */
    GrpcHandler inside(GrpcCall call) {
        Map<String, GrpcHandler> inner = built().inner;
        GrpcHandler handler = inner.getOrDefault(call.path(), inner.get(ANY_CALL));
        if (handler == null) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED, "revision " + gate.revision() + " has no method " + call.path());
        }
        return handler;
    }

    /** Answers a request that was let in before it was known what would answer it; false when processes do. */
    boolean inside(HttpPassage x) {
        Site site = built().inside;
        if (site == null) {
            return false;
        }
        var unused = site.call(x.method(), x.target(), x.allHeaders(), x.body().retain())
                .whenComplete((answer, e) -> {
                    if (answer == null) {
                        x.fail(ServingException.from(e == null ? new IllegalStateException("no answer") : e));
                        return;
                    }
                    try {
                        x.reply(Bodies.reply(answer));
                    } finally {
                        answer.body().release();
                    }
                });
        return true;
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
    static boolean isRequest(HttpRoute route) {
        String path = route.template();
        return route.method().equals("POST")
                && !path.startsWith("/v2/repository/")
                && !path.startsWith("/v2/logging")
                && !path.startsWith("/v2/trace/")
                && !path.contains("sharedmemory");
    }

    /** Whether a gRPC method asks about the server. */
    static boolean isAbout(String path) {
        return path.startsWith("/grpc.") || ABOUT.contains(path.substring(path.lastIndexOf('/') + 1));
    }

    private GrpcHandler through(GrpcMethod method) {
        GrpcHandler handler = method.handler();
        String path = method.path();
        return isAbout(path) ? handler : call -> GrpcPassage.start(gate, call, handler);
    }
}
