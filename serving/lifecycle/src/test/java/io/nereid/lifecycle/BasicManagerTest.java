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

    private Rig rig = new Rig(OPTIONS);

    @AfterEach
    void close() {
        rig.close();
    }

    private void restart(ManagerOptions options) {
        rig.close();
        rig = new Rig(options);
    }

    private FakeLoader serve(String model, long version) throws Exception {
        FakeLoader loader = rig.loader(model, version, "v" + version);
        rig.aspire(model, loader);
        var unused = rig.settle(model);
        return loader;
    }

    private FakeLoader sized(String model, long bytes) {
        FakeLoader loader = rig.loader(model, 1, "a");
        loader.estimate = bytes;
        return loader;
    }

    // ---- managed versions ----

    @Test
    void alreadyManagedError() {
        assertThatThrownBy(() -> rig.aspire("m", rig.loader("m", 1, "a"), rig.loader("m", 1, "b")))
                .hasMessageContaining("every version once");
        assertThat(rig.manager.index()).isEmpty();
    }

    @Test
    void stopManagingUnknownId() throws Exception {
        rig.aspire("unknown");
        rig.quiesce();
        assertThat(rig.manager.index()).isEmpty();
    }

    @Test
    void stopManagingActiveServable() throws Exception {
        FakeLoader one = serve("m", 1);
        ServableHandle handle = rig.manager.acquire(ModelRef.latest("m"));
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.DRAINING);
        rig.delays.runAll();
        assertThat(rig.manager.index())
                .as("stays in the index until it has ended")
                .hasSize(1);
        assertThat(one.unloads.get()).isZero();
        handle.close();
    }

    @Test
    void stopManagingDisabledServable() throws Exception {
        restart(OPTIONS.withForgetAfter(Duration.ofSeconds(1)));
        serve("m", 1);
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(rig.manager.index()).hasSize(1);
        rig.passTime();
        rig.quiesce();
        assertThat(rig.manager.index()).isEmpty();
    }

    @Test
    void dontStopManagingOnError() throws Exception {
        restart(OPTIONS.withForgetAfter(Duration.ofSeconds(1)));
        FakeLoader broken = rig.loader("m", 1, "a");
        broken.failLoads = 9;
        rig.aspire("m", broken);
        var unused = rig.settle("m");
        assertThat(rig.delays.waiting()).as("it is still aspired").isZero();
        assertThat(rig.phase("m", 1)).isEqualTo(Phase.FAILED);
    }

    @Test
    void updateServingMapServableHandleLatest() throws Exception {
        FakeLoader zero = rig.loader("m", 0, "v0");
        FakeLoader one = rig.loader("m", 1, "v1");
        rig.aspire("m", zero, one);
        var unused = rig.settle("m");
        assertThat(rig.serving(ModelRef.latest("m"))).isSameAs(one.servable);
        CountDownLatch gate = new CountDownLatch(1);
        one.unloadGate = gate;
        rig.aspire("m", rig.loader("m", 0, "v0"));
        Rig.await(one.unloading);
        assertThat(rig.serving(ModelRef.latest("m")))
                .as("before the unload ends")
                .isSameAs(zero.servable);
        gate.countDown();
    }

    @Test
    void getManagedServableNames() throws Exception {
        serve("b", 1);
        serve("a", 1);
        assertThat(rig.manager.index()).extracting(ModelStatus::model).containsExactly("a", "b");
    }

    @Test
    void getManagedServableStateSnapshot() throws Exception {
        serve("m", 1);
        assertThat(rig.state("m", 1).phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(rig.manager.states("unknown")).isEmpty();
    }

    @Test
    void multipleManageCallsUsesFirstServable() throws Exception {
        FakeLoader first = serve("m", 1);
        FakeLoader second = serve("m", 1);
        assertThat(rig.serving(ModelRef.latest("m"))).isSameAs(first.servable);
        assertThat(second.loads.get()).isZero();
    }

    @Test
    void erroneousServable() throws Exception {
        rig.manager.aspire(
                "m",
                List.of(AspiredVersion.failed(
                        new ServableId("m", 3), ServingException.of(ErrorCode.UNKNOWN, "no platform"))));
        var unused = rig.settle("m");
        assertThat(rig.phase("m", 3)).isEqualTo(Phase.FAILED);
        assertThatThrownBy(() -> rig.manager.acquire(ModelRef.exact("m", 3)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).contains("no platform"));
    }

    // ---- loads and unloads ----

    @Test
    void outOfOrderLoadServable() throws Exception {
        rig.aspire("m", rig.loader("m", 3, "a"), rig.loader("m", 1, "a"), rig.loader("m", 2, "a"));
        assertThat(rig.settle("m")).extracting(s -> s.id().version()).containsExactly(3L, 2L, 1L);
        assertThat(rig.settle("m")).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
    }

    @Test
    void multipleLoadServables() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeLoader[] loaders = new FakeLoader[4];
        for (int i = 0; i < loaders.length; i++) {
            loaders[i] = rig.loader("m", i, "a");
            loaders[i].gate = gate;
        }
        rig.aspire("m", loaders);
        for (FakeLoader loader : loaders) {
            Rig.await(loader.loading);
        }
        gate.countDown();
        assertThat(rig.settle("m")).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
    }

    @Test
    void multipleUnloadServables() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeLoader a = serve("a", 1);
        FakeLoader b = serve("b", 1);
        a.unloadGate = gate;
        b.unloadGate = gate;
        rig.aspire("a");
        rig.aspire("b");
        Rig.await(a.unloading);
        Rig.await(b.unloading);
        gate.countDown();
        rig.awaitPhase("a", 1, Phase.GONE);
        rig.awaitPhase("b", 1, Phase.GONE);
    }

    @Test
    void unloadWithoutManage() throws Exception {
        rig.aspire("m");
        assertThat(rig.settle("m")).isEmpty();
        assertThat(rig.news).isEmpty();
    }

    @Test
    void unloadWithoutLoad() throws Exception {
        restart(OPTIONS.withLoadThreads(1));
        FakeLoader busy = rig.loader("busy", 1, "a");
        busy.gate = new CountDownLatch(1);
        rig.aspire("busy", busy);
        Rig.await(busy.loading);
        FakeLoader queued = rig.loader("m", 1, "a");
        rig.aspire("m", queued);
        rig.awaitPhase("m", 1, Phase.LOADING);
        rig.aspire("m");
        rig.quiesce();
        busy.gate.countDown();
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(queued.loads.get()).isZero();
        assertThat(queued.unloads.get())
                .as("a loader that was not called is not unloaded")
                .isZero();
    }

    @Test
    void loadsThenUnloads() throws Exception {
        String[] names = names(20);
        for (String name : names) {
            rig.aspire(name, rig.loader(name, 1, "a"));
        }
        assertThat(rig.settle(names)).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
        for (String name : names) {
            rig.aspire(name);
        }
        for (String name : names) {
            rig.awaitPhase(name, 1, Phase.GONE);
        }
        rig.closeAndCheck("");
    }

    @Test
    void interleavedLoadsAndUnloads() throws Exception {
        String[] names = names(20);
        for (String name : names) {
            rig.aspire(name, rig.loader(name, 1, "a"));
            rig.aspire(name);
            rig.aspire(name, rig.loader(name, 2, "a"));
        }
        var unused = rig.settle(names);
        for (String name : names) {
            assertThat(rig.phase(name, 2)).isEqualTo(Phase.AVAILABLE);
        }
        rig.closeAndCheck("");
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
            FakeLoader loader = rig.loader(name, 1, "a");
            loader.gate = gate;
            loaders.add(loader);
            rig.aspire(name, loader);
        }
        for (FakeLoader loader : loaders) {
            Rig.await(loader.loading);
        }
        assertThat(rig.loadThreads()).isEqualTo(3);
        gate.countDown();
        var unused = rig.settle(names(3));
        // The initial load has ended.
        rig.until(() -> rig.loadThreads() == 1);
    }

    @Test
    void threadPoolSwapped() throws Exception {
        fastLoad();
        FakeLoader first = rig.loader("first", 1, "a");
        first.gate = new CountDownLatch(1);
        rig.aspire("first", first);
        Rig.await(first.loading);
        FakeLoader second = rig.loader("second", 1, "a");
        rig.aspire("second", second);
        rig.awaitPhase("second", 1, Phase.LOADING);
        rig.quiesce();
        assertThat(second.loads.get()).as("one at a time").isZero();
        first.gate.countDown();
        rig.awaitPhase("second", 1, Phase.AVAILABLE);
    }

    @Test
    void concurrentLoadsOnlyOneSucceeds() throws Exception {
        CountDownLatch done = new CountDownLatch(4);
        for (int i = 0; i < 4; i++) {
            FakeLoader same = rig.loader("m", 1, "a");
            Threads.named("wisher")
                    .newThread(() -> {
                        rig.aspire("m", same);
                        done.countDown();
                    })
                    .start();
        }
        Rig.await(done);
        var unused = rig.settle("m");
        assertThat(rig.loaders.stream().mapToInt(l -> l.loads.get()).sum()).isEqualTo(1);
    }

    @Test
    void concurrentUnloadsOnlyOneSucceeds() throws Exception {
        FakeLoader one = serve("m", 1);
        CountDownLatch done = new CountDownLatch(4);
        for (int i = 0; i < 4; i++) {
            Threads.named("wisher")
                    .newThread(() -> {
                        rig.aspire("m");
                        done.countDown();
                    })
                    .start();
        }
        Rig.await(done);
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(one.unloads.get()).isEqualTo(1);
    }

    // ---- retries ----

    @Test
    void retryOnLoadErrorCancelledLoad() throws Exception {
        restart(OPTIONS.withRetries(5, Duration.ofSeconds(30)));
        FakeLoader broken = rig.loader("m", 1, "a");
        broken.failLoads = 99;
        rig.aspire("m", broken);
        rig.until(() -> rig.delays.waiting() > 0);
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.GONE);
        rig.delays.runAll();
        rig.quiesce();
        assertThat(broken.loads.get()).isEqualTo(1);
        assertThat(broken.unloads.get()).isEqualTo(1);
    }

    @Test
    void loadAfterCancelledLoad() throws Exception {
        FakeLoader cancelled = rig.loader("m", 1, "a");
        cancelled.gate = new CountDownLatch(1);
        rig.aspire("m", cancelled);
        Rig.await(cancelled.loading);
        rig.aspire("m");
        rig.quiesce();
        cancelled.gate.countDown();
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(rig.reason("m", 1)).isEqualTo("Loading of servable cancelled");
        assertThat(rig.phases("m", 1)).doesNotContain(Phase.AVAILABLE, Phase.WARMING);
        serve("m", 1);
        assertThat(rig.phase("m", 1)).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void nonRetriableError() throws Exception {
        for (ErrorCode code : List.of(ErrorCode.INVALID_ARGUMENT, ErrorCode.UNIMPLEMENTED, ErrorCode.OUT_OF_RANGE)) {
            restart(OPTIONS.withRetries(5, Duration.ofSeconds(30)));
            FakeLoader broken = rig.loader("m", 1, "a");
            broken.failLoads = 9;
            broken.failure = ServingException.of(code, "this is not a model");
            rig.aspire("m", broken);
            rig.awaitPhase("m", 1, Phase.FAILED);
            assertThat(rig.reason("m", 1)).isEqualTo("this is not a model");
            assertThat(broken.loads.get()).isEqualTo(1);
            assertThat(broken.unloads.get()).isEqualTo(1);
            assertThat(rig.delays.waiting()).isZero();
        }
    }

    @Test
    void estimateResourcesRetriedSucceeds() throws Exception {
        restart(OPTIONS.withRetries(1, Duration.ofSeconds(30)).withMemoryLimitBytes(10));
        FakeLoader loader = sized("m", 5);
        loader.failEstimates = 1;
        rig.aspire("m", loader);
        rig.passTime();
        rig.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(rig.manager.memoryBytes()).isEqualTo(5);
    }

    @Test
    void estimateResourcesRetriedFails() throws Exception {
        restart(OPTIONS.withRetries(1, Duration.ofSeconds(30)).withMemoryLimitBytes(10));
        FakeLoader loader = sized("m", 5);
        loader.failEstimates = 9;
        rig.aspire("m", loader);
        rig.passTime();
        rig.awaitPhase("m", 1, Phase.FAILED);
        assertThat(rig.reason("m", 1)).contains("estimate 2 is broken");
        assertThat(loader.loads.get()).isZero();
        assertThat(loader.unloads.get()).isZero();
    }

    @Test
    void estimateResourcesRetriedNonRetriableError() throws Exception {
        restart(OPTIONS.withRetries(1, Duration.ofSeconds(30)).withMemoryLimitBytes(10));
        FakeLoader loader = sized("m", 5);
        loader.failEstimates = 9;
        loader.failure = ServingException.invalidArgument("no weights");
        rig.aspire("m", loader);
        rig.awaitPhase("m", 1, Phase.FAILED);
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
        rig.aspire("a", a);
        rig.aspire("b", b);
        Rig.await(a.loading);
        Rig.await(b.loading);
        assertThat(rig.manager.memoryBytes()).as("reserved before the load").isEqualTo(10);
        gate.countDown();
        assertThat(rig.settle("a", "b")).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
    }

    @Test
    void insufficientResources() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10_000_000));
        FakeLoader hog = sized("hog", 9_000_000);
        rig.aspire("hog", hog);
        var unused = rig.settle("hog");
        FakeLoader rejected = sized("m", 5_000_000);
        rig.aspire("m", rejected);
        unused = rig.settle("m");
        assertThat(rig.phase("m", 1)).isEqualTo(Phase.FAILED);
        assertThat(rig.reason("m", 1))
                .startsWith("model 'm' version 1 does not fit into memory: it needs 5.0 MB, and 1.0 MB of 10.0 MB are"
                        + " free; held by hog:1 9.0 MB (unload another model");
        assertThat(rejected.loads.get()).isZero();
        rig.quiesce();
        assertThat(rig.phases("m", 1)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.FAILED);
        assertThat(rig.manager.index()).as("still listed").hasSize(2);
        assertThat(rig.manager.memoryBytes()).isEqualTo(9_000_000);
        assertThat(rig.manager.memoryLimit()).isEqualTo(10_000_000);
    }

    @Test
    void resourcesReleasedIfLoadFails() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader failing = sized("a", 10);
        failing.failLoads = 9;
        failing.gate = new CountDownLatch(1);
        rig.aspire("a", failing);
        Rig.await(failing.loading);
        FakeLoader waiting = sized("b", 10);
        rig.aspire("b", waiting);
        rig.until(() -> !rig.manager.states("b").isEmpty() && rig.reason("b", 1).startsWith("waits for memory"));
        assertThat(waiting.loads.get()).isZero();
        failing.gate.countDown();
        rig.awaitPhase("b", 1, Phase.AVAILABLE);
        assertThat(rig.phase("a", 1)).isEqualTo(Phase.FAILED);
        assertThat(rig.manager.memoryBytes()).isEqualTo(10);
    }

    @Test
    void resourcesReleasedIfEstimateDecreasesAfterLoad() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader shrinking = sized("a", 10);
        shrinking.memory = 4;
        shrinking.gate = new CountDownLatch(1);
        rig.aspire("a", shrinking);
        Rig.await(shrinking.loading);
        rig.aspire("b", sized("b", 6));
        rig.until(() -> !rig.manager.states("b").isEmpty() && rig.reason("b", 1).startsWith("waits for memory"));
        shrinking.gate.countDown();
        rig.awaitPhase("b", 1, Phase.AVAILABLE);
        assertThat(rig.reason("b", 1)).isEmpty();
        assertThat(rig.manager.memoryBytes()).isEqualTo(10);
    }

    @Test
    void whatWaitedForALoadThatKeepsItsMemoryIsRejectedThen() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader first = sized("a", 10);
        first.gate = new CountDownLatch(1);
        rig.aspire("a", first);
        Rig.await(first.loading);
        rig.aspire("b", sized("b", 6));
        rig.aspire("c", sized("c", 6));
        rig.until(() -> !rig.manager.states("c").isEmpty() && rig.reason("c", 1).startsWith("waits for memory"));
        first.gate.countDown();
        rig.awaitPhase("b", 1, Phase.FAILED);
        rig.awaitPhase("c", 1, Phase.FAILED);
        assertThat(rig.reason("b", 1)).contains("needs 6 B").contains("held by a:1 10 B");
    }

    @Test
    void whatCanNeverFitIsRejectedAtOnce() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader loading = sized("a", 1);
        loading.gate = new CountDownLatch(1);
        rig.aspire("a", loading);
        Rig.await(loading.loading);
        rig.aspire("b", sized("b", 11));
        rig.awaitPhase("b", 1, Phase.FAILED);
        loading.gate.countDown();
    }

    @Test
    void resourcesReleasedAfterUnload() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader first = sized("a", 10);
        CountDownLatch gate = new CountDownLatch(1);
        first.unloadGate = gate;
        rig.aspire("a", first);
        var unused = rig.settle("a");
        rig.aspire("a");
        Rig.await(first.unloading);
        FakeLoader second = sized("b", 10);
        rig.aspire("b", second);
        rig.until(() -> !rig.manager.states("b").isEmpty() && rig.reason("b", 1).startsWith("waits for memory"));
        assertThat(rig.manager.memoryBytes()).as("kept until the unload ends").isEqualTo(10);
        assertThat(second.loads.get()).isZero();
        gate.countDown();
        rig.awaitPhase("b", 1, Phase.AVAILABLE);
    }

    @Test
    void firstLoadDeniedSecondOneApproved() throws Exception {
        restart(OPTIONS.withMemoryLimitBytes(10));
        FakeLoader denied = sized("a", 11);
        rig.aspire("a", denied);
        rig.aspire("b", sized("b", 10));
        rig.awaitPhase("b", 1, Phase.AVAILABLE);
        rig.awaitPhase("a", 1, Phase.FAILED);
        assertThat(denied.loads.get()).isZero();
    }

    @Test
    void newVersionsThatWaitForEachOtherDoNotWaitForEachOthersMemory() throws Exception {
        restart(ManagerOptions.DEFAULT.withMemoryLimitBytes(10).withLoadNiceness(0));
        FakeLoader old = sized("m", 1);
        rig.aspire("m", old);
        var unused = rig.settle("m");
        FakeLoader two = rig.loader("m", 2, "a");
        two.estimate = 6;
        FakeLoader three = rig.loader("m", 3, "a");
        three.estimate = 6;
        rig.aspire("m", two, three);
        unused = rig.settle("m");
        assertThat(rig.phase("m", 2)).isEqualTo(Phase.FAILED);
        assertThat(rig.phase("m", 3)).isEqualTo(Phase.FAILED);
        assertThat(rig.serving(ModelRef.latest("m"))).isSameAs(old.servable);
        rig.until(() -> rig.manager.memoryBytes() == 1);
    }

    @Test
    void eventBusErrorOnEstimateResources() throws Exception {
        FakeLoader broken = sized("m", 1);
        broken.failEstimates = 9;
        rig.aspire("m", broken);
        var unused = rig.settle("m");
        rig.quiesce();
        assertThat(rig.phases("m", 1)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.FAILED);
        assertThat(rig.reason("m", 1)).contains("estimate 1 is broken");
    }
}
