// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The acceptance cases of a manager that follows wishes, under the names they go by elsewhere, with several load
 * threads; with one in {@link OneLoadThreadTest}.
 *
 * <table>
 * <caption>Cases without a counterpart</caption>
 * <tr><td>ServableHandleInvalidArgument, GetAvailableServableHandlesWrongType</td><td>handles have one type</td></tr>
 * <tr><td>CustomSortActions</td><td>models do not queue for one action at a time, so there is no order to
 * choose</td></tr>
 * </table>
 */
@Timeout(60)
class AspiredVersionsManagerTest {
    private ManagerOptions options = ManagerOptions.DEFAULT;
    private Rig rig = new Rig(options);

    /** Returns the number of load threads. */
    int threads() {
        return 4;
    }

    @BeforeEach
    void begin() {
        options = options.withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
                .withLoadNiceness(0)
                .withLoadThreads(threads());
        restart(options);
    }

    @AfterEach
    void close() {
        rig.close();
    }

    private FakeLoader[] serve(long... versions) throws Exception {
        FakeLoader[] loaders = new FakeLoader[versions.length];
        for (int i = 0; i < versions.length; i++) {
            loaders[i] = rig.loader("m", versions[i], "v" + versions[i]);
        }
        rig.aspire("m", loaders);
        var unused = rig.settle("m");
        return loaders;
    }

    private FakeLoader broken(long version, int times) {
        FakeLoader loader = rig.loader("m", version, "v" + version);
        loader.failLoads = times;
        return loader;
    }

    private @Nullable FakeServable latest() {
        return rig.serving(ModelRef.latest("m"));
    }

    private List<Long> available() {
        return rig.manager.states("m").stream()
                .filter(s -> s.phase() == Phase.AVAILABLE)
                .map(s -> s.id().version())
                .toList();
    }

    @Test
    void servableHandleNotFoundMissingLoaderName() throws Exception {
        serve(0, 1);
        assertThatThrownBy(() -> rig.manager.acquire(ModelRef.latest("other")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.getMessage()).isEqualTo("Request for unknown model: 'other' is not found");
                });
    }

    @Test
    void servableHandleNotFoundMissingVersion() throws Exception {
        serve(0, 1);
        assertThatThrownBy(() -> rig.manager.acquire(ModelRef.exact("m", 100)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    @Test
    void servableHandleLatest() throws Exception {
        serve(0, 1);
        serve(0, 1, 2);
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("v2");
    }

    @Test
    void servableHandleLatestVersionIsZero() throws Exception {
        serve(0);
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("v0");
        assertThat(rig.serving(ModelRef.exact("m", 0))).isSameAs(latest());
    }

    @Test
    void reloadAspiredError() throws Exception {
        serve(1);
        rig.aspire("m", rig.loader("m", 1, "v1"), broken(2, 1));
        var unused = rig.settle("m");
        assertThat(rig.phase("m", 2)).isEqualTo(Phase.FAILED);
        assertThat(rig.phase("m", 1)).isEqualTo(Phase.AVAILABLE);
        rig.manager.retry("m");
        serve(1, 2);
        assertThat(available()).containsExactly(2L, 1L);
    }

    @Test
    void servableHandleSpecificVersion() throws Exception {
        serve(0, 1, 2);
        assertThat(rig.fingerprint("m", 1)).isEqualTo("v1");
    }

    @Test
    void listAvailableServableIds() throws Exception {
        serve(0, 1);
        assertThat(available()).containsExactly(1L, 0L);
        rig.aspire("m", broken(7, 9));
        var unused = rig.settle("m");
        rig.awaitPhase("m", 0, Phase.GONE);
        assertThat(available())
                .as("of two old versions the older one is unloaded")
                .containsExactly(1L);
        assertThat(rig.phase("m", 7)).isEqualTo(Phase.FAILED);
    }

    @Test
    void getAvailableServableHandles() throws Exception {
        serve(0, 1, 5);
        for (long version : available()) {
            assertThat(rig.fingerprint("m", version)).isEqualTo("v" + version);
        }
        assertThat(available()).hasSize(3);
    }

    @Test
    void aspiredRemovedFull() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        ServableHandle handle = rig.manager.acquire(ModelRef.latest("m"));
        rig.aspire("m");
        rig.awaitPhase("m", 0, Phase.GONE);
        rig.awaitPhase("m", 1, Phase.DRAINING);
        assertThat(available()).isEmpty();
        assertThat(loaders[1].unloads.get()).isZero();
        handle.close();
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(loaders[1].unloads.get()).isEqualTo(1);
    }

    @Test
    void aspiredRemovedPartial() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        serve(0);
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(available()).containsExactly(0L);
        assertThat(loaders[0].unloads.get()).isZero();
    }

    @Test
    void revertToSmallerVersionNumber() throws Exception {
        serve(0, 1);
        serve(1);
        rig.awaitPhase("m", 0, Phase.GONE);
        serve(0);
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("v0");
    }

    @Test
    void aspiredAndManageStateLoad() throws Exception {
        FakeLoader one = rig.loader("m", 1, "v1");
        one.gate = new CountDownLatch(1);
        rig.aspire("m", one);
        Rig.await(one.loading);
        rig.awaitPhase("m", 1, Phase.LOADING);
        assertThat(rig.manager.ready(ModelRef.latest("m"))).isFalse();
        one.gate.countDown();
        rig.awaitPhase("m", 1, Phase.AVAILABLE);
    }

    @Test
    void aspiredAndManageStateUnload() throws Exception {
        FakeLoader[] loaders = serve(1);
        CountDownLatch gate = new CountDownLatch(1);
        loaders[0].unloadGate = gate;
        rig.aspire("m");
        Rig.await(loaders[0].unloading);
        rig.awaitPhase("m", 1, Phase.UNLOADING);
        assertThat(latest()).isNull();
        gate.countDown();
        rig.awaitPhase("m", 1, Phase.GONE);
    }

    @Test
    void managerPrefersUnloadOverLoad() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        CountDownLatch gate = new CountDownLatch(1);
        loaders[0].unloadGate = gate;
        FakeLoader other = rig.loader("other", 2, "a");
        other.gate = new CountDownLatch(1);
        rig.aspire("other", other);
        rig.aspire("m", rig.loader("m", 1, "v1"));
        // Neither waits for the other.
        Rig.await(loaders[0].unloading);
        Rig.await(other.loading);
        gate.countDown();
        other.gate.countDown();
        rig.awaitPhase("m", 0, Phase.GONE);
        rig.awaitPhase("other", 2, Phase.AVAILABLE);
    }

    @Test
    void erroneousAspiredVersion() throws Exception {
        serve(0);
        rig.manager.aspire(
                "m",
                List.of(
                        AspiredVersion.of(rig.loader("m", 0, "v0")),
                        AspiredVersion.failed(
                                new ServableId("m", 3), ServingException.of(ErrorCode.UNKNOWN, "no such path"))));
        List<ServableState> states = rig.settle("m");
        assertThat(states).extracting(ServableState::phase).containsExactly(Phase.FAILED, Phase.AVAILABLE);
        assertThat(rig.reason("m", 3)).isEqualTo("no such path");
    }

    @Test
    void destructOnNonServingThread() throws Exception {
        FakeLoader[] loaders = serve(1);
        ServableHandle handle = rig.manager.acquire(ModelRef.latest("m"));
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.DRAINING);
        handle.close();
        Rig.await(loaders[0].unloaded);
        assertThat(loaders[0].unloadThread)
                .startsWith("unload")
                .isNotEqualTo(Thread.currentThread().getName());
    }

    @Test
    void eventBusErroneousVersion() throws Exception {
        rig.manager.aspire(
                "m",
                List.of(AspiredVersion.failed(
                        new ServableId("m", 3), ServingException.of(ErrorCode.UNKNOWN, "no such path"))));
        var unused = rig.settle("m");
        rig.quiesce();
        assertThat(rig.phases("m", 3)).containsExactly(Phase.FAILED);
    }

    @Test
    void eventBusErrorOnLoad() throws Exception {
        rig.aspire("m", broken(3, 9));
        var unused = rig.settle("m");
        rig.quiesce();
        assertThat(rig.phases("m", 3)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.FAILED);
        assertThat(rig.reason("m", 3)).contains("load 1 is broken");
    }

    @Test
    void eventBusServableLifecycle() throws Exception {
        serve(3);
        rig.aspire("m");
        rig.awaitPhase("m", 3, Phase.GONE);
        rig.quiesce();
        assertThat(rig.phases("m", 3))
                .containsExactly(
                        Phase.TRACKED,
                        Phase.LOADING,
                        Phase.WARMING,
                        Phase.AVAILABLE,
                        Phase.DRAINING,
                        Phase.UNLOADING,
                        Phase.GONE);
    }

    @Test
    void noEventBus() throws Exception {
        ConcurrentLinkedQueue<ServableState> states = new ConcurrentLinkedQueue<>();
        Runnable stop = rig.manager.listen(states::add);
        stop.run();
        serve(1);
        assertThat(states).isEmpty();
        assertThat(available()).containsExactly(1L);
    }

    private void restart(ManagerOptions other) {
        rig.close();
        rig = new Rig(other);
    }

    @Test
    void retryOnLoadErrorFinallySucceeds() throws Exception {
        restart(options.withRetries(2, Duration.ofSeconds(30)));
        FakeLoader loader = broken(1, 2);
        rig.aspire("m", loader);
        rig.passTime();
        rig.passTime();
        rig.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(loader.loads.get()).isEqualTo(3);
    }

    @Test
    void retryOnLoadErrorFinallyFails() throws Exception {
        restart(options.withRetries(2, Duration.ofSeconds(30)));
        FakeLoader loader = broken(1, 9);
        rig.aspire("m", loader);
        rig.passTime();
        rig.passTime();
        rig.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.loads.get()).isEqualTo(3);
        assertThat(loader.unloads.get()).isEqualTo(1);
        assertThat(rig.delays.waiting()).isZero();
    }

    @Test
    void aspireErrorDontUnload() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        rig.aspire("m", broken(7, 9));
        var unused = rig.settle("m");
        rig.awaitPhase("m", 0, Phase.GONE);
        assertThat(available()).as("stays available although no longer aspired").containsExactly(1L);
        serve(8);
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(loaders[1].unloads.get()).isEqualTo(1);
        assertThat(available()).containsExactly(8L);
    }

    @Test
    void unaspireThenImmediatelyReaspire() throws Exception {
        FakeLoader[] loaders = serve(1);
        ServableHandle pin = rig.manager.acquire(ModelRef.latest("m"));
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.DRAINING);
        FakeLoader second = rig.loader("m", 1, "again");
        rig.aspire("m", second);
        // The new version does not wait for the slow request to the old one.
        var unused = rig.settle("m");
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("again");
        assertThat(loaders[0].unloads.get()).isZero();
        pin.close();
        Rig.await(loaders[0].unloaded);
        assertThat(second.unloads.get()).isZero();
    }

    @Test
    void unaspireFailedServableThenImmediatelyReaspire() throws Exception {
        FakeLoader first = broken(1, 9);
        rig.aspire("m", first);
        var unused = rig.settle("m");
        rig.aspire("m");
        // Of two lists that are not processed yet, only the newer one is used.
        rig.quiesce();
        serve(1);
        assertThat(available()).containsExactly(1L);
        assertThat(first.loads.get()).isEqualTo(1);
    }

    @Test
    void unaspireNewServableThenImmediatelyReaspire() throws Exception {
        // Stays TRACKED as long as another load is in progress.
        restart(options.withPolicy(AspiredVersionPolicy.RESOURCE_PRESERVING));
        serve(1);
        ServableHandle pin = rig.manager.acquire(ModelRef.latest("m"));
        FakeLoader first = rig.loader("m", 2, "first");
        rig.aspire("m", first);
        rig.awaitPhase("m", 2, Phase.TRACKED);
        rig.aspire("m");
        FakeLoader second = rig.loader("m", 2, "second");
        rig.aspire("m", second);
        pin.close();
        rig.awaitPhase("m", 2, Phase.AVAILABLE);
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("second");
        assertThat(first.loads.get()).isZero();
        assertThat(first.unloads.get()).isZero();
    }

    @Test
    void callPolicyWithAllVersions() throws Exception {
        ConcurrentLinkedQueue<List<AspiredVersionPolicy.VersionSnapshot>> asked = new ConcurrentLinkedQueue<>();
        restart(options.withPolicy(new AspiredVersionPolicy() {
            @Override
            public @Nullable Step next(List<VersionSnapshot> versions) {
                asked.add(versions);
                return AVAILABILITY_PRESERVING.next(versions);
            }

            @Override
            public boolean reloadsBeside() {
                return true;
            }

            @Override
            public boolean allOrNothing() {
                return false;
            }
        }));
        serve(0);
        rig.aspire("m", broken(3, 9), rig.loader("m", 2, "v2"));
        var unused = rig.settle("m");
        assertThat(asked)
                .anySatisfy(versions -> assertThat(versions)
                        .extracting(
                                AspiredVersionPolicy.VersionSnapshot::version,
                                AspiredVersionPolicy.VersionSnapshot::aspired)
                        .contains(
                                org.assertj.core.groups.Tuple.tuple(0L, false),
                                org.assertj.core.groups.Tuple.tuple(2L, true),
                                org.assertj.core.groups.Tuple.tuple(3L, true)));
    }

    @Test
    void decidesOnEventsAndNeedsNoTimeToPass() throws Exception {
        // Delays never end in this test; at one step each 100 ms, a step of every model would take 20 s.
        String[] names = new String[200];
        for (int i = 0; i < names.length; i++) {
            names[i] = "m" + i;
            rig.aspire(names[i], rig.loader(names[i], 1, "a"));
        }
        assertThat(rig.settle(names)).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
        assertThat(rig.delays.waiting()).isZero();
    }

    @Test
    void aSlowRequestToOneModelDoesNotDelayTheUnloadingOfAnother() throws Exception {
        serve(1);
        FakeLoader other = rig.loader("other", 1, "a");
        rig.aspire("other", other);
        var unused = rig.settle("other");
        ServableHandle slow = rig.manager.acquire(ModelRef.latest("m"));
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.DRAINING);
        rig.aspire("other");
        rig.awaitPhase("other", 1, Phase.GONE);
        FakeLoader third = rig.loader("third", 1, "a");
        rig.aspire("third", third);
        unused = rig.settle("third");
        assertThat(rig.phase("m", 1)).isEqualTo(Phase.DRAINING);
        assertThat(rig.phase("third", 1)).isEqualTo(Phase.AVAILABLE);
        slow.close();
        rig.awaitPhase("m", 1, Phase.GONE);
    }

    @Test
    void aBadModelDoesNotHoldUpTheOthers() throws Exception {
        restart(options.withRetries(5, Duration.ofSeconds(30)));
        rig.aspire("m", broken(1, 99));
        rig.until(() -> rig.delays.waiting() > 0);
        rig.aspire("other", rig.loader("other", 1, "a"));
        var unused = rig.settle("other");
        assertThat(rig.phase("other", 1)).isEqualTo(Phase.AVAILABLE);
        assertThat(rig.reason("m", 1)).startsWith("attempt 1 of 6 failed");
    }
}
