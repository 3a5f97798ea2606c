// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ServableManagerTest {
    private final ManualTimer timer = new ManualTimer();
    private final ConcurrentLinkedQueue<ServableState> news = new ConcurrentLinkedQueue<>();
    private ServableManager manager = manager(ManagerOptions.DEFAULT);

    private ServableManager manager(ManagerOptions options) {
        ServableManager m = new ServableManager(new ManagerLoop(options, Clock.system(), timer));
        m.listen(news::add);
        return m;
    }

    @AfterEach
    void closeManager() {
        manager.close(Duration.ofSeconds(5));
    }

    private static FakeLoader loader(long version) {
        return new FakeLoader("m", version, "f" + version);
    }

    private static FakeLoader loader(long version, String fingerprint) {
        return new FakeLoader("m", version, fingerprint);
    }

    private void aspire(FakeLoader... loaders) {
        manager.aspire("m", Arrays.stream(loaders).map(AspiredVersion::of).toList());
    }

    private List<ServableState> settle() throws Exception {
        return get(manager.settled("m").toCompletableFuture());
    }

    private static <T> T get(Future<T> future) throws InterruptedException, ExecutionException {
        try {
            return future.get(20, TimeUnit.SECONDS);
        } catch (java.util.concurrent.TimeoutException e) {
            throw new AssertionError("nothing came", e);
        }
    }

    /** Waits until the manager has processed all events so far. */
    private void quiesce() throws Exception {
        var unused = get(manager.settled("unknown").toCompletableFuture());
    }

    private static void await(CountDownLatch latch) throws InterruptedException {
        assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
    }

    private void awaitPhase(long version, Phase phase) {
        long end = Clock.system().nanos() + 20_000_000_000L;
        while (manager.states("m").stream().noneMatch(s -> s.id().version() == version && s.phase() == phase)) {
            assertThat(Clock.system().nanos() - end)
                    .as("states %s", manager.states("m"))
                    .isNegative();
            Thread.onSpinWait();
        }
    }

    private String fingerprintServing(ModelRef ref) {
        try (ServableHandle handle = manager.acquire(ref)) {
            return ((FakeServable) handle.servable()).fingerprint;
        }
    }

    private List<Phase> phases(long version) {
        return news.stream()
                .filter(s -> s.id().version() == version)
                .map(ServableState::phase)
                .toList();
    }

    @Test
    void takesAVersionThroughAllOfItsLife() throws Exception {
        FakeLoader one = loader(1);
        aspire(one);
        List<ServableState> settled = settle();
        assertThat(settled).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE);
        assertThat(settled.get(0).backend()).isEqualTo("fake");
        assertThat(settled.get(0).loadNanos()).isPositive();
        assertThat(manager.ready()).isTrue();
        assertThat(manager.ready(ModelRef.exact("m", 1))).isTrue();
        aspire();
        assertThat(settle()).isEmpty();
        await(one.unloaded);
        awaitPhase(1, Phase.GONE);
        quiesce();
        assertThat(phases(1))
                .containsExactly(
                        Phase.TRACKED,
                        Phase.LOADING,
                        Phase.WARMING,
                        Phase.AVAILABLE,
                        Phase.DRAINING,
                        Phase.UNLOADING,
                        Phase.GONE);
        assertThat(manager.states("m").get(0).reason()).isEqualTo("unloaded");
        assertThat(one.unloads.get()).isEqualTo(1);
    }

    @Test
    void servesTheHighestVersionAndTheOneNamed() throws Exception {
        aspire(loader(1), loader(10), loader(9));
        assertThat(settle()).extracting(s -> s.id().version()).containsExactly(10L, 9L, 1L);
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("f10");
        assertThat(fingerprintServing(ModelRef.exact("m", 9))).isEqualTo("f9");
        assertThat(manager.index()).hasSize(1);
        assertThat(manager.index().get(0).versions())
                .extracting(s -> s.id().version())
                .containsExactly(10L, 9L, 1L);
    }

    @Test
    void swapsWithoutAGapAndUnloadsTheOldOneWhenItsLastHandleIsClosed() throws Exception {
        FakeLoader one = loader(1);
        FakeLoader two = loader(2);
        aspire(one);
        settle();
        ServableHandle slow = manager.acquire(ModelRef.latest("m"));
        aspire(two);
        settle();
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("f2");
        assertThat(one.unloads.get()).isZero();
        assertThat(((FakeServable) slow.servable()).unloaded).isFalse();
        slow.close();
        slow.close();
        await(one.unloaded);
        assertThat(one.unloadThread).startsWith("unload");
        awaitPhase(1, Phase.GONE);
        assertThat(one.unloads.get()).isEqualTo(1);
    }

    @Test
    void keepsTheOldVersionWhenTheNewOneFails() throws Exception {
        aspire(loader(1));
        settle();
        FakeLoader two = loader(2);
        two.failLoads = 9;
        aspire(two);
        List<ServableState> settled = settle();
        assertThat(settled).extracting(ServableState::phase).containsExactly(Phase.FAILED);
        assertThat(settled.get(0).reason()).contains("load 1 is broken");
        assertThat(two.unloads.get()).isEqualTo(1);
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("f1");
        assertThat(manager.ready()).isTrue();
    }

    @Test
    void failsWhenTheWarmUpFails() throws Exception {
        FakeLoader one = loader(1);
        one.failWarm = true;
        aspire(one);
        assertThat(settle().get(0).reason()).contains("warm-up is broken");
        assertThat(one.unloads.get()).isEqualTo(1);
        assertThat(manager.ready()).isFalse();
        assertThat(phases(1)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.WARMING, Phase.FAILED);
    }

    @Test
    void survivesAFailingUnload() throws Exception {
        FakeLoader one = loader(1);
        one.failUnload = true;
        aspire(one);
        settle();
        aspire();
        awaitPhase(1, Phase.GONE);
        assertThat(manager.states("m").get(0).reason()).contains("unload is broken");
        aspire(loader(1));
        assertThat(settle()).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE);
    }

    @Test
    void reloadsAVersionWhoseFingerprintChangedBesideTheOldOne() throws Exception {
        FakeLoader old = loader(1, "a");
        aspire(old, loader(2));
        settle();
        FakeLoader changed = loader(1, "b");
        changed.gate = new CountDownLatch(1);
        aspire(changed, loader(2));
        await(changed.loading);
        assertThat(fingerprintServing(ModelRef.exact("m", 1))).isEqualTo("a");
        assertThat(old.unloads.get()).isZero();
        changed.gate.countDown();
        assertThat(settle()).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE, Phase.AVAILABLE);
        assertThat(fingerprintServing(ModelRef.exact("m", 1))).isEqualTo("b");
        await(old.unloaded);
        quiesce();
        assertThat(manager.states("m"))
                .extracting(ServableState::phase)
                .containsExactly(Phase.AVAILABLE, Phase.AVAILABLE);
    }

    @Test
    void goesOnServingTheOldOneWhenAReloadFailsAndSaysWhy() throws Exception {
        aspire(loader(1, "a"));
        settle();
        FakeLoader broken = loader(1, "b");
        broken.failLoads = 9;
        aspire(broken);
        ServableState state = settle().get(0);
        assertThat(state.phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(state.reason()).contains("reload failed").contains("load 1 is broken");
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("a");
        FakeLoader again = loader(1, "b");
        aspire(again);
        settle();
        assertThat(again.loads.get()).as("the same failure is not retried").isZero();
        manager.retry("m");
        aspire(loader(1, "b"));
        assertThat(settle().get(0).reason()).isNull();
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("b");
    }

    @Test
    void reloadsWithoutTwoInMemoryWhenResourcesComeFirst() throws Exception {
        manager.close();
        manager = manager(ManagerOptions.DEFAULT.withPolicy(AspiredVersionPolicy.RESOURCE_PRESERVING));
        FakeLoader old = loader(1, "a");
        aspire(old);
        settle();
        ServableHandle handle = manager.acquire(ModelRef.latest("m"));
        FakeLoader changed = loader(1, "b");
        aspire(changed);
        quiesce();
        assertThat(changed.loads.get()).isZero();
        handle.close();
        settle();
        assertThat(old.unloads.get()).isEqualTo(1);
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("b");
    }

    @Test
    void leavesFailedOnAChangedFingerprintOrARetryOnly() throws Exception {
        FakeLoader broken = loader(1, "a");
        broken.failLoads = 9;
        aspire(broken);
        settle();
        FakeLoader same = loader(1, "a");
        aspire(same);
        assertThat(settle()).extracting(ServableState::phase).containsExactly(Phase.FAILED);
        assertThat(same.loads.get()).isZero();
        manager.retry("m");
        aspire(same);
        assertThat(settle()).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE);
        FakeLoader other = loader(1, "b");
        aspire(other);
        assertThat(settle()).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE);
        assertThat(other.loads.get()).isEqualTo(1);
    }

    @Test
    void doesNothingWhenTheSameListComesTwice() throws Exception {
        aspire(loader(1));
        settle();
        int before = news.size();
        FakeLoader same = loader(1);
        aspire(same);
        settle();
        assertThat(same.loads.get()).isZero();
        assertThat(news).hasSize(before);
    }

    @Test
    void followsTheNewestList() throws Exception {
        CountDownLatch hold = new CountDownLatch(1);
        CountDownLatch held = new CountDownLatch(1);
        manager.listen(state -> {
            held.countDown();
            try {
                var unused = hold.await(20, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        aspire(loader(1));
        await(held);
        FakeLoader two = loader(2);
        FakeLoader three = loader(3);
        aspire(two);
        aspire(three);
        hold.countDown();
        settle();
        assertThat(fingerprintServing(ModelRef.latest("m"))).isEqualTo("f3");
        assertThat(two.loads.get()).isZero();
    }

    @Test
    void unloadsAVersionThatIsNoLongerAspiredWhenItsLoadEnds() throws Exception {
        FakeLoader one = loader(1);
        one.gate = new CountDownLatch(1);
        aspire(one);
        await(one.loading);
        aspire();
        quiesce();
        one.gate.countDown();
        await(one.unloaded);
        awaitPhase(1, Phase.GONE);
        assertThat(phases(1)).doesNotContain(Phase.AVAILABLE);
    }

    @Test
    void aSlowModelDoesNotDelayAnother() throws Exception {
        FakeLoader slow = new FakeLoader("slow", 1, "f");
        slow.gate = new CountDownLatch(1);
        manager.aspire("slow", List.of(AspiredVersion.of(slow)));
        await(slow.loading);
        FakeLoader a1 = loader(1);
        aspire(a1);
        settle();
        manager.aspire("other", List.of(AspiredVersion.of(new FakeLoader("other", 1, "f"))));
        var unused = get(manager.settled("other").toCompletableFuture());
        try (ServableHandle held = manager.acquire(ModelRef.latest("other"))) {
            aspire(loader(2));
            settle();
            await(a1.unloaded);
            assertThat(((FakeServable) held.servable()).unloaded).isFalse();
        }
        assertThat(manager.ready()).isFalse();
        slow.gate.countDown();
        var both = get(manager.settled(List.of("slow", "m")).toCompletableFuture());
        assertThat(both).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE, Phase.AVAILABLE);
        assertThat(manager.ready()).isTrue();
    }

    @Test
    void keepsAndShowsTheErrorOfASource() throws Exception {
        ServableId id = new ServableId("m", 3);
        manager.aspire(
                "m", List.of(AspiredVersion.failed(id, ServingException.invalidArgument("bad file", "mend the file"))));
        ServableState state = settle().get(0);
        assertThat(state.phase()).isEqualTo(Phase.FAILED);
        assertThat(state.reason()).isEqualTo("bad file (mend the file)");
        aspire(loader(3));
        assertThat(settle()).extracting(ServableState::phase).containsExactly(Phase.AVAILABLE);
        manager.aspire("m", List.of(AspiredVersion.failed(id, ServingException.invalidArgument("bad again"))));
        state = settle().get(0);
        assertThat(state.phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(state.reason()).isEqualTo("bad again");
    }

    @Test
    void saysWhatIsMissing() throws Exception {
        FakeLoader broken = loader(2);
        broken.failLoads = 9;
        aspire(broken);
        settle();
        assertThatThrownBy(() -> manager.acquire(ModelRef.latest("n")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.getMessage()).isEqualTo("Request for unknown model: 'n' is not found");
                    assertThat(e.remedy()).contains("'m'");
                });
        assertThatThrownBy(() -> manager.acquire(ModelRef.exact("m", 7)))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.getMessage()).isEqualTo("Request for unknown model: 'm' version 7 is not found");
                });
        assertThatThrownBy(() -> manager.acquire(ModelRef.latest("m")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.getMessage()).isEqualTo("Request for unknown model: 'm' has no available versions");
                    assertThat(e.remedy()).contains("version 2 failed").contains("load 1 is broken");
                });
        assertThatThrownBy(() -> manager.acquire(ModelRef.exact("m", 2)))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                    assertThat(e.getMessage())
                            .isEqualTo("Request for unknown model: 'm' version 2 is not at ready state");
                });
        assertThat(manager.ready(ModelRef.latest("m"))).isFalse();
        assertThatThrownBy(() -> manager.ready(ModelRef.exact("m", 7))).hasMessageContaining("is not found");
        FakeLoader slow = loader(3);
        slow.gate = new CountDownLatch(1);
        aspire(slow);
        await(slow.loading);
        quiesce();
        assertThatThrownBy(() -> manager.acquire(ModelRef.exact("m", 3)))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.remedy())
                                .contains("version 3 is loading")
                                .contains("try again"));
        slow.gate.countDown();
    }

    @Test
    void rejectsAListThatContradictsItself() {
        assertThatThrownBy(() -> manager.aspire("other", List.of(AspiredVersion.of(loader(1)))))
                .hasMessageContaining("m:1");
        assertThatThrownBy(() -> aspire(loader(1), loader(1))).hasMessageContaining("every version once");
        assertThat(manager.index()).isEmpty();
    }

    @Test
    void rejectsWhatDoesNotFitIntoMemoryAndSaysHowMuchIsMissing() throws Exception {
        manager.close();
        manager = manager(ManagerOptions.DEFAULT.withMemoryLimitBytes(10_000_000));
        FakeLoader one = loader(1);
        one.estimate = 8_000_000;
        one.memory = 6_000_000;
        aspire(one);
        settle();
        assertThat(manager.memoryBytes()).as("measured after the load").isEqualTo(6_000_000);
        FakeLoader two = loader(2);
        two.estimate = 5_000_000;
        aspire(one, two);
        ServableState state = settle().get(0);
        assertThat(state.phase()).isEqualTo(Phase.FAILED);
        assertThat(state.reason()).contains("needs 5.0 MB").contains("4.0 MB of 10.0 MB");
        assertThat(two.loads.get()).isZero();
        assertThat(two.unloads.get()).isZero();
        aspire();
        await(one.unloaded);
        awaitPhase(1, Phase.GONE);
        assertThat(manager.memoryBytes()).isZero();
    }

    @Test
    void waitsForMemoryThatIsBeingFreed() throws Exception {
        manager.close();
        manager = manager(ManagerOptions.DEFAULT.withMemoryLimitBytes(10));
        FakeLoader one = loader(1);
        one.estimate = 8;
        aspire(one);
        settle();
        ServableHandle handle = manager.acquire(ModelRef.latest("m"));
        aspire();
        settle();
        FakeLoader other = new FakeLoader("other", 1, "f");
        other.estimate = 8;
        manager.aspire("other", List.of(AspiredVersion.of(other)));
        long end = Clock.system().nanos() + 20_000_000_000L;
        while (manager.states("other").isEmpty()
                || manager.states("other").get(0).reason() == null) {
            assertThat(Clock.system().nanos() - end).isNegative();
            Thread.onSpinWait();
        }
        assertThat(other.loads.get()).isZero();
        handle.close();
        assertThat(get(manager.settled("other").toCompletableFuture()).get(0).phase())
                .isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void retriesAsOftenAsConfigured() throws Exception {
        manager.close();
        manager = manager(ManagerOptions.DEFAULT.withRetries(2, Duration.ofSeconds(60)));
        FakeLoader one = loader(1);
        one.failLoads = 2;
        aspire(one);
        CompletableFuture<List<ServableState>> settled = manager.settled("m").toCompletableFuture();
        timer.runNext();
        timer.runNext();
        assertThat(get(settled).get(0).phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(one.loads.get()).isEqualTo(3);
        assertThat(one.unloads.get()).isZero();
    }

    @Test
    void givesUpARetryThatIsNoLongerAspired() throws Exception {
        manager.close();
        manager = manager(ManagerOptions.DEFAULT.withRetries(2, Duration.ofSeconds(60)));
        FakeLoader one = loader(1);
        one.failLoads = 9;
        aspire(one);
        timer.awaitOne();
        aspire();
        await(one.unloaded);
        awaitPhase(1, Phase.GONE);
        assertThat(one.loads.get()).isEqualTo(1);
    }

    @Test
    void forgetsEndedVersionsAfterAWhile() throws Exception {
        aspire(loader(1));
        settle();
        aspire();
        awaitPhase(1, Phase.GONE);
        timer.runNext();
        quiesce();
        assertThat(manager.index()).isEmpty();
        assertThatThrownBy(() -> manager.acquire(ModelRef.latest("m"))).hasMessageContaining("is not found");
    }

    @Test
    void closesWithinItsPatienceThoughAHandleStaysOpen() throws Exception {
        FakeLoader one = loader(1);
        aspire(one);
        settle();
        manager.aspire("other", List.of(AspiredVersion.of(new FakeLoader("other", 1, "f"))));
        var unused = get(manager.settled("other").toCompletableFuture());
        ServableHandle handle = manager.acquire(ModelRef.latest("m"));
        long begin = Clock.system().nanos();
        assertThat(manager.close(Duration.ofMillis(200))).isFalse();
        assertThat(Clock.system().nanos() - begin).isLessThan(10_000_000_000L);
        assertThat(one.unloads.get()).isZero();
        assertThat(manager.ready()).isFalse();
        assertThatThrownBy(() -> manager.acquire(ModelRef.latest("other")))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE));
        handle.close();
        assertThat(manager.settled("m").toCompletableFuture()).isCompletedExceptionally();
    }

    @Test
    void closesCleanlyWhileALoadIsUnderWay() throws Exception {
        FakeLoader one = loader(1);
        one.gate = new CountDownLatch(1);
        aspire(one);
        await(one.loading);
        CompletableFuture<List<ServableState>> settled = manager.settled("m").toCompletableFuture();
        CountDownLatch gate = one.gate;
        Threads.named("opener").newThread(gate::countDown).start();
        assertThat(manager.close(Duration.ofSeconds(20))).isTrue();
        assertThat(one.unloads.get()).isEqualTo(1);
        assertThat(settled).isDone();
    }

    /** A timer whose tasks a test runs. Thread-safe by its lock. */
    private static final class ManualTimer implements Timer {
        private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();

        @Override
        public synchronized ScheduledTask after(long nanos, Runnable task) {
            tasks.add(task);
            notifyAll();
            return () -> {};
        }

        synchronized void awaitOne() throws InterruptedException {
            while (tasks.isEmpty()) {
                wait(20_000);
            }
        }

        void runNext() throws InterruptedException {
            List<Runnable> next = new ArrayList<>();
            synchronized (this) {
                awaitOne();
                next.add(tasks.remove());
            }
            next.get(0).run();
        }

        @Override
        public void close() {}
    }
}
