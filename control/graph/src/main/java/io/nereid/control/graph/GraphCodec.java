// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.api.InferenceGraph;
import io.nereid.endpoint.Content;
import io.nereid.endpoint.GrpcMethod;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.endpoint.Upstream;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.tensor.MemoryRegion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Answers for one InferenceGraph: whatever is posted to any path goes through the graph's nodes (KServe's router: sequences,
 * switches, ensembles, splitters). Bodies are JSON of V1 or V2, as the steps' services take it. A call of gRPC goes through
 * the same nodes, as the JSON of V2 that a client of REST would have sent. Thread-safe.
 */
public final class GraphCodec implements ProtocolCodec {
    /** What {@link Models} must hand over to the model of the metadata of a call: what goes on to the steps. */
    public static final Pattern HEADERS = Pattern.compile("^" + MarkedCall.MARK);

    /** The services of gRPC that a graph has: those that ask for inference and about the server. */
    private static final List<String> SERVICES =
            List.of("/inference.GRPCInferenceService/", "/grpc.health.", "/grpc.reflection.");

    /** Where KServe's router tells that it is ready; a graph without services has no routes at all. */
    private static final String READY = "/readyz";

    private final Graph graph;
    private final Settings settings;
    private final PassedHeaders passed;
    private final StepCaller caller;
    private final Clock clock;
    private final @Nullable Supplier<ProtocolCodec> models;

    /**
     * How a graph runs.
     *
     * @param propagate headers that are passed on to the steps: patterns for whole names, in the spelling
     *     {@code X-Request-Id} or in lower case
     * @param stepTimeout most time for one call; zero for no limit
     * @param timeout most time for the whole graph; zero for no limit
     * @param percent gives numbers from 0 to 99 for the splitters
     */
    public record Settings(List<Pattern> propagate, Duration stepTimeout, Duration timeout, IntSupplier percent) {}

    /** Makes the protocol that serves models of V2 over gRPC. */
    @FunctionalInterface
    public interface Models {
        /**
         * The protocol around two doors. It hands the metadata in whose names {@link GraphCodec#HEADERS} is found over to the
         * model as parameters.
         */
        ProtocolCodec around(InferenceEngine engine, ModelControl control);
    }

    /**
     * A graph that is called over REST alone.
     *
     * @param spec {@code {"nodes":{…}}}, as in the resource
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a condition that cannot be read, or a node that is not there
     */
    public GraphCodec(ObjectNode spec, Settings settings, StepCaller caller, Clock clock) {
        this(Graph.compile(InferenceGraph.readNodes(spec)), settings, caller, clock, null);
    }

    private GraphCodec(
            Graph graph, Settings settings, StepCaller caller, Clock clock, @Nullable Supplier<ProtocolCodec> models) {
        this.graph = graph;
        this.settings = settings;
        this.passed = new PassedHeaders(settings.propagate());
        this.caller = caller;
        this.clock = clock;
        this.models = models;
    }

    /**
     * This graph, called over gRPC as well.
     *
     * @param name the graph's
     * @param pool writes and reads large JSON; belongs to the caller
     */
    public GraphCodec withGrpc(String name, Executor pool, Models protocol) {
        GraphEngine engine = new GraphEngine(name, graph, settings, caller, clock, pool);
        return new GraphCodec(graph, settings, caller, clock, () -> protocol.around(engine, engine));
    }

    @Override
    public String name() {
        return "graph";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(new HttpRoute(HttpRoute.ANY, "/{rest...}", this::handle));
    }

    /** The methods of V2, made when they are asked for. */
    @Override
    public List<GrpcMethod> grpcMethods() {
        if (models == null) {
            return List.of();
        }
        List<GrpcMethod> methods = new ArrayList<>();
        for (GrpcMethod method : models.get().grpcMethods()) {
            if (SERVICES.stream().anyMatch(method.path()::startsWith)) {
                methods.add(new GrpcMethod(
                        method.path(), method.kind(), call -> method.handler().start(new MarkedCall(call, passed))));
            }
        }
        return List.copyOf(methods);
    }

    private void handle(HttpExchange exchange) {
        if (exchange.path().equals(READY) && !exchange.method().equals("POST")) {
            exchange.reply(HttpReply.text(200, "text/plain; charset=utf-8", ""));
            return;
        }
        if (!exchange.method().equals("POST")) {
            exchange.reply(HttpReply.error(405, "an inference graph takes POST, not " + exchange.method()));
            return;
        }
        List<Upstream.Header> headers = new ArrayList<>();
        boolean[] typed = {false};
        exchange.headers((name, value) -> {
            if (passed.passes(name)) {
                headers.add(new Upstream.Header(name, value));
                typed[0] |= name.equals("content-type");
            }
        });
        if (!typed[0]) {
            headers.add(new Upstream.Header("content-type", HttpReply.JSON));
        }
        byte[] body = bytes(exchange.body());
        GraphRun run = new GraphRun(graph, settings, caller, List.copyOf(headers), clock, Long.MAX_VALUE);
        exchange.onCancel(run::cancel);
        run.start(body)
                .whenComplete(
                        (result, failure) -> exchange.reply(reply(result == null ? Outcome.of(failure) : result)));
    }

    static byte[] bytes(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    private static HttpReply reply(Outcome outcome) {
        return new HttpReply(
                outcome.status(),
                outcome.json() == null ? "" : HttpReply.JSON,
                new String[0],
                new Content(outcome.body(), outcome.body().length));
    }
}
