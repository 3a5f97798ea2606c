// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.api.InferenceGraph;
import io.nereid.endpoint.Content;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.endpoint.Upstream;
import io.nereid.tensor.MemoryRegion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntSupplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Answers for one InferenceGraph: whatever is posted to any path goes through the graph's nodes (KServe's router: sequences,
 * switches, ensembles, splitters). Bodies are JSON of V1 or V2, as the steps' services take it. What V2 asks of a server and of
 * a model is answered as for a model of any name. Thread-safe: fixed.
 */
public final class GraphCodec implements ProtocolCodec {
    private static final String PLATFORM = "kserve_inferencegraph";

    /** Where one is told that the graph is ready: KServe's router's place, and V2's. Without services it has no routes at all. */
    private static final Pattern READY =
            Pattern.compile("/readyz|/v2/health/(live|ready)|/v2/models/[^/]+(/versions/[^/]+)?/ready");

    private static final Pattern MODEL = Pattern.compile("/v2/models/[^/]+(/versions/[^/]+)?");

    private final String name;
    private final Graph graph;
    private final Settings settings;
    private final PassedHeaders passed;
    private final StepCaller caller;
    private final Clock clock;

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

    /**
     * A graph.
     *
     * @param spec {@code {"nodes":{…}}}, as in the resource
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a condition that cannot be read, or a node that is not there
     */
    public GraphCodec(String name, ObjectNode spec, Settings settings, StepCaller caller, Clock clock) {
        this.name = name;
        this.graph = Graph.compile(InferenceGraph.readNodes(spec));
        this.settings = settings;
        this.passed = new PassedHeaders(settings.propagate());
        this.caller = caller;
        this.clock = clock;
    }

    @Override
    public String name() {
        return "graph";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(new HttpRoute(HttpRoute.ANY, "/{rest...}", this::handle));
    }

    private void handle(HttpExchange exchange) {
        if (exchange.method().equals("POST")) {
            run(exchange);
        } else if (READY.matcher(exchange.path()).matches()) {
            exchange.reply(HttpReply.text(200, "text/plain; charset=utf-8", ""));
        } else if (exchange.path().equals("/v2")) {
            reply(exchange, Outcome.JSON.createObjectNode().put("name", name).put("version", ""));
        } else if (MODEL.matcher(exchange.path()).matches()) {
            reply(exchange, metadata());
        } else {
            exchange.reply(HttpReply.error(405, "an inference graph takes POST, not " + exchange.method()));
        }
    }

    /** What a graph takes and gives depends on its steps, and on the request: no tensors are named. */
    private ObjectNode metadata() {
        ObjectNode told = Outcome.JSON.createObjectNode().put("name", name).put("platform", PLATFORM);
        for (String list : new String[] {"versions", "inputs", "outputs"}) {
            told.putArray(list);
        }
        String nodes = graph.nodes().values().stream()
                .map(node -> node.name() + ": " + node.kind().text())
                .collect(Collectors.joining(", "));
        told.putObject("properties").put("nodes", nodes);
        return told;
    }

    private static void reply(HttpExchange exchange, ObjectNode tree) {
        exchange.reply(reply(Outcome.json(200, tree)));
    }

    private void run(HttpExchange exchange) {
        List<Upstream.Header> headers = new ArrayList<>();
        boolean[] typed = {false};
        exchange.headers((key, value) -> {
            if (passed.passes(key)) {
                headers.add(new Upstream.Header(key, value));
                typed[0] |= key.equals("content-type");
            }
        });
        if (!typed[0]) {
            headers.add(new Upstream.Header("content-type", HttpReply.JSON));
        }
        byte[] body = bytes(exchange.body());
        GraphRun run = new GraphRun(graph, settings, caller, List.copyOf(headers), clock);
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
