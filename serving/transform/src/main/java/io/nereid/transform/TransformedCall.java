// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * One request through the steps: preprocess, the predictor, postprocess. Steps run on the executor; responses are
 * processed one after the other, so that their order is kept. Thread-safe: mutable state is guarded by this.
 */
final class TransformedCall implements InferenceCall, ResponseSink {
    private final TransformerSteps steps;
    private final InferenceEngine predictor;
    private final Executor executor;
    private final InferenceRequest request;
    private final ResponseSink sink;
    private final long deadlineNanos;

    /** Responses that wait for postprocess. */
    @GuardedBy("this") private final ArrayDeque<Answer> answers = new ArrayDeque<>();

    @GuardedBy("this") private @Nullable InferenceCall call;

    @GuardedBy("this") private boolean cancelled;

    @GuardedBy("this") private boolean stepping;

    @GuardedBy("this") private boolean ended;

    /** A response of the predictor, or its failure. */
    private record Answer(
            @Nullable InferenceResponse response,
            boolean last,
            @Nullable ServingException failure) {}

    TransformedCall(
            TransformerSteps steps,
            InferenceEngine predictor,
            Executor executor,
            InferenceRequest request,
            ResponseSink sink,
            long deadlineNanos) {
        this.steps = steps;
        this.predictor = predictor;
        this.executor = executor;
        this.request = request;
        this.sink = sink;
        this.deadlineNanos = deadlineNanos;
    }

    void start() {
        if (!steps.before) {
            ask(List.of(), null);
            return;
        }
        try {
            executor.execute(this::before);
        } catch (RejectedExecutionException e) {
            request.release();
            sink.fail(shuttingDown());
        }
    }

    private static ServingException shuttingDown() {
        return ServingException.of(ErrorCode.UNAVAILABLE, "the transformer is shutting down", "try again");
    }

    private void before() {
        TransformerSteps.Made made = null;
        ServingException failure = null;
        synchronized (this) {
            if (cancelled) {
                failure = ServingException.of(ErrorCode.CANCELLED, "the request was cancelled");
            }
        }
        TensorValues.Scope scope = new TensorValues.Scope();
        if (failure == null) {
            try {
                if (steps.ownSpecs()) {
                    steps.check(
                            request.inputs(),
                            steps.inputs(predictor.metadata(request.model()).inputs()));
                }
                made = steps.before(TensorMap.of(request.inputs(), request.parameters(), scope));
            } catch (RuntimeException e) {
                failure = ServingException.from(e);
            }
            scope.end();
        }
        if (made == null) {
            request.release();
            sink.fail(failure == null ? shuttingDown() : failure);
        } else {
            ask(made.tensors(), made);
        }
    }

    /** Sends the result of preprocess to the predictor, or the client's inputs when there is no preprocess. */
    private void ask(List<Tensor> inputs, TransformerSteps.@Nullable Made made) {
        List<Tensor> sent = inputs;
        if (made == null) {
            sent = new ArrayList<>(request.inputs().size());
            for (Tensor tensor : request.inputs()) {
                sent.add(tensor.retain());
            }
        }
        if (!steps.after) {
            request.release();
        }
        InferenceRequest inner = new InferenceRequest(
                request.model(),
                request.id(),
                sent,
                steps.after ? List.of() : request.outputs(),
                made == null ? request.parameters() : made.parameters(),
                deadlineNanos,
                request.arrivedNanos(),
                request.options(),
                request.caller());
        InferenceCall begun = predictor.infer(inner, this);
        boolean late;
        synchronized (this) {
            call = begun;
            late = cancelled;
        }
        // cancel() ran before the call was known.
        if (late) {
            begun.cancel();
        }
    }

    @Override
    public void cancel() {
        InferenceCall begun;
        synchronized (this) {
            cancelled = true;
            begun = call;
        }
        if (begun != null) {
            begun.cancel();
        }
    }

    // ---- after ----

    @Override
    public void next(InferenceResponse response, boolean last) {
        if (steps.after) {
            take(new Answer(response, last, null));
        } else {
            sink.next(response, last);
        }
    }

    @Override
    public void fail(ServingException e) {
        if (steps.after) {
            take(new Answer(null, true, e));
        } else {
            sink.fail(e);
        }
    }

    /**
     * Queues a response. At most one task processes the queue: the caller that finds no task running starts one.
     */
    private void take(Answer answer) {
        synchronized (this) {
            answers.add(answer);
            if (stepping) {
                return;
            }
            stepping = true;
        }
        try {
            executor.execute(this::after);
        } catch (RejectedExecutionException e) {
            // The pool is closed: drain the queue here, so that every response is released.
            end(shuttingDown());
            after();
        }
    }

    private void after() {
        while (true) {
            Answer answer;
            synchronized (this) {
                answer = answers.poll();
                if (answer == null) {
                    stepping = false;
                    return;
                }
            }
            after(answer);
        }
    }

    private void after(Answer answer) {
        InferenceResponse response = answer.response;
        boolean over;
        synchronized (this) {
            over = ended;
        }
        if (over || response == null) {
            if (response != null) {
                response.close();
            }
            end(answer.failure == null ? shuttingDown() : answer.failure);
            return;
        }
        if (answer.last && response.outputs().isEmpty()) {
            finish(response, true);
            return;
        }
        InferenceResponse made;
        TensorValues.Scope scope = new TensorValues.Scope();
        try {
            made = after(response, scope);
        } catch (RuntimeException e) {
            end(ServingException.from(e));
            cancel();
            return;
        } finally {
            scope.end();
            response.close();
        }
        finish(made, answer.last);
    }

    private InferenceResponse after(InferenceResponse response, TensorValues.Scope scope) {
        TransformerSteps.Made made = steps.after(
                TensorMap.of(response.outputs(), response.parameters(), scope),
                TensorMap.of(request.inputs(), request.parameters(), scope));
        return new InferenceResponse(response.servable(), response.id(), requested(made.tensors()), made.parameters());
    }

    /** Selects the outputs that the client requested, in its order. */
    private List<Tensor> requested(List<Tensor> made) {
        if (request.outputs().isEmpty()) {
            return made;
        }
        List<Tensor> chosen = new ArrayList<>();
        try {
            for (RequestedOutput requested : request.outputs()) {
                if (requested.classes() > 0) {
                    throw ServingException.invalidArgument(
                            "output '" + requested.name() + "' cannot be requested as classes: a transformer makes it");
                }
                Tensor found = made.stream()
                        .filter(t -> t.name().equals(requested.name()))
                        .findFirst()
                        .orElseThrow(() -> ServingException.invalidArgument(
                                "unexpected inference output '" + requested.name() + "' for model '" + steps.modelName
                                        + "'",
                                "it has " + made.stream().map(Tensor::name).toList()));
                chosen.add(found.retain());
            }
            return chosen;
        } catch (RuntimeException e) {
            Tensor.closeAll(chosen);
            throw e;
        } finally {
            Tensor.closeAll(made);
        }
    }

    private void finish(InferenceResponse response, boolean last) {
        if (last) {
            synchronized (this) {
                ended = true;
            }
            request.release();
        }
        sink.next(response, last);
    }

    /** Ends the request with a failure, unless it has ended. */
    private void end(ServingException e) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
        }
        request.release();
        sink.fail(e);
    }
}
