// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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
        }
        assertThat(firstAllowed()).as("the test thread is not bound").isEqualTo(core);
    }

    @Test
    void boundsTheRunsOfAllModelsTogether() throws Exception {
        AtomicInteger now = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(60);
        try (DeviceExecutor pool = new DeviceExecutor("p", 2)) {
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
