// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.control.gateway.inprocess.BodyCopies;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.gateway.upstream.RevisionTarget.Handler;
import io.nereid.control.gateway.upstream.RevisionTarget.Models;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The routes of one revision, each of which goes through its activator. Built when the first request arrives, and once
 * for each path prefix. Thread-safe: what is built is immutable and replaced as a whole.
 */
public final class RevisionRoutes {
    /** The path of a gRPC method that matches every call. */
    private static final String ANY_CALL = "/*";

    /** gRPC methods about the server: they need no replica and do not count as requests. */
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
     * The built routes.
     *
     * @param handlers the handlers of the routes without the activator, by verb and template
     * @param inner the handlers of the methods without the activator, by path
     * @param inside the routes without the activator, for requests that were admitted before these were known; null for
     *     processes
     */
    private record Built(
            List<HttpRoute> routes,
            List<GrpcMethod> methods,
            Map<String, GrpcMethod> byPath,
            Map<String, HttpHandler> handlers,
            Map<String, GrpcHandler> inner,
            @Nullable VirtualHost inside) {}

    private final ActivatorContext context;
    private final RevisionActivator activator;
    private volatile @Nullable Built built;
    private volatile Map<String, VirtualHost> virtualHosts = Map.of();

    RevisionRoutes(ActivatorContext context, RevisionActivator activator) {
        this.context = context;
        this.activator = activator;
    }

    /** Discards the built routes. Requests in flight continue with them. */
    synchronized void rebuild() {
        built = null;
        virtualHosts = Map.of();
    }

    public VirtualHost at(String prefix) {
        VirtualHost virtualHost = virtualHosts.get(prefix);
        return virtualHost == null ? make(prefix) : virtualHost;
    }

    private synchronized VirtualHost make(String prefix) {
        VirtualHost virtualHost = virtualHosts.get(prefix);
        if (virtualHost == null) {
            Built now = built();
            // Outside of everything else: a request whose caller is not known yet must not even count.
            virtualHost = context.factory()
                    .virtualHost(
                            now.routes.stream().map(context.pending::guard).toList(),
                            now.methods.stream().map(context.pending::guard).toList(),
                            prefix);
            Map<String, VirtualHost> more = new HashMap<>(virtualHosts);
            more.put(prefix, virtualHost);
            virtualHosts = Map.copyOf(more);
        }
        return virtualHost;
    }

    /** The gRPC method for a path, or null. */
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
        Map<String, HttpHandler> handlers = new HashMap<>();
        Map<String, GrpcHandler> inner = new HashMap<>();
        VirtualHost inside = null;
        RevisionTarget destination = activator.destination();
        if (destination instanceof Processes) {
            routes.add(new HttpRoute(
                    HttpRoute.ANY,
                    "/{rest...}",
                    Operation::ofPath,
                    ofService(x -> activator.enter(new ProxiedHttpRequest(activator, x)))));
            methods.add(new GrpcMethod(
                    ANY_CALL,
                    GrpcMethod.Kind.BIDI_STREAMING,
                    Operation::ofPath,
                    callOfService(call -> RevisionGrpcCall.start(activator, call, null))));
        } else {
            List<ProtocolCodec> codecs;
            if (destination instanceof Models models) {
                ActivatorContext.LocalModels local = context.models();
                RevisionEngineView view = new RevisionEngineView(activator, models, local.engine(), local.control());
                codecs = local.codecs().build(view, view);
            } else {
                codecs = ((Handler) destination).codecs();
            }
            boolean changing = destination instanceof Handler;
            for (ProtocolCodec codec : codecs) {
                for (HttpRoute route : codec.httpRoutes()) {
                    handlers.put(key(route), route.handler());
                    HttpHandler handler = through(changing ? present(route) : route);
                    boolean relays = changing && route.method().equals(HttpRoute.ANY);
                    routes.add(new HttpRoute(
                            route.method(),
                            route.template(),
                            route.operations(),
                            relays ? ofService(handler) : handler));
                }
                for (GrpcMethod method : codec.grpcMethods()) {
                    inner.put(method.path(), method.handler());
                    methods.add(new GrpcMethod(
                            method.path(),
                            method.kind(),
                            method.operations(),
                            through(changing ? present(method) : method)));
                }
            }
            if (changing) {
                List<HttpRoute> bare =
                        codecs.stream().flatMap(c -> c.httpRoutes().stream()).toList();
                VirtualHost rest = context.factory().virtualHost(bare, List.of(), "");
                inside = rest;
                if (methods.isEmpty()) {
                    GrpcMethod transcoded = new GrpcMethod(
                            ANY_CALL,
                            GrpcMethod.Kind.BIDI_STREAMING,
                            Operation::ofPath,
                            call -> context.transcoder.overRest(call, rest));
                    inner.put(ANY_CALL, transcoded.handler());
                    methods.add(new GrpcMethod(
                            ANY_CALL,
                            transcoded.kind(),
                            transcoded.operations(),
                            callOfService(through(present(transcoded)))));
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

    /**
     * A handler for callers that hold the permission for the service: a request that is passed on names its model in a
     * way that only its receiver knows, so that for access the service counts as one model.
     */
    private HttpHandler ofService(HttpHandler handler) {
        String service = activator.settings().service();
        return x -> {
            x.require(Operation.ofPath(x.method(), x.path()).permission(), service);
            handler.handle(x);
        };
    }

    private GrpcHandler callOfService(GrpcHandler handler) {
        String service = activator.settings().service();
        return call -> {
            call.require(Operation.ofPath("POST", call.path()).permission(), service);
            return handler.start(call);
        };
    }

    private static String key(HttpRoute route) {
        return route.method() + " " + route.template();
    }

    /**
     * A route whose handler is looked up when the request is admitted: the handlers may have been replaced while it
     * waited.
     */
    private HttpRoute present(HttpRoute route) {
        String key = key(route);
        return new HttpRoute(route.method(), route.template(), route.operations(), x -> {
            HttpHandler handler = built().handlers.get(key);
            if (handler == null) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND, "revision " + activator.revision() + " has no " + x.path());
            }
            handler.handle(x);
        });
    }

    private GrpcMethod present(GrpcMethod method) {
        return new GrpcMethod(
                method.path(),
                method.kind(),
                method.operations(),
                call -> inside(call).start(call));
    }

    /** The handler of a call that has been admitted. */
    GrpcHandler inside(GrpcCall call) {
        Map<String, GrpcHandler> inner = built().inner;
        GrpcHandler handler = inner.getOrDefault(call.path(), inner.get(ANY_CALL));
        if (handler == null) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED, "revision " + activator.revision() + " has no method " + call.path());
        }
        return handler;
    }

    /** Answers a request that was admitted before its destination was known; false when processes answer it. */
    boolean inside(RevisionHttpRequest x) {
        VirtualHost virtualHost = built().inside;
        if (virtualHost == null) {
            return false;
        }
        var unused = virtualHost
                .call(x.method(), x.target(), x.allHeaders(), x.body().retain())
                .whenComplete((response, e) -> {
                    if (response == null) {
                        x.fail(ServingException.from(e == null ? new IllegalStateException("no answer") : e));
                        return;
                    }
                    try {
                        x.reply(BodyCopies.reply(response));
                    } finally {
                        response.body().release();
                    }
                });
        return true;
    }

    private HttpHandler through(HttpRoute route) {
        HttpHandler handler = route.handler();
        boolean any = route.method().equals(HttpRoute.ANY);
        if (!any && isRequest(route)) {
            return x -> activator.enter(new RevisionHttpRequest(activator, x, handler));
        }
        if (route.template().indexOf('{') < 0) {
            return handler;
        }
        // A request about a model needs the model, so it waits for a replica. With a replica it passes without being
        // counted.
        return x -> {
            if (activator.hasReplica() && !(any && x.method().equals("POST"))) {
                handler.handle(x);
            } else {
                activator.enter(new RevisionHttpRequest(activator, x, handler));
            }
        };
    }

    /** Whether a route is an inference request: a POST that is not about the server. */
    public static boolean isRequest(HttpRoute route) {
        String path = route.template();
        return route.method().equals("POST")
                && !path.startsWith("/v2/repository/")
                && !path.startsWith("/v2/logging")
                && !path.startsWith("/v2/trace/")
                && !path.contains("sharedmemory");
    }

    /** Whether a gRPC method is about the server. */
    public static boolean isAbout(String path) {
        return path.startsWith("/grpc.") || ABOUT.contains(path.substring(path.lastIndexOf('/') + 1));
    }

    private GrpcHandler through(GrpcMethod method) {
        GrpcHandler handler = method.handler();
        String path = method.path();
        return isAbout(path) ? handler : call -> RevisionGrpcCall.start(activator, call, handler);
    }
}
