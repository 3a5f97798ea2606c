// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.node.ObjectNode;
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
import java.util.Locale;
import java.util.Map;
import java.util.function.IntSupplier;
import java.util.regex.Pattern;

/**
 * Answers for one InferenceGraph: whatever is posted to any path goes through the graph's nodes (KServe's router: sequences,
 * switches, ensembles, splitters). Bodies are JSON of V1 or V2, as the steps' services take it. Thread-safe.
 */
public final class GraphCodec implements ProtocolCodec {
    /** What is passed on whatever the settings say: it belongs to the request, not to the connection. */
    private static final List<String> ALWAYS = List.of("traceparent", "tracestate", "baggage", "x-request-id");

    private final Graph graph;
    private final Settings settings;
    private final StepCaller caller;

    /**
     * How a graph runs.
     *
     * @param propagate headers that are passed on to the steps: patterns for whole names, in the spelling
     *     {@code X-Request-Id} or in lower case
     * @param stepTimeout most time for one call; zero for no limit
     * @param percent gives numbers from 0 to 99 for the splitters
     */
    public record Settings(List<Pattern> propagate, Duration stepTimeout, IntSupplier percent) {}

    /**
     * A graph.
     *
     * @param spec {@code {"nodes":{…}}}, as in the resource
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a condition that cannot be read, or a node that is not there
     */
    public GraphCodec(ObjectNode spec, Settings settings, StepCaller caller) {
        this.graph = Graph.compile(InferenceGraph.readNodes(spec));
        this.settings = settings;
        this.caller = caller;
    }

    /**
     * Checks the conditions of a graph.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT naming the node and the step
     */
    public static void check(Map<String, InferenceGraph.Node> nodes) {
        Graph unused = Graph.compile(nodes);
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
        if (!exchange.method().equals("POST")) {
            exchange.reply(HttpReply.error(405, "an inference graph takes POST, not " + exchange.method()));
            return;
        }
        List<Upstream.Header> headers = new ArrayList<>();
        boolean[] typed = {false};
        exchange.headers((name, value) -> {
            if (passes(name)) {
                headers.add(new Upstream.Header(name, value));
                typed[0] |= name.equals("content-type");
            }
        });
        if (!typed[0]) {
            headers.add(new Upstream.Header("content-type", HttpReply.JSON));
        }
        byte[] body = bytes(exchange.body());
        GraphRun run = new GraphRun(graph, settings, caller, List.copyOf(headers));
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

    private boolean passes(String name) {
        if (ALWAYS.contains(name)) {
            return true;
        }
        for (Pattern pattern : settings.propagate) {
            if (pattern.matcher(canonical(name)).matches()
                    || pattern.matcher(name).matches()) {
                return true;
            }
        }
        return false;
    }

    /** {@code X-Request-Id}. */
    private static String canonical(String name) {
        StringBuilder b = new StringBuilder(name.length());
        for (String word : name.split("-", -1)) {
            if (!b.isEmpty()) {
                b.append('-');
            }
            b.append(word.isEmpty() ? "" : word.substring(0, 1).toUpperCase(Locale.ROOT) + word.substring(1));
        }
        return b.toString();
    }
}
