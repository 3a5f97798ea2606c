// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class DeviceExecutorTest {
    @Test
    void readsPoliciesAsTheyAreWritten() {
        HostPolicy policy = HostPolicy.parse("gold,cpu-cores=0-2,5");
        assertThat(policy.name()).isEqualTo("gold");
        assertThat(policy.cores()).isEqualTo(BitSet.valueOf(new long[] {0b100111}));
        for (String wrong : List.of(
                "gold",
                "gold,cores=1",
                ",cpu-cores=1",
                "gold,cpu-cores=",
                "gold,cpu-cores=3-1",
                "gold,cpu-cores=1-2-3",
                "gold,cpu-cores=-1",
                "gold,cpu-cores=1,,2",
                "gold,cpu-cores=99999")) {
            assertThatThrownBy(() -> HostPolicy.parse(wrong)).hasMessageContaining("'" + wrong + "' is not understood");
        }
        assertThatThrownBy(() -> HostPolicy.parse("gold,numa-node=1"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNIMPLEMENTED));
    }

    @Test
    void rejectsAPolicyThatThisMachineCannotFollow() {
        assertThatThrownBy(() -> new DeviceExecutor("p", 1, Clock.system(), HostPolicy.parse("gold,cpu-cores=4000")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                    assertThat(e.getMessage()).contains("host policy 'gold' cannot bind threads to processors {4000}");
                });
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void runsOnTheProcessorsOfItsPolicy() throws Exception {
        int core = firstAllowed();
        CompletableFuture<String> allowed = new CompletableFuture<>();
        try (DeviceExecutor pool =
                new DeviceExecutor("p", 1, Clock.system(), HostPolicy.parse("one,cpu-cores=" + core))) {
            Scheduler s = SchedulerFactory.create(
                    ModelConfig.builder("m").instances(1).build(),
                    runner(() -> allowed.complete(allowedHere())),
                    pool,
                    new SchedulerOptions(10, InlinePolicy.NEVER));
            s.submit(FakeJob.of(1));
            assertThat(allowed.get(20, TimeUnit.SECONDS)).isEqualTo(Integer.toString(core));
            assertThat(pool.idleThreads())
                    .as("threads of a library are not bound")
                    .isZero();
        }
        assertThat(firstAllowed()).as("the test thread is not bound").isEqualTo(core);
    }

    @Test
    void aRunSeesHowManyThreadsHaveNothingToDo() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        CompletableFuture<Integer> alone = new CompletableFuture<>();
        CompletableFuture<Integer> withAnother = new CompletableFuture<>();
        try (DeviceExecutor pool = new DeviceExecutor("p", 3)) {
            assertThat(pool.idleThreads()).isEqualTo(3);
            Scheduler s = SchedulerFactory.create(
                    ModelConfig.builder("m").instances(3).build(),
                    runner(() -> {
                        if (alone.complete(pool.idleThreads())) {
                            try {
                                seen.await();
                            } catch (InterruptedException e) {
                                throw new AssertionError(e);
                            }
                        } else {
                            withAnother.complete(pool.idleThreads());
                        }
                    }),
                    pool,
                    new SchedulerOptions(10, InlinePolicy.NEVER));
            s.submit(FakeJob.of(1));
            assertThat(alone.get(20, TimeUnit.SECONDS)).isEqualTo(2);
            s.submit(FakeJob.of(2));
            assertThat(withAnother.get(20, TimeUnit.SECONDS)).isEqualTo(1);
            seen.countDown();
            s.close();
            s.drained().toCompletableFuture().get(20, TimeUnit.SECONDS);
            while (pool.idleThreads() < 3) {
                Thread.onSpinWait(); // the last run ends a little after its job
            }
        }
    }

    @Test
    void boundsTheRunsOfAllModelsTogether() throws Exception {
        AtomicInteger now = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(60);
        // A timer that never fires: on a busy machine a run may last so long that it would count as a long one.
        try (DeviceExecutor pool =
                new DeviceExecutor(2, 2, 1_000_000, Clock.system(), new StepTimer(), Threads.named("p"))) {
            for (int m = 0; m < 3; m++) {
                Scheduler s = SchedulerFactory.create(
                        ModelConfig.builder("m" + m).instances(4).build(),
                        runner(() -> {
                            most.accumulateAndGet(now.incrementAndGet(), Math::max);
                            Thread.yield();
                            now.decrementAndGet();
                        }),
                        pool,
                        new SchedulerOptions(100, InlinePolicy.NEVER));
                for (int i = 0; i < 20; i++) {
                    FakeJob job = FakeJob.of(i);
                    job.onEnd = j -> done.countDown();
                    s.submit(job);
                }
            }
            assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
            assertThat(most.get()).isBetween(1, 2);
        }
    }

    @Test
    void aModelDoesNotWaitForTheLongRunsOfOthers() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(2);
        CountDownLatch done = new CountDownLatch(1);
        try (DeviceExecutor pool = new DeviceExecutor("p", 2)) {
            Scheduler slow = scheduler("slow", 2, pool, () -> {
                begun.countDown();
                awaitUninterruptibly(release);
            });
            slow.submit(FakeJob.of(1));
            slow.submit(FakeJob.of(2));
            assertThat(begun.await(20, TimeUnit.SECONDS)).isTrue();
            Scheduler fast = scheduler("fast", 1, pool, () -> {});
            FakeJob job = FakeJob.of(3);
            job.onEnd = j -> done.countDown();
            fast.submit(job);
            assertThat(done.await(20, TimeUnit.SECONDS))
                    .as("the fast model has run while both runs of the slow one are in progress")
                    .isTrue();
        } finally {
            release.countDown();
        }
    }

    @Test
    void modelsTakeTurnsHoweverManyInstancesTheyHave() {
        DeviceExecutor pool = new DeviceExecutor("p", 0, Clock.system(), Timer.threaded("timer"));
        List<String> order = new ArrayList<>();
        Scheduler many = scheduler("many", 4, pool, () -> order.add("many"));
        Scheduler one = scheduler("one", 1, pool, () -> order.add("one"));
        for (int i = 0; i < 4; i++) {
            many.submit(FakeJob.of(i));
        }
        one.submit(FakeJob.of(4));
        one.submit(FakeJob.of(5));
        while (pool.runNext()) {
            // runs the next batch
        }
        assertThat(order).containsExactly("many", "one", "many", "one", "many", "many");
    }

    @Test
    void aModelAloneHasNoMoreRunsThanThreadsHoweverLongTheyAre() throws Exception {
        StepTimer timer = new StepTimer();
        LongRuns slow = new LongRuns();
        try (DeviceExecutor pool = new DeviceExecutor("p", 2, Clock.system(), timer)) {
            slow.submit(4, 4, pool);
            slow.awaitRunning(2);
            timer.step();
            assertThat(timer.steps).as("nothing looks for long runs").isEmpty();
            assertThat(slow.running()).isEqualTo(2);
        } finally {
            slow.release.countDown();
        }
    }

    @Test
    void spareThreadsGiveEachModelItsShareAndNotMore() throws Exception {
        StepTimer timer = new StepTimer();
        LongRuns a = new LongRuns();
        LongRuns b = new LongRuns();
        LongRuns c = new LongRuns();
        try (DeviceExecutor pool = new DeviceExecutor("p", 4, Clock.system(), timer)) {
            a.submit(8, 8, pool);
            a.awaitRunning(4);
            b.submit(8, 8, pool);
            assertThat(timer.steps).hasSize(1);
            timer.step();
            // half of the four threads
            b.awaitRunning(2);
            timer.step();
            timer.step();
            assertThat(b.running()).isEqualTo(2);
            c.submit(8, 8, pool);
            timer.step();
            timer.step();
            // a third of the four threads, rounded down
            c.awaitRunning(1);
            timer.step();
            assertThat(c.running()).isEqualTo(1);
            assertThat(a.running()).isEqualTo(4);
        } finally {
            a.release.countDown();
            b.release.countDown();
            c.release.countDown();
        }
        a.awaitEnded(8);
        b.awaitEnded(8);
        c.awaitEnded(8);
    }

    @Test
    void runsAreNotLongWhenTheyChangeBetweenTwoLooks() throws Exception {
        StepTimer timer = new StepTimer();
        LongRuns first = new LongRuns();
        LongRuns second = new LongRuns();
        LongRuns third = new LongRuns();
        try (DeviceExecutor pool = new DeviceExecutor("p", 1, Clock.system(), timer)) {
            first.submit(1, 1, pool);
            first.awaitRunning(1);
            second.submit(1, 1, pool);
            third.submit(1, 1, pool);
            first.release.countDown();
            second.awaitRunning(1);
            timer.step();
            assertThat(third.running()).as("the second run has only begun").isZero();
            timer.step();
            third.awaitRunning(1);
        } finally {
            second.release.countDown();
            third.release.countDown();
        }
        third.awaitEnded(1);
    }

    @Test
    void threadsBeyondTheLimitEndWhenTheyAreIdle() throws Exception {
        StepTimer timer = new StepTimer();
        LongRuns slow = new LongRuns();
        LongRuns fast = new LongRuns();
        List<Thread> started = new CopyOnWriteArrayList<>();
        ThreadFactory factory = task -> {
            Thread thread = Threads.named("p").newThread(task);
            started.add(thread);
            return thread;
        };
        try (DeviceExecutor pool = new DeviceExecutor(1, 1, 1_000_000, Clock.system(), timer, factory)) {
            slow.submit(1, 1, pool);
            slow.awaitRunning(1);
            fast.submit(1, 1, pool);
            timer.step();
            fast.awaitRunning(1);
            assertThat(started).hasSize(2);
            fast.release.countDown();
            started.get(1).join(20_000);
            assertThat(started.get(1).isAlive()).isFalse();
            slow.release.countDown();
            slow.awaitEnded(1);
            // The job has ended, but its thread may not yet wait for the next one: another would be started for that.
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (started.get(0).getState() != Thread.State.WAITING && System.nanoTime() - end < 0) {
                Thread.onSpinWait();
            }
            LongRuns next = new LongRuns();
            next.release.countDown();
            next.submit(1, 1, pool);
            next.awaitEnded(1);
            assertThat(started).as("the thread within the limit has stayed").hasSize(2);
        } finally {
            slow.release.countDown();
            fast.release.countDown();
        }
    }

    @Test
    void aClosedPoolRunsWhatWaitsAndEndsItsThreads() throws Exception {
        LongRuns slow = new LongRuns();
        LongRuns fast = new LongRuns();
        List<Thread> started = new CopyOnWriteArrayList<>();
        ThreadFactory factory = task -> {
            Thread thread = Threads.named("p").newThread(task);
            started.add(thread);
            return thread;
        };
        DeviceExecutor pool = new DeviceExecutor(2, 2, 1_000_000, Clock.system(), new StepTimer(), factory);
        slow.submit(2, 3, pool);
        slow.awaitRunning(2);
        fast.submit(1, 1, pool);
        pool.close();
        slow.release.countDown();
        fast.release.countDown();
        slow.awaitEnded(3);
        fast.awaitEnded(1);
        for (Thread thread : started) {
            thread.join(20_000);
            assertThat(thread.isAlive()).isFalse();
        }
    }

    /** A model whose runs last until the test releases them. Thread-safe. */
    private static final class LongRuns {
        final CountDownLatch release = new CountDownLatch(1);
        private int begun;
        private int ended;

        void submit(int instances, int jobs, DeviceExecutor pool) {
            Scheduler scheduler = scheduler("m", instances, pool, () -> {
                count(1, 0);
                awaitUninterruptibly(release);
            });
            for (int i = 0; i < jobs; i++) {
                FakeJob job = FakeJob.of(i);
                job.onEnd = j -> count(0, 1);
                scheduler.submit(job);
            }
        }

        private synchronized void count(int more, int less) {
            begun += more;
            ended += less;
            notifyAll();
        }

        synchronized int running() {
            return begun - ended;
        }

        synchronized void awaitRunning(int count) throws InterruptedException {
            await(() -> begun - ended >= count);
        }

        synchronized void awaitEnded(int count) throws InterruptedException {
            await(() -> ended >= count);
        }

        private synchronized void await(BooleanSupplier condition) throws InterruptedException {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (!condition.getAsBoolean()) {
                long left = end - System.nanoTime();
                assertThat(left).as("begun %s, ended %s", begun, ended).isPositive();
                TimeUnit.NANOSECONDS.timedWait(this, left);
            }
        }
    }

    /** A timer whose tasks the test runs. Thread-safe. */
    private static final class StepTimer implements Timer {
        final List<Runnable> steps = new CopyOnWriteArrayList<>();

        @Override
        public ScheduledTask after(long nanos, Runnable task) {
            assertThat(nanos).isEqualTo(DeviceExecutor.LONG_NANOS);
            steps.add(task);
            return () -> steps.remove(task);
        }

        void step() {
            List<Runnable> now = List.copyOf(steps);
            steps.clear();
            now.forEach(Runnable::run);
        }

        @Override
        public void close() {
            steps.clear();
        }
    }

    private static Scheduler scheduler(String name, int instances, DeviceExecutor pool, Runnable during) {
        return SchedulerFactory.create(
                ModelConfig.builder(name).instances(instances).build(),
                runner(during),
                pool,
                new SchedulerOptions(100, InlinePolicy.NEVER));
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static BatchRunner runner(Runnable during) {
        return new BatchRunner() {
            @Override
            public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
                during.run();
                jobs.forEach(j -> j.complete(List.of(), Map.of()));
            }

            @Override
            public boolean joinable(InferenceJob a, InferenceJob b) {
                return true;
            }
        };
    }

    private static String allowedHere() {
        try {
            List<String> lines = new ArrayList<>(Files.readAllLines(Path.of("/proc/thread-self/status")));
            lines.removeIf(l -> !l.startsWith("Cpus_allowed_list:"));
            return lines.get(0).substring("Cpus_allowed_list:".length()).trim();
        } catch (java.io.IOException e) {
            return e.toString();
        }
    }

    private static int firstAllowed() {
        return Integer.parseInt(allowedHere().split("[-,]", -1)[0]);
    }
}
