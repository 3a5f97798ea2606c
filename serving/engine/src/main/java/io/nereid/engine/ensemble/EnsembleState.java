// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.engine.ensemble.EnsembleGraph.Plan;
import io.nereid.engine.ensemble.EnsembleGraph.Port;
import io.nereid.engine.ensemble.EnsembleGraph.Step;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The state of one request of an ensemble: which tensors exist, which steps can start, and which responses are ready.
 * Guarded by the lock of its {@link EnsembleExecution}; its only callback is {@link Starter}.
 *
 * <p>A step is decided as soon as every tensor that it reads is settled, which means that the tensor exists or never
 * will. A tensor without a value is
 * <ul>
 * <li>absent, when it is an optional input that the request omits, or an output that its step did not return;
 * <li>left out, when its step was skipped: because the step's {@code when} tensor does not exist or has a false
 * element (a tensor without elements has none), or because an input that the step requires was left out.
 * </ul>
 * <p>A step that requires an absent tensor can never run, nor can the steps that depend on it; the request fails when
 * an output of the ensemble is missing for that reason. An output that is absent itself, or was left out, is omitted
 * from the response. In this way an ensemble selects between branches: each branch begins with a {@code when}, and the step that joins the
 * branches has optional inputs.
 *
 * <p>Each response of a decoupled step creates an {@link EnsembleScope}: the dependent steps run once more, with the
 * tensors of that response. Responses are delivered in the order in which the decoupled step returned them.
 *
 * <p>Bookkeeping: {@code pending} counts, per step, the tensors that are not settled yet, and {@code uses}, per
 * tensor, the readers left, so that a tensor is closed after its last reader; {@code unsettled} counts, per scope,
 * what must still end before its response is complete.
 */
final class EnsembleState {
    private static final byte UNSETTLED = 0;
    private static final byte PRESENT = 1;
    private static final byte ABSENT = 2;
    private static final byte LEFT_OUT = 3;
    private static final byte UNREACHABLE = 4;

    private final EnsembleGraph graph;
    private final Plan plan;
    private final String requestId;
    private final @Nullable SequenceFlags sequence;
    private final Starter starter;
    private final EnsembleScope root;
    private final List<EnsembleScope> frames = new ArrayList<>(0);
    private final ArrayDeque<EnsembleScope> order = new ArrayDeque<>(0);
    private final ArrayDeque<EnsembleResponse> answers = new ArrayDeque<>(2);
    private volatile boolean ended;

    /** Starts steps. */
    interface Starter {
        /**
         * Starts a step whose inputs are complete. Owns the inputs from here on, also when it throws.
         *
         * @param sequence the sequence of the step's request; null for none
         */
        void start(EnsembleScope frame, Step step, List<Tensor> inputs, @Nullable SequenceFlags sequence);
    }

    EnsembleState(EnsembleGraph graph, Plan plan, String requestId, @Nullable SequenceFlags sequence, Starter starter) {
        this.graph = graph;
        this.plan = plan;
        this.requestId = requestId;
        this.sequence = sequence;
        this.starter = starter;
        this.root = new EnsembleScope(plan, 0);
    }

    /** Whether the last response, or the failure, is known. May be called without the lock. */
    boolean ended() {
        return ended;
    }

    /** The next response to deliver, or null. */
    @Nullable EnsembleResponse poll() {
        return answers.poll();
    }

    /** Begins the request with the client's inputs, which the caller keeps. */
    void begin(List<Tensor> given) {
        int at = 0;
        for (Port input : plan.inputs) {
            Tensor found = null;
            // both lists have the order of the configuration; inputs that no step reads are skipped
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
        settled(root);
    }

    /**
     * Takes over the last response of a step.
     *
     * @param made the sequence of its outputs
     */
    void completed(EnsembleScope frame, Step step, InferenceResponse response, @Nullable SequenceFlags made) {
        if (!step.decoupled()) {
            frame.take(response.parameters());
            frame.sequence(step.outputs(), made, sequence);
            give(frame, step, outputs(step, response));
        } else if (!response.outputs().isEmpty()) {
            emitted(step, response, made);
        }
        frame.unsettled--;
        settled(frame);
    }

    /** Takes over a response of a decoupled step, which more may follow. */
    void emitted(Step step, InferenceResponse response, @Nullable SequenceFlags made) {
        EnsembleScope frame = new EnsembleScope(plan, step.outputScope());
        frame.sequence(step.outputs(), made, sequence);
        frames.add(frame);
        if (plan.answers[frame.scope]) {
            order.add(frame);
            for (Port output : plan.outputs) {
                if (plan.shared[output.tensor()] && root.states[output.tensor()] == UNSETTLED) {
                    frame.unsettled++;
                }
            }
        }
        give(frame, step, outputs(step, response));
        // the new scope must also count the tensors of scope 0 that were settled before it existed
        for (Step after : graph.steps) {
            if (after.scope() == frame.scope && plan.pending[after.index()] > 0) {
                for (int t : after.reads()) {
                    if (graph.scope(t) == 0 && root.states[t] != UNSETTLED) {
                        arrived(frame, after);
                    }
                }
            }
        }
        frame.take(response.parameters());
        settled(frame);
    }

    /** Fails the request: closes everything, and adds the failure as the last response. */
    void fail(ServingException e) {
        ended = true;
        for (EnsembleScope frame : order) {
            EnsembleResponse answer = frame.answer;
            if (answer != null) {
                Tensor.closeAll(answer.outputs);
            }
        }
        order.clear();
        frames.forEach(EnsembleScope::clear);
        frames.clear();
        root.clear();
        answers.add(new EnsembleResponse(List.of(), Map.of(), e));
    }

    private void give(EnsembleScope frame, Step step, @Nullable Tensor[] outputs) {
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

    /** The response's tensors in the order of the step's outputs; other tensors are closed. */
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

    private void settle(EnsembleScope frame, int tensor, @Nullable Tensor value, byte state) {
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
                for (EnsembleScope other : List.copyOf(frames)) {
                    if (other.scope == step.scope()) {
                        arrived(other, step);
                        settled(other);
                    }
                }
            }
        }
        if (frame == root && plan.shared[tensor]) {
            for (EnsembleScope other : List.copyOf(frames)) {
                if (plan.answers[other.scope]) {
                    other.unsettled--;
                    settled(other);
                }
            }
        }
    }

    private void arrived(EnsembleScope frame, Step step) {
        if (--frame.pending[step.index()] == 0) {
            decide(frame, step);
        }
    }

    private EnsembleScope owner(EnsembleScope frame, int tensor) {
        return graph.scope(tensor) == frame.scope ? frame : root;
    }

    private void decide(EnsembleScope frame, Step step) {
        byte outcome = outcome(frame, step);
        if (outcome == PRESENT) {
            starter.start(frame, step, inputs(frame, step), sequence(frame, step));
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

    /** PRESENT for a step that runs, otherwise the state of its outputs. */
    private byte outcome(EnsembleScope frame, Step step) {
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

    private List<Tensor> inputs(EnsembleScope frame, Step step) {
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

    /** The sequence of a step's request: that of the first input whose sequence a step has changed. */
    private @Nullable SequenceFlags sequence(EnsembleScope frame, Step step) {
        for (Port port : step.inputs()) {
            SequenceFlags made = owner(frame, port.tensor()).sequence(port.tensor(), sequence);
            if (made != sequence) {
                return made;
            }
        }
        return sequence;
    }

    /** The tensor's shape for a reader: adds or removes the batch dimension where only one side has it. */
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
                    "ensemble tensor '" + graph.tensors.get(taker.tensor()) + "' has shape " + shape + ", but '" + model
                            + "' takes no batches (expected first dimension 1)",
                    "send one row a request, or give '" + model + "' a max_batch_size");
        }
        return shape.withoutFirst();
    }

    /** Ends a scope when all its steps have ended, and queues the responses that are complete, in order. */
    private void settled(EnsembleScope frame) {
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
        // scopes may end in any order, but responses are queued in the order in which their scopes began
        EnsembleScope head;
        while ((head = order.peek()) != null && head.done) {
            order.remove();
            EnsembleResponse answer = head.answer;
            if (answer != null && !answer.outputs.isEmpty()) {
                answers.add(answer);
            }
        }
        if (root.done && frames.isEmpty()) {
            ended = true;
            EnsembleResponse last = plan.decoupled ? answers.peekLast() : root.answer;
            if (last == null) {
                last = new EnsembleResponse(List.of(), Map.of(), null);
                answers.add(last);
            } else if (!plan.decoupled) {
                answers.add(last);
            }
            last.last = true;
            root.clear();
        }
    }

    /** The outputs of a scope whose steps have ended. */
    private EnsembleResponse answer(EnsembleScope frame) {
        List<Tensor> outputs = new ArrayList<>(plan.outputs.size());
        SequenceFlags made = sequence;
        try {
            for (Port output : plan.outputs) {
                int t = output.tensor();
                if (graph.scope(t) != 0 && graph.scope(t) != frame.scope) {
                    continue;
                }
                EnsembleScope owner = owner(frame, t);
                Tensor tensor = owner.tensors[t];
                if (tensor != null) {
                    Shape shape = adapted(tensor, output, graph.name);
                    outputs.add(
                            tensor.deviceRegion() == null
                                    ? tensor.retainAs(output.name(), shape)
                                    : onHost(tensor, output.name(), shape));
                    SequenceFlags own = owner.sequence(t, sequence);
                    made = own == sequence ? made : own;
                } else if (owner.states[t] != LEFT_OUT && owner.states[t] != ABSENT) {
                    throw deadlock();
                }
            }
            return new EnsembleResponse(
                    outputs,
                    outputs.isEmpty() ? frame.parameters : StepSequence.parameters(frame.parameters, made),
                    null);
        } catch (RuntimeException e) {
            Tensor.closeAll(outputs);
            throw e;
        }
    }

    /** The tensor for a client, which has been copied to the host before it came here. */
    private static Tensor onHost(Tensor tensor, String name, Shape shape) {
        try (Tensor host = tensor.retainOnHost()) {
            return host.retainAs(name, shape);
        }
    }

    private ServingException deadlock() {
        return ServingException.invalidArgument(
                "[request id: " + (requestId.isEmpty() ? "<id_unknown>" : requestId)
                        + "] unexpected deadlock, at least one output is not set while no more ensemble steps can be"
                        + " made",
                "a step needs a tensor that the request or an earlier step left out: make that input optional in the"
                        + " step's model, or request only outputs that do not depend on it");
    }
}
