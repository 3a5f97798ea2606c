// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.TensorCounter;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceBatching.Direct;
import io.nereid.spi.config.SequenceBatching.Oldest;
import io.nereid.spi.config.SequenceBatching.Strategy;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceControl.Kind;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Random operations on sequences from printed seeds, with checks of invariants. */
class SequenceSimulationTest {
    private static ModelConfig config(Random random, Strategy strategy, int maxBatch, int instances, long idle) {
        List<SequenceControl> controls = List.of(
                new SequenceControl("START", Kind.START, DataType.INT32, 0, 1),
                new SequenceControl("END", Kind.END, DataType.BOOL, 0, 1),
                new SequenceControl("READY", Kind.READY, DataType.FP32, 0, 1),
                new SequenceControl("ID", Kind.CORRID, DataType.UINT64, 0, 0));
        return ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .instances(instances)
                .outputs(List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(1))))
                .sequence(new SequenceBatching(
                        strategy,
                        Duration.ofNanos(idle),
                        controls,
                        List.of(new SequenceStateConfig(
                                "SIN", "SOUT", DataType.INT32, Shape.of(1), null, random.nextBoolean())),
                        false))
                .build();
    }

    private static Strategy strategy(Random random, long unit) {
        Duration delay = Duration.ofNanos(random.nextInt(3) * unit);
        return random.nextBoolean()
                ? new Direct(delay, random.nextInt(3) / 2.0)
                : new Oldest(1 + random.nextInt(4), List.of(), delay, random.nextInt(4) == 0);
    }

    @RepeatedTest(150)
    void holdsItsPromisesInAnyOrderOfEvents(RepetitionInfo info) {
        long seed = 6_007L * info.getCurrentRepetition();
        Random random = new Random(seed);
        ManualTime time = new ManualTime();
        DeviceExecutor pool = new DeviceExecutor("simulation", 0, time, time);
        TensorCounter tensors = new TensorCounter();
        int maxBatch = random.nextInt(5);
        int instances = 1 + random.nextInt(3);
        int maxQueue = 5 + random.nextInt(40);
        Strategy strategy = strategy(random, 500);
        Checker checker = new Checker(tensors, strategy instanceof Direct);
        InlinePolicy inline = InlinePolicy.values()[random.nextInt(3)];
        RateLimiter limiter = random.nextInt(4) > 0
                ? null
                : new RateLimiter(List.of(new RateLimiter.Total("R", 1 + random.nextInt(2), 0)));
        InstanceGroup group = new InstanceGroup(
                "g",
                InstanceGroup.Kind.CPU,
                instances,
                List.of(),
                false,
                "",
                List.of(new InstanceGroup.Resource("R", true, 1)),
                0);
        SequenceBatcher batcher = new SequenceBatcher(
                config(random, strategy, maxBatch, instances, 5_000).toBuilder()
                        .instanceGroups(List.of(group))
                        .build(),
                checker,
                pool,
                new SchedulerOptions(maxQueue, inline).withLimiter(limiter),
                InitialStateFiles.NONE);
        checker.during = () -> {
            time.spend(random.nextInt(400));
            if (random.nextInt(4) == 0) {
                var unused = pool.runNext();
            }
        };
        checker.fate = () -> random.nextInt(12);
        Client client = new Client(random, tensors, maxBatch, 0);
        for (int i = 0; i < 700; i++) {
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> client.submit(batcher, checker, 1 + random.nextInt(8), time.nanos());
                case 4 -> {
                    if (random.nextInt(4) == 0) {
                        client.cancelOne();
                    }
                }
                case 5 -> time.advance(random.nextInt(1_500));
                case 6 -> {
                    if (random.nextInt(20) == 0) {
                        batcher.instances(1 + random.nextInt(4));
                    }
                    checker.endOneKept(random);
                }
                default -> {
                    var unused = pool.runNext();
                }
            }
            assertThat(checker.wrong).as("seed %s step %s", seed, i).isEmpty();
        }
        for (int i = 0; i < 400; i++) {
            while (pool.runNext()) {
                checker.endOneKept(random);
            }
            checker.endOneKept(random);
            time.advance(100);
        }
        assertThat(checker.wrong).as("seed %s", seed).isEmpty();
        assertThat(batcher.queued()).as("seed %s: lost wake-up", seed).isZero();
        assertThat(batcher.running()).as("seed %s", seed).isZero();
        assertThat(client.taken).as("seed %s", seed).allMatch(t -> t.ends.get() == 1);
        assertThat(client.taken).as("seed %s", seed).noneMatch(FakeSequenceJob::hasAction);
        assertThat(tensors.open())
                .as("seed %s: sequences left after the idle time", seed)
                .isZero();
        checker.fate = () -> 0;
        int places = batcher.instances() * (strategy instanceof Oldest o ? o.maxCandidates() : Math.max(1, maxBatch));
        List<FakeSequenceJob> fresh = new ArrayList<>();
        for (int i = 0; i < places; i++) {
            FakeSequenceJob request = client.request(1_000 + i, true, false);
            checker.begins(request, client.generation());
            try {
                batcher.submit(request);
                fresh.add(request);
            } catch (ServingException full) {
                request.drop();
            }
        }
        time.advance(1_100);
        while (pool.runNext()) {
            time.advance(1_100);
        }
        assertThat(fresh).as("seed %s: slots were not freed", seed).allMatch(t -> t.code == ErrorCode.OK);
        batcher.close();
        assertThat(batcher.drained().toCompletableFuture()).as("seed %s", seed).isCompleted();
        assertThat(tensors.open()).as("seed %s: leak", seed).isZero();
        assertThat(time.scheduled()).as("seed %s", seed).isZero();
        assertThat(limiter == null ? 0 : limiter.used("R", -2))
                .as("seed %s", seed)
                .isZero();
        assertThat(checker.wrong).as("seed %s", seed).isEmpty();
    }

    @Test
    void losesNothingBetweenRealThreads() throws Exception {
        try (DeviceExecutor pool = new DeviceExecutor("storm", 3, Clock.system())) {
            for (int round = 0; round < 6; round++) {
                storm(pool, 42 + round);
            }
        }
    }

    private static void storm(DeviceExecutor pool, long seed) throws Exception {
        Random random = new Random(seed);
        int submitters = 3;
        TensorCounter tensors = new TensorCounter();
        int maxBatch = 1 + random.nextInt(8);
        Strategy strategy = strategy(random, 50_000);
        Checker checker = new Checker(tensors, strategy instanceof Direct);
        SequenceBatcher batcher = new SequenceBatcher(
                config(random, strategy, maxBatch, 2, 300_000),
                checker,
                pool,
                new SchedulerOptions(500, InlinePolicy.values()[(int) (seed % 3)]),
                InitialStateFiles.NONE);
        ConcurrentLinkedQueue<FakeSequenceJob> taken = new ConcurrentLinkedQueue<>();
        AtomicReference<Throwable> trouble = new AtomicReference<>();
        CountDownLatch done = new CountDownLatch(submitters);
        for (int t = 0; t < submitters; t++) {
            int thread = t;
            Threads.named("submit")
                    .newThread(() -> {
                        try {
                            Random own = new Random(seed * 31 + thread);
                            Client client = new Client(own, tensors, maxBatch, (thread + 1) * 1_000_000);
                            for (int i = 0; i < 3_000; i++) {
                                // Each thread has its own ids, since the order of its requests is checked.
                                int id = 1 + thread + submitters * own.nextInt(6);
                                client.submit(
                                        batcher, checker, id, Clock.system().nanos());
                                if (own.nextInt(60) == 0) {
                                    client.cancelOne();
                                }
                                if (thread == 0 && own.nextInt(500) == 0) {
                                    batcher.instances(1 + own.nextInt(3));
                                }
                            }
                            taken.addAll(client.taken);
                        } catch (Throwable e) {
                            trouble.set(e);
                        } finally {
                            done.countDown();
                        }
                    })
                    .start();
        }
        assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
        assertThat(trouble.get()).isNull();
        batcher.close();
        batcher.drained().toCompletableFuture().get(30, TimeUnit.SECONDS);
        assertThat(checker.wrong).as("seed %s", seed).isEmpty();
        // Ends on other threads (timer, canceller) may lag behind the batcher by a moment.
        long deadline = Clock.system().nanos() + 5_000_000_000L;
        while ((taken.stream().anyMatch(j -> j.ends.get() == 0) || tensors.open() > 0)
                && Clock.system().nanos() - deadline < 0) {
            Thread.onSpinWait();
        }
        assertThat(taken).as("seed %s", seed).allMatch(j -> j.ends.get() == 1);
        assertThat(tensors.open()).as("seed %s: leak", seed).isZero();
    }

    /** Submits requests of sequences like a client, sometimes invalid ones. Confined to one thread. */
    private static final class Client {
        final List<FakeSequenceJob> taken = new ArrayList<>();
        private final Random random;
        private final TensorCounter tensors;
        private final int maxBatch;
        private final Map<Integer, Integer> generations = new HashMap<>();
        private int number;

        Client(Random random, TensorCounter tensors, int maxBatch, int first) {
            this.random = random;
            this.tensors = tensors;
            this.maxBatch = maxBatch;
            this.number = first;
        }

        FakeSequenceJob request(int id, boolean start, boolean end) {
            number++;
            Shape shape = maxBatch > 0 ? Shape.of(1, 1) : Shape.of(1);
            return new FakeSequenceJob(
                    number, new SequenceFlags((long) id, start, end), List.of(tensors.ints("IN", shape, number)));
        }

        /** The sequence that would start now. */
        int generation() {
            return number;
        }

        void submit(SequenceBatcher batcher, Checker checker, int id, long now) {
            Integer known = generations.get(id);
            boolean start = known == null ? random.nextInt(20) > 0 : random.nextInt(15) == 0;
            boolean end = random.nextInt(4) == 0;
            FakeSequenceJob request = request(id, start, end);
            if (random.nextInt(12) == 0) {
                request.until(now + random.nextInt(4_000));
            }
            if (random.nextInt(6) == 0) {
                request.timeout(1 + random.nextInt(4_000));
            }
            int generation = start ? generation() : known == null ? -1 : known;
            checker.begins(request, generation);
            try {
                batcher.submit(request);
                taken.add(request);
                if (start) {
                    generations.put(id, generation);
                }
                if (end) {
                    generations.remove(id);
                }
            } catch (ServingException e) {
                if (request.ends.get() > 0 || request.hasAction()) {
                    checker.wrong.add(request + " was rejected but not left unchanged");
                }
                if (e.code() == ErrorCode.INVALID_ARGUMENT) {
                    generations.remove(id);
                }
                request.drop();
            }
        }

        void cancelOne() {
            if (!taken.isEmpty()) {
                taken.get(random.nextInt(taken.size())).cancel();
            }
        }
    }

    /** The expected state of a sequence. */
    private static final class Known {
        int sum;
        int last;
        boolean first = true;

        @Nullable String place;

        @Nullable InferenceJob inFlight;
    }

    /** A model that sums values and records every violated invariant. Thread-safe by a lock. */
    private static final class Checker implements BatchRunner {
        final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        private final Map<Integer, Integer> generationOf = new ConcurrentHashMap<>();
        private final Map<Integer, Known> known = new HashMap<>();
        private final Map<String, Integer> holders = new HashMap<>();
        private final Map<Integer, AtomicInteger> busy = new ConcurrentHashMap<>();
        private final List<InferenceJob> kept = new ArrayList<>();
        private final TensorCounter tensors;
        private final boolean direct;
        Runnable during = () -> {};
        /** How a job ends: 10: the model fails; 11: later; else: success. */
        Fate fate = () -> 0;

        Checker(TensorCounter tensors, boolean direct) {
            this.tensors = tensors;
            this.direct = direct;
        }

        /** Called when a request of a sequence is submitted. */
        void begins(FakeSequenceJob request, int generation) {
            generationOf.put(request.number, generation);
        }

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            AtomicInteger users = busy.computeIfAbsent(instance, i -> new AtomicInteger());
            check(users.getAndIncrement() == 0, "instance " + instance + " is used twice");
            List<InferenceJob> later = new ArrayList<>();
            for (int row = 0; row < jobs.size(); row++) {
                begin(instance, row, jobs.get(row));
            }
            check(!jobs.isEmpty() && !SequenceBatcher.isPadding(jobs.get(jobs.size() - 1)), "a batch ends in a filler");
            during.run();
            users.decrementAndGet();
            for (InferenceJob job : jobs) {
                int how = fate.next();
                if (SequenceBatcher.isPadding(job)) {
                    job.complete(List.of(tensors.ints("OUT", Shape.of(1), 0)), Map.of());
                } else if (how == 10) {
                    left(job, 0);
                    job.fail(ServingException.of(ErrorCode.INTERNAL, "no"));
                } else if (how == 11) {
                    later.add(job);
                } else {
                    finish(job);
                }
            }
            synchronized (this) {
                kept.addAll(later);
            }
        }

        private void begin(int instance, int row, InferenceJob job) {
            InferenceRequest request = job.request();
            if (SequenceBatcher.isPadding(job)) {
                check(control(request, "READY") == 0 && control(request, "ID") == 0, "a filler that is ready");
                check(control(request, "START") == 0 && control(request, "END") == 0, "a filler with flags");
                return;
            }
            SequenceFlags where = request.options().sequence();
            int number = Puppet.number(job);
            int generation = generationOf.get(number);
            synchronized (this) {
                Known k = known.computeIfAbsent(generation, g -> new Known());
                check(k.inFlight == null, "two requests of sequence " + generation + " in flight");
                k.inFlight = job;
                check(number > k.last, "order: " + number + " after " + k.last);
                k.last = number;
                check(where != null && k.first == where.start(), "sequence " + generation + " lost its beginning");
                k.first = false;
                check(control(request, "START") == (where.start() ? 1 : 0), "START");
                check(control(request, "END") == (where.end() ? 1 : 0), "END");
                check(control(request, "READY") == Float.floatToIntBits(1), "READY");
                check(where.id().equals((long) control(request, "ID")), "ID");
                check(control(request, "SIN") == k.sum, "state of " + number + ": " + control(request, "SIN"));
                if (direct) {
                    String place = instance + "/" + row;
                    check(k.place == null || k.place.equals(place), "sequence " + generation + " moved");
                    k.place = place;
                    Integer before = holders.put(place, generation);
                    if (before != null && before != generation) {
                        // The previous sequence of the slot must not appear there again.
                        known.get(before).place = "gone from " + place;
                    }
                }
            }
        }

        private static int control(InferenceRequest request, String name) {
            for (Tensor t : request.inputs()) {
                if (t.name().equals(name)) {
                    return t.byteLength() == 1
                            ? t.region().getByte(t.offset())
                            : t.region().getInt(t.offset());
                }
            }
            throw new IllegalStateException(name);
        }

        private synchronized void left(InferenceJob job, int more) {
            Known k = known.get(generationOf.get(Puppet.number(job)));
            k.inFlight = null;
            k.sum += more;
        }

        private void finish(InferenceJob job) {
            int in = TensorCounter.first(job.request().inputs().get(0));
            Tensor state = job.request().inputs().get(job.request().inputs().size() - 1);
            int sum = in + TensorCounter.first(state);
            List<Tensor> outputs =
                    List.of(tensors.ints("OUT", Shape.of(1), sum), tensors.ints("SOUT", state.shape(), sum));
            left(job, in);
            job.complete(outputs, Map.of());
        }

        void endOneKept(Random random) {
            InferenceJob job;
            synchronized (this) {
                if (kept.isEmpty()) {
                    return;
                }
                job = kept.remove(random.nextInt(kept.size()));
            }
            finish(job);
        }

        private void check(boolean right, String otherwise) {
            if (!right) {
                wrong.add(otherwise);
            }
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return true;
        }

        interface Fate {
            int next();
        }
    }
}
