// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.activator.ActivatorContext;
import io.nereid.control.gateway.activator.NestedRevisionRequest;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.activator.RevisionEngineView;
import io.nereid.control.gateway.activator.RevisionGrpcCall;
import io.nereid.control.gateway.activator.RevisionRoutes;
import io.nereid.control.gateway.upstream.RevisionCodecs;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.gateway.upstream.RevisionTarget.Models;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.VirtualHosts.Head;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One protocol of a component in front of the predictor, such as a transformer. Each request goes through the activator
 * of the predictor's revision that the traffic split chose, and is answered by handlers that were built around the
 * models of that revision. So metadata and responses belong to the same revision, and the request waits while the
 * revision is activated. Thread-safe: what is built for a revision is immutable and replaced as a whole.
 */
final class TransformerCodec implements ProtocolCodec {
    private final ActivatorContext context;
    private final Function<Head, RevisionActivator> activators;
    private final RevisionCodecs codecs;
    private final int index;
    private final ProtocolCodec template;
    private final Map<RevisionActivator, Built> built = new ConcurrentHashMap<>();

    /** The handlers around the models of one revision. Immutable. */
    private record Built(RevisionTarget destination, Map<String, HttpHandler> http, Map<String, GrpcHandler> grpc) {}

    private TransformerCodec(
            ActivatorContext context,
            Function<Head, RevisionActivator> activators,
            RevisionCodecs codecs,
            int index,
            ProtocolCodec template) {
        this.context = context;
        this.activators = activators;
        this.codecs = codecs;
        this.index = index;
        this.template = template;
    }

    /**
     * The protocols in front of a predictor.
     *
     * @param activators finds the revision for a request; may throw UNAVAILABLE
     * @param codecs builds the protocols around a revision's models, the same ones each time
     */
    static List<ProtocolCodec> all(
            ActivatorContext context, Function<Head, RevisionActivator> activators, RevisionCodecs codecs) {
        // The routes do not depend on the models, which are used only when a request arrives.
        List<ProtocolCodec> templates =
                codecs.build(context.models().engine(), context.models().control());
        List<ProtocolCodec> all = new ArrayList<>();
        for (int i = 0; i < templates.size(); i++) {
            all.add(new TransformerCodec(context, activators, codecs, i, templates.get(i)));
        }
        return List.copyOf(all);
    }

    @Override
    public String name() {
        return template.name();
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        List<HttpRoute> routes = new ArrayList<>();
        for (HttpRoute route : template.httpRoutes()) {
            String key = key(route);
            boolean request = RevisionRoutes.isRequest(route);
            boolean model = route.template().indexOf('{') >= 0;
            routes.add(new HttpRoute(
                    route.method(), route.template(), route.operations(), x -> enter(x, key, request, model)));
        }
        return routes;
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        List<GrpcMethod> methods = new ArrayList<>();
        for (GrpcMethod method : template.grpcMethods()) {
            String path = method.path();
            boolean about = RevisionRoutes.isAbout(path);
            methods.add(new GrpcMethod(path, method.kind(), method.operations(), call -> enter(call, path, about)));
        }
        return methods;
    }

    private static String key(HttpRoute route) {
        return route.method() + " " + route.template();
    }

    private void enter(HttpExchange x, String key, boolean request, boolean model) {
        RevisionActivator activator = activators.apply(new ExchangeHead(x));
        HttpHandler handler = built(activator).http.get(key);
        if (handler == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "there is no " + x.path());
        }
        if (!request && (!model || activator.hasReplica())) {
            handler.handle(x);
        } else {
            activator.enter(new NestedRevisionRequest(activator, x, handler));
        }
    }

    private GrpcListener enter(GrpcCall call, String path, boolean about) {
        RevisionActivator activator = activators.apply(new CallHead(call));
        GrpcHandler handler = built(activator).grpc.get(path);
        if (handler == null) {
            throw ServingException.of(ErrorCode.UNIMPLEMENTED, "there is no method " + path);
        }
        return about ? handler.start(call) : RevisionGrpcCall.startNested(activator, call, handler);
    }

    private Built built(RevisionActivator activator) {
        Built now = built.get(activator);
        RevisionTarget destination = activator.destination();
        return now != null && now.destination.equals(destination) ? now : build(activator, destination);
    }

    private synchronized Built build(RevisionActivator activator, RevisionTarget destination) {
        Built now = built.get(activator);
        if (now != null && now.destination.equals(destination)) {
            return now;
        }
        if (!(destination instanceof Models models)) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "the predictor's revision " + activator.revision()
                            + " is a child process, but a transformer in Java needs models in the engine",
                    "give the predictor as a model, or the transformer as a Python file");
        }
        RevisionEngineView view = new RevisionEngineView(
                activator, models, context.models().engine(), context.models().control());
        ProtocolCodec codec = codecs.build(view, view).get(index);
        Map<String, HttpHandler> http = new HashMap<>();
        codec.httpRoutes().forEach(r -> http.put(key(r), r.handler()));
        Map<String, GrpcHandler> grpc = new HashMap<>();
        codec.grpcMethods().forEach(m -> grpc.put(m.path(), m.handler()));
        Built result = new Built(destination, Map.copyOf(http), Map.copyOf(grpc));
        built.put(activator, result);
        var unused = activator.drained().whenComplete((v, e) -> built.remove(activator));
        return result;
    }

    /** The head of a request that has been routed before. Valid as long as the exchange is. */
    private record ExchangeHead(HttpExchange x) implements Head {
        @Override
        public String method() {
            return x.method();
        }

        @Override
        public String path() {
            return x.path();
        }

        @Override
        public @Nullable String authority() {
            return null;
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return x.header(lowerCaseName);
        }
    }

    /** The head of a call that has been routed before. Valid on its event loop. */
    private record CallHead(GrpcCall call) implements Head {
        @Override
        public String method() {
            return "POST";
        }

        @Override
        public String path() {
            return call.path();
        }

        @Override
        public @Nullable String authority() {
            return null;
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return call.metadata(lowerCaseName);
        }
    }
}
