// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.lifecycle.FakeLoader;
import io.nereid.lifecycle.FakeServable;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.lifecycle.ServableManager;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Concurrent readers while the set of versions changes all the time. */
@Timeout(120)
class VersionChangeConcurrencyTest {
    @Test
    void neverHandsOutAServableThatIsUnloadedAndUnloadsEveryOneOnce() throws Exception {
        long seed = 20_261_121L;
        Random random = new Random(seed);
        ServableManager manager = new ServableManager(ManagerOptions.DEFAULT, Clock.system());
        ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        List<FakeLoader> loaders = new ArrayList<>();
        AtomicBoolean stop = new AtomicBoolean();
        AtomicLong acquired = new AtomicLong();
        CountDownLatch readers = new CountDownLatch(3);
        FakeLoader first = new FakeLoader("m", 1, "0");
        loaders.add(first);
        manager.aspire("m", List.of(AspiredVersion.of(first)));
        var unused = manager.settled("m").toCompletableFuture().get(20, TimeUnit.SECONDS);
        for (int t = 0; t < 3; t++) {
            int thread = t;
            Threads.named("reader")
                    .newThread(() -> {
                        Random own = new Random(seed + thread);
                        List<ServableHandle> kept = new ArrayList<>();
                        while (!stop.get()) {
                            try {
                                kept.add(manager.acquire(ModelRef.latest("m")));
                                acquired.incrementAndGet();
                            } catch (ServingException e) {
                                wrong.add("a gap in service: " + e.describe());
                            }
                            if (kept.size() > own.nextInt(8)) {
                                for (ServableHandle handle : kept) {
                                    if (((FakeServable) handle.servable()).unloaded) {
                                        wrong.add("unloaded under a handle");
                                    }
                                    handle.close();
                                }
                                kept.clear();
                            }
                        }
                        kept.forEach(ServableHandle::close);
                        readers.countDown();
                    })
                    .start();
        }
        for (int round = 1; round <= 1_500; round++) {
            // Version 1 stays aspired and is sometimes reloaded; other versions are added and removed.
            List<AspiredVersion> list = new ArrayList<>();
            FakeLoader one = new FakeLoader("m", 1, "" + round / 3);
            loaders.add(one);
            list.add(AspiredVersion.of(one));
            if (random.nextBoolean()) {
                FakeLoader other = new FakeLoader("m", 2 + random.nextInt(3), "" + random.nextInt(2));
                other.failLoads = random.nextInt(5) == 0 ? 9 : 0;
                loaders.add(other);
                list.add(AspiredVersion.of(other));
            }
            manager.aspire("m", list);
            if (random.nextInt(4) == 0) {
                unused = manager.settled("m").toCompletableFuture().get(20, TimeUnit.SECONDS);
            }
        }
        stop.set(true);
        assertThat(readers.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(manager.close(Duration.ofSeconds(20))).as("seed %s", seed).isTrue();
        assertThat(wrong).as("seed %s", seed).isEmpty();
        assertThat(acquired.get()).isPositive();
        assertThat(manager.memoryBytes()).isZero();
        for (FakeLoader loader : loaders) {
            assertThat(loader.unloads.get())
                    .as("seed %s, %s", seed, loader.id())
                    .isEqualTo(loader.loads.get());
            assertThat(loader.loads.get()).isLessThanOrEqualTo(1);
        }
        assertThat(loaders.stream().mapToInt(l -> l.loads.get()).sum()).isGreaterThan(100);
    }

    @Test
    void reportsTheEndOfADrainingVersionExactlyOnce() throws Exception {
        Random random = new Random(7);
        for (int round = 0; round < 2_000; round++) {
            AtomicInteger ends = new AtomicInteger();
            AtomicInteger usedAfterTheEnd = new AtomicInteger();
            LiveServable live =
                    new LiveServable(new FakeServable(new ServableId("m", 1), "f", -1), ends::incrementAndGet);
            CountDownLatch done = new CountDownLatch(2);
            int spins = random.nextInt(200);
            for (int t = 0; t < 2; t++) {
                Threads.named("churn")
                        .newThread(() -> {
                            for (int i = 0; i < 100; i++) {
                                int stripe = live.retain();
                                if (stripe >= 0) {
                                    usedAfterTheEnd.addAndGet(ends.get());
                                    live.release(stripe);
                                }
                            }
                            done.countDown();
                        })
                        .start();
            }
            for (int i = 0; i < spins; i++) {
                Thread.onSpinWait();
            }
            live.drain();
            assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
            assertThat(ends.get()).isEqualTo(1);
            assertThat(usedAfterTheEnd.get()).isZero();
            assertThat(live.retain()).isNegative();
            assertThat(ends.get()).isEqualTo(1);
        }
    }
}
