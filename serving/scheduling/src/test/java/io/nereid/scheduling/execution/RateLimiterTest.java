// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.RateLimiter.Total;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.InstanceGroup.Resource;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RateLimiterTest {
    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final List<String> ran = new ArrayList<>();
    private final List<AssertionError> trouble = new ArrayList<>();

    private static InstanceGroup group(String model, int count, int priority, Resource... resources) {
        return new InstanceGroup(model, Kind.CPU, count, List.of(), false, "", List.of(resources), priority);
    }

    private static Resource r(String name, int count) {
        return new Resource(name, false, count);
    }

    private static Resource global(String name, int count) {
        return new Resource(name, true, count);
    }

    private final class Model implements BatchRunner {
        final String name;
        final Scheduler scheduler;
        Runnable during = () -> {};

        Model(RateLimiter limiter, String name, InstanceGroup... groups) {
            this.name = name;
            ModelConfig config =
                    ModelConfig.builder(name).instanceGroups(List.of(groups)).build();
            scheduler = SchedulerFactory.create(
                    config, this, pool, new SchedulerOptions(1_000, InlinePolicy.ALWAYS).withLimiter(limiter));
        }

        void submit(int count) {
            for (int i = 0; i < count; i++) {
                scheduler.submit(FakeJob.of(i));
            }
        }

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            ran.add(name);
            Runnable now = during;
            during = () -> {};
            try {
                now.run();
            } catch (AssertionError e) {
                // Recorded, because the queue would treat it as a failure of the runner.
                trouble.add(e);
            }
            jobs.forEach(j -> j.complete(List.of(), Map.of()));
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return true;
        }
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(ran).hasSizeLessThan(10_000);
        }
        assertThat(trouble).isEmpty();
    }

    @Test
    void letsARunBeginOnlyWhenItsResourcesAreFree() {
        RateLimiter limiter = new RateLimiter(List.of());
        Model a = new Model(limiter, "a", group("a", 1, 0, r("R", 1)));
        Model b = new Model(limiter, "b", group("b", 1, 0, r("R", 1)));
        a.during = () -> {
            assertThat(limiter.used("R", 0)).isEqualTo(1);
            b.submit(1);
            assertThat(pool.runNext()).isTrue();
            assertThat(ran).as("b has no resources").containsExactly("a");
            assertThat(pool.runNext()).as("no permit is enlisted in vain").isFalse();
        };
        a.submit(1);
        runAll();
        assertThat(ran).containsExactly("a", "b");
        assertThat(limiter.used("R", 0)).isZero();
    }

    @Test
    void givesBackWhatWasTakenWhenEverythingWasCancelled() {
        RateLimiter limiter = new RateLimiter(List.of());
        Model a = new Model(limiter, "a", group("a", 1, 0, r("R", 1)));
        Model b = new Model(limiter, "b", group("b", 1, 0, r("R", 1)));
        FakeJob job = FakeJob.of(7);
        a.during = () -> {
            b.scheduler.submit(job);
            assertThat(pool.runNext()).isTrue();
            job.cancel();
        };
        a.submit(2);
        runAll();
        assertThat(ran).containsExactly("a", "a");
        assertThat(limiter.used("R", 0)).isZero();
        b.submit(1);
        runAll();
        assertThat(ran).containsExactly("a", "a", "b");
    }

    @Test
    void runsInstancesSideBySideAsFarAsTheTotalGoes() {
        RateLimiter limiter = new RateLimiter(List.of(Total.parse("R:2")));
        Model a = new Model(limiter, "a", group("a", 3, 0, r("R", 1)));
        int[] most = new int[1];
        Runnable look = new Runnable() {
            @Override
            public void run() {
                most[0] = Math.max(most[0], a.scheduler.running());
                a.during = this;
                var unused = pool.runNext();
            }
        };
        a.during = look;
        a.submit(6);
        runAll();
        assertThat(ran).hasSize(6);
        assertThat(most[0]).isEqualTo(2);
    }

    @Test
    void servesPriorityOneTwiceAsOftenAsPriorityTwo() {
        RateLimiter limiter = new RateLimiter(List.of());
        Model a = new Model(limiter, "a", group("a", 1, 1, r("R", 1)));
        Model b = new Model(limiter, "b", group("b", 1, 2, r("R", 1)));
        a.submit(60);
        b.submit(60);
        runAll();
        List<String> contended = ran.subList(0, 60);
        assertThat(Collections.frequency(contended, "a")).isBetween(38, 42);
        assertThat(ran).hasSize(120);
    }

    @Test
    void letsOneThatNeedsMuchHaveItsTurnAmongManyThatNeedLittle() {
        RateLimiter limiter = new RateLimiter(List.of(Total.parse("R:2")));
        Model big = new Model(limiter, "big", group("big", 1, 1, r("R", 2)));
        Model small = new Model(limiter, "small", group("small", 2, 1, r("R", 1)));
        small.submit(20);
        assertThat(pool.runNext()).isTrue();
        big.submit(3);
        runAll();
        assertThat(ran.subList(0, 12)).contains("big");
        assertThat(Collections.frequency(ran, "big")).isEqualTo(3);
        assertThat(Collections.frequency(ran, "small")).isEqualTo(20);
    }

    @Test
    void keepsWhatComesFreeForTheOneWhoseTurnItIs() {
        RateLimiter limiter = new RateLimiter(List.of(Total.parse("R:2")));
        List<String> granted = new ArrayList<>();
        RateLimiter.Member small = limiter.join(
                ModelConfig.builder("small")
                        .instanceGroups(List.of(group("small", 2, 1, r("R", 1))))
                        .build(),
                () -> granted.add("small"));
        RateLimiter.Member big = limiter.join(
                ModelConfig.builder("big")
                        .instanceGroups(List.of(group("big", 1, 1, r("R", 2))))
                        .build(),
                () -> granted.add("big"));
        BitSet none = new BitSet();
        BitSet first = new BitSet();
        first.set(0);
        assertThat(small.acquire(none, 2)).isZero();
        assertThat(small.acquire(first, 2)).isEqualTo(1);
        assertThat(big.acquire(none, 1)).isEqualTo(-1);
        small.release(0, true);
        assertThat(granted).as("one is free, but big waits for two").isEmpty();
        assertThat(limiter.used("R", 0)).isEqualTo(1);
        small.release(1, false);
        assertThat(granted).containsExactly("big");
        assertThat(big.acquire(none, 1)).isZero();
        big.release(0, false);
        assertThat(granted).containsExactly("big", "small");
        small.returnUnused();
        assertThat(limiter.used("R", 0)).isZero();
    }

    @Test
    void doesNotHoldBackWhoNeedsSomethingElse() {
        RateLimiter limiter = new RateLimiter(List.of());
        Model a = new Model(limiter, "a", group("a", 1, 0, r("R", 1)));
        Model b = new Model(limiter, "b", group("b", 1, 0, r("R", 1)));
        Model c = new Model(limiter, "c", group("c", 1, 0, r("S", 1)));
        Model d = new Model(limiter, "d", group("d", 1, 0));
        a.during = () -> {
            b.submit(1);
            c.submit(1);
            d.submit(1);
            for (int i = 0; i < 3; i++) {
                assertThat(pool.runNext()).isTrue();
            }
            assertThat(ran).containsExactly("a", "c", "d");
        };
        a.submit(1);
        runAll();
        assertThat(ran).containsExactly("a", "c", "d", "b");
    }

    @Test
    void sharesAGlobalResourceBetweenDevicesButNoOther() {
        RateLimiter limiter = new RateLimiter(List.of());
        InstanceGroup first = new InstanceGroup("a", Kind.GPU, 1, List.of(0), false, "", List.of(global("G", 1)), 0);
        InstanceGroup second = new InstanceGroup("b", Kind.GPU, 1, List.of(1), false, "", List.of(global("G", 1)), 0);
        InstanceGroup third = new InstanceGroup("c", Kind.GPU, 1, List.of(0), false, "", List.of(r("R", 1)), 0);
        InstanceGroup fourth = new InstanceGroup("d", Kind.GPU, 1, List.of(1), false, "", List.of(r("R", 1)), 0);
        Model a = new Model(limiter, "a", first);
        Model b = new Model(limiter, "b", second);
        Model c = new Model(limiter, "c", third);
        Model d = new Model(limiter, "d", fourth);
        a.during = () -> {
            b.submit(1);
            c.during = () -> {
                d.submit(1);
                assertThat(pool.runNext()).isTrue();
                assertThat(ran).containsExactly("a", "c", "d");
            };
            c.submit(1);
            assertThat(pool.runNext()).isTrue();
            assertThat(ran).containsExactly("a");
            assertThat(pool.runNext()).isTrue();
        };
        a.submit(1);
        runAll();
        assertThat(ran).containsExactly("a", "c", "d", "b");
    }

    @Test
    void takesAnotherInstanceOfTheModelWhenOneGetsNothing() {
        RateLimiter limiter = new RateLimiter(List.of());
        Model a = new Model(limiter, "a", group("a", 1, 0, r("R", 1)));
        Model b = new Model(limiter, "b", group("b0", 1, 0, r("R", 1)), group("b1", 1, 0));
        a.during = () -> {
            b.submit(1);
            assertThat(pool.runNext()).isTrue();
            assertThat(ran).containsExactly("a", "b");
        };
        a.submit(1);
        runAll();
        assertThat(ran).containsExactly("a", "b");
        assertThat(limiter.used("R", 0)).isZero();
    }

    @Test
    void rejectsAModelThatCouldNeverRun() {
        RateLimiter limiter = new RateLimiter(List.of(Total.parse("R:4")));
        new Model(limiter, "a", group("a", 1, 0, r("R", 4))).submit(1);
        assertThatThrownBy(() -> new Model(limiter, "b", group("b", 1, 0, r("R", 5))))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage())
                            .isEqualTo(
                                    "Resource count for \"R\" is limited to 4 which will prevent scheduling of one or"
                                            + " more model instances, the minimum required count is 5");
                });
        runAll();
        assertThat(ran).containsExactly("a");
    }

    @Test
    void rejectsAResourceThatIsBothGlobalAndOfADevice() {
        RateLimiter limiter = new RateLimiter(List.of());
        new Model(limiter, "a", group("a", 1, 0, r("R", 1)));
        assertThatThrownBy(() -> new Model(limiter, "b", group("b", 1, 0, global("R", 1))))
                .hasMessage("Resource \"R\" is present as both global and device-specific resource in the model"
                        + " configuration.");
    }

    @Test
    void forgetsAModelThatHasEnded() {
        RateLimiter limiter = new RateLimiter(List.of());
        Model a = new Model(limiter, "a", group("a", 1, 0, r("R", 1)));
        a.scheduler.close();
        assertThat(a.scheduler.drained().toCompletableFuture()).isCompleted();
        Model b = new Model(limiter, "b", group("b", 1, 0, global("R", 1)));
        b.submit(1);
        runAll();
        assertThat(ran).containsExactly("b");
    }

    @Test
    void readsTotalsAsTheyAreWritten() {
        assertThat(Total.parse("R1:10")).isEqualTo(new Total("R1", 10, Total.EVERY_DEVICE));
        assertThat(Total.parse("R1:10:2")).isEqualTo(new Total("R1", 10, 2));
        for (String wrong : List.of("", "R1", ":3", "R1:x", "R1:-1", "R1:1:-2", "R1:1:2:3")) {
            assertThatThrownBy(() -> Total.parse(wrong)).hasMessageContaining("'" + wrong + "'");
        }
    }

    @Test
    void holdsTheTotalOfADeviceAgainstThatOfEveryDevice() {
        RateLimiter limiter = new RateLimiter(List.of(Total.parse("R:1"), Total.parse("R:3:0")));
        new Model(limiter, "a", group("a", 1, 0, r("R", 3)));
        InstanceGroup other = new InstanceGroup("b", Kind.GPU, 1, List.of(1), false, "", List.of(r("R", 3)), 0);
        assertThatThrownBy(() -> new Model(limiter, "b", other)).hasMessageContaining("is limited to 1 ");
    }
}
