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
 * The acceptance cases of a manager that follows aspired versions, under the names they go by elsewhere, with several load
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
    private ManagerFixture fixture = new ManagerFixture(options);

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
        fixture.close();
    }

    private FakeLoader[] serve(long... versions) throws Exception {
        FakeLoader[] loaders = new FakeLoader[versions.length];
        for (int i = 0; i < versions.length; i++) {
            loaders[i] = fixture.loader("m", versions[i], "v" + versions[i]);
        }
        fixture.aspire("m", loaders);
        var unused = fixture.settle("m");
        return loaders;
    }

    private FakeLoader broken(long version, int times) {
        FakeLoader loader = fixture.loader("m", version, "v" + version);
        loader.failLoads = times;
        return loader;
    }

    private @Nullable FakeServable latest() {
        return fixture.serving(ModelRef.latest("m"));
    }

    private List<Long> available() {
        return fixture.manager.states("m").stream()
                .filter(s -> s.phase() == Phase.AVAILABLE)
                .map(s -> s.id().version())
                .toList();
    }

    @Test
    void servableHandleNotFoundMissingLoaderName() throws Exception {
        serve(0, 1);
        assertThatThrownBy(() -> fixture.manager.acquire(ModelRef.latest("other")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.getMessage()).isEqualTo("Request for unknown model: 'other' is not found");
                });
    }

    @Test
    void servableHandleNotFoundMissingVersion() throws Exception {
        serve(0, 1);
        assertThatThrownBy(() -> fixture.manager.acquire(ModelRef.exact("m", 100)))
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
        assertThat(fixture.serving(ModelRef.exact("m", 0))).isSameAs(latest());
    }

    @Test
    void reloadAspiredError() throws Exception {
        serve(1);
        fixture.aspire("m", fixture.loader("m", 1, "v1"), broken(2, 1));
        var unused = fixture.settle("m");
        assertThat(fixture.phase("m", 2)).isEqualTo(Phase.FAILED);
        assertThat(fixture.phase("m", 1)).isEqualTo(Phase.AVAILABLE);
        fixture.manager.retry("m");
        serve(1, 2);
        assertThat(available()).containsExactly(2L, 1L);
    }

    @Test
    void servableHandleSpecificVersion() throws Exception {
        serve(0, 1, 2);
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("v1");
    }

    @Test
    void listAvailableServableIds() throws Exception {
        serve(0, 1);
        assertThat(available()).containsExactly(1L, 0L);
        fixture.aspire("m", broken(7, 9));
        var unused = fixture.settle("m");
        fixture.awaitPhase("m", 0, Phase.GONE);
        assertThat(available())
                .as("of two old versions the older one is unloaded")
                .containsExactly(1L);
        assertThat(fixture.phase("m", 7)).isEqualTo(Phase.FAILED);
    }

    @Test
    void getAvailableServableHandles() throws Exception {
        serve(0, 1, 5);
        for (long version : available()) {
            assertThat(fixture.fingerprint("m", version)).isEqualTo("v" + version);
        }
        assertThat(available()).hasSize(3);
    }

    @Test
    void aspiredRemovedFull() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        ServableHandle handle = fixture.manager.acquire(ModelRef.latest("m"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 0, Phase.GONE);
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        assertThat(available()).isEmpty();
        assertThat(loaders[1].unloads.get()).isZero();
        handle.close();
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(loaders[1].unloads.get()).isEqualTo(1);
    }

    @Test
    void aspiredRemovedPartial() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        serve(0);
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(available()).containsExactly(0L);
        assertThat(loaders[0].unloads.get()).isZero();
    }

    @Test
    void revertToSmallerVersionNumber() throws Exception {
        serve(0, 1);
        serve(1);
        fixture.awaitPhase("m", 0, Phase.GONE);
        serve(0);
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("v0");
    }

    @Test
    void aspiredAndManageStateLoad() throws Exception {
        FakeLoader one = fixture.loader("m", 1, "v1");
        one.gate = new CountDownLatch(1);
        fixture.aspire("m", one);
        ManagerFixture.await(one.loading);
        fixture.awaitPhase("m", 1, Phase.LOADING);
        assertThat(fixture.manager.ready(ModelRef.latest("m"))).isFalse();
        one.gate.countDown();
        fixture.awaitPhase("m", 1, Phase.AVAILABLE);
    }

    @Test
    void aspiredAndManageStateUnload() throws Exception {
        FakeLoader[] loaders = serve(1);
        CountDownLatch gate = new CountDownLatch(1);
        loaders[0].unloadGate = gate;
        fixture.aspire("m");
        ManagerFixture.await(loaders[0].unloading);
        fixture.awaitPhase("m", 1, Phase.UNLOADING);
        assertThat(latest()).isNull();
        gate.countDown();
        fixture.awaitPhase("m", 1, Phase.GONE);
    }

    @Test
    void managerPrefersUnloadOverLoad() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        CountDownLatch gate = new CountDownLatch(1);
        loaders[0].unloadGate = gate;
        FakeLoader other = fixture.loader("other", 2, "a");
        other.gate = new CountDownLatch(1);
        fixture.aspire("other", other);
        fixture.aspire("m", fixture.loader("m", 1, "v1"));
        // Neither waits for the other.
        ManagerFixture.await(loaders[0].unloading);
        ManagerFixture.await(other.loading);
        gate.countDown();
        other.gate.countDown();
        fixture.awaitPhase("m", 0, Phase.GONE);
        fixture.awaitPhase("other", 2, Phase.AVAILABLE);
    }

    @Test
    void erroneousAspiredVersion() throws Exception {
        serve(0);
        fixture.manager.aspire(
                "m",
                List.of(
                        AspiredVersion.of(fixture.loader("m", 0, "v0")),
                        AspiredVersion.failed(
                                new ServableId("m", 3), ServingException.of(ErrorCode.UNKNOWN, "no such path"))));
        List<ServableState> states = fixture.settle("m");
        assertThat(states).extracting(ServableState::phase).containsExactly(Phase.FAILED, Phase.AVAILABLE);
        assertThat(fixture.reason("m", 3)).isEqualTo("no such path");
    }

    @Test
    void destructOnNonServingThread() throws Exception {
        FakeLoader[] loaders = serve(1);
        ServableHandle handle = fixture.manager.acquire(ModelRef.latest("m"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        handle.close();
        ManagerFixture.await(loaders[0].unloaded);
        assertThat(loaders[0].unloadThread)
                .startsWith("unload")
                .isNotEqualTo(Thread.currentThread().getName());
    }

    @Test
    void eventBusErroneousVersion() throws Exception {
        fixture.manager.aspire(
                "m",
                List.of(AspiredVersion.failed(
                        new ServableId("m", 3), ServingException.of(ErrorCode.UNKNOWN, "no such path"))));
        var unused = fixture.settle("m");
        fixture.quiesce();
        assertThat(fixture.phases("m", 3)).containsExactly(Phase.FAILED);
    }

    @Test
    void eventBusErrorOnLoad() throws Exception {
        fixture.aspire("m", broken(3, 9));
        var unused = fixture.settle("m");
        fixture.quiesce();
        assertThat(fixture.phases("m", 3)).containsExactly(Phase.TRACKED, Phase.LOADING, Phase.FAILED);
        assertThat(fixture.reason("m", 3)).contains("load 1 is broken");
    }

    @Test
    void eventBusServableLifecycle() throws Exception {
        serve(3);
        fixture.aspire("m");
        fixture.awaitPhase("m", 3, Phase.GONE);
        fixture.quiesce();
        assertThat(fixture.phases("m", 3))
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
        Runnable stop = fixture.manager.listen(states::add);
        stop.run();
        serve(1);
        assertThat(states).isEmpty();
        assertThat(available()).containsExactly(1L);
    }

    private void restart(ManagerOptions other) {
        fixture.close();
        fixture = new ManagerFixture(other);
    }

    @Test
    void retryOnLoadErrorFinallySucceeds() throws Exception {
        restart(options.withRetries(2, Duration.ofSeconds(30)));
        FakeLoader loader = broken(1, 2);
        fixture.aspire("m", loader);
        fixture.passTime();
        fixture.passTime();
        fixture.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(loader.loads.get()).isEqualTo(3);
    }

    @Test
    void retryOnLoadErrorFinallyFails() throws Exception {
        restart(options.withRetries(2, Duration.ofSeconds(30)));
        FakeLoader loader = broken(1, 9);
        fixture.aspire("m", loader);
        fixture.passTime();
        fixture.passTime();
        fixture.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.loads.get()).isEqualTo(3);
        assertThat(loader.unloads.get()).isEqualTo(1);
        assertThat(fixture.timer.waiting()).isZero();
    }

    @Test
    void aspireErrorDontUnload() throws Exception {
        FakeLoader[] loaders = serve(0, 1);
        fixture.aspire("m", broken(7, 9));
        var unused = fixture.settle("m");
        fixture.awaitPhase("m", 0, Phase.GONE);
        assertThat(available()).as("stays available although no longer aspired").containsExactly(1L);
        serve(8);
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(loaders[1].unloads.get()).isEqualTo(1);
        assertThat(available()).containsExactly(8L);
    }

    @Test
    void unaspireThenImmediatelyReaspire() throws Exception {
        FakeLoader[] loaders = serve(1);
        ServableHandle pin = fixture.manager.acquire(ModelRef.latest("m"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        FakeLoader second = fixture.loader("m", 1, "again");
        fixture.aspire("m", second);
        // The new version does not wait for the slow request to the old one.
        var unused = fixture.settle("m");
        assertThat(latest()).extracting(s -> s.fingerprint).isEqualTo("again");
        assertThat(loaders[0].unloads.get()).isZero();
        pin.close();
        ManagerFixture.await(loaders[0].unloaded);
        assertThat(second.unloads.get()).isZero();
    }

    @Test
    void unaspireFailedServableThenImmediatelyReaspire() throws Exception {
        FakeLoader first = broken(1, 9);
        fixture.aspire("m", first);
        var unused = fixture.settle("m");
        fixture.aspire("m");
        // Of two lists that are not processed yet, only the newer one is used.
        fixture.quiesce();
        serve(1);
        assertThat(available()).containsExactly(1L);
        assertThat(first.loads.get()).isEqualTo(1);
    }

    @Test
    void unaspireNewServableThenImmediatelyReaspire() throws Exception {
        // Stays TRACKED as long as another load is in progress.
        restart(options.withPolicy(AspiredVersionPolicy.RESOURCE_PRESERVING));
        serve(1);
        ServableHandle pin = fixture.manager.acquire(ModelRef.latest("m"));
        FakeLoader first = fixture.loader("m", 2, "first");
        fixture.aspire("m", first);
        fixture.awaitPhase("m", 2, Phase.TRACKED);
        fixture.aspire("m");
        FakeLoader second = fixture.loader("m", 2, "second");
        fixture.aspire("m", second);
        pin.close();
        fixture.awaitPhase("m", 2, Phase.AVAILABLE);
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
        fixture.aspire("m", broken(3, 9), fixture.loader("m", 2, "v2"));
        var unused = fixture.settle("m");
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
            fixture.aspire(names[i], fixture.loader(names[i], 1, "a"));
        }
        assertThat(fixture.settle(names)).extracting(ServableState::phase).containsOnly(Phase.AVAILABLE);
        assertThat(fixture.timer.waiting()).isZero();
    }

    @Test
    void aSlowRequestToOneModelDoesNotDelayTheUnloadingOfAnother() throws Exception {
        serve(1);
        FakeLoader other = fixture.loader("other", 1, "a");
        fixture.aspire("other", other);
        var unused = fixture.settle("other");
        ServableHandle slow = fixture.manager.acquire(ModelRef.latest("m"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        fixture.aspire("other");
        fixture.awaitPhase("other", 1, Phase.GONE);
        FakeLoader third = fixture.loader("third", 1, "a");
        fixture.aspire("third", third);
        unused = fixture.settle("third");
        assertThat(fixture.phase("m", 1)).isEqualTo(Phase.DRAINING);
        assertThat(fixture.phase("third", 1)).isEqualTo(Phase.AVAILABLE);
        slow.close();
        fixture.awaitPhase("m", 1, Phase.GONE);
    }

    @Test
    void aBadModelDoesNotHoldUpTheOthers() throws Exception {
        restart(options.withRetries(5, Duration.ofSeconds(30)));
        fixture.aspire("m", broken(1, 99));
        fixture.until(() -> fixture.timer.waiting() > 0);
        fixture.aspire("other", fixture.loader("other", 1, "a"));
        var unused = fixture.settle("other");
        assertThat(fixture.phase("other", 1)).isEqualTo(Phase.AVAILABLE);
        assertThat(fixture.reason("m", 1)).startsWith("attempt 1 of 6 failed");
    }
}
