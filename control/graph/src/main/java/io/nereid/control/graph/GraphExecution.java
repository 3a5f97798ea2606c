// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.graph.CompiledGraph.CompiledStep;
import io.nereid.control.graph.CompiledGraph.Node;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The execution of one request in a graph. No thread waits: the response of each step starts the next one. Thread-safe:
 * the stages share only immutable state, the set of calls under way and the cancelled flag.
 */
final class GraphExecution {
    private final CompiledGraph graph;
    private final GraphCodec.Settings settings;
    private final StepCaller caller;
    private final List<UpstreamClient.Header> headers;
    private final Clock clock;

    /** The deadline of the whole graph, in nanoseconds of the clock; {@link Long#MAX_VALUE} for none. */
    private final long deadlineNanos;

    /** Cancels the calls that are under way. */
    private final Set<Runnable> underWay = ConcurrentHashMap.newKeySet();

    private volatile boolean cancelled;

    GraphExecution(
            CompiledGraph graph,
            GraphCodec.Settings settings,
            StepCaller caller,
            List<UpstreamClient.Header> headers,
            Clock clock) {
        this.graph = graph;
        this.settings = settings;
        this.caller = caller;
        this.headers = headers;
        this.clock = clock;
        this.deadlineNanos = settings.timeout().isZero()
                ? Long.MAX_VALUE
                : clock.nanos() + settings.timeout().toNanos();
    }

    /** Runs the graph. The stage never fails: failures become a result with an error status. */
    CompletionStage<StepResult> start(byte[] body) {
        return node(graph.root(), body).handle((outcome, failure) -> {
            if (cancelled) {
                return StepResult.of(gone());
            }
            return outcome == null ? StepResult.of(failure) : remaining() == 0 ? StepResult.of(late()) : outcome;
        });
    }

    /** Cancels the running steps; no further step begins. */
    void cancel() {
        cancelled = true;
        underWay.forEach(Runnable::run);
    }

    private static ServingException gone() {
        return ServingException.of(ErrorCode.CANCELLED, "the client went away");
    }

    private static ServingException late() {
        return ServingException.of(ErrorCode.DEADLINE_EXCEEDED, "the graph did not answer within its timeout");
    }

    /** The remaining nanoseconds; {@link Long#MAX_VALUE} without a limit. */
    private long remaining() {
        return deadlineNanos == Long.MAX_VALUE ? Long.MAX_VALUE : Math.max(0, deadlineNanos - clock.nanos());
    }

    private CompletionStage<StepResult> node(Node node, byte[] body) {
        return switch (node.kind()) {
            case SEQUENCE -> sequence(node, 0, body, null);
            case SWITCH -> choose(node, body);
            case ENSEMBLE -> ensemble(node, body);
            case SPLITTER -> step(split(node), body);
        };
    }

    /**
     * Runs the steps of a Sequence from step {@code i}. A condition is evaluated on the former step's response, the
     * first step's on the request. When a condition does not match, the sequence ends with the body that was examined
     * and status 200, as in KServe.
     */
    private CompletionStage<StepResult> sequence(Node node, int i, byte[] original, @Nullable StepResult before) {
        if (i == node.steps().size()) {
            return done(before == null ? new StepResult(200, original) : before);
        }
        CompiledStep step = node.steps().get(i);
        if (step.condition() != null) {
            byte[] input = before == null ? original : before.body();
            JsonNode tree = StepResult.parse(input);
            if (tree == null) {
                return done(StepResult.ended(
                        before == null ? 400 : 500,
                        "step " + step.key() + " of node '" + node.name() + "' has a condition, and "
                                + (before == null ? "the request" : "the former step's answer") + " is not JSON"));
            }
            if (step.condition().find(tree) == null) {
                return done(new StepResult(200, input));
            }
        }
        byte[] body = before != null && "$response".equals(step.step().data()) ? before.body() : original;
        return step(step, body)
                .thenCompose(outcome -> outcome.ended() || step.step().hard() && !outcome.success()
                        ? done(outcome)
                        : sequence(node, i + 1, original, outcome));
    }

    /**
     * Runs the first step of a Switch whose condition matches; a step without a condition always matches. Without a match
     * the graph ends: with 404 if this is the root, and 500 if it is a step's node, as in KServe.
     */
    private CompletionStage<StepResult> choose(Node node, byte[] body) {
        JsonNode tree = StepResult.parse(body);
        if (tree != null) {
            for (CompiledStep step : node.steps()) {
                if (step.condition() == null || step.condition().find(tree) != null) {
                    return step(step, body);
                }
            }
        }
        return done(StepResult.ended(404, "None of the routes matched with the switch condition"));
    }

    /**
     * Draws a step of a Splitter by weight: walks through the cumulative weights until they exceed the random number.
     */
    private CompiledStep split(Node node) {
        int left = settings.percent().getAsInt();
        for (CompiledStep step : node.steps()) {
            Long weight = step.step().weight();
            left -= weight == null ? 0 : weight.intValue();
            if (left < 0) {
                return step;
            }
        }
        return node.steps().get(node.steps().size() - 1);
    }

    /** Runs all steps of an Ensemble at once, and merges their responses when the last one has arrived. */
    private CompletionStage<StepResult> ensemble(Node node, byte[] body) {
        List<CompletableFuture<StepResult>> running = new ArrayList<>();
        for (CompiledStep step : node.steps()) {
            running.add(step(step, body).toCompletableFuture());
        }
        return CompletableFuture.allOf(running.toArray(CompletableFuture[]::new))
                .thenApply(all -> merge(node, running));
    }

    /** Merges the responses into one object by the steps' keys. The first failed hard dependency becomes the result. */
    private static StepResult merge(Node node, List<CompletableFuture<StepResult>> running) {
        ObjectNode merged = StepResult.JSON.createObjectNode();
        StepResult wrong = null;
        for (int i = 0; i < running.size(); i++) {
            CompiledStep step = node.steps().get(i);
            StepResult outcome = running.get(i).join();
            if (outcome.ended() || step.step().hard() && !outcome.success()) {
                return outcome;
            }
            JsonNode tree = outcome.json();
            if (tree != null && tree.isObject()) {
                merged.set(step.key(), tree);
            } else if (wrong == null) {
                wrong = StepResult.ended(
                        500,
                        "step " + step.key() + " of node '" + node.name()
                                + "' did not answer with a JSON object, which an Ensemble needs");
            }
        }
        return wrong == null ? StepResult.json(200, merged) : wrong;
    }

    private CompletionStage<StepResult> step(CompiledStep step, byte[] input) {
        byte[] body = step.step().mapPredictionsToInstances() ? mapped(input) : input;
        try {
            if (step.step().nodeName() != null) {
                return node(graph.node(step.step().nodeName()), body)
                        .thenApply(outcome -> outcome.ended() ? new StepResult(500, outcome.body(), true) : outcome);
            }
            if (cancelled) {
                return done(StepResult.of(gone()));
            }
            return call(step, body);
        } catch (ServingException e) {
            return done(StepResult.of(e));
        }
    }

    /** Calls a step's service. The timeout is the step's, or the rest of the graph's when that is shorter. */
    private CompletionStage<StepResult> call(CompiledStep step, byte[] body) {
        long left = remaining();
        if (left == 0) {
            return done(StepResult.of(late()));
        }
        Duration timeout = settings.stepTimeout();
        if (left != Long.MAX_VALUE && (timeout.isZero() || left < timeout.toNanos())) {
            timeout = Duration.ofNanos(left);
        }
        CompletableFuture<UpstreamResponse> response =
                caller.call(step.step(), headers, body, timeout).toCompletableFuture();
        Runnable end = () -> response.cancel(true);
        underWay.add(end);
        // cancel() may have run between the check in step() and the add: then it has not seen this call.
        if (cancelled) {
            end.run();
        }
        return response.handle((got, failure) -> {
            underWay.remove(end);
            return got == null ? StepResult.of(failure) : outcome(got);
        });
    }

    private static StepResult outcome(UpstreamResponse response) {
        try {
            return new StepResult(response.status(), GraphCodec.bytes(response.body()));
        } finally {
            response.body().release();
        }
    }

    /**
     * Turns a response into a request: {@code {"predictions":[…]}} becomes {@code {"instances":[…]}}, and the outputs
     * of a V2 response become inputs. Returns any other body unchanged.
     */
    private static byte[] mapped(byte[] body) {
        JsonNode tree = StepResult.parse(body);
        if (tree == null) {
            return body;
        }
        ObjectNode next = StepResult.JSON.createObjectNode();
        if (filled(tree.get("predictions"))) {
            next.set("instances", tree.get("predictions"));
        } else if (filled(tree.get("outputs")) && !tree.has("inputs")) {
            if (tree.path("id").isTextual()) {
                next.set("id", tree.get("id"));
            }
            next.set("inputs", tree.get("outputs"));
        } else {
            return body;
        }
        return StepResult.json(200, next).body();
    }

    private static boolean filled(@Nullable JsonNode list) {
        return list != null && list.isArray() && !list.isEmpty();
    }

    private static CompletionStage<StepResult> done(StepResult outcome) {
        return CompletableFuture.completedStage(outcome);
    }
}
