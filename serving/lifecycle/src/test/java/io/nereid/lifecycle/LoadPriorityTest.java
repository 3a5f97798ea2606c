// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.base.Threads;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LoadPriorityTest {
    /** Threads that the test says it is on. Thread-safe. */
    private static final class FakeOs implements LoadPriority.Os {
        final Map<Integer, Integer> nice = new ConcurrentHashMap<>();
        final AtomicInteger calls = new AtomicInteger();
        volatile boolean mayRaise = true;
        volatile boolean broken;
        volatile int me = 1;

        @Override
        public int current() throws IOException {
            calls.incrementAndGet();
            if (broken) {
                throw new IOException("not here");
            }
            return Thread.currentThread().getName().startsWith("load-priority") ? 99 : me;
        }

        @Override
        public List<Integer> all() {
            return List.copyOf(nice.keySet());
        }

        @Override
        public int get(int thread) {
            return nice.getOrDefault(thread, 0);
        }

        @Override
        public boolean set(int thread, int niceness) {
            boolean allowed = mayRaise || niceness >= get(thread);
            if (allowed) {
                nice.put(thread, niceness);
            }
            return allowed;
        }
    }

    private final FakeOs os = new FakeOs();

    @Test
    void aLoadGivesWayAndWhatItStartedDoesNotInTheEnd() {
        LoadPriority priority = new LoadPriority(10, os);
        int first = priority.lower();
        assertThat(os.get(1)).isEqualTo(10);
        os.me = 2;
        int second = priority.lower();
        os.nice.put(50, 10); // started by one of the two
        os.nice.put(51, 5); // somebody else's business
        os.me = 1;
        priority.restore(first);
        assertThat(os.get(1)).isZero();
        assertThat(os.get(50)).isZero();
        assertThat(os.get(51)).isEqualTo(5);
        assertThat(os.get(2)).as("still loads").isEqualTo(10);
        os.me = 2;
        priority.restore(second);
        assertThat(os.get(2)).isZero();
    }

    @Test
    void nothingIsChangedThatCouldNotBeChangedBack() {
        os.mayRaise = false;
        LoadPriority priority = new LoadPriority(10, os);
        int none = priority.lower();
        assertThat(none).isEqualTo(LoadPriority.UNCHANGED);
        priority.restore(none);
        assertThat(os.nice).as("but for the thread it was tried on").containsOnlyKeys(99);
    }

    @Test
    void doesWithoutWhereThereIsNoSuchThing() {
        os.broken = true;
        LoadPriority priority = new LoadPriority(10, os);
        assertThat(priority.lower()).isEqualTo(LoadPriority.UNCHANGED);
        assertThat(priority.lower()).isEqualTo(LoadPriority.UNCHANGED);
        assertThat(os.calls.get()).as("asked once").isEqualTo(1);
    }

    @Test
    void asksNothingWhenItIsNotWanted() {
        LoadPriority priority = new LoadPriority(0, os);
        assertThat(priority.lower()).isEqualTo(LoadPriority.UNCHANGED);
        assertThat(os.calls.get()).isZero();
    }

    @Test
    void worksOnTheRealSystemWhereItIsAllowed() throws Exception {
        LoadPriority.Os real = LoadPriority.system();
        LoadPriority priority = new LoadPriority(7, real);
        AtomicReference<List<Integer>> seen = new AtomicReference<>(List.of());
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch told = new CountDownLatch(1);
        AtomicInteger child = new AtomicInteger();
        Thread load = Threads.named("load").newThread(() -> {
            try {
                List<Integer> nices = new ArrayList<>();
                int lowered = priority.lower();
                if (lowered == LoadPriority.UNCHANGED) {
                    return;
                }
                CountDownLatch started = new CountDownLatch(1);
                Threads.named("serving")
                        .newThread(() -> {
                            try {
                                child.set(real.current());
                                started.countDown();
                                end.await();
                            } catch (IOException | InterruptedException e) {
                                throw new IllegalStateException(e);
                            }
                        })
                        .start();
                started.await();
                nices.add(real.get(lowered));
                nices.add(real.get(child.get()));
                priority.restore(lowered);
                nices.add(real.get(lowered));
                nices.add(real.get(child.get()));
                seen.set(nices);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            } finally {
                told.countDown();
            }
        });
        load.start();
        Rig.await(told);
        end.countDown();
        assumeTrue(!seen.get().isEmpty(), "this process may not change its threads' niceness");
        List<Integer> nices = seen.get();
        int usual = nices.get(2);
        assertThat(nices).containsExactly(usual + 7, usual + 7, usual, usual);
    }
}
