// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.ServableManager.Reached;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The test cases of TensorFlow Serving's {@code ServableStateMonitor}, under their original names.
 *
 * <table>
 * <caption>Cases without a counterpart</caption>
 * <tr><td>DisableBoundedLogging</td><td>state changes are not logged; a listener can do that</td></tr>
 * </table>
 */
@Timeout(60)
class ServableStateMonitorTest {
    private static final Duration LONG = Duration.ofMinutes(10);

    private final Rig rig = new Rig(ManagerOptions.DEFAULT
            .withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
            .withForgetAfter(Duration.ofSeconds(1))
            .withLoadNiceness(0));

    @AfterEach
    void close() {
        rig.close();
    }

    private CompletableFuture<Reached> until(Phase goal, ModelRef... refs) {
        return rig.manager.waitUntil(List.of(refs), goal, LONG).toCompletableFuture();
    }

    private static Reached get(CompletableFuture<Reached> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    private FakeLoader gated(String model, long version) {
        FakeLoader loader = rig.loader(model, version, "v" + version);
        loader.gate = new CountDownLatch(1);
        return loader;
    }

    private FakeLoader broken(String model, long version) {
        FakeLoader loader = rig.loader(model, version, "v" + version);
        loader.failLoads = 9;
        return loader;
    }

    private static void open(FakeLoader loader) {
        CountDownLatch gate = loader.gate;
        if (gate != null) {
            gate.countDown();
        }
    }

    private static ServableId id(String model, long version) {
        return new ServableId(model, version);
    }

    @Test
    void addingStates() throws Exception {
        assertThat(rig.manager.states("m")).isEmpty();
        rig.aspire("m", rig.loader("m", 1, "a"));
        rig.aspire("n", rig.loader("n", 7, "a"));
        var unused = rig.settle("m", "n");
        assertThat(rig.manager.states("m")).hasSize(1);
        assertThat(rig.manager.states("n").get(0).id()).isEqualTo(id("n", 7));
    }

    @Test
    void updatingStates() throws Exception {
        FakeLoader one = gated("m", 1);
        rig.aspire("m", one);
        rig.awaitPhase("m", 1, Phase.LOADING);
        open(one);
        rig.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(rig.manager.states("m")).hasSize(1);
    }

    @Test
    void getLiveAndAvailableServableStates() throws Exception {
        rig.aspire("m", broken("m", 2), rig.loader("m", 1, "a"));
        var unused = rig.settle("m");
        assertThat(rig.manager.states("m"))
                .extracting(ServableState::phase)
                .containsExactly(Phase.FAILED, Phase.AVAILABLE);
    }

    @Test
    void versionMapDescendingOrder() throws Exception {
        rig.aspire("m", rig.loader("m", 2, "a"), rig.loader("m", 10, "a"), rig.loader("m", 1, "a"));
        var unused = rig.settle("m");
        assertThat(rig.manager.states("m")).extracting(s -> s.id().version()).containsExactly(10L, 2L, 1L);
    }

    @Test
    void forgetUnloadedServableStates() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"), rig.loader("m", 2, "a"));
        var unused = rig.settle("m");
        rig.aspire("m", rig.loader("m", 2, "a"));
        rig.awaitPhase("m", 1, Phase.GONE);
        rig.passTime();
        rig.quiesce();
        assertThat(rig.manager.states("m")).extracting(s -> s.id().version()).containsExactly(2L);
    }

    @Test
    void notifyWhenServablesReachStateZeroServables() throws Exception {
        assertThat(get(until(Phase.AVAILABLE))).isEqualTo(new Reached(true, Map.of()));
    }

    @Test
    void notifyWhenServablesReachStateSpecificAvailable() throws Exception {
        FakeLoader one = gated("m", 1);
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, ModelRef.exact("m", 1));
        rig.aspire("m", rig.loader("m", 2, "a"), one);
        rig.awaitPhase("m", 2, Phase.AVAILABLE);
        rig.quiesce();
        assertThat(reached).as("another version does not count").isNotDone();
        open(one);
        assertThat(get(reached)).isEqualTo(new Reached(true, Map.of(id("m", 1), Phase.AVAILABLE)));
        assertThat(get(until(Phase.AVAILABLE, ModelRef.exact("m", 1)))).isEqualTo(get(reached));
    }

    @Test
    void notifyWhenServablesReachStateSpecificError() throws Exception {
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, ModelRef.exact("m", 1));
        rig.aspire("m", broken("m", 1));
        assertThat(get(reached)).isEqualTo(new Reached(false, Map.of(id("m", 1), Phase.FAILED)));
        assertThat(get(until(Phase.FAILED, ModelRef.exact("m", 1))).all()).isTrue();
    }

    @Test
    void notifyWhenServablesReachStateServableLatestAvailable() throws Exception {
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        FakeLoader slow = gated("m", 2);
        rig.aspire("m", rig.loader("m", 1, "a"), slow, broken("m", 3));
        assertThat(get(reached)).isEqualTo(new Reached(true, Map.of(id("m", 1), Phase.AVAILABLE)));
        open(slow);
    }

    @Test
    void notifyWhenServablesReachStateLatestError() throws Exception {
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        FakeLoader slow = gated("m", 1);
        slow.failLoads = 9;
        rig.aspire("m", slow, broken("m", 2));
        rig.awaitPhase("m", 2, Phase.FAILED);
        rig.quiesce();
        assertThat(reached).as("a version may still be aspired").isNotDone();
        open(slow);
        assertThat(get(reached))
                .isEqualTo(new Reached(false, Map.of(id("m", 1), Phase.FAILED, id("m", 2), Phase.FAILED)));
    }

    @Test
    void notifyWhenServablesReachStateFullFunctionality() throws Exception {
        rig.manager.labels(
                "l",
                Map.of(
                        "stable",
                        new VersionLabel(List.of(new WeightedVersion(3, 1), new WeightedVersion(4, 1)), List.of())));
        CompletableFuture<Reached> reached = until(
                Phase.AVAILABLE,
                ModelRef.exact("m", 1),
                ModelRef.latest("n"),
                new ModelRef("l", ModelRef.ANY, "stable"));
        rig.aspire("m", broken("m", 1));
        rig.aspire("n", rig.loader("n", 5, "a"));
        rig.awaitPhase("n", 5, Phase.AVAILABLE);
        rig.aspire("l", rig.loader("l", 9, "a"));
        rig.awaitPhase("l", 9, Phase.AVAILABLE);
        rig.quiesce();
        assertThat(reached).isNotDone();
        rig.aspire("l", rig.loader("l", 9, "a"), rig.loader("l", 4, "a"));
        assertThat(get(reached))
                .isEqualTo(new Reached(
                        false,
                        Map.of(id("m", 1), Phase.FAILED, id("n", 5), Phase.AVAILABLE, id("l", 4), Phase.AVAILABLE)));
    }

    @Test
    void notifyWhenServablesReachStateOnlyNotifiedOnce() throws Exception {
        AtomicInteger notified = new AtomicInteger();
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        CompletableFuture<Void> counted = reached.thenRun(notified::incrementAndGet);
        rig.aspire("m", rig.loader("m", 1, "a"));
        counted.get(20, TimeUnit.SECONDS);
        rig.aspire("m", rig.loader("m", 1, "b"), rig.loader("m", 2, "a"));
        var unused = rig.settle("m");
        rig.quiesce();
        assertThat(notified.get()).isEqualTo(1);
        assertThat(get(reached).phases()).as("the result does not change").containsOnlyKeys(id("m", 1));
    }

    @Test
    void waitUntilServablesReachStateFullFunctionality() throws Exception {
        FakeLoader slow = gated("m", 1);
        CompletableFuture<Reached> reached = rig.manager
                .waitUntil(
                        List.of(ModelRef.latest("m"), ModelRef.latest("unknown")),
                        Phase.AVAILABLE,
                        Duration.ofSeconds(5))
                .toCompletableFuture();
        rig.aspire("m", slow);
        Rig.await(slow.loading);
        rig.quiesce();
        rig.passTime();
        assertThat(get(reached)).isEqualTo(new Reached(false, Map.of(id("m", 1), Phase.LOADING)));
        open(slow);
    }

    @Test
    void aGoalThatIsPassedQuicklyIsNotMissed() throws Exception {
        CompletableFuture<Reached> warming = until(Phase.WARMING, ModelRef.exact("m", 1));
        CompletableFuture<Reached> unloading = until(Phase.UNLOADING, ModelRef.exact("m", 1));
        rig.aspire("m", rig.loader("m", 1, "a"));
        assertThat(get(warming).all()).isTrue();
        rig.aspire("m");
        assertThat(get(unloading)).isEqualTo(new Reached(true, Map.of(id("m", 1), Phase.UNLOADING)));
        assertThat(get(until(Phase.GONE, ModelRef.exact("m", 1))).all()).isTrue();
    }

    @Test
    void whoWaitsForALabelHearsOfItWhenItIsGivenToWhatServes() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        var unused = rig.settle("m");
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, new ModelRef("m", ModelRef.ANY, "stable"));
        rig.quiesce();
        assertThat(reached).isNotDone();
        rig.manager.labels("m", Map.of("stable", VersionLabel.of(1)));
        assertThat(get(reached)).isEqualTo(new Reached(true, Map.of(id("m", 1), Phase.AVAILABLE)));
    }

    @Test
    void waitsEndAtClose() throws Exception {
        CompletableFuture<Reached> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        rig.quiesce();
        rig.close();
        assertThatThrownBy(() -> get(reached)).hasCauseInstanceOf(ServingException.class);
        assertThatThrownBy(() -> get(until(Phase.AVAILABLE, ModelRef.latest("m"))))
                .hasCauseInstanceOf(ServingException.class);
    }
}
