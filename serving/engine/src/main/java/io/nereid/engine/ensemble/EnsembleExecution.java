// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.ensemble.EnsembleGraph.Plan;
import io.nereid.engine.ensemble.EnsembleGraph.Port;
import io.nereid.engine.ensemble.EnsembleGraph.Step;
import io.nereid.engine.request.DeviceOutputs;
import io.nereid.engine.request.ResponseTimeListener;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.DeviceRegion;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The execution of one request of an ensemble. Thread-safe: responses of steps arrive on any thread. A short lock
 * guards the tensors; neither steps nor clients are called under it, because either may call back at once. No thread
 * ever waits.
 *
 * <p>With {@code max_inflight_requests}, at most that many requests of one step are in flight; further ones wait here,
 * in order, up to {@value #MAX_WAITING}. A request whose producing step is further ahead fails.
 */
final class EnsembleExecution {
    /** The most step requests of one ensemble request that may wait. */
    static final int MAX_WAITING = 10_000;

    private static final int STARTING = 0;
    private static final int RUNNING = 1;
    private static final int ENDED = 2;
    private static final int[] NONE = {};
    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(StepCall.class, "state", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final EnsembleGraph graph;
    private final Plan plan;
    private final ComposingModels members;
    private final InferenceJob job;
    private final Executions executions;
    private final Clock clock;

    /** Guarded by this object's lock, except for {@link EnsembleState#ended}. */
    private final EnsembleState tensors;

    @GuardedBy("this") private List<StepCall> ready = new ArrayList<>(2);

    @GuardedBy("this") private @Nullable StepCall running;

    @GuardedBy("this") private int @Nullable [] inflight;

    @GuardedBy("this") private @Nullable List<ArrayDeque<StepCall>> waiting;

    @GuardedBy("this") private int waitingCalls;

    @GuardedBy("this") private boolean delivering;

    @GuardedBy("this") private long inputNanos;

    @GuardedBy("this") private long inferNanos;

    @GuardedBy("this") private long outputNanos;

    @SuppressWarnings("GuardedBy") // enqueue is called by EnsembleState, which is used under the lock only
    EnsembleExecution(
            EnsembleGraph graph, ComposingModels members, InferenceJob job, Executions executions, Clock clock) {
        this.graph = graph;
        this.plan = graph.plan(job.request().outputs());
        this.members = members;
        this.job = job;
        this.executions = executions;
        this.clock = clock;
        this.tensors = new EnsembleState(
                graph, plan, job.request().id(), job.request().options().sequence(), this::enqueue);
        if (graph.maxInflight > 0) {
            inflight = new int[graph.steps.size()];
            List<ArrayDeque<StepCall>> queues = new ArrayList<>();
            graph.steps.forEach(s -> queues.add(new ArrayDeque<>(0)));
            waiting = queues;
        }
    }

    /** Starts the request. The job ends exactly once, possibly before this method returns. */
    void start() {
        long now = clock.nanos();
        job.queued(now);
        job.started(now);
        job.onCancel(this::cancel);
        try {
            synchronized (this) {
                if (!tensors.ended()) {
                    tensors.begin(job.request().inputs());
                }
            }
        } catch (RuntimeException e) {
            fail(wrapped(e));
        }
        proceed();
    }

    /** Reports the latencies of the ensemble: the sums over its steps. */
    private void reportTimes() {
        long input;
        long infer;
        long output;
        synchronized (this) {
            input = inputNanos;
            infer = inferNanos;
            output = outputNanos;
        }
        executions.executed(job.batchSize(), input, infer, output);
        if (job instanceof ResponseTimeListener times) {
            times.onResponseTimes(input, infer, output);
        }
    }

    private void cancel() {
        fail(ServingException.of(ErrorCode.CANCELLED, "Request was cancelled by its client"));
        deliver();
    }

    /**
     * Starts the steps that are ready, including those that become ready on this thread meanwhile, then delivers
     * responses.
     */
    private void proceed() {
        for (List<StepCall> now = takeReady(); !now.isEmpty(); now = takeReady()) {
            for (StepCall call : now) {
                call.start();
            }
        }
        deliver();
    }

    private synchronized List<StepCall> takeReady() {
        if (ready.isEmpty()) {
            return List.of();
        }
        List<StepCall> now = ready;
        ready = new ArrayList<>(2);
        return now;
    }

    @GuardedBy("this") private void enqueue(EnsembleScope frame, Step step, List<Tensor> inputs, @Nullable SequenceFlags sequence) {
        StepCall call = new StepCall(frame, step, inputs, sequence);
        int s = step.index();
        if (inflight == null || waiting == null) {
            ready.add(call);
        } else if (inflight[s] < graph.maxInflight) {
            inflight[s]++;
            ready.add(call);
        } else {
            waiting.get(s).add(call);
            if (++waitingCalls > MAX_WAITING) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "more than " + MAX_WAITING + " requests of its steps wait for model '"
                                + call.step.model().model() + "'",
                        "raise max_inflight_requests, or let the decoupled model answer more slowly");
            }
        }
    }

    @GuardedBy("this") private void freed(Step step) {
        if (inflight != null && waiting != null) {
            StepCall next = waiting.get(step.index()).poll();
            if (next == null) {
                inflight[step.index()]--;
            } else {
                waitingCalls--;
                ready.add(next);
            }
        }
    }

    /** Handles the last response of a step. Called under the lock. */
    @GuardedBy("this") private void completed(StepCall call, InferenceResponse response) {
        unlink(call);
        freed(call.step);
        inputNanos += call.inputNanos;
        inferNanos += call.inferNanos;
        outputNanos += call.outputNanos;
        tensors.completed(call.frame, call.step, response, sequence(response, call));
    }

    /** The sequence of a response's tensors; closes the response if its parameters are wrong. */
    private static @Nullable SequenceFlags sequence(InferenceResponse response, StepCall call) {
        try {
            return StepSequence.after(response.parameters(), call.sequence);
        } catch (ServingException e) {
            response.close();
            throw e;
        }
    }

    @GuardedBy("this") private void link(StepCall call) {
        StepCall first = running;
        call.next = first;
        if (first != null) {
            first.previous = call;
        }
        running = call;
    }

    @GuardedBy("this") private void unlink(StepCall call) {
        StepCall before = call.previous;
        StepCall after = call.next;
        if (before != null) {
            before.next = after;
        } else {
            running = after;
        }
        if (after != null) {
            after.previous = before;
        }
    }

    // the methods below are called without the lock

    private ServingException wrapped(RuntimeException e) {
        ServingException s = ServingException.from(e);
        String text = "in ensemble '" + graph.name + "', " + s.getMessage();
        return s.getCause() == null
                ? ServingException.of(s.code(), text, s.remedy())
                : ServingException.wrap(s.code(), text, s.remedy(), s.getCause());
    }

    /** The first failure ends the request and cancels every running step. */
    private void fail(ServingException e) {
        List<StepCall> stopped = new ArrayList<>();
        synchronized (this) {
            if (tensors.ended()) {
                return;
            }
            for (StepCall c = running; c != null; c = c.next) {
                stopped.add(c);
            }
            ready.forEach(StepCall::drop);
            ready.clear();
            if (waiting != null) {
                for (ArrayDeque<StepCall> calls : waiting) {
                    calls.forEach(StepCall::drop);
                    calls.clear();
                }
            }
            tensors.fail(e);
        }
        for (StepCall call : stopped) {
            call.cancel();
        }
    }

    /**
     * Delivers responses, on one thread at a time, so that they keep their order although no lock is held during the
     * delivery.
     */
    private void deliver() {
        boolean mine = false;
        while (true) {
            EnsembleResponse answer;
            synchronized (this) {
                if (!mine && delivering) {
                    return;
                }
                answer = tensors.poll();
                delivering = answer != null;
                mine = true;
            }
            if (answer == null) {
                return;
            }
            if (answer.failure != null) {
                job.fail(answer.failure);
            } else if (answer.last) {
                reportTimes();
                job.complete(answer.outputs, answer.parameters);
            } else {
                job.respond(answer.outputs, answer.parameters);
            }
        }
    }

    /** Receives the statistics of an answered request: its rows, and the sums of its steps' latencies. */
    interface Executions {
        void executed(int rows, long inputNanos, long inferNanos, long outputNanos);
    }

    /**
     * One request of a step. When the last response arrives while the step is still being started, it is kept until
     * {@link ComposingModels#infer} has returned. So steps that run synchronously follow each other in the loop of
     * {@link #proceed} and not recursively on the stack.
     */
    private final class StepCall implements ResponseSink, ResponseTimeListener, DeviceOutputs {
        final EnsembleScope frame;
        final Step step;
        final List<Tensor> inputs;
        final @Nullable SequenceFlags sequence;

        @Nullable RequestTrace trace;

        @Nullable StepCall previous;

        @Nullable StepCall next;

        long inputNanos;
        long inferNanos;
        long outputNanos;

        @SuppressWarnings("unused") // through STATE
        private volatile int state;

        /** Whether outputs may be in the memory of a GPU. Written and read on the thread of the GPU. */
        private boolean keeps;

        private @Nullable InferenceCall call;
        private @Nullable InferenceResponse response;
        private @Nullable ServingException failure;

        StepCall(EnsembleScope frame, Step step, List<Tensor> inputs, @Nullable SequenceFlags sequence) {
            this.frame = frame;
            this.step = step;
            this.inputs = inputs;
            this.sequence = sequence;
        }

        void drop() {
            Tensor.closeAll(inputs);
        }

        void start() {
            synchronized (EnsembleExecution.this) {
                if (tensors.ended()) {
                    drop();
                    return;
                }
                link(this);
            }
            RequestTrace parent = job.request().options().trace();
            if (parent != null) {
                trace = parent.child(step.model().model());
            }
            call = members.infer(request(), this);
            if (!STATE.compareAndSet(this, STARTING, RUNNING)) {
                // the step ended before infer returned: handle its end here, in the loop of proceed()
                ended();
            } else if (tensors.ended()) {
                // the request failed meanwhile, and fail() could not cancel this step because it was not RUNNING yet
                cancel();
            }
        }

        private InferenceRequest request() {
            InferenceRequest whole = job.request();
            Options options = whole.options();
            if (trace != null || sequence != options.sequence()) {
                options = new Options(options.priority(), options.timeoutNanos(), sequence, trace);
            }
            return new InferenceRequest(
                    step.model(),
                    whole.id(),
                    inputs,
                    plan.wanted.get(step.index()),
                    whole.parameters(),
                    whole.deadlineNanos(),
                    clock.nanos(),
                    options);
        }

        void cancel() {
            if ((int) STATE.getVolatile(this) == RUNNING) {
                InferenceCall started = call;
                if (started != null) {
                    started.cancel();
                }
            }
        }

        @Override
        public void onResponseTimes(long input, long infer, long output) {
            inputNanos = input;
            inferNanos = infer;
            outputNanos = output;
        }

        @Override
        public boolean keepsOnDevice(String output, int device) {
            int tensor = tensor(output);
            for (int s : tensor < 0 ? NONE : plan.consumers[tensor]) {
                if (takes(graph.steps.get(s), tensor, device)) {
                    keeps = true;
                    return true;
                }
            }
            return false;
        }

        private int tensor(String output) {
            for (Port port : step.outputs()) {
                if (port.name().equals(output)) {
                    return port.tensor();
                }
            }
            return -1;
        }

        private boolean takes(Step reader, int tensor, int device) {
            return reader.when() != tensor && members.takesDeviceTensors(reader.model(), device);
        }

        /**
         * Copies what is in the memory of a GPU and has a reader on the host: here, since this is the thread of the GPU, and a
         * reader may be on an event loop.
         *
         * @throws ServingException UNAVAILABLE when the GPU is lost
         */
        private void copyForHost(InferenceResponse answer) {
            for (Tensor output : answer.outputs()) {
                DeviceRegion region = output.deviceRegion();
                int tensor = region == null ? -1 : tensor(output.name());
                if (region != null && tensor >= 0 && readOnHost(tensor, region.device())) {
                    MemoryRegion unused = region.copyToHost();
                }
            }
        }

        private boolean readOnHost(int tensor, int device) {
            for (Port output : plan.outputs) {
                if (output.tensor() == tensor) {
                    return true;
                }
            }
            for (int s : plan.consumers[tensor]) {
                if (!takes(graph.steps.get(s), tensor, device)) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public void next(InferenceResponse answer, boolean last) {
            if (keeps && !tensors.ended()) {
                try {
                    copyForHost(answer);
                } catch (RuntimeException e) {
                    answer.close();
                    fail(ServingException.from(e));
                    return;
                }
            }
            if (last) {
                response = answer;
                end();
                return;
            }
            try {
                synchronized (EnsembleExecution.this) {
                    if (tensors.ended()) {
                        answer.close();
                    } else {
                        tensors.emitted(step, answer, sequence(answer, this));
                    }
                }
            } catch (RuntimeException e) {
                EnsembleExecution.this.fail(wrapped(e));
            }
            proceed();
        }

        @Override
        public void fail(ServingException e) {
            failure = e;
            end();
        }

        private void end() {
            if ((int) STATE.getAndSet(this, ENDED) == RUNNING) {
                ended();
                proceed();
            }
        }

        private void endTrace() {
            if (trace != null) {
                trace.end();
            }
        }

        private void ended() {
            endTrace();
            InferenceResponse answer = response;
            if (answer == null) {
                ServingException e = failure;
                synchronized (EnsembleExecution.this) {
                    unlink(this);
                }
                EnsembleExecution.this.fail(wrapped(e == null ? new IllegalStateException("no answer") : e));
                return;
            }
            try {
                synchronized (EnsembleExecution.this) {
                    if (!tensors.ended()) {
                        completed(this, answer);
                        return;
                    }
                    unlink(this);
                }
                answer.close();
            } catch (RuntimeException e) {
                EnsembleExecution.this.fail(wrapped(e));
            }
        }
    }
}
