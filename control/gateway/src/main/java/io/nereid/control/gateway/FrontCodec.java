// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.Destination.Models;
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
 * One protocol of a part in front of the predictor, such as a transformer: each request goes through the gate of the
 * predictor's revision whose turn it is, as a visitor, and is answered by the protocol as it was built around that revision's
 * models. So metadata and answers are one revision's, and the request waits while it wakes. Thread-safe: what is built for a
 * revision is immutable and replaced whole.
 */
final class FrontCodec implements ProtocolCodec {
    private final GatewayContext context;
    private final Function<Head, RevisionGate> gates;
    private final SiteCodecs codecs;
    private final int index;
    private final ProtocolCodec template;
    private final Map<RevisionGate, Built> built = new ConcurrentHashMap<>();

    /** The handlers around the models of a revision. Immutable. */
    private record Built(Destination destination, Map<String, HttpHandler> http, Map<String, GrpcHandler> grpc) {}

    private FrontCodec(
            GatewayContext context,
            Function<Head, RevisionGate> gates,
            SiteCodecs codecs,
            int index,
            ProtocolCodec template) {
        this.context = context;
        this.gates = gates;
        this.codecs = codecs;
        this.index = index;
        this.template = template;
    }

    /**
     * Protocols in front of a predictor.
     *
     * @param gates finds the revision that a request is for; may throw UNAVAILABLE
     * @param codecs builds the protocols around a revision's models, the same ones each time
     */
    static List<ProtocolCodec> all(GatewayContext context, Function<Head, RevisionGate> gates, SiteCodecs codecs) {
        // which routes there are does not depend on the models, which are asked when a request comes
        List<ProtocolCodec> templates = codecs.build(context.engine, context.control);
        List<ProtocolCodec> all = new ArrayList<>();
        for (int i = 0; i < templates.size(); i++) {
            all.add(new FrontCodec(context, gates, codecs, i, templates.get(i)));
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
            boolean request = GateSite.isRequest(route);
            boolean model = route.template().indexOf('{') >= 0;
            routes.add(new HttpRoute(route.method(), route.template(), x -> visit(x, key, request, model)));
        }
        return routes;
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        List<GrpcMethod> methods = new ArrayList<>();
        for (GrpcMethod method : template.grpcMethods()) {
            String path = method.path();
            boolean about = GateSite.isAbout(path);
            methods.add(new GrpcMethod(path, method.kind(), call -> visit(call, path, about)));
        }
        return methods;
    }

    private static String key(HttpRoute route) {
        return route.method() + " " + route.template();
    }

    private void visit(HttpExchange x, String key, boolean request, boolean model) {
        RevisionGate gate = gates.apply(new ExchangeHead(x));
        HttpHandler handler = built(gate).http.get(key);
        if (handler == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "there is no " + x.path());
        }
        if (!request && (!model || gate.flowing())) {
            handler.handle(x);
        } else {
            gate.enter(new VisitingPassage(gate, x, handler));
        }
    }

    private GrpcListener visit(GrpcCall call, String path, boolean about) {
        RevisionGate gate = gates.apply(new CallHead(call));
        GrpcHandler handler = built(gate).grpc.get(path);
        if (handler == null) {
            throw ServingException.of(ErrorCode.UNIMPLEMENTED, "there is no method " + path);
        }
        return about ? handler.start(call) : GrpcPassage.visit(gate, call, handler);
    }

    private Built built(RevisionGate gate) {
        Built now = built.get(gate);
        Destination destination = gate.destination();
        return now != null && now.destination.equals(destination) ? now : build(gate, destination);
    }

    private synchronized Built build(RevisionGate gate, Destination destination) {
        Built now = built.get(gate);
        if (now != null && now.destination.equals(destination)) {
            return now;
        }
        if (!(destination instanceof Models models)) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "the predictor's revision " + gate.revision()
                            + " is a child process, and steps in Java work on models in" + " the engine",
                    "give the predictor as a model, or the transformer as a Python file");
        }
        RevisionView view = new RevisionView(gate, models, context.engine, context.control);
        ProtocolCodec codec = codecs.build(view, view).get(index);
        Map<String, HttpHandler> http = new HashMap<>();
        codec.httpRoutes().forEach(r -> http.put(key(r), r.handler()));
        Map<String, GrpcHandler> grpc = new HashMap<>();
        codec.grpcMethods().forEach(m -> grpc.put(m.path(), m.handler()));
        Built made = new Built(destination, Map.copyOf(http), Map.copyOf(grpc));
        built.put(gate, made);
        var unused = gate.drained().whenComplete((v, e) -> built.remove(gate));
        return made;
    }

    /** The head of a request that has come further. Valid as the exchange is. */
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

    /** The head of a call that has come further. Valid on its event loop. */
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
