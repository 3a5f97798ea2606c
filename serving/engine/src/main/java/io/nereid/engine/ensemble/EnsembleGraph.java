// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The steps and tensors of an ensemble, numbered when it is loaded. Immutable, except for a cache of plans;
 * thread-safe.
 *
 * <p>Tensors and steps belong to <em>scopes</em>. Scope 0 contains what exists once per request. Every decoupled step
 * opens a scope of its own: what depends on its responses exists once per response. A step reads tensors of scope 0
 * and of at most one other scope.
 */
final class EnsembleGraph {
    private static final int REMEMBERED_PLANS = 64;

    /**
     * An input or output of a step.
     *
     * @param name the input or output of the composing model
     * @param tensor the number of the ensemble tensor
     * @param optional whether the model runs without it
     * @param rank its number of dimensions, including the batch dimension
     */
    record Port(String name, int tensor, boolean optional, int rank) {}

    /**
     * A step.
     *
     * @param index its number, which is its position in the configuration
     * @param model the composing model
     * @param decoupled whether the model may send any number of responses
     * @param inputs in the model's order
     * @param outputs in the model's order
     * @param when the tensor that decides whether the step runs; -1 for always
     * @param reads the numbers of the tensors that it waits for, without duplicates
     * @param scope the scope in which it runs
     */
    record Step(
            int index,
            ModelRef model,
            boolean decoupled,
            List<Port> inputs,
            List<Port> outputs,
            int when,
            int[] reads,
            int scope) {
        /** The scope of its outputs. */
        int outputScope() {
            return decoupled ? index + 1 : scope;
        }
    }

    final String name;
    final int maxInflight;
    final List<Step> steps;
    final List<String> tensors;

    private final int[] tensorScope;
    private final int[] producers;
    private final List<Port> inputs;
    private final List<Port> outputs;
    private final Plan whole;
    private final List<Plan> plans = new CopyOnWriteArrayList<>();

    private EnsembleGraph(
            ModelConfig config,
            List<Step> steps,
            List<String> tensors,
            int[] tensorScope,
            int[] producers,
            List<Port> inputs,
            List<Port> outputs) {
        this.name = config.name();
        this.maxInflight = config.ensemble() == null ? 0 : config.ensemble().maxInflight();
        this.steps = List.copyOf(steps);
        this.tensors = List.copyOf(tensors);
        this.tensorScope = tensorScope;
        this.producers = producers;
        this.inputs = List.copyOf(inputs);
        this.outputs = List.copyOf(outputs);
        this.whole = new Plan(this.outputs);
    }

    /**
     * Numbers the tensors of an ensemble whose configuration has been validated.
     *
     * @param member returns the configuration of a step's model
     * @throws ServingException INVALID_ARGUMENT for steps that depend on each other, a tensor that no step writes, or
     *     a step that reads outputs of different decoupled models
     */
    static EnsembleGraph compile(ModelConfig config, Function<EnsembleStep, ModelConfig> member) {
        EnsembleScheduling ensemble = config.ensemble();
        if (ensemble == null) {
            throw ServingException.invalidArgument(
                    "ensemble scheduling must be set for ensemble " + config.name() + " whose platform is ensemble");
        }
        return new Compiler(config, ensemble, member).compile();
    }

    /** Whether a request may have any number of responses. */
    boolean decoupled() {
        return steps.stream().anyMatch(Step::decoupled);
    }

    /** The step that writes a tensor; null for an input of the ensemble and for an unknown tensor. */
    @Nullable Step producer(String tensor) {
        int id = tensors.indexOf(tensor);
        return id < 0 || producers[id] < 0 ? null : steps.get(producers[id]);
    }

    int scope(int tensor) {
        return tensorScope[tensor];
    }

    /** The plan for these outputs, or for all outputs when the list is empty. */
    Plan plan(List<RequestedOutput> wanted) {
        if (wanted.isEmpty() || wanted.size() == outputs.size()) {
            return whole;
        }
        for (Plan plan : plans) {
            if (plan.gives(wanted)) {
                return plan;
            }
        }
        List<Port> ports = new ArrayList<>();
        for (Port port : outputs) {
            if (wanted.stream().anyMatch(w -> w.name().equals(port.name()))) {
                ports.add(port);
            }
        }
        Plan plan = new Plan(ports);
        if (plans.size() < REMEMBERED_PLANS) {
            plans.add(plan);
        }
        return plan;
    }

    /** The steps that must run for a set of outputs. Immutable; the arrays must not be changed. */
    final class Plan {
        /** The inputs of the ensemble that are read. */
        final List<Port> inputs;

        /** The requested outputs of the ensemble. */
        final List<Port> outputs;

        /** By tensor: the steps that read it. */
        final int[][] consumers;

        /** By step: how many tensors it waits for; -1 for a step that does not run. */
        final int[] pending;

        /** By tensor: the number of steps that read it, plus one for an output. Other scopes never count it down. */
        final int[] uses;

        /** By scope: the number of steps that run in it. */
        final int[] scopeSteps;

        /** By scope: whether it has outputs. */
        final boolean[] answers;

        /** By tensor: whether it is an output that exists once although other outputs repeat with every response. */
        final boolean[] shared;

        /** The number of shared outputs. */
        final int sharedOutputs;

        /** By step: the outputs to request from its model. */
        final List<List<RequestedOutput>> wanted;

        /** Whether a request may have any number of responses. */
        final boolean decoupled;

        Plan(List<Port> outputs) {
            this.outputs = List.copyOf(outputs);
            int n = tensors.size();
            BitSet needed = new BitSet(n);
            BitSet running = new BitSet(steps.size());
            for (Port output : outputs) {
                need(output.tensor(), needed, running);
            }
            this.inputs = EnsembleGraph.this.inputs.stream()
                    .filter(p -> needed.get(p.tensor()))
                    .toList();
            this.consumers = new int[n][];
            this.pending = new int[steps.size()];
            this.uses = new int[n];
            this.scopeSteps = new int[steps.size() + 1];
            this.answers = new boolean[steps.size() + 1];
            this.shared = new boolean[n];
            for (int t = 0; t < n; t++) {
                int tensor = t;
                consumers[t] = running.stream()
                        .filter(s -> contains(steps.get(s).reads(), tensor))
                        .toArray();
                uses[t] = consumers[t].length;
            }
            boolean repeats = false;
            List<List<RequestedOutput>> asked = new ArrayList<>();
            for (Step step : steps) {
                boolean runs = running.get(step.index());
                pending[step.index()] = runs ? step.reads().length : -1;
                scopeSteps[step.scope()] += runs ? 1 : 0;
                repeats |= runs && step.decoupled();
                asked.add(step.outputs().stream()
                        .filter(p -> needed.get(p.tensor()))
                        .map(p -> new RequestedOutput(p.name(), 0))
                        .toList());
            }
            this.wanted = List.copyOf(asked);
            this.decoupled = repeats;
            int once = 0;
            for (Port output : outputs) {
                uses[output.tensor()]++;
                answers[tensorScope[output.tensor()]] = true;
                if (repeats && tensorScope[output.tensor()] == 0) {
                    shared[output.tensor()] = true;
                    once++;
                }
            }
            this.sharedOutputs = once;
        }

        EnsembleGraph graph() {
            return EnsembleGraph.this;
        }

        boolean gives(List<RequestedOutput> wanted) {
            if (wanted.size() != outputs.size()) {
                return false;
            }
            for (RequestedOutput w : wanted) {
                boolean found = false;
                for (int i = 0; i < outputs.size() && !found; i++) {
                    found = outputs.get(i).name().equals(w.name());
                }
                if (!found) {
                    return false;
                }
            }
            return true;
        }

        private void need(int tensor, BitSet needed, BitSet running) {
            if (needed.get(tensor)) {
                return;
            }
            needed.set(tensor);
            int producer = producers[tensor];
            if (producer >= 0) {
                running.set(producer);
                for (int read : steps.get(producer).reads()) {
                    need(read, needed, running);
                }
            }
        }
    }

    private static boolean contains(int[] numbers, int number) {
        for (int n : numbers) {
            if (n == number) {
                return true;
            }
        }
        return false;
    }

    /** Numbers tensors and assigns scopes. Confined to the loading thread. */
    private static final class Compiler {
        private final ModelConfig config;
        private final List<EnsembleStep> written;
        private final List<ModelConfig> members = new ArrayList<>();
        private final Map<String, Integer> numbers = new LinkedHashMap<>();

        Compiler(ModelConfig config, EnsembleScheduling ensemble, Function<EnsembleStep, ModelConfig> member) {
            this.config = config;
            this.written = ensemble.steps();
            written.forEach(step -> members.add(member.apply(step)));
        }

        EnsembleGraph compile() {
            List<Port> inputs = new ArrayList<>();
            for (TensorSpec spec : config.inputs()) {
                inputs.add(port(spec, spec.name(), config.batched()));
            }
            for (EnsembleStep step : written) {
                step.inputs().values().forEach(this::number);
                if (!step.when().isEmpty()) {
                    number(step.when());
                }
                step.outputs().values().forEach(this::number);
            }
            List<Port> outputs = new ArrayList<>();
            for (TensorSpec spec : config.outputs()) {
                outputs.add(port(spec, spec.name(), config.batched()));
            }
            int n = numbers.size();
            int[] producers = new int[n];
            boolean[] known = new boolean[n];
            Arrays.fill(producers, -1);
            inputs.forEach(p -> known[p.tensor()] = true);
            for (int s = 0; s < written.size(); s++) {
                for (String tensor : written.get(s).outputs().values()) {
                    int id = number(tensor);
                    if (producers[id] >= 0 || known[id]) {
                        throw ServingException.invalidArgument("ensemble tensor '" + tensor
                                + "' can appear in an output map only once for ensemble '" + config.name() + "' step "
                                + s);
                    }
                    producers[id] = s;
                }
            }
            int[] scopes = new int[n];
            @Nullable Step[] steps = order(producers, known, scopes);
            List<Step> all = new ArrayList<>();
            for (Step step : steps) {
                all.add(Objects.requireNonNull(step));
            }
            int branch = 0;
            for (Port output : outputs) {
                int scope = scopes[output.tensor()];
                if (scope != 0 && branch != 0 && scope != branch) {
                    // Responses of different branches have nothing in common, so that they cannot be joined to one.
                    throw ServingException.invalidArgument("in ensemble " + config.name() + ", step of model '"
                            + config.name() + "' receives inputs originated from different decoupled models");
                }
                branch = Math.max(branch, scope);
                if (producers[output.tensor()] < 0) {
                    throw ServingException.invalidArgument(
                            "output '" + output.name() + "' for ensemble '" + config.name() + "' is not written");
                }
            }
            return new EnsembleGraph(config, all, List.copyOf(numbers.keySet()), scopes, producers, inputs, outputs);
        }

        /**
         * Orders the steps: repeatedly takes every step whose tensors are all known. Steps that remain form a cycle or
         * miss a tensor.
         */
        private @Nullable Step[] order(int[] producers, boolean[] known, int[] scopes) {
            @Nullable Step[] steps = new Step[written.size()];
            boolean more = true;
            while (more) {
                more = false;
                for (int s = 0; s < steps.length; s++) {
                    if (steps[s] != null) {
                        continue;
                    }
                    int[] reads = reads(written.get(s));
                    if (Arrays.stream(reads).allMatch(t -> known[t])) {
                        Step step = step(s, reads, scopes);
                        steps[s] = step;
                        for (String tensor : written.get(s).outputs().values()) {
                            int id = number(tensor);
                            known[id] = true;
                            scopes[id] = step.outputScope();
                        }
                        more = true;
                    }
                }
            }
            for (int s = 0; s < steps.length; s++) {
                if (steps[s] == null) {
                    String missing = Arrays.stream(reads(written.get(s)))
                            .filter(t -> !known[t])
                            .mapToObj(t -> List.copyOf(numbers.keySet()).get(t))
                            .findFirst()
                            .orElse("");
                    boolean circle = producers[number(missing)] >= 0;
                    throw ServingException.invalidArgument(
                            "in ensemble " + config.name() + ", step " + s + " of model '"
                                    + written.get(s).model() + "' never runs: tensor '" + missing + "' "
                                    + (circle ? "depends on a step that never runs" : "is written by no step"),
                            "the input map of a step names inputs of the ensemble or outputs of earlier steps");
                }
            }
            return steps;
        }

        private Step step(int index, int[] reads, int[] scopes) {
            int scope = 0;
            for (int t : reads) {
                if (scopes[t] != 0 && scope != 0 && scopes[t] != scope) {
                    throw ServingException.invalidArgument("in ensemble " + config.name() + ", step of model '"
                            + written.get(index).model()
                            + "' receives inputs originated from different decoupled models");
                }
                scope = Math.max(scope, scopes[t]);
            }
            EnsembleStep step = written.get(index);
            ModelConfig member = members.get(index);
            return new Step(
                    index,
                    new ModelRef(step.model(), step.version(), null),
                    member.decoupled(),
                    ports(member.inputs(), step.inputs(), member.batched()),
                    ports(member.outputs(), step.outputs(), member.batched()),
                    step.when().isEmpty() ? -1 : number(step.when()),
                    reads,
                    scope);
        }

        private List<Port> ports(List<TensorSpec> specs, Map<String, String> map, boolean batched) {
            List<Port> ports = new ArrayList<>();
            for (TensorSpec spec : specs) {
                String tensor = map.get(spec.name());
                if (tensor != null) {
                    ports.add(port(spec, tensor, batched));
                }
            }
            return List.copyOf(ports);
        }

        private Port port(TensorSpec spec, String tensor, boolean batched) {
            return new Port(
                    spec.name(), number(tensor), spec.optional(), spec.shape().rank() + (batched ? 1 : 0));
        }

        private int[] reads(EnsembleStep step) {
            List<String> names = new ArrayList<>(step.inputs().values());
            if (!step.when().isEmpty()) {
                names.add(step.when());
            }
            return names.stream().mapToInt(this::number).distinct().toArray();
        }

        private int number(String tensor) {
            Integer number = numbers.get(tensor);
            if (number == null) {
                number = numbers.size();
                numbers.put(tensor, number);
            }
            return number;
        }
    }
}
