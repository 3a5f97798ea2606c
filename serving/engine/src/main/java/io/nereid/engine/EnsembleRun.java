// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.engine.EnsembleGraph.Plan;
import io.nereid.engine.EnsembleGraph.Port;
import io.nereid.engine.EnsembleGraph.Step;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceEngine.Call;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.Sequence;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One request of an ensemble on its way through the steps. Thread-safe: answers of steps come on any thread; a short lock
 * guards the tensors, and neither steps nor clients are called under it. No thread ever waits.
 *
 * <p>A step starts as soon as every tensor it reads is settled, that is, exists or never will. A tensor is
 * <ul>
 *   <li>absent, when it is an optional input that the request left out, or an output that its step did not give;
 *   <li>left out, when its step was left out: because its {@code when} tensor does not exist or has a false element (one
 *       without elements has none), or because an input that it needs was left out.
 * </ul>
 * A step that needs an absent tensor can never run, nor can the steps after it; when an output of the ensemble is missing for
 * that reason the request fails. An output that was left out is not in the answer, which is how an ensemble decides between
 * branches: each branch begins with a {@code when}, and the step that joins them has optional inputs.
 *
 * <p>Each answer of a decoupled step makes a {@link Frame}: the steps after it run once more, with the tensors of that
 * answer. Answers leave in the order in which the decoupled step gave theirs.
 *
 * <p>With {@code max_inflight_requests} at most so many requests of one step are under way; more wait here, in order, up to
 * {@value #MAX_WAITING}. A producer that is further ahead than that fails the request.
 */
final class EnsembleRun {
    /** Requests of steps that may wait for others of one request. */
    static final int MAX_WAITING = 10_000;

    private static final byte UNSETTLED = 0;
    private static final byte PRESENT = 1;
    private static final byte ABSENT = 2;
    private static final byte LEFT_OUT = 3;
    private static final byte UNREACHABLE = 4;

    private static final int STARTING = 0;
    private static final int RUNNING = 1;
    private static final int ENDED = 2;
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
    private final EnsembleMembers members;
    private final InferenceJob job;
    private final Executions executions;
    private final Clock clock;
    private final Frame root;

    // All below is guarded by this.
    private final List<Frame> frames = new ArrayList<>(0);
    private final ArrayDeque<Frame> order = new ArrayDeque<>(0);
    private final ArrayDeque<Answer> answers = new ArrayDeque<>(2);
    private List<StepCall> ready = new ArrayList<>(2);
    private @Nullable StepCall running;
    private int @Nullable [] inflight;
    private @Nullable List<ArrayDeque<StepCall>> waiting;
    private int waitingCalls;
    private @Nullable Sequence sequence;
    private boolean delivering;
    private volatile boolean ended;
    private long inputNanos;
    private long inferNanos;
    private long outputNanos;

    EnsembleRun(
            EnsembleGraph graph,
            EnsembleMembers members,
            InferenceJob job,
            Executions executions,
            Clock clock) {
        this.graph = graph;
        this.plan = graph.plan(job.request().outputs());
        this.members = members;
        this.job = job;
        this.executions = executions;
        this.clock = clock;
        this.sequence = job.request().options().sequence();
        this.root = new Frame(0);
        if (graph.maxInflight > 0) {
            inflight = new int[graph.steps.size()];
            List<ArrayDeque<StepCall>> queues = new ArrayList<>();
            graph.steps.forEach(s -> queues.add(new ArrayDeque<>(0)));
            waiting = queues;
        }
    }

    /** Starts; the job ends once, possibly before this returns. */
    void start() {
        long now = clock.nanos();
        job.queued(now);
        job.started(now);
        job.onCancel(this::cancel);
        try {
            synchronized (this) {
                if (!ended) {
                    feed();
                    settled(root);
                }
            }
        } catch (RuntimeException e) {
            fail(wrapped(e));
        }
        proceed();
    }

    /** The ensemble took as long as its steps together. */
    private void tellTimes() {
        long input;
        long infer;
        long output;
        synchronized (this) {
            input = inputNanos;
            infer = inferNanos;
            output = outputNanos;
        }
        executions.executed(job.batchSize(), input, infer, output);
        if (job instanceof StepTimes times) {
            times.took(input, infer, output);
        }
    }

    private void cancel() {
        fail(ServingException.of(Code.CANCELLED, "Request was cancelled by its client"));
        deliver();
    }

    private void feed() {
        List<Tensor> given = job.request().inputs();
        int at = 0;
        for (Port input : plan.inputs) {
            Tensor found = null;
            // Both lists have the order of the configuration; inputs that no step needs are passed over.
            for (int i = at; i < given.size() && found == null; i++) {
                if (given.get(i).name().equals(input.name())) {
                    found = given.get(i);
                    at = i + 1;
                }
            }
            if (found == null) {
                settle(root, input.tensor(), null, ABSENT);
            } else {
                settle(root, input.tensor(), found.retain(), PRESENT);
            }
        }
    }

    /** Starts what is ready, and what becomes ready on this thread meanwhile, then hands out answers. */
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

    // Tensors; everything here is called under the lock.

    private void settle(Frame frame, int tensor, @Nullable Tensor value, byte state) {
        if (frame.states[tensor] != UNSETTLED || (frame.uses[tensor] == 0 && plan.consumers[tensor].length == 0)) {
            if (value != null) {
                value.close();
            }
            return;
        }
        frame.tensors[tensor] = value;
        frame.states[tensor] = state;
        for (int s : plan.consumers[tensor]) {
            Step step = graph.steps.get(s);
            if (step.scope() == frame.scope) {
                arrived(frame, step);
            } else {
                for (Frame other : List.copyOf(frames)) {
                    if (other.scope == step.scope()) {
                        arrived(other, step);
                        settled(other);
                    }
                }
            }
        }
        if (frame == root && plan.shared[tensor]) {
            for (Frame other : List.copyOf(frames)) {
                if (plan.answers[other.scope]) {
                    other.unsettled--;
                    settled(other);
                }
            }
        }
    }

    private void arrived(Frame frame, Step step) {
        if (--frame.pending[step.index()] == 0) {
            decide(frame, step);
        }
    }

    private Frame owner(Frame frame, int tensor) {
        return graph.scope(tensor) == frame.scope ? frame : root;
    }

    private void decide(Frame frame, Step step) {
        byte outcome = outcome(frame, step);
        if (outcome == PRESENT) {
            enqueue(new StepCall(frame, step, inputs(frame, step)));
        }
        for (int t : step.reads()) {
            if (graph.scope(t) == frame.scope) {
                frame.used(t);
            }
        }
        if (outcome != PRESENT) {
            frame.unsettled--;
            if (!step.decoupled()) {
                for (Port output : step.outputs()) {
                    settle(frame, output.tensor(), null, outcome);
                }
            } else if (outcome == UNREACHABLE) {
                throw deadlock();
            }
        }
    }

    /** PRESENT for a step that runs, else what becomes of its outputs. */
    private byte outcome(Frame frame, Step step) {
        byte outcome = PRESENT;
        for (int t : step.reads()) {
            if (owner(frame, t).states[t] == UNREACHABLE) {
                return UNREACHABLE;
            }
        }
        if (step.when() >= 0 && !holds(owner(frame, step.when()).tensors[step.when()])) {
            return LEFT_OUT;
        }
        for (Port input : step.inputs()) {
            byte state = owner(frame, input.tensor()).states[input.tensor()];
            if (!input.optional() && state == LEFT_OUT) {
                return LEFT_OUT;
            }
            if (!input.optional() && state == ABSENT) {
                outcome = UNREACHABLE;
            }
        }
        return outcome;
    }

    private boolean holds(@Nullable Tensor when) {
        if (when == null) {
            return false;
        }
        if (when.dataType() != DataType.BOOL) {
            throw ServingException.invalidArgument(
                    "the condition '" + when.name() + "' of a step is " + when.dataType() + " (expected: BOOL)");
        }
        for (int i = 0; i < when.byteLength(); i++) {
            if (when.region().getByte(when.offset() + i) == 0) {
                return false;
            }
        }
        return true;
    }

    private List<Tensor> inputs(Frame frame, Step step) {
        List<Port> ports = step.inputs();
        List<Tensor> inputs = new ArrayList<>(ports.size());
        try {
            for (int i = 0; i < ports.size(); i++) {
                Port port = ports.get(i);
                Tensor tensor = owner(frame, port.tensor()).tensors[port.tensor()];
                if (tensor != null) {
                    Shape shape = adapted(tensor, port, step.model().model());
                    inputs.add(tensor.retainAs(port.name(), shape));
                }
            }
        } catch (RuntimeException e) {
            Tensor.closeAll(inputs);
            throw e;
        }
        return inputs;
    }

    /** A tensor's shape for a taker: the batch dimension put before it or taken away where only one side has it. */
    private Shape adapted(Tensor tensor, Port taker, String model) {
        Shape shape = tensor.shape();
        if (shape.rank() == taker.rank() - 1) {
            return shape.prepend(1);
        }
        if (shape.rank() != taker.rank() + 1) {
            return shape;
        }
        if (shape.dim(0) != 1) {
            throw ServingException.invalidArgument(
                    "ensemble tensor '" + graph.tensors.get(taker.tensor()) + "' has shape " + shape + ", but '"
                            + model + "' takes no batches (expected first dimension 1)",
                    "send one row a request, or give '" + model + "' a max_batch_size");
        }
        return shape.withoutFirst();
    }

    private void enqueue(StepCall call) {
        int s = call.step.index();
        if (inflight == null || waiting == null) {
            ready.add(call);
        } else if (inflight[s] < graph.maxInflight) {
            inflight[s]++;
            ready.add(call);
        } else {
            waiting.get(s).add(call);
            if (++waitingCalls > MAX_WAITING) {
                throw ServingException.of(
                        Code.RESOURCE_EXHAUSTED,
                        "more than " + MAX_WAITING + " requests of its steps wait for model '"
                                + call.step.model().model() + "'",
                        "raise max_inflight_requests, or let the decoupled model answer more slowly");
            }
        }
    }

    private void freed(Step step) {
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

    // Ends of steps and frames.

    /** An answer that is not a decoupled step's last word. */
    private void emitted(StepCall call, InferenceResponse response) {
        Frame frame = new Frame(call.step.outputScope());
        frames.add(frame);
        if (plan.answers[frame.scope]) {
            order.add(frame);
            for (Port output : plan.outputs) {
                if (plan.shared[output.tensor()] && root.states[output.tensor()] == UNSETTLED) {
                    frame.unsettled++;
                }
            }
        }
        give(frame, call.step, outputs(call.step, response));
        for (Step step : graph.steps) {
            if (step.scope() == frame.scope && plan.pending[step.index()] > 0) {
                for (int t : step.reads()) {
                    if (graph.scope(t) == 0 && root.states[t] != UNSETTLED) {
                        arrived(frame, step);
                    }
                }
            }
        }
        frame.take(response.parameters());
        settled(frame);
    }

    private void give(Frame frame, Step step, @Nullable Tensor[] outputs) {
        int given = 0;
        try {
            while (given < outputs.length) {
                Tensor output = outputs[given];
                int tensor = step.outputs().get(given++).tensor();
                settle(frame, tensor, output, output == null ? ABSENT : PRESENT);
            }
        } finally {
            while (given < outputs.length) {
                Tensor output = outputs[given++];
                if (output != null) {
                    output.close();
                }
            }
        }
    }

    /** The answer's tensors by the step's outputs; others are closed. */
    private @Nullable Tensor[] outputs(Step step, InferenceResponse response) {
        List<Port> ports = step.outputs();
        @Nullable Tensor[] found = new Tensor[ports.size()];
        for (Tensor tensor : response.outputs()) {
            boolean wanted = false;
            for (int i = 0; i < found.length; i++) {
                if (ports.get(i).name().equals(tensor.name()) && found[i] == null) {
                    found[i] = tensor;
                    wanted = true;
                    break;
                }
            }
            if (!wanted) {
                tensor.close();
            }
        }
        return found;
    }

    /** The last word of a step. */
    private void completed(StepCall call, InferenceResponse response) {
        unlink(call);
        freed(call.step);
        inputNanos += call.inputNanos;
        inferNanos += call.inferNanos;
        outputNanos += call.outputNanos;
        heed(response.parameters());
        if (!call.step.decoupled()) {
            call.frame.take(response.parameters());
            give(call.frame, call.step, outputs(call.step, response));
        } else if (!response.outputs().isEmpty()) {
            emitted(call, response);
        }
        call.frame.unsettled--;
        settled(call.frame);
    }

    /** What an answer says about the sequence holds for the steps after it. */
    private void heed(Map<String, Object> parameters) {
        if (parameters.isEmpty()) {
            return;
        }
        Object id = parameters.get("sequence_id");
        Object start = parameters.get("sequence_start");
        Object end = parameters.get("sequence_end");
        if (id != null || start != null || end != null) {
            Sequence before = sequence;
            sequence = new Sequence(
                    id != null ? id : before == null ? 0L : before.id(),
                    start != null ? Boolean.TRUE.equals(start) : before != null && before.start(),
                    end != null ? Boolean.TRUE.equals(end) : before != null && before.end());
        }
    }

    /** Ends a frame whose steps have all ended. */
    private void settled(Frame frame) {
        if (frame.unsettled > 0 || frame.done || ended) {
            return;
        }
        if (frame != root) {
            if (plan.answers[frame.scope]) {
                frame.answer = answer(frame);
            }
            frames.remove(frame);
            frame.clear();
        } else if (!plan.decoupled) {
            frame.answer = answer(frame);
        }
        frame.done = true;
        Frame head;
        while ((head = order.peek()) != null && head.done) {
            order.remove();
            Answer answer = head.answer;
            if (answer != null && !answer.outputs.isEmpty()) {
                answers.add(answer);
            }
        }
        if (root.done && frames.isEmpty()) {
            ended = true;
            Answer last = plan.decoupled ? answers.peekLast() : root.answer;
            if (last == null) {
                last = new Answer(List.of(), Map.of(), null);
                answers.add(last);
            } else if (!plan.decoupled) {
                answers.add(last);
            }
            last.last = true;
            root.clear();
        }
    }

    /** The outputs of a frame whose steps have ended. */
    private Answer answer(Frame frame) {
        List<Tensor> outputs = new ArrayList<>(plan.outputs.size());
        try {
            for (Port output : plan.outputs) {
                int t = output.tensor();
                if (graph.scope(t) != 0 && graph.scope(t) != frame.scope) {
                    continue;
                }
                Frame owner = owner(frame, t);
                Tensor tensor = owner.tensors[t];
                if (tensor != null) {
                    outputs.add(tensor.retainAs(output.name(), adapted(tensor, output, graph.name)));
                } else if (owner.states[t] != LEFT_OUT) {
                    throw deadlock();
                }
            }
            return new Answer(outputs, frame.parameters, null);
        } catch (RuntimeException e) {
            Tensor.closeAll(outputs);
            throw e;
        }
    }

    private ServingException deadlock() {
        String id = job.request().id();
        return ServingException.invalidArgument("[request id: " + (id.isEmpty() ? "<id_unknown>" : id)
                + "] unexpected deadlock, at least one output is not set while no more ensemble steps can be made");
    }

    private void link(StepCall call) {
        StepCall first = running;
        call.next = first;
        if (first != null) {
            first.previous = call;
        }
        running = call;
    }

    private void unlink(StepCall call) {
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

    // Without the lock.

    private ServingException wrapped(RuntimeException e) {
        ServingException s = ServingException.from(e);
        String text = "in ensemble '" + graph.name + "', " + s.getMessage();
        return s.getCause() == null
                ? ServingException.of(s.code(), text, s.remedy())
                : ServingException.wrap(s.code(), text, s.remedy(), s.getCause());
    }

    /** The first failure ends the request and stops every step. */
    private void fail(ServingException e) {
        List<StepCall> stopped = new ArrayList<>();
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
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
            for (Frame frame : order) {
                Answer answer = frame.answer;
                if (answer != null) {
                    Tensor.closeAll(answer.outputs);
                }
            }
            order.clear();
            frames.forEach(Frame::clear);
            frames.clear();
            root.clear();
            Answer failure = new Answer(List.of(), Map.of(), e);
            failure.last = true;
            answers.add(failure);
        }
        for (StepCall call : stopped) {
            call.cancel();
        }
    }

    /** Hands out answers, one thread at a time. */
    private void deliver() {
        boolean mine = false;
        while (true) {
            Answer answer;
            synchronized (this) {
                if (!mine && delivering) {
                    return;
                }
                answer = answers.poll();
                delivering = answer != null;
                mine = true;
            }
            if (answer == null) {
                return;
            }
            if (answer.failure != null) {
                job.fail(answer.failure);
            } else if (answer.last) {
                tellTimes();
                job.complete(answer.outputs, answer.parameters);
            } else {
                job.respond(answer.outputs, answer.parameters);
            }
        }
    }

    /** What goes to the client. Guarded by the run until it is handed out. */
    private static final class Answer {
        final List<Tensor> outputs;
        final Map<String, Object> parameters;
        final @Nullable ServingException failure;
        boolean last;

        Answer(List<Tensor> outputs, Map<String, Object> parameters, @Nullable ServingException failure) {
            this.outputs = outputs;
            this.parameters = parameters;
            this.failure = failure;
        }
    }

    /** Where it is noted that a request has been answered: its rows, and the times of its steps together. */
    interface Executions {
        void executed(int rows, long inputNanos, long inferNanos, long outputNanos);
    }

    /** The tensors and steps of one scope, for one answer of the step that opens it. Guarded by the run. */
    private final class Frame {
        final int scope;
        final @Nullable Tensor[] tensors;
        final byte[] states;
        final int[] pending;
        final int[] uses;
        int unsettled;
        boolean done;
        Map<String, Object> parameters = Map.of();

        @Nullable Answer answer;

        Frame(int scope) {
            this.scope = scope;
            this.tensors = new Tensor[graph.tensors.size()];
            this.states = new byte[tensors.length];
            this.pending = plan.pending.clone();
            this.uses = plan.uses.clone();
            this.unsettled = plan.scopeSteps[scope];
        }

        /** One taker has taken a tensor. */
        void used(int tensor) {
            if (--uses[tensor] == 0) {
                Tensor value = tensors[tensor];
                tensors[tensor] = null;
                if (value != null) {
                    value.close();
                }
            }
        }

        void take(Map<String, Object> more) {
            if (!more.isEmpty()) {
                Map<String, Object> all = new HashMap<>(parameters);
                all.putAll(more);
                parameters = all;
            }
        }

        void clear() {
            for (int i = 0; i < tensors.length; i++) {
                Tensor value = tensors[i];
                tensors[i] = null;
                if (value != null) {
                    value.close();
                }
            }
        }
    }

    /**
     * One request of a step. A last answer that comes while the step is still being started is kept until the starter has
     * the call in hand, so that steps which run on the spot follow each other in a loop and not on the stack.
     */
    private final class StepCall implements ResponseSink, StepTimes {
        final Frame frame;
        final Step step;
        final List<Tensor> inputs;
        @Nullable RequestTrace trace;
        @Nullable StepCall previous;
        @Nullable StepCall next;
        long inputNanos;
        long inferNanos;
        long outputNanos;

        @SuppressWarnings("unused") // through STATE
        private volatile int state;

        private @Nullable Call call;
        private @Nullable InferenceResponse response;
        private @Nullable ServingException failure;

        StepCall(Frame frame, Step step, List<Tensor> inputs) {
            this.frame = frame;
            this.step = step;
            this.inputs = inputs;
        }

        void drop() {
            Tensor.closeAll(inputs);
        }

        void start() {
            Sequence place;
            synchronized (EnsembleRun.this) {
                if (ended) {
                    drop();
                    return;
                }
                link(this);
                place = sequence;
            }
            RequestTrace parent = job.request().options().trace();
            if (parent != null) {
                trace = parent.child(step.model().model());
            }
            call = members.infer(request(place), this);
            if (!STATE.compareAndSet(this, STARTING, RUNNING)) {
                ended();
            } else if (ended) {
                cancel();
            }
        }

        private InferenceRequest request(@Nullable Sequence place) {
            InferenceRequest whole = job.request();
            Options options = whole.options();
            if (trace != null || place != options.sequence()) {
                options = new Options(options.priority(), options.timeoutNanos(), place, trace);
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
                Call started = call;
                if (started != null) {
                    started.cancel();
                }
            }
        }

        @Override
        public void took(long input, long infer, long output) {
            inputNanos = input;
            inferNanos = infer;
            outputNanos = output;
        }

        @Override
        public void next(InferenceResponse answer, boolean last) {
            if (last) {
                response = answer;
                end();
                return;
            }
            try {
                synchronized (EnsembleRun.this) {
                    if (ended) {
                        answer.close();
                    } else {
                        heed(answer.parameters());
                        emitted(this, answer);
                    }
                }
            } catch (RuntimeException e) {
                EnsembleRun.this.fail(wrapped(e));
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
                synchronized (EnsembleRun.this) {
                    unlink(this);
                }
                EnsembleRun.this.fail(wrapped(e == null ? new IllegalStateException("no answer") : e));
                return;
            }
            try {
                synchronized (EnsembleRun.this) {
                    if (!ended) {
                        completed(this, answer);
                        return;
                    }
                    unlink(this);
                }
                answer.close();
            } catch (RuntimeException e) {
                EnsembleRun.this.fail(wrapped(e));
            }
        }
    }
}
