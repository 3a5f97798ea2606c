// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;

class TimeoutHeapTest {
    @RepeatedTest(20)
    void knowsTheNextOneWhateverComesAndGoes(RepetitionInfo info) {
        Random random = new Random(info.getCurrentRepetition());
        ManualTime time = new ManualTime();
        DynamicBatcher batcher = new DynamicBatcher(
                ModelConfig.unspecified("m"),
                new Puppet(),
                new DeviceExecutor("test", 0, time, time),
                SchedulerOptions.DEFAULT);
        TimeoutHeap expiries = new TimeoutHeap();
        List<QueuedJob> in = new ArrayList<>();
        for (int i = 0; i < 2_000; i++) {
            if (in.isEmpty() || random.nextInt(100) < 55 - i / 50) {
                QueuedJob e = new QueuedJob(batcher, FakeJob.until(i, random.nextInt(500)), 0);
                expiries.add(e);
                in.add(e);
            } else {
                QueuedJob gone = in.remove(random.nextInt(in.size()));
                expiries.remove(gone);
                expiries.remove(gone);
                assertThat(gone.expiryIndex).isEqualTo(-1);
            }
            long least = in.stream()
                    .map(e -> e.expiry)
                    .min(Comparator.naturalOrder())
                    .orElse(-1L);
            QueuedJob next = expiries.next();
            assertThat(next == null ? -1 : next.expiry).isEqualTo(least);
        }
        for (int i = 0; i < 300; i++) {
            QueuedJob e = new QueuedJob(batcher, FakeJob.until(i, random.nextInt(500)), 0);
            expiries.add(e);
            in.add(e);
        }
        for (int i = 0; i < 100; i++) {
            expiries.remove(in.remove(random.nextInt(in.size())));
        }
        List<Long> drained = new ArrayList<>();
        for (QueuedJob e = expiries.next(); e != null; e = expiries.next()) {
            drained.add(e.expiry);
            expiries.remove(e);
        }
        assertThat(drained).hasSameSizeAs(in).isSorted();
    }
}
