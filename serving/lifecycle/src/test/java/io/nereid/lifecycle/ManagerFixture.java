// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Timer;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** The fixture of manager tests: a manager, loaders with dependencies, and a timer whose tasks a test runs. */
public final class ManagerFixture implements AutoCloseable {
    final Queue<FakeLoader> loaders = new ConcurrentLinkedQueue<>();
    public final ManualTimer timer = new ManualTimer();
    public final ServableManager manager;

    /** The versions that each ensemble was built on, by servable. */
    final Map<FakeServable, List<FakeServable>> members = new ConcurrentHashMap<>();

    /** All state changes in order. */
    final Queue<ServableState> news = new ConcurrentLinkedQueue<>();

    private final ManagerLoop loop;

    public ManagerFixture(ManagerOptions options) {
        loop = new ManagerLoop(options, Clock.system(), timer);
        manager = new ServableManager(loop);
        var unused = manager.listen(news::add);
    }

    int loadThreads() {
        return loop.loadThreads();
    }

    public List<Phase> phases(String model, long version) {
        return news.stream()
                .filter(s -> s.id().equals(new ServableId(model, version)))
                .map(ServableState::phase)
                .toList();
    }

    /** Waits until a condition holds. */
    void until(BooleanSupplier condition) {
        long end = Clock.system().nanos() + 20_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertThat(Clock.system().nanos() - end).as("%s", manager.index()).isNegative();
            Thread.onSpinWait();
        }
    }

    public void awaitPhase(String model, long version, Phase phase) {
        until(() -> phase(model, version) == phase);
    }

    public @Nullable Phase phase(String model, long version) {
        return manager.states(model).stream()
                .filter(s -> s.id().version() == version)
                .map(ServableState::phase)
                .findFirst()
                .orElse(null);
    }

    /** Waits until the manager has processed all events so far. */
    public void quiesce() throws Exception {
        var unused = settle("unknown");
    }

    /** Advances the time to the next delay. */
    public void passTime() {
        until(() -> timer.waiting() > 0);
        timer.runNext();
    }

    public static void await(CountDownLatch latch) throws InterruptedException {
        assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
    }

    public FakeLoader loader(String model, long version, String fingerprint) {
        FakeLoader loader = new FakeLoader(model, version, fingerprint);
        loaders.add(loader);
        return loader;
    }

    /** Creates a loader that fails unless each of these models has an available version, and records the versions. */
    FakeLoader ensemble(String model, long version, String fingerprint, String... on) {
        FakeLoader loader = loader(model, version, fingerprint);
        loader.dependencies = List.of(on);
        List<FakeServable> found = new ArrayList<>();
        loader.check = () -> {
            for (String name : on) {
                FakeServable member = serving(ModelRef.latest(name));
                if (member == null) {
                    throw ServingException.of(
                            ErrorCode.INVALID_ARGUMENT,
                            "ensemble '" + model + "' depends on '" + name + "' which has no loaded version");
                }
                found.add(member);
            }
        };
        loader.made = servable -> members.put(servable, List.copyOf(found));
        loader.again = () -> ensemble(model, version, fingerprint, on);
        return loader;
    }

    public void aspire(String model, FakeLoader... wanted) {
        manager.aspire(model, Arrays.stream(wanted).map(AspiredVersion::of).toList());
    }

    public List<ServableState> settle(String... models) throws Exception {
        return manager.settled(List.of(models)).toCompletableFuture().get(20, TimeUnit.SECONDS);
    }

    public ServableState state(String model, long version) {
        return manager.states(model).stream()
                .filter(s -> s.id().version() == version)
                .findFirst()
                .orElseThrow(() -> new AssertionError(model + " has " + manager.states(model)));
    }

    public String reason(String model, long version) {
        String reason = state(model, version).reason();
        return reason == null ? "" : reason;
    }

    public @Nullable FakeServable serving(ModelRef ref) {
        try (ServableHandle handle = manager.acquire(ref)) {
            return (FakeServable) handle.servable();
        } catch (ServingException e) {
            return null;
        }
    }

    public String fingerprint(String model, long version) {
        FakeServable servable = serving(ModelRef.exact(model, version));
        return servable == null ? "" : servable.fingerprint;
    }

    /** Closes the manager and checks that everything that was loaded was unloaded once. */
    public void closeAndCheck(String as) {
        assertThat(manager.close(Duration.ofSeconds(20))).as(as).isTrue();
        assertThat(manager.memoryBytes()).as(as).isZero();
        for (FakeLoader loader : loaders) {
            assertThat(loader.loads.get()).as("%s, %s", as, loader.id()).isLessThanOrEqualTo(1);
            assertThat(loader.unloads.get()).as("%s, %s", as, loader.id()).isEqualTo(loader.loads.get());
        }
    }

    @Override
    public void close() {
        manager.close(Duration.ofSeconds(5));
    }

    /** Collects delayed tasks. Thread-safe. */
    public static final class ManualTimer implements Timer {
        private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();

        @Override
        public synchronized ScheduledTask after(long nanos, Runnable task) {
            if (nanos < Duration.ofMinutes(1).toNanos()) {
                tasks.add(task);
            }
            return () -> {};
        }

        void runAll() {
            while (true) {
                Runnable task;
                synchronized (this) {
                    task = tasks.poll();
                }
                if (task == null) {
                    return;
                }
                task.run();
            }
        }

        void runNext() {
            Runnable task;
            synchronized (this) {
                task = tasks.remove();
            }
            task.run();
        }

        public synchronized int waiting() {
            return tasks.size();
        }

        @Override
        public void close() {}
    }
}
