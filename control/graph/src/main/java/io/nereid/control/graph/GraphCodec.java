// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.config.HeaderPattern;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntSupplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The endpoint of one InferenceGraph, like KServe's router: a POST to any path runs the request through the graph's
 * nodes (Sequence, Switch, Ensemble, Splitter). Bodies are V1 or V2 JSON, as the services of the steps expect. V2's
 * requests for the metadata and the readiness of the server and of a model are answered as for a model of any name.
 * Thread-safe: immutable.
 *
 * <pre>{@code
 * GraphCodec.Settings settings = new GraphCodec.Settings(
 *         new InferenceServiceConfig.Router(List.of("Authorization")).patterns(),
 *         Duration.ofSeconds(10),
 *         Duration.ofSeconds(60),
 *         () -> ThreadLocalRandom.current().nextInt(100));
 * ProtocolCodec codec = new GraphCodec("flowers", spec, settings, caller, clock);
 * }</pre>
 */
public final class GraphCodec implements ProtocolCodec {
    private static final String PLATFORM = "kserve_inferencegraph";

    /**
     * The readiness paths of KServe's router and of V2. A graph whose services are missing has no routes, so an
     * existing one is ready.
     */
    private static final Pattern READY =
            Pattern.compile("/readyz|/v2/health/(live|ready)|/v2/models/[^/]+(/versions/[^/]+)?/ready");

    private static final Pattern MODEL = Pattern.compile("/v2/models/[^/]+(/versions/[^/]+)?");

    private final String name;
    private final CompiledGraph graph;
    private final Settings settings;
    private final PropagatedHeaders propagated;
    private final StepCaller caller;
    private final Clock clock;

    /**
     * How a graph runs. Immutable.
     *
     * @param propagate patterns for the client headers that are propagated to the steps
     * @param stepTimeout the longest time for one call of a step; zero for no limit
     * @param timeout the longest time for the whole graph; zero for no limit
     * @param percent returns random numbers from 0 to 99 for the Splitter nodes
     */
    public record Settings(
            List<HeaderPattern> propagate, Duration stepTimeout, Duration timeout, IntSupplier percent) {}

    /**
     * Creates the endpoint of a graph.
     *
     * @param name the graph's name, for its metadata
     * @param spec {@code {"nodes":{…}}}, as in the resource
     * @param caller calls the services of the steps
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a condition that cannot be parsed, or a node that
     *     does not exist
     */
    public GraphCodec(String name, ObjectNode spec, Settings settings, StepCaller caller, Clock clock) {
        this.name = name;
        this.graph = CompiledGraph.compile(InferenceGraph.readNodes(spec));
        this.settings = settings;
        this.propagated = new PropagatedHeaders(settings.propagate());
        this.caller = caller;
        this.clock = clock;
    }

    @Override
    public String name() {
        return "graph";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(new HttpRoute(HttpRoute.ANY, "/{rest...}", Operation.INFERENCE, this::handle));
    }

    private void handle(HttpExchange exchange) {
        exchange.require(Permission.INFER, name);
        if (exchange.method().equals("POST")) {
            run(exchange);
        } else if (READY.matcher(exchange.path()).matches()) {
            exchange.reply(HttpReply.text(200, "text/plain; charset=utf-8", ""));
        } else if (exchange.path().equals("/v2")) {
            reply(exchange, StepResult.JSON.createObjectNode().put("name", name).put("version", ""));
        } else if (MODEL.matcher(exchange.path()).matches()) {
            reply(exchange, metadata());
        } else {
            exchange.reply(HttpReply.error(405, "an inference graph takes POST, not " + exchange.method()));
        }
    }

    /** The metadata, without tensors: the inputs and outputs of a graph depend on its steps and on the request. */
    private ObjectNode metadata() {
        ObjectNode metadata =
                StepResult.JSON.createObjectNode().put("name", name).put("platform", PLATFORM);
        for (String list : new String[] {"versions", "inputs", "outputs"}) {
            metadata.putArray(list);
        }
        String nodes = graph.nodes().values().stream()
                .map(node -> node.name() + ": " + node.kind().text())
                .collect(Collectors.joining(", "));
        metadata.putObject("properties").put("nodes", nodes);
        return metadata;
    }

    private static void reply(HttpExchange exchange, ObjectNode tree) {
        exchange.reply(reply(StepResult.json(200, tree)));
    }

    private void run(HttpExchange exchange) {
        List<UpstreamClient.Header> headers = new ArrayList<>();
        boolean[] typed = {false};
        exchange.headers((key, value) -> {
            if (propagated.includes(key)) {
                headers.add(new UpstreamClient.Header(key, value));
                typed[0] |= key.equals("content-type");
            }
        });
        if (!typed[0]) {
            headers.add(new UpstreamClient.Header("content-type", HttpReply.JSON));
        }
        byte[] body = bytes(exchange.body());
        GraphExecution run = new GraphExecution(graph, settings, caller, List.copyOf(headers), clock);
        exchange.onCancel(run::cancel);
        run.start(body)
                .whenComplete(
                        (result, failure) -> exchange.reply(reply(result == null ? StepResult.of(failure) : result)));
    }

    static byte[] bytes(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    private static HttpReply reply(StepResult outcome) {
        return new HttpReply(
                outcome.status(),
                outcome.json() == null ? "" : HttpReply.JSON,
                new String[0],
                new ResponseBody(outcome.body(), outcome.body().length));
    }
}
