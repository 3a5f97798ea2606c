// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.ensemble.StubComposingModels.Ledger;
import io.nereid.engine.ensemble.StubComposingModels.Started;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Random ensembles in random order of execution, compared with an evaluation that does not depend on the order. */
class EnsembleSimulationTest {
    private static final int GRAPHS = 3_000;

    @Test
    void everyOrderOfAnswersGivesWhatPlainEvaluationGives() {
        int[] outcomes = new int[4];
        for (int seed = 0; seed < GRAPHS; seed++) {
            World world = new World(seed);
            RecordingJob job = world.job();
            Random random = new Random(~seed);
            int cancelAfter = random.nextInt(8) == 0 ? random.nextInt(6) : -1;
            boolean inline = random.nextInt(4) == 0;
            world.members.onStart = s -> {
                if (inline && random.nextBoolean()) {
                    world.play(s, Integer.MAX_VALUE, new int[1]);
                } else {
                    world.members.started.add(s);
                }
            };
            world.run(job);
            Map<Started, int[]> progress = new HashMap<>();
            List<Started> open = world.members.started;
            while (!open.isEmpty()) {
                Started s = open.get(random.nextInt(open.size()));
                if (cancelAfter-- == 0) {
                    job.cancel();
                }
                if (world.play(s, 1, progress.computeIfAbsent(s, k -> new int[1]))) {
                    open.remove(s);
                }
            }
            world.check(job, cancelAfter < 0 && outcome(job) == 3);
            outcomes[outcome(job)]++;
        }
        for (int n : outcomes) {
            assertThat(n).as("answers, deadlocks, errors, cancellations").isGreaterThan(20);
        }
    }

    private static int outcome(RecordingJob job) {
        var e = job.failure;
        return e == null
                ? 0
                : e.code() == ErrorCode.CANCELLED ? 3 : e.getMessage().contains("unexpected deadlock") ? 1 : 2;
    }

    @Test
    void answersFromManyThreadsGiveTheSame() throws Exception {
        ThreadPoolExecutor pool = Threads.pool("steps", 4);
        try {
            for (int seed = 0; seed < 500; seed++) {
                World world = new World(seed);
                RecordingJob job = world.job();
                world.members.onStart = s -> pool.execute(() -> world.play(s, Integer.MAX_VALUE, new int[1]));
                world.run(job);
                while (!job.ended || world.ledger.open.get() != 0 || pool.getActiveCount() > 0) {
                    if (Thread.interrupted()) {
                        throw new InterruptedException();
                    }
                    Thread.onSpinWait();
                }
                world.check(job, false);
            }
        } finally {
            pool.shutdown();
            assertThat(pool.awaitTermination(5, TimeUnit.SECONDS)).isTrue();
        }
    }

    /** One random ensemble and one request for it. */
    private static final class World {
        private static final int ABSENT = -1;
        private static final int LEFT_OUT = -2;
        private static final int UNREACHABLE = -3;

        final Ledger ledger = new Ledger();
        final StubComposingModels members = new StubComposingModels();
        private final int seed;
        private final ModelConfig config;
        private final Map<String, Integer> given = new TreeMap<>();
        private final List<RequestedOutput> wanted = new ArrayList<>();
        private final @Nullable EnsembleGraph graph;
        private boolean failing;
        private int decoupled;

        World(int seed) {
            this.seed = seed;
            Random random = new Random(seed);
            int inputs = 1 + random.nextInt(3);
            int count = 1 + random.nextInt(6);
            List<String> tensors = new ArrayList<>();
            List<TensorSpec> in = new ArrayList<>();
            for (int i = 0; i < inputs; i++) {
                boolean optional = i > 0 && random.nextInt(3) == 0;
                in.add(new TensorSpec("x" + i, DataType.BOOL, Shape.of(-1), optional));
                tensors.add("x" + i);
                if (!optional || random.nextBoolean()) {
                    given.put("x" + i, random.nextInt(100));
                }
            }
            List<EnsembleStep> steps = new ArrayList<>();
            List<TensorSpec> out = new ArrayList<>();
            for (int s = 0; s < count; s++) {
                Map<String, String> reads = new TreeMap<>();
                Map<String, String> writes = new TreeMap<>();
                List<TensorSpec> takes = new ArrayList<>();
                List<TensorSpec> gives = new ArrayList<>();
                int n = 1 + random.nextInt(3);
                for (int i = 0; i < n; i++) {
                    takes.add(new TensorSpec("i" + i, DataType.BOOL, Shape.of(-1), random.nextInt(3) == 0));
                    reads.put("i" + i, tensors.get(random.nextInt(tensors.size())));
                }
                int m = 1 + random.nextInt(2);
                for (int i = 0; i < m; i++) {
                    gives.add(new TensorSpec("o" + i, DataType.BOOL, Shape.of(-1)));
                    writes.put("o" + i, "t" + s + "_" + i);
                }
                String when = random.nextInt(5) == 0 ? tensors.get(random.nextInt(tensors.size())) : "";
                tensors.addAll(writes.values());
                boolean many = random.nextInt(6) == 0;
                members.configs.put(
                        "m" + s,
                        ModelConfig.builder("m" + s)
                                .maxBatchSize(0)
                                .inputs(takes)
                                .outputs(gives)
                                .decoupled(many)
                                .build());
                steps.add(new EnsembleStep("m" + s, -1, reads, writes, when));
                for (String t : writes.values()) {
                    if (s == count - 1 || random.nextInt(3) == 0) {
                        out.add(new TensorSpec(t, DataType.BOOL, Shape.of(-1)));
                    }
                }
            }
            Collections.shuffle(steps, random);
            config = ModelConfig.builder("e")
                    .maxBatchSize(0)
                    .inputs(in)
                    .outputs(out)
                    .ensemble(new EnsembleScheduling(steps, random.nextInt(3)))
                    .build();
            EnsembleGraph compiled = null;
            try {
                compiled = EnsembleGraph.compile(config, s -> members.config(new ModelRef(s.model(), -1, null)));
            } catch (ServingException e) {
                assertThat(e.getMessage()).contains("originated from different decoupled models");
            }
            graph = compiled;
            for (TensorSpec t : out) {
                if (random.nextInt(3) > 0) {
                    wanted.add(new RequestedOutput(t.name(), 0));
                }
            }
        }

        RecordingJob job() {
            List<Tensor> tensors = new ArrayList<>();
            given.forEach((name, v) -> tensors.add(ledger.tensor(name, DataType.BOOL, Shape.of(4), bytes(v))));
            return new RecordingJob(new InferenceRequest(
                    ModelRef.latest("e"), "", tensors, wanted, Map.of(), Long.MAX_VALUE, 0, Options.NONE));
        }

        void run(RecordingJob job) {
            if (graph == null) {
                job.complete(List.of(), Map.of());
                return;
            }
            new EnsembleExecution(graph, members, job, (rows, a, b, c) -> {}, Clock.system()).start();
        }

        /** Any int as four bytes, all of them true or the first false, so that it can be a condition too. */
        private static byte[] bytes(int v) {
            return new byte[] {(byte) (v % 7 == 0 ? 0 : 1), (byte) (v % 100 + 1), (byte) (v / 100 % 100 + 1), 1};
        }

        private static int value(Tensor t) {
            int v = t.buffer().get(1) - 1 + 100 * (t.buffer().get(2) - 1);
            assertThat(t.buffer().get(0) == 0).isEqualTo(v % 7 == 0);
            return v;
        }

        private static int mix(int... parts) {
            int h = 17;
            for (int p : parts) {
                h = h * 31 + p;
                h ^= h >>> 15;
                h *= 0x2c1b3c6d;
            }
            return (h >>> 1) % 10_000;
        }

        /** Sends so many responses of a step; true when the step has ended. */
        boolean play(Started s, int most, int[] progress) {
            ModelConfig model = Objects.requireNonNull(members.configs.get(s.model()));
            Map<String, Integer> in = new TreeMap<>();
            for (Tensor t : s.request.inputs()) {
                in.put(t.name(), value(t));
            }
            int key = key(s.model(), in);
            if (fails(key)) {
                s.fail(ErrorCode.INTERNAL, "model failure");
                return true;
            }
            int answers = model.decoupled() ? key % 4 : 1;
            for (int i = 0; i < most; i++) {
                int at = progress[0]++;
                if (at >= answers) {
                    s.complete();
                    return true;
                }
                Tensor[] outputs = outputs(model, s, key, at);
                if (at == answers - 1 && (!model.decoupled() || (key % 3 == 0 && outputs.length > 0))) {
                    s.complete(outputs);
                    return true;
                }
                s.respond(Map.of(), outputs);
            }
            return false;
        }

        private Tensor[] outputs(ModelConfig model, Started s, int key, int at) {
            List<Tensor> outputs = new ArrayList<>();
            for (TensorSpec spec : model.outputs()) {
                int v = output(key, spec.name(), at);
                if (v >= 0 && s.wants(spec.name())) {
                    outputs.add(ledger.tensor(spec.name(), DataType.BOOL, Shape.of(4), bytes(v)));
                }
            }
            return outputs.toArray(Tensor[]::new);
        }

        private static int key(String model, Map<String, Integer> inputs) {
            return mix(model.hashCode(), inputs.hashCode());
        }

        private static int output(int key, String name, int at) {
            int v = mix(key, name.hashCode(), at);
            return v % 23 == 0 ? ABSENT : v;
        }

        private boolean fails(int key) {
            return mix(seed, key, 5) % 61 == 0;
        }

        void check(RecordingJob job, boolean cancelled) {
            String what = "seed " + seed;
            assertThat(ledger.open).as(what).hasValue(0);
            assertThat(job.ended).as(what).isTrue();
            if (graph == null || cancelled) {
                return;
            }
            List<Map<String, Integer>> expected = evaluate();
            if (expected == null) {
                assertThat(job.failure).as(what).isNotNull();
                return;
            }
            assertThat(job.failure).as(what).isNull();
            List<Map<String, Integer>> got = new ArrayList<>();
            for (RecordingJob.Got g : job.answers) {
                Map<String, Integer> values = new TreeMap<>();
                g.values().forEach((k, v) -> values.put(k, (v >> 8 & 255) - 1 + 100 * ((v >> 16 & 255) - 1)));
                if (!values.isEmpty()) {
                    got.add(values);
                }
            }
            if (decoupled <= 1) {
                assertThat(got).as(what).isEqualTo(expected);
            } else {
                assertThat(got).as(what).containsExactlyInAnyOrderElementsOf(expected);
            }
        }

        /** The responses, without empty ones; null when the request must fail. */
        private @Nullable List<Map<String, Integer>> evaluate() {
            List<String> names = wanted.isEmpty()
                    ? config.outputs().stream().map(TensorSpec::name).toList()
                    : wanted.stream().map(RequestedOutput::name).toList();
            Map<String, Integer> root = new HashMap<>();
            config.inputs().forEach(s -> root.put(s.name(), given.getOrDefault(s.name(), ABSENT)));
            List<EnsembleStep> needed = needed(names);
            for (EnsembleStep s : needed) {
                decoupled +=
                        Objects.requireNonNull(members.configs.get(s.model())).decoupled() ? 1 : 0;
            }
            List<Map<String, Integer>> answers = new ArrayList<>();
            boolean settled = scope(root, null, needed, names, answers);
            return settled && !failing ? answers : null;
        }

        private List<EnsembleStep> needed(List<String> names) {
            List<EnsembleStep> all = Objects.requireNonNull(config.ensemble()).steps();
            Set<String> tensors = new HashSet<>(names);
            List<EnsembleStep> needed = new ArrayList<>();
            for (int round = 0; round <= all.size(); round++) {
                for (EnsembleStep s : all) {
                    if (!needed.contains(s) && s.outputs().values().stream().anyMatch(tensors::contains)) {
                        needed.add(s);
                        tensors.addAll(s.inputs().values());
                        tensors.add(s.when());
                    }
                }
            }
            return needed;
        }

        /** Runs all steps that can run with these tensors, then each scope below; false when an output never comes. */
        private boolean scope(
                Map<String, Integer> tensors,
                @Nullable String opener,
                List<EnsembleStep> needed,
                List<String> names,
                List<Map<String, Integer>> answers) {
            List<EnsembleStep> left = new ArrayList<>(needed);
            List<EnsembleStep> openers = new ArrayList<>();
            boolean more = true;
            while (more) {
                more = false;
                for (EnsembleStep s : List.copyOf(left)) {
                    if (!tensors.keySet().containsAll(s.inputs().values())
                            || (!s.when().isEmpty() && !tensors.containsKey(s.when()))
                            || s.outputs().values().stream().anyMatch(tensors::containsKey)) {
                        continue;
                    }
                    left.remove(s);
                    more = true;
                    if (!Objects.requireNonNull(members.configs.get(s.model())).decoupled()) {
                        tensors.putAll(step(s, tensors, 0));
                    } else if (graph != null && reachesScope(s, opener)) {
                        openers.add(s);
                    }
                }
            }
            boolean fine = true;
            List<String> here = new ArrayList<>();
            for (String name : names) {
                int scope = Objects.requireNonNull(graph).scope(graph.tensors.indexOf(name));
                int mine = opener == null ? 0 : scopeOf(opener);
                if (scope == mine || scope == 0) {
                    here.add(name);
                }
            }
            boolean any = here.stream()
                    .anyMatch(n ->
                            (Objects.requireNonNull(graph).scope(graph.tensors.indexOf(n)) == 0) == (opener == null));
            if (any && (opener != null || openers.isEmpty())) {
                Map<String, Integer> answer = new TreeMap<>();
                for (String name : here) {
                    int v = tensors.getOrDefault(name, UNREACHABLE);
                    if (v >= 0) {
                        answer.put(name, v);
                    } else {
                        fine &= v == LEFT_OUT || v == ABSENT;
                    }
                }
                if (fine && !answer.isEmpty()) {
                    answers.add(answer);
                }
            }
            for (EnsembleStep s : openers) {
                int outcome = outcome(s, tensors);
                if (outcome != 0) {
                    fine &= outcome == LEFT_OUT;
                    continue;
                }
                int key = key(s.model(), inputs(s, tensors));
                failing |= fails(key);
                for (int i = 0; i < key % 4; i++) {
                    Map<String, Integer> below = new HashMap<>();
                    tensors.forEach((name, v) -> {
                        if (Objects.requireNonNull(graph).scope(graph.tensors.indexOf(name)) == 0) {
                            below.put(name, v);
                        }
                    });
                    below.putAll(step(s, tensors, i));
                    fine &= scope(below, s.model(), needed, names, answers);
                }
            }
            return fine;
        }

        private int scopeOf(String opener) {
            for (EnsembleGraph.Step s : Objects.requireNonNull(graph).steps) {
                if (s.model().model().equals(opener)) {
                    return s.outputScope();
                }
            }
            return 0;
        }

        /** Whether a decoupled step belongs to the scope that {@code opener} opens. */
        private boolean reachesScope(EnsembleStep step, @Nullable String opener) {
            for (EnsembleGraph.Step s : Objects.requireNonNull(graph).steps) {
                if (s.model().model().equals(step.model())) {
                    return s.scope() == (opener == null ? 0 : scopeOf(opener));
                }
            }
            return false;
        }

        private Map<String, Integer> inputs(EnsembleStep s, Map<String, Integer> tensors) {
            Map<String, Integer> in = new TreeMap<>();
            s.inputs().forEach((name, t) -> {
                int v = Objects.requireNonNull(tensors.get(t));
                if (v >= 0) {
                    in.put(name, v);
                }
            });
            return in;
        }

        private Map<String, Integer> step(EnsembleStep s, Map<String, Integer> tensors, int at) {
            int outcome = outcome(s, tensors);
            int key = outcome == 0 ? key(s.model(), inputs(s, tensors)) : 0;
            failing |= outcome == 0 && fails(key);
            Map<String, Integer> out = new HashMap<>();
            s.outputs().forEach((name, t) -> out.put(t, outcome == 0 ? output(key, name, at) : outcome));
            return out;
        }

        private int outcome(EnsembleStep s, Map<String, Integer> tensors) {
            List<String> reads = new ArrayList<>(s.inputs().values());
            if (!s.when().isEmpty()) {
                reads.add(s.when());
            }
            if (reads.stream().anyMatch(t -> tensors.get(t) == UNREACHABLE)) {
                return UNREACHABLE;
            }
            if (!s.when().isEmpty()) {
                int v = Objects.requireNonNull(tensors.get(s.when()));
                if (v < 0 || v % 7 == 0) {
                    return LEFT_OUT;
                }
            }
            List<TensorSpec> specs =
                    Objects.requireNonNull(members.configs.get(s.model())).inputs();
            boolean leftOut = false;
            boolean absent = false;
            for (TensorSpec spec : specs) {
                int v = Objects.requireNonNull(tensors.get(s.inputs().get(spec.name())));
                leftOut |= !spec.optional() && v == LEFT_OUT;
                absent |= !spec.optional() && v == ABSENT;
            }
            return leftOut ? LEFT_OUT : absent ? UNREACHABLE : 0;
        }
    }
}
