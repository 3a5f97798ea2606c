// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.Upstream;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelControl;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A graph as a model, so that what serves models of V2 serves it: tensors become the JSON that a client of REST would have
 * sent, and the JSON that comes back becomes tensors. Thread-safe: immutable.
 */
final class GraphEngine implements InferenceEngine, ModelControl {
    /** Bytes beyond which JSON is not written and read on the calling thread. */
    private static final long OFFLOAD_BYTES = 64 << 10;

    private static final String PLATFORM = "kserve_inferencegraph";

    private final String name;
    private final Graph graph;
    private final GraphCodec.Settings settings;
    private final PassedHeaders passed;
    private final StepCaller caller;
    private final Clock clock;
    private final Executor pool;

    /**
     * @param name what the graph is called where an answer names no model
     * @param pool writes and reads large JSON
     */
    GraphEngine(String name, Graph graph, GraphCodec.Settings settings, StepCaller caller, Clock clock, Executor pool) {
        this.name = name;
        this.graph = graph;
        this.settings = settings;
        this.passed = new PassedHeaders(settings.propagate());
        this.caller = caller;
        this.clock = clock;
        this.pool = pool;
    }

    // ---- inference ----

    /** Whatever model is asked for, the graph answers, as it does for any path of REST. */
    @Override
    public Call infer(InferenceRequest request, ResponseSink sink) {
        GraphRun run = new GraphRun(graph, settings, caller, headers(request), clock, request.deadlineNanos());
        long bytes = 0;
        for (Tensor input : request.inputs()) {
            bytes += input.byteLength();
        }
        somewhere(bytes, () -> begin(request, run, sink), e -> {
            request.release();
            sink.fail(e);
        });
        return run::cancel;
    }

    /** Runs a task here, or on the pool when it is large; tells when that cannot be. */
    private void somewhere(long bytes, Runnable task, Consumer<ServingException> refused) {
        if (bytes <= OFFLOAD_BYTES) {
            task.run();
            return;
        }
        try {
            pool.execute(task);
        } catch (RejectedExecutionException e) {
            refused.accept(
                    ServingException.of(Code.UNAVAILABLE, "the server is shutting down", "retry at another server"));
        }
    }

    private void begin(InferenceRequest request, GraphRun run, ResponseSink sink) {
        byte[] body;
        try {
            body = RequestJson.write(request);
        } catch (RuntimeException e) {
            sink.fail(ServingException.from(e));
            return;
        } finally {
            request.release();
        }
        run.start(body).whenComplete((outcome, failure) -> {
            Outcome result = outcome == null ? Outcome.of(failure) : outcome;
            somewhere(result.body().length, () -> end(request.id(), result, sink), sink::fail);
        });
    }

    private void end(String id, Outcome outcome, ResponseSink sink) {
        if (!outcome.success()) {
            sink.fail(outcome.failure(name));
            return;
        }
        InferenceResponse response;
        try {
            response = AnswerReader.read(name, id, outcome.body());
        } catch (RuntimeException e) {
            sink.fail(ServingException.from(e));
            return;
        }
        sink.next(response, true);
    }

    /** The marked parameters, without their marks. */
    private List<Upstream.Header> headers(InferenceRequest request) {
        List<Upstream.Header> headers = new ArrayList<>();
        request.parameters().forEach((key, value) -> {
            if (key.startsWith(MarkedCall.MARK)) {
                String header = key.substring(MarkedCall.MARK.length());
                String text = String.valueOf(value);
                // a parameter of the client's own may look like one
                if (passed.passes(header)
                        && !header.equals("content-type")
                        && text.chars().noneMatch(c -> c < ' ' || c == 0x7F)) {
                    headers.add(new Upstream.Header(header, text));
                }
            }
        });
        headers.add(new Upstream.Header("content-type", HttpReply.JSON));
        return List.copyOf(headers);
    }

    // ---- what is told ----

    /** What a graph takes and gives depends on its steps, and on the request: no tensors are named. */
    @Override
    public ModelMetadata metadata(ModelRef model) {
        String nodes = graph.nodes().values().stream()
                .map(node -> node.name() + ": " + node.kind().text())
                .collect(Collectors.joining(", "));
        return new ModelMetadata(new ServableId(name, 0), PLATFORM, List.of(), List.of(), 0, Map.of("nodes", nodes));
    }

    @Override
    public ModelConfig config(ModelRef model) {
        throw ServingException.of(
                Code.UNIMPLEMENTED, "'" + name + "' is an inference graph, which has no model configuration");
    }

    @Override
    public boolean live() {
        return true;
    }

    @Override
    public boolean ready() {
        return true;
    }

    /** A graph has its place in the gateway only once its services are ready. */
    @Override
    public boolean ready(ModelRef model) {
        return true;
    }

    @Override
    public List<ModelStatus> index() {
        ServableId id = new ServableId(name, 0);
        return List.of(new ModelStatus(
                name, List.of(new ServableState(id, ServableState.Phase.AVAILABLE, null, PLATFORM, 0, 0))));
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return refused("load", model);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return refused("unload", model);
    }

    private CompletionStage<Void> refused(String verb, @Nullable String model) {
        return CompletableFuture.failedStage(ServingException.of(
                Code.FAILED_PRECONDITION,
                "cannot " + verb + " model '" + model + "': '" + name + "' is an inference graph",
                "apply a changed InferenceGraph"));
    }
}
