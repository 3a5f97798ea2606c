// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.resources;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import io.nereid.lifecycle.ManagerFixture;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LoadThreadPriorityTest {
    /** Threads of a simulated operating system. Thread-safe. */
    private static final class FakeOs implements LoadThreadPriority.Os {
        final Map<Integer, Integer> nice = new ConcurrentHashMap<>();
        final Set<Integer> idle = ConcurrentHashMap.newKeySet();
        final Map<Integer, Share> shares = new ConcurrentHashMap<>();
        final AtomicInteger calls = new AtomicInteger();
        volatile boolean mayRaise = true;
        volatile boolean broken;
        volatile boolean sharesUnknown;
        volatile boolean childrenUnknown;
        final Map<Integer, List<Integer>> started = new ConcurrentHashMap<>();
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
        public List<Integer> started(int thread) throws IOException {
            if (childrenUnknown) {
                throw new IOException("no such file");
            }
            return started.getOrDefault(thread, List.of());
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

        @Override
        public boolean idle(int thread) {
            return idle.contains(thread);
        }

        @Override
        public boolean idle(int thread, boolean wanted) {
            boolean unused = wanted ? idle.add(thread) : idle.remove(thread);
            return true;
        }

        @Override
        public Share share(int thread) {
            return sharesUnknown ? new Share(0, 0) : shares.getOrDefault(thread, new Share(1, 0));
        }
    }

    /** A clock and a timer that a test advances. */
    private static final class Time implements Clock, Timer {
        final Queue<Runnable> tasks = new ArrayDeque<>();
        long now;

        @Override
        public long nanos() {
            return now;
        }

        @Override
        public long millis() {
            return now / 1_000_000;
        }

        @Override
        public ScheduledTask after(long nanos, Runnable task) {
            tasks.add(task);
            return () -> {};
        }

        /** Advances the time to the next check. */
        void pass() {
            now += LoadThreadPriority.CHECK_INTERVAL.toNanos();
            tasks.remove().run();
        }

        @Override
        public void close() {
            tasks.clear();
        }
    }

    private final FakeOs os = new FakeOs();
    private final Time time = new Time();

    private LoadThreadPriority priority(int niceness) {
        return new LoadThreadPriority(niceness, os, time, time);
    }

    /** Sets the processor time of a thread, in milliseconds. */
    private void had(int thread, long ran, long waited) {
        os.shares.put(thread, new LoadThreadPriority.Os.Share(ran * 1_000_000, waited * 1_000_000));
    }

    @Test
    void aLoadGivesWayAndWhatItStartedDoesNotInTheEnd() {
        LoadThreadPriority priority = priority(10);
        int first = priority.lower(false);
        assertThat(os.get(1)).isEqualTo(10);
        os.me = 2;
        int second = priority.lower(false);
        os.nice.put(50, 10); // started by one of the two
        os.nice.put(51, 5); // of another program
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
    void aLoadGetsOnlyTimeThatIsIdle() {
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(false);
        assertThat(os.idle(1)).isTrue();
        os.nice.put(50, 10); // started by the load
        os.idle.add(50);
        priority.restore(load);
        assertThat(os.idle).isEmpty();
        assertThat(os.get(50)).isZero();
    }

    @Test
    void loadsThatGetNextToNothingAreMerelyNiceForAWhile() {
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(false);
        os.nice.put(50, 10); // started by the load
        os.idle.add(50);
        time.pass();
        had(1, 105, 5_000);
        time.pass();
        had(1, 110, 5_240);
        time.pass();
        assertThat(os.idle).as("has got one fiftieth").contains(1);
        had(1, 114, 5_486);
        time.pass();
        assertThat(os.idle).as("has got less").isEmpty();
        assertThat(os.get(1)).isEqualTo(10);
        assertThat(time.tasks).isEmpty();
        priority.restore(load);
        assertThat(os.get(1)).isZero();
        assertThat(os.get(50)).isZero();

        int soon = priority.lower(false);
        assertThat(os.idle).as("soon after").isEmpty();
        priority.restore(soon);
        time.now += LoadThreadPriority.IDLE_POLICY_PAUSE.toNanos();
        int later = priority.lower(false);
        assertThat(os.idle).as("later").containsExactly(1);
        priority.restore(later);
    }

    @Test
    void aSmallModelThatNothingServesYetUsesNicenessOnlySinceClientsMayWait() {
        assertThat(LoadThreadPriority.hurries(false, 1_000_000)).isTrue();
        assertThat(LoadThreadPriority.hurries(false, 400_000_000)).isFalse();
        assertThat(LoadThreadPriority.hurries(true, 1_000_000)).isFalse();
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(true);
        assertThat(os.get(load)).isEqualTo(10);
        assertThat(os.idle).isEmpty();
        assertThat(time.tasks).isEmpty();
        priority.restore(load);
        assertThat(os.get(load)).isZero();
    }

    @Test
    void aLoadThatWaitsForItsDiskHasAllTheTimeItWants() {
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(false);
        had(1, 2, 30);
        time.pass();
        assertThat(os.idle).containsExactly(1);
        priority.restore(load);
        time.pass();
        assertThat(time.tasks).as("superfluous checks").isEmpty();
    }

    @Test
    void processesThatALoadStartedServeLaterAndGiveWayNoLonger() {
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(false);
        os.started.put(1, List.of(500, 501, 502));
        for (int thread : List.of(500, 501)) {
            os.nice.put(thread, 10);
            os.idle.add(thread);
        }
        os.nice.put(502, 15); // has raised its own niceness
        priority.restore(load);
        assertThat(os.get(500)).isZero();
        assertThat(os.get(501)).isZero();
        assertThat(os.get(502)).isEqualTo(15);
        assertThat(os.idle).isEmpty();
    }

    @Test
    void aProcessThatGetsNextToNothingIsNoticed() {
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(false);
        os.started.put(1, List.of(500));
        os.nice.put(500, 10);
        os.idle.add(500);
        time.pass();
        had(500, 2, 240);
        time.pass();
        assertThat(os.idle).isEmpty();
        priority.restore(load);
    }

    @Test
    void usesNicenessOnlyWhereChildProcessesAreUnknown() {
        os.childrenUnknown = true;
        LoadThreadPriority priority = priority(10);
        int load = priority.lower(false);
        assertThat(os.get(load)).isEqualTo(10);
        assertThat(os.idle).isEmpty();
        priority.restore(load);
        assertThat(os.get(load)).isZero();
    }

    @Test
    void usesNicenessOnlyWhereWaitingTimesAreUnknown() {
        os.sharesUnknown = true;
        int load = priority(10).lower(false);
        assertThat(os.get(load)).isEqualTo(10);
        assertThat(os.idle).isEmpty();
    }

    @Test
    void nothingIsChangedThatCouldNotBeChangedBack() {
        os.mayRaise = false;
        LoadThreadPriority priority = priority(10);
        int none = priority.lower(false);
        assertThat(none).isEqualTo(LoadThreadPriority.UNCHANGED);
        priority.restore(none);
        assertThat(os.nice).as("except for the thread of the trial").containsOnlyKeys(99);
    }

    @Test
    void doesWithoutWhereThereIsNoSuchThing() {
        os.broken = true;
        LoadThreadPriority priority = priority(10);
        assertThat(priority.lower(false)).isEqualTo(LoadThreadPriority.UNCHANGED);
        assertThat(priority.lower(false)).isEqualTo(LoadThreadPriority.UNCHANGED);
        assertThat(os.calls.get()).as("tried once").isEqualTo(1);
    }

    @Test
    void makesNoSystemCallsWhenOff() {
        LoadThreadPriority priority = priority(0);
        assertThat(priority.lower(false)).isEqualTo(LoadThreadPriority.UNCHANGED);
        assertThat(os.calls.get()).isZero();
    }

    @Test
    void worksOnTheRealSystemWhereItIsAllowed() throws Exception {
        LoadThreadPriority.Os real = LoadThreadPriority.system();
        LoadThreadPriority priority = new LoadThreadPriority(7, real, Clock.system(), time);
        AtomicReference<List<Integer>> seen = new AtomicReference<>(List.of());
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch notified = new CountDownLatch(1);
        AtomicInteger child = new AtomicInteger();
        List<Boolean> idles = new CopyOnWriteArrayList<>();
        List<Integer> children = new CopyOnWriteArrayList<>();
        List<Integer> processes = new CopyOnWriteArrayList<>();
        AtomicReference<Process> process = new AtomicReference<>();
        Thread load = Threads.named("load").newThread(() -> {
            try {
                List<Integer> nices = new ArrayList<>();
                int lowered = priority.lower(false);
                if (lowered == LoadThreadPriority.UNCHANGED) {
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
                Process sleeper = new ProcessBuilder("sleep", "60").start();
                process.set(sleeper);
                int pid = (int) sleeper.pid();
                children.addAll(real.started(lowered));
                processes.add(real.get(pid));
                nices.add(real.get(lowered));
                nices.add(real.get(child.get()));
                idles.add(real.idle(lowered));
                idles.add(real.idle(child.get()));
                priority.restore(lowered);
                idles.add(real.idle(lowered));
                idles.add(real.idle(child.get()));
                idles.add(real.idle(pid));
                processes.add(real.get(pid));
                nices.add(real.get(lowered));
                nices.add(real.get(child.get()));
                seen.set(nices);
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            } finally {
                notified.countDown();
            }
        });
        load.start();
        ManagerFixture.await(notified);
        end.countDown();
        Process sleeper = process.get();
        if (sleeper != null) {
            sleeper.destroyForcibly();
        }
        assumeTrue(!seen.get().isEmpty(), "this process may not change its threads' niceness");
        List<Integer> nices = seen.get();
        int usual = nices.get(2);
        assertThat(nices).containsExactly(usual + 7, usual + 7, usual, usual);
        boolean idle = idles.get(0);
        assertThat(idles).containsExactly(idle, idle, false, false, false);
        if (idle) {
            assertThat(sleeper).isNotNull();
            assertThat(children).contains((int) sleeper.pid());
            assertThat(processes).containsExactly(usual + 7, usual);
        }
    }
}
