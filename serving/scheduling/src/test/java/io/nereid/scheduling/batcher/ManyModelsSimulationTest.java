// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.InstanceGroup.Resource;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;

/** Random operations on several models with all features of queues, from fixed seeds, with checks of invariants. */
class ManyModelsSimulationTest {
    private static final long TOTAL = 3;

    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("simulation", 0, time, time);
    private final List<String> wrong = new ArrayList<>();
    private int used;

    @RepeatedTest(300)
    void holdItsPromisesInAnyOrderOfEvents(RepetitionInfo info) {
        long seed = 104_729L * info.getCurrentRepetition();
        Random random = new Random(seed);
        RateLimiter limiter =
                random.nextInt(3) == 0 ? null : new RateLimiter(List.of(RateLimiter.Total.parse("R:" + TOTAL)));
        List<Model> models = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            models.add(new Model("m" + i, random, limiter));
        }
        for (int i = 0; i < 500; i++) {
            Model m = models.get(random.nextInt(models.size()));
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> m.submit(i);
                case 4 -> m.cancelOne();
                case 5 -> time.advance(random.nextInt(1_000));
                case 6 -> {
                    if (random.nextInt(5) == 0) {
                        m.resize(1 + random.nextInt(4));
                    }
                }
                default -> {
                    var unused = pool.runNext();
                }
            }
            m.checkLimits();
        }
        for (int i = 0; i < 3_000 && (pool.runNext() || models.stream().anyMatch(m -> m.scheduler.queued() > 0)); i++) {
            time.advance(100);
        }
        for (Model m : models) {
            assertThat(m.scheduler.queued())
                    .as("seed %s: lost wake-up of %s", seed, m.name)
                    .isZero();
            assertThat(m.scheduler.running()).as("seed %s", seed).isZero();
            assertThat(m.taken).as("seed %s", seed).allMatch(j -> j.ends.get() == 1);
            assertThat(m.taken).as("seed %s: actions left behind", seed).noneMatch(FakeJob::hasAction);
            if (m.batching.preserveOrdering()) {
                assertThat(m.left).as("seed %s: order of responses", seed).isSorted();
            }
            m.scheduler.close();
        }
        while (pool.runNext()) {
            assertThat(wrong).isEmpty();
        }
        for (Model m : models) {
            assertThat(m.scheduler.drained().toCompletableFuture())
                    .as("seed %s: permits", seed)
                    .isCompleted();
        }
        assertThat(wrong).as("seed %s", seed).isEmpty();
        assertThat(used).isZero();
        if (limiter != null) {
            assertThat(limiter.used("R", 0)).as("seed %s: resources", seed).isZero();
        }
        assertThat(time.scheduled()).as("seed %s: alarms", seed).isLessThanOrEqualTo(models.size());
    }

    /** A model: its queue, its runner and the expected state of both. Confined to one thread. */
    private final class Model implements BatchRunner {
        final String name;
        final DynamicBatching batching;
        final QueuePolicy queue;
        final Scheduler scheduler;
        final List<FakeJob> taken = new ArrayList<>();
        final List<Integer> left = new ArrayList<>();
        private final Random random;
        private final int maxBatch;
        private final int need;
        private final boolean limited;
        private final Map<FakeJob, Long> waiting = new HashMap<>();
        private final BitSet busy = new BitSet();
        private int wanted;

        Model(String name, Random random, @Nullable RateLimiter limiter) {
            this.name = name;
            this.random = random;
            this.limited = limiter != null;
            this.maxBatch = 1 + random.nextInt(6);
            this.wanted = 1 + random.nextInt(3);
            this.need = random.nextInt((int) TOTAL + 1);
            boolean ordered = random.nextInt(3) == 0;
            int levels = ordered ? 0 : random.nextInt(4);
            List<Integer> preferred = random.nextBoolean() ? List.of() : List.of(1 + random.nextInt(maxBatch));
            Map<Long, QueuePolicy> others = levels > 1 ? Map.of(1L, policy(false)) : Map.of();
            this.queue = policy(ordered);
            this.batching = new DynamicBatching(
                    preferred, Duration.ofNanos(random.nextInt(3) * 500L), ordered, levels, levels, others);
            InstanceGroup group = new InstanceGroup(
                    name,
                    Kind.CPU,
                    wanted,
                    List.of(),
                    false,
                    "",
                    need == 0 ? List.of() : List.of(new Resource("R", false, need)),
                    random.nextInt(3));
            ModelConfig config = ModelConfig.builder(name)
                    .maxBatchSize(maxBatch)
                    .queue(queue)
                    .batching(batching)
                    .instanceGroups(List.of(group))
                    .build();
            InlinePolicy inline = InlinePolicy.values()[random.nextInt(3)];
            scheduler =
                    SchedulerFactory.create(config, this, pool, new SchedulerOptions(30, inline).withLimiter(limiter));
        }

        private QueuePolicy policy(boolean ordered) {
            TimeoutAction action = ordered || random.nextBoolean() ? TimeoutAction.REJECT : TimeoutAction.DELAY;
            return new QueuePolicy(
                    random.nextInt(3) * 10, Duration.ofNanos(random.nextInt(3) * 1_500L), random.nextBoolean(), action);
        }

        private long level(InferenceJob job) {
            long priority = job.request().options().priority();
            return priority == 0 || priority > batching.priorityLevels() ? batching.priorityLevels() : priority;
        }

        private QueuePolicy policyOf(InferenceJob job) {
            return batching.levelQueues().getOrDefault(level(job), queue);
        }

        private long timeout(InferenceJob job) {
            QueuePolicy policy = policyOf(job);
            long standard = policy.defaultTimeout().toNanos();
            long requested = job.request().options().timeoutNanos();
            boolean overrides = requested > 0 && (standard == 0 || requested < standard);
            return policy.allowTimeoutOverride() && overrides ? requested : standard;
        }

        void submit(int number) {
            long deadline = random.nextInt(3) > 0 ? Long.MAX_VALUE : time.nanos() + random.nextInt(4_000);
            FakeJob job = new FakeJob(number, 1 + random.nextInt(maxBatch), random.nextInt(2), deadline)
                    .priority(random.nextInt(5))
                    .timeout(random.nextInt(3) * 800L);
            job.onAnswer = j -> left.add(j.number);
            job.onEnd = j -> {
                waiting.remove(j);
                if (j.error == null) {
                    left.add(j.number);
                } else if (j.code == ErrorCode.UNAVAILABLE && policyOf(j).onTimeout() == TimeoutAction.DELAY) {
                    wrong.add(j + " was rejected though it should only be delayed");
                } else if (j.code == ErrorCode.UNAVAILABLE
                        && (timeout(j) == 0 || time.nanos() - j.queuedAt < timeout(j))) {
                    wrong.add(j + " was rejected before its time");
                }
            };
            try {
                waiting.put(job, time.nanos());
                scheduler.submit(job);
                taken.add(job);
            } catch (ServingException e) {
                waiting.remove(job);
                if (job.ends.get() > 0 || job.hasAction()) {
                    wrong.add(job + " was rejected and ended");
                }
            }
        }

        void cancelOne() {
            if (!taken.isEmpty()) {
                taken.get(random.nextInt(taken.size())).cancel();
            }
        }

        void resize(int count) {
            wanted = count;
            scheduler.instances(count);
        }

        void checkLimits() {
            Map<Long, Integer> sizes = new HashMap<>();
            waiting.keySet().forEach(j -> sizes.merge(level(j), 1, Integer::sum));
            sizes.forEach((level, size) -> {
                QueuePolicy policy = batching.levelQueues().getOrDefault(level, queue);
                if (size > (policy.maxSize() > 0 ? policy.maxSize() : 30)) {
                    wrong.add("level " + level + " holds " + size);
                }
            });
            if (waiting.size() != scheduler.queued()) {
                wrong.add(scheduler.queued() + " queued, but " + waiting.size() + " wait");
            }
        }

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            if (busy.get(instance) || instance >= wanted) {
                wrong.add("instance " + instance + " of " + wanted + " is used twice or retired");
            }
            busy.set(instance);
            if (limited) {
                used += need;
                if (used > TOTAL) {
                    wrong.add(used + " resources in use");
                }
            }
            List<FakeJob> own = new ArrayList<>();
            for (InferenceJob job : jobs) {
                int number = Puppet.number(job);
                waiting.keySet().stream().filter(j -> j.number == number).forEach(own::add);
            }
            checkBatch(jobs, own, cut);
            own.forEach(waiting::remove);
            checkOrder(own);
            time.spend(random.nextInt(400));
            for (int i = random.nextInt(3); i > 0; i--) {
                var unused = pool.runNext();
            }
            if (random.nextInt(20) == 0) {
                resize(1 + random.nextInt(4));
            }
            busy.clear(instance);
            if (limited) {
                used -= need;
            }
            for (InferenceJob job : jobs) {
                for (int i = random.nextInt(3); i > 0; i--) {
                    job.respond(List.of(), Map.of());
                }
                job.complete(List.of(), Map.of());
            }
        }

        private void checkBatch(List<InferenceJob> jobs, List<FakeJob> own, BatchCloseReason cut) {
            int rows = jobs.stream().mapToInt(InferenceJob::batchSize).sum();
            if (jobs.isEmpty() || own.size() != jobs.size() || rows > maxBatch) {
                wrong.add("a batch of " + rows + " of which " + own.size() + " waited");
            }
            if (own.stream().map(j -> j.shape).distinct().count() > 1) {
                wrong.add("shapes are mixed");
            }
            if (cut == BatchCloseReason.PREFERRED_SIZE
                    && rows < batching.preferredSizes().get(0)
                    && own.stream().noneMatch(FakeJob::cancelled)
                    && waiting.size() == own.size()) {
                wrong.add("no preferred size: " + rows);
            }
            for (FakeJob job : own) {
                if (job.deadline != Long.MAX_VALUE && job.startedAt >= job.deadline) {
                    wrong.add(job + " started after its deadline");
                }
                if (policyOf(job).onTimeout() == TimeoutAction.REJECT
                        && timeout(job) > 0
                        && job.startedAt - job.queuedAt >= timeout(job)) {
                    wrong.add(job + " started after its timeout");
                }
            }
        }

        /** Checks that no queued job should have run before the running ones. */
        private void checkOrder(List<FakeJob> own) {
            for (FakeJob runs : own) {
                long now = runs.startedAt;
                for (FakeJob waits : waiting.keySet()) {
                    boolean before = level(waits) < level(runs)
                            || (level(waits) == level(runs) && delayed(runs, now) && !delayed(waits, now))
                            || (level(waits) == level(runs)
                                    && !delayed(runs, now)
                                    && !delayed(waits, now)
                                    && waits.number < runs.number);
                    if (before) {
                        wrong.add(runs + " has overtaken " + waits);
                    }
                }
            }
        }

        private boolean delayed(FakeJob job, long now) {
            return timeout(job) > 0 && now - job.queuedAt >= timeout(job);
        }

        @Override
        public void retired(int instance) {
            if (busy.get(instance)) {
                wrong.add("instance " + instance + " is retired during its run");
            }
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return shape(a) == shape(b);
        }

        private int shape(InferenceJob job) {
            int number = Puppet.number(job);
            return waiting.keySet().stream()
                    .filter(j -> j.number == number)
                    .mapToInt(j -> j.shape)
                    .findFirst()
                    .orElse(-1);
        }
    }
}
