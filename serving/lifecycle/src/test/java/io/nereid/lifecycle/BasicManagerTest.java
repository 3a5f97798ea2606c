// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelStatus;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The test cases of TensorFlow Serving's {@code BasicManager}, under their original names. There, tests manage, load
 * and unload single versions; here, they send lists of aspired versions.
 *
 * <table>
 * <caption>Cases without a counterpart</caption>
 * <tr><td>ServableHandleEarliest</td><td>no protocol requests the lowest version</td></tr>
 * <tr><td>GetAvailableServableHandles, …WrongType</td><td>handles have one type and are acquired one by one</td></tr>
 * <tr><td>AdditionalState, NoAdditionalState, GetManagedServableStateSnapshot…AdditionalState</td><td>versions have
 * no additional state</td></tr>
 * <tr><td>FlushFileSystemCaches Load</td><td>nothing caches files in this process</td></tr>
 * <tr><td>PreLoadHook</td><td>the loader does what must happen before a load</td></tr>
 * <tr><td>ThreadPoolsNotAliveSimultaneously</td><td>there is a single pool that changes its size</td></tr>
 * <tr><td>all others of AspiredVersionsManagerTest</td><td>there is a single manager, tested there</td></tr>
 * </table>
 */
@Timeout(60)
class BasicManagerTest {
    private static final ManagerOptions OPTIONS = ManagerOptions.DEFAULT
            .withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
            .withLoadNiceness(0);

    private ManagerFixture fixture = new ManagerFixture(OPTIONS);

    @AfterEach
    void close() {
        fixture.close();
    }

    private void restart(ManagerOptions options) {
        fixture.close();
        fixture = new ManagerFixture(options);
    }

    private FakeLoader serve(String model, long version) throws Exception {
        FakeLoader loader = fixture.loader(model, version, "v" + version);
        fixture.aspire(model, loader);
        var unused = fixture.settle(model);
        return loader;
    }

    private FakeLoader sized(String model, long bytes) {
        FakeLoader loader = fixture.loader(model, 1, "a");
        loader.estimate = bytes;
        return loader;
    }

    // ---- managed versions ----

    @Test
    void alreadyManagedError() {
        assertThatThrownBy(() -> fixture.aspire("m", fixture.loader("m", 1, "a"), fixture.loader("m", 1, "b")))
                .hasMessageContaining("every version once");
        assertThat(fixture.manager.index()).isEmpty();
    }

    @Test
    void stopManagingUnknownId() throws Exception {
        fixture.aspire("unknown");
        fixture.quiesce();
        assertThat(fixture.manager.index()).isEmpty();
    }

    @Test
    void stopManagingActiveServable() throws Exception {
        FakeLoader one = serve("m", 1);
        ServableHandle handle = fixture.manager.acquire(ModelRef.latest("m"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        fixture.timer.runAll();
        assertThat(fixture.manager.index())
                .as("stays in the index until it has ended")
                .hasSize(1);
        assertThat(one.unloads.get()).isZero();
        handle.close();
    }

    @Test
    void stopManagingDisabledServable() throws Exception {
        restart(OPTIONS.withForgetAfter(Duration.ofSeconds(1)));
        serve("m", 1);
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(fixture.manager.index()).hasSize(1);
        fixture.passTime();
        fixture.quiesce();
        assertThat(fixture.manager.index()).isEmpty();
    }

    @Test
    void dontStopManagingOnError() throws Exception {
        restart(OPTIONS.withForgetAfter(Duration.ofSeconds(1)));
        FakeLoader broken = fixture.loader("m", 1, "a");
        broken.failLoads = 9;
        fixture.aspire("m", broken);
        var unused = fixture.settle("m");
        assertThat(fixture.timer.waiting()).as("it is still aspired").isZero();
        assertThat(fixture.phase("m", 1)).isEqualTo(Phase.FAILED);
    }

    @Test
    void updateServingMapServableHandleLatest() throws Exception {
        FakeLoader zero = fixture.loader("m", 0, "v0");
        FakeLoader one = fixture.loader("m", 1, "v1");
        fixture.aspire("m", zero, one);
        var unused = fixture.settle("m");
        assertThat(fixture.serving(ModelRef.latest("m"))).isSameAs(one.servable);
        CountDownLatch gate = new CountDownLatch(1);
        one.unloadGate = gate;
        fixture.aspire("m", fixture.loader("m", 0, "v0"));
        ManagerFixture.await(one.unloading);
        assertThat(fixture.serving(ModelRef.latest("m")))
                .as("before the unload ends")
                .isSameAs(zero.servable);
        gate.countDown();
    }

    @Test
    void getManagedServableNames() throws Exception {
        serve("b", 1);
        serve("a", 1);
        assertThat(fixture.manager.index()).extracting(ModelStatus::model).containsExactly("a", "b");
    }

    @Test
    void getManagedServableStateSnapshot() throws Exception {
        serve("m", 1);
        assertThat(fixture.state("m", 1).phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(fixture.manager.states("unknown")).isEmpty();
    }

    @Test
    void multipleManageCallsUsesFirstServable() throws Exception {
        FakeLoader first = serve("m", 1);
        FakeLoader second = serve("m", 1);
        assertThat(fixture.serving(ModelRef.latest("m"))).isSameAs(first.servable);
        assertThat(second.loads.get()).isZero();
    }

    @Test
    void erroneousServable() throws Exception {
        fixture.manager.aspire(
                "m",
                List.of(AspiredVersion.failed(
                        new ServableId("m", 3), ServingException.of(ErrorCode.UNKNOWN, "no platform"))));
        var unused = fixture.settle("m");
        assertThat(fixture.phase("m", 3)).isEqualTo(Phase.FAILED);
        assertThatThrownBy(() -> fixture.manager.acquire(ModelRef.exact("m", 3)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).contains("no platform"));
    }

    // ---- loads and unloads ----

    @Test
    void outOfOrderLoadServable() throws Exception {
        fixture.aspire("m", fixture.loader("m", 3, "a"), fixture.loader("m", 1, "a"), fixture.loader("m", 2, "a"));
        assertThat(fixture.settle("m")).extracting(s -> s.id().version()).containsExactly(3L, 2L, 1L);
        assertThat(fixture.settle("m")).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
    }

    @Test
    void multipleLoadServables() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeLoader[] loaders = new FakeLoader[4];
        for (int i = 0; i < loaders.length; i++) {
            loaders[i] = fixture.loader("m", i, "a");
            loaders[i].gate = gate;
        }
        fixture.aspire("m", loaders);
        for (FakeLoader loader : loaders) {
            ManagerFixture.await(loader.loading);
        }
        gate.countDown();
        assertThat(fixture.settle("m")).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
    }

    @Test
    void multipleUnloadServables() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeLoader a = serve("a", 1);
        FakeLoader b = serve("b", 1);
        a.unloadGate = gate;
        b.unloadGate = gate;
        fixture.aspire("a");
        fixture.aspire("b");
        ManagerFixture.await(a.unloading);
        ManagerFixture.await(b.unloading);
        gate.countDown();
        fixture.awaitPhase("a", 1, Phase.GONE);
        fixture.awaitPhase("b", 1, Phase.GONE);
    }

    @Test
    void unloadWithoutManage() throws Exception {
        fixture.aspire("m");
        assertThat(fixture.settle("m")).isEmpty();
        assertThat(fixture.news).isEmpty();
    }

    @Test
    void unloadWithoutLoad() throws Exception {
        restart(OPTIONS.withLoadThreads(1));
        FakeLoader busy = fixture.loader("busy", 1, "a");
        busy.gate = new CountDownLatch(1);
        fixture.aspire("busy", busy);
        ManagerFixture.await(busy.loading);
        FakeLoader queued = fixture.loader("m", 1, "a");
        fixture.aspire("m", queued);
        fixture.awaitPhase("m", 1, Phase.LOADING);
        fixture.aspire("m");
        fixture.quiesce();
        busy.gate.countDown();
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(queued.loads.get()).isZero();
        assertThat(queued.unloads.get())
                .as("a loader that was not called is not unloaded")
                .isZero();
    }

    @Test
    void loadsThenUnloads() throws Exception {
        String[] names = names(20);
        for (String name : names) {
            fixture.aspire(name, fixture.loader(name, 1, "a"));
        }
        assertThat(fixture.settle(names)).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
        for (String name : names) {
            fixture.aspire(name);
        }
        for (String name : names) {
            fixture.awaitPhase(name, 1, Phase.GONE);
        }
        fixture.closeAndCheck("");
    }

    @Test
    void interleavedLoadsAndUnloads() throws Exception {
        String[] names = names(20);
        for (String name : names) {
            fixture.aspire(name, fixture.loader(name, 1, "a"));
            fixture.aspire(name);
            fixture.aspire(name, fixture.loader(name, 2, "a"));
        }
        var unused = fixture.settle(names);
        for (String name : names) {
            assertThat(fixture.phase(name, 2)).isEqualTo(Phase.AVAILABLE);
        }
        fixture.closeAndCheck("");
    }

    private static String[] names(int n) {
        String[] names = new String[n];
        for (int i = 0; i < n; i++) {
            names[i] = "m" + i;
        }
        return names;
    }

    @Test
    void fastLoad() throws Exception {
        restart(OPTIONS.withLoadThreads(1).withInitialLoadThreads(3));
        CountDownLatch gate = new CountDownLatch(1);
        List<FakeLoader> loaders = new ArrayList<>();
        for (String name : names(3)) {
            FakeLoader loader = fixture.loader(name, 1, "a");
            loader.gate = gate;
            loaders.add(loader);
            fixture.aspire(name, loader);
        }
        for (FakeLoader loader : loaders) {
            ManagerFixture.await(loader.loading);
        }
        assertThat(fixture.loadThreads()).isEqualTo(3);
        gate.countDown();
        var unused = fixture.settle(names(3));
        // The initial load has ended.
        fixture.until(() -> fixture.loadThreads() == 1);
    }

    @Test
    void threadPoolSwapped() throws Exception {
        fastLoad();
        FakeLoader first = fixture.loader("first", 1, "a");
        first.gate = new CountDownLatch(1);
        fixture.aspire("first", first);
        ManagerFixture.await(first.loading);
        FakeLoader second = fixture.loader("second", 1, "a");
        fixture.aspire("second", second);
        fixture.awaitPhase("second", 1, Phase.LOADING);
        fixture.quiesce();
        assertThat(second.loads.get()).as("one at a time").isZero();
        first.gate.countDown();
        fixture.awaitPhase("second", 1, Phase.AVAILABLE);
    }

    @Test
    void concurrentLoadsOnlyOneSucceeds() throws Exception {
        CountDownLatch done = new CountDownLatch(4);
        for (int i = 0; i < 4; i++) {
            FakeLoader same = fixture.loader("m", 1, "a");
            Threads.named("wisher")
                    .newThread(() -> {
                        fixture.aspire("m", same);
                        done.countDown();
                    })
                    .start();
        }
        ManagerFixture.await(done);
        var unused = fixture.settle("m");
        assertThat(fixture.loaders.stream().mapToInt(l -> l.loads.get()).sum()).isEqualTo(1);
    }

    @Test
    void concurrentUnloadsOnlyOneSucceeds() throws Exception {
        FakeLoader one = serve("m", 1);
        CountDownLatch done = new CountDownLatch(4);
        for (int i = 0; i < 4; i++) {
            Threads.named("wisher")
                    .newThread(() -> {
                        fixture.aspire("m");
                        done.countDown();
                    })
                    .start();
        }
        ManagerFixture.await(done);
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(one.unloads.get()).isEqualTo(1);
    }

    // ---- retries ----

    @Test
    void retryOnLoadErrorCancelledLoad() throws Exception {
        restart(OPTIONS.withRetries(5, Duration.ofSeconds(30)));
        FakeLoader broken = fixture.loader("m", 1, "a");
        broken.failLoads = 99;
        fixture.aspire("m", broken);
        fixture.until(() -> fixture.timer.waiting() > 0);
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.GONE);
        fixture.timer.runAll();
        fixture.quiesce();
        assertThat(broken.loads.get()).isEqualTo(1);
        assertThat(broken.unloads.get()).isEqualTo(1);
    }

    @Test
    void loadAfterCancelledLoad() throws Exception {
        FakeLoader cancelled = fixture.loader("m", 1, "a");
        cancelled.gate = new CountDownLatch(1);
        fixture.aspire("m", cancelled);
        ManagerFixture.await(cancelled.loading);
        fixture.aspire("m");
        fixture.quiesce();
        cancelled.gate.countDown();
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(fixture.reason("m", 1)).isEqualTo("Loading of servable cancelled");
        assertThat(fixture.phases("m", 1)).doesNotContain(Phase.AVAILABLE, Phase.WARMING);
        serve("m", 1);
        assertThat(fixture.phase("m", 1)).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void nonRetriableError() throws Exception {
        for (ErrorCode code : List.of(ErrorCode.INVALID_ARGUMENT, ErrorCode.UNIMPLEMENTED, ErrorCode.OUT_OF_RANGE)) {
            restart(OPTIONS.withRetries(5, Duration.ofSeconds(30)));
            FakeLoader broken = fixture.loader("m", 1, "a");
            broken.failLoads = 9;
            broken.failure = ServingException.of(code, "this is not a model");
            fixture.aspire("m", broken);
            fixture.awaitPhase("m", 1, Phase.FAILED);
            assertThat(fixture.reason("m", 1)).isEqualTo("this is not a model");
            assertThat(broken.loads.get()).isEqualTo(1);
            assertThat(broken.unloads.get()).isEqualTo(1);
            assertThat(fixture.timer.waiting()).isZero();
        }
    }

    @Test
    void estimateResourcesRetriedSucceeds() throws Exception {
        restart(OPTIONS.withRetries(1, Duration.ofSeconds(30)).withMemoryLimitBytes(10));
        FakeLoader loader = sized("m", 5);
        loader.failEstimates = 1;
        fixture.aspire("m", loader);
        fixture.passTime();
        fixture.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(fixture.manager.memoryBytes()).isEqualTo(5);
    }

    @Test
    void estimateResourcesRetriedFails() throws Exception {
        restart(OPTIONS.withRetries(1, Duration.ofSeconds(30)).withMemoryLimitBytes(10));
        FakeLoader loader = sized("m", 5);
        loader.failEstimates = 9;
        fixture.aspire("m", loader);
        fixture.passTime();
        fixture.awaitPhase("m", 1, Phase.FAILED);
        assertThat(fixture.reason("m", 1)).contains("estimate 2 is broken");
        assertThat(loader.loads.get()).isZero();
        assertThat(loader.unloads.get()).isZero();
    }

    @Test
    void estimateResourcesRetriedNonRetriableError() throws Exception {
        restart(OPTIONS.withRetries(1, Duration.ofSeconds(30)).withMemoryLimitBytes(10));
        FakeLoader loader = sized("m", 5);
        loader.failEstimates = 9;
        loader.failure = ServingException.invalidArgument("no weights");
        fixture.aspire("m", loader);
        fixture.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.estimates.get()).isEqualTo(1);
    }

    // ---- memory ----

    @Test
    void concurrentLoads() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        CountDownLatch gate = new CountDownLatch(1);
        FakeLoader a = sized("a", 5);
        FakeLoader b = sized("b", 5);
        a.gate = gate;
        b.gate = gate;
        fixture.aspire("a", a);
        fixture.aspire("b", b);
        ManagerFixture.await(a.loading);
        ManagerFixture.await(b.loading);
        assertThat(fixture.manager.memoryBytes()).as("reserved before the load").isEqualTo(10);
        gate.countDown();
        assertThat(fixture.settle("a", "b")).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
    }

    @Test
    void insufficientResources() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10_000_000));
        FakeLoader hog = sized("hog", 9_000_000);
        fixture.aspire("hog", hog);
        var unused = fixture.settle("hog");
        FakeLoader rejected = sized("m", 5_000_000);
        fixture.aspire("m", rejected);
        unused = fixture.settle("m");
        assertThat(fixture.phase("m", 1)).isEqualTo(Phase.FAILED);
        assertThat(fixture.reason("m", 1))
                .startsWith("model 'm' version 1 does not fit into memory: it needs 5.0 MB, and 1.0 MB of 10.0 MB are"
                        + " free; held by hog:1 9.0 MB (unload another model");
        assertThat(rejected.loads.get()).isZero();
        fixture.quiesce();
        assertThat(fixture.phases("m", 1)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.FAILED);
        assertThat(fixture.manager.index()).as("still listed").hasSize(2);
        assertThat(fixture.manager.memoryBytes()).isEqualTo(9_000_000);
        assertThat(fixture.manager.memoryLimit()).isEqualTo(10_000_000);
    }

    @Test
    void resourcesReleasedIfLoadFails() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader failing = sized("a", 10);
        failing.failLoads = 9;
        failing.gate = new CountDownLatch(1);
        fixture.aspire("a", failing);
        ManagerFixture.await(failing.loading);
        FakeLoader waiting = sized("b", 10);
        fixture.aspire("b", waiting);
        fixture.until(() ->
                !fixture.manager.states("b").isEmpty() && fixture.reason("b", 1).startsWith("waits for memory"));
        assertThat(waiting.loads.get()).isZero();
        failing.gate.countDown();
        fixture.awaitPhase("b", 1, Phase.AVAILABLE);
        assertThat(fixture.phase("a", 1)).isEqualTo(Phase.FAILED);
        assertThat(fixture.manager.memoryBytes()).isEqualTo(10);
    }

    @Test
    void resourcesReleasedIfEstimateDecreasesAfterLoad() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader shrinking = sized("a", 10);
        shrinking.memory = 4;
        shrinking.gate = new CountDownLatch(1);
        fixture.aspire("a", shrinking);
        ManagerFixture.await(shrinking.loading);
        fixture.aspire("b", sized("b", 6));
        fixture.until(() ->
                !fixture.manager.states("b").isEmpty() && fixture.reason("b", 1).startsWith("waits for memory"));
        shrinking.gate.countDown();
        fixture.awaitPhase("b", 1, Phase.AVAILABLE);
        assertThat(fixture.reason("b", 1)).isEmpty();
        assertThat(fixture.manager.memoryBytes()).isEqualTo(10);
    }

    @Test
    void whatWaitedForALoadThatKeepsItsMemoryIsRejectedThen() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader first = sized("a", 10);
        first.gate = new CountDownLatch(1);
        fixture.aspire("a", first);
        ManagerFixture.await(first.loading);
        fixture.aspire("b", sized("b", 6));
        fixture.aspire("c", sized("c", 6));
        fixture.until(() ->
                !fixture.manager.states("c").isEmpty() && fixture.reason("c", 1).startsWith("waits for memory"));
        first.gate.countDown();
        fixture.awaitPhase("b", 1, Phase.FAILED);
        fixture.awaitPhase("c", 1, Phase.FAILED);
        assertThat(fixture.reason("b", 1)).contains("needs 6 B").contains("held by a:1 10 B");
    }

    @Test
    void whatCanNeverFitIsRejectedAtOnce() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader loading = sized("a", 1);
        loading.gate = new CountDownLatch(1);
        fixture.aspire("a", loading);
        ManagerFixture.await(loading.loading);
        fixture.aspire("b", sized("b", 11));
        fixture.awaitPhase("b", 1, Phase.FAILED);
        loading.gate.countDown();
    }

    @Test
    void resourcesReleasedAfterUnload() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader first = sized("a", 10);
        CountDownLatch gate = new CountDownLatch(1);
        first.unloadGate = gate;
        fixture.aspire("a", first);
        var unused = fixture.settle("a");
        fixture.aspire("a");
        ManagerFixture.await(first.unloading);
        FakeLoader second = sized("b", 10);
        fixture.aspire("b", second);
        fixture.until(() ->
                !fixture.manager.states("b").isEmpty() && fixture.reason("b", 1).startsWith("waits for memory"));
        assertThat(fixture.manager.memoryBytes())
                .as("kept until the unload ends")
                .isEqualTo(10);
        assertThat(second.loads.get()).isZero();
        gate.countDown();
        fixture.awaitPhase("b", 1, Phase.AVAILABLE);
    }

    @Test
    void firstLoadDeniedSecondOneApproved() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader denied = sized("a", 11);
        fixture.aspire("a", denied);
        fixture.aspire("b", sized("b", 10));
        fixture.awaitPhase("b", 1, Phase.AVAILABLE);
        fixture.awaitPhase("a", 1, Phase.FAILED);
        assertThat(denied.loads.get()).isZero();
    }

    @Test
    void newVersionsThatWaitForEachOtherDoNotWaitForEachOthersMemory() throws Exception {
        restart(ManagerOptions.DEFAULT.withMemoryLimitBytes(10).withLoadNiceness(0));
        FakeLoader old = sized("m", 1);
        fixture.aspire("m", old);
        var unused = fixture.settle("m");
        FakeLoader two = fixture.loader("m", 2, "a");
        two.estimate = 6;
        FakeLoader three = fixture.loader("m", 3, "a");
        three.estimate = 6;
        fixture.aspire("m", two, three);
        unused = fixture.settle("m");
        assertThat(fixture.phase("m", 2)).isEqualTo(Phase.FAILED);
        assertThat(fixture.phase("m", 3)).isEqualTo(Phase.FAILED);
        assertThat(fixture.serving(ModelRef.latest("m"))).isSameAs(old.servable);
        fixture.until(() -> fixture.manager.memoryBytes() == 1);
    }

    @Test
    void eventBusErrorOnEstimateResources() throws Exception {
        FakeLoader broken = sized("m", 1);
        broken.failEstimates = 9;
        fixture.aspire("m", broken);
        var unused = fixture.settle("m");
        fixture.quiesce();
        assertThat(fixture.phases("m", 1)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.FAILED);
        assertThat(fixture.reason("m", 1)).contains("estimate 1 is broken");
    }
}
