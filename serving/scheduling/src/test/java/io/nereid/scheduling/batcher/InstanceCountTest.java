// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.scheduling.execution.RateLimiter.Total;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.InstanceGroup.Resource;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import org.junit.jupiter.api.Test;

class InstanceCountTest {
    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();

    private Scheduler scheduler(int instances) {
        return SchedulerFactory.create(
                ModelConfig.builder("m").instances(instances).build(),
                puppet,
                pool,
                new SchedulerOptions(100, InlinePolicy.NEVER));
    }

    private void submit(Scheduler s, int from, int to) {
        for (int i = from; i <= to; i++) {
            s.submit(FakeJob.of(i));
        }
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(puppet.ran).hasSizeLessThan(1_000);
        }
        assertThat(puppet.trouble).isEmpty();
    }

    @Test
    void givesNewInstancesWorkAtOnce() {
        Scheduler s = scheduler(1);
        puppet.during = () -> {
            assertThat(pool.waiting()).isZero();
            s.instances(3);
            assertThat(s.instances()).isEqualTo(3);
            puppet.during = () -> {
                puppet.during = () -> {
                    assertThat(s.running()).isEqualTo(3);
                    assertThat(pool.waiting()).as("no fourth permit").isZero();
                };
                assertThat(pool.runNext()).isTrue();
            };
            assertThat(pool.runNext()).isTrue();
        };
        submit(s, 1, 5);
        runAll();
        assertThat(puppet.ran).hasSize(5);
        assertThat(puppet.instances.subList(0, 3)).containsExactly(0, 1, 2);
    }

    @Test
    void retiresInstancesWhenTheirRunsHaveEnded() {
        Scheduler s = scheduler(3);
        puppet.during = () -> {
            puppet.during = () -> {
                s.instances(1);
                assertThat(puppet.retired).as("2 was idle, 1 is in use").containsExactly(2);
            };
            assertThat(pool.runNext()).isTrue();
            assertThat(puppet.retired).containsExactly(2, 1);
        };
        submit(s, 1, 6);
        runAll();
        assertThat(puppet.ran).hasSize(6);
        assertThat(puppet.instances.subList(2, 6)).containsOnly(0);
        assertThat(s.running()).isZero();
        s.close();
        assertThat(s.drained().toCompletableFuture()).isCompleted();
    }

    @Test
    void startsNothingMoreWhileMoreRunsGoOnThanThereShouldBe() {
        Scheduler s = scheduler(2);
        puppet.during = () -> {
            puppet.during = () -> {
                s.instances(1);
                assertThat(pool.runNext()).as("no permit is enlisted").isFalse();
            };
            assertThat(pool.runNext()).isTrue();
        };
        submit(s, 1, 4);
        runAll();
        assertThat(puppet.ran).hasSize(4);
    }

    @Test
    void dropsPromisesThatBecameTooMany() {
        Scheduler s = scheduler(3);
        submit(s, 1, 6);
        s.instances(1);
        puppet.during = () -> {
            var unused = pool.runNext();
            assertThat(s.running()).isEqualTo(1);
        };
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2), List.of(3), List.of(4), List.of(5), List.of(6));
        assertThat(puppet.instances).containsOnly(0);
    }

    @Test
    void usesAnInstanceAgainThatHadRetired() {
        Scheduler s = scheduler(2);
        s.instances(1);
        s.instances(2);
        puppet.during = () -> assertThat(pool.runNext()).isTrue();
        submit(s, 1, 2);
        runAll();
        assertThat(puppet.instances).containsExactly(0, 1);
        assertThat(puppet.retired).containsExactly(1);
    }

    @Test
    void rejectsToHaveNone() {
        Scheduler s = scheduler(1);
        assertThatThrownBy(() -> s.instances(0)).hasMessageContaining("0 (expected: >= 1)");
        assertThat(s.instances()).isEqualTo(1);
    }

    @Test
    void countsNoPassiveInstances() {
        InstanceGroup active = InstanceGroup.cpu("a", 2);
        InstanceGroup passive = new InstanceGroup("p", Kind.CPU, 3, List.of(), true, "", List.of(), 0);
        ModelConfig config = ModelConfig.builder("m")
                .instanceGroups(List.of(passive, active))
                .build();
        Scheduler s = SchedulerFactory.create(config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        assertThat(s.instances()).isEqualTo(2);
    }

    @Test
    void takesNewInstancesIntoTheRateLimit() {
        RateLimiter limiter = new RateLimiter(List.of(Total.parse("R:4")));
        InstanceGroup group =
                new InstanceGroup("m", Kind.CPU, 1, List.of(), false, "", List.of(new Resource("R", false, 2)), 0);
        ModelConfig config =
                ModelConfig.builder("m").instanceGroups(List.of(group)).build();
        Scheduler s = SchedulerFactory.create(
                config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER).withLimiter(limiter));
        puppet.during = () -> {
            s.instances(3);
            puppet.during = () -> {
                assertThat(limiter.used("R", 0)).isEqualTo(4);
                assertThat(pool.runNext()).as("one permit is enlisted").isTrue();
                assertThat(s.running()).as("but gets no resources").isEqualTo(2);
                s.instances(1);
            };
            assertThat(pool.runNext()).isTrue();
        };
        submit(s, 1, 5);
        runAll();
        assertThat(puppet.ran).hasSize(5);
        assertThat(puppet.retired).contains(1, 2);
        assertThat(limiter.used("R", 0)).isZero();
        s.close();
        assertThat(s.drained().toCompletableFuture()).isCompleted();
    }
}
