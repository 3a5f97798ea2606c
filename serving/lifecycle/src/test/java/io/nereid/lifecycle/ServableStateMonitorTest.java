// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.lifecycle.waiters.WaitResult;
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

    private final ManagerFixture fixture = new ManagerFixture(ManagerOptions.DEFAULT
            .withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
            .withForgetAfter(Duration.ofSeconds(1))
            .withLoadNiceness(0));

    @AfterEach
    void close() {
        fixture.close();
    }

    private CompletableFuture<WaitResult> until(Phase goal, ModelRef... refs) {
        return fixture.manager.waitUntil(List.of(refs), goal, LONG).toCompletableFuture();
    }

    private static WaitResult get(CompletableFuture<WaitResult> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    private FakeLoader gated(String model, long version) {
        FakeLoader loader = fixture.loader(model, version, "v" + version);
        loader.gate = new CountDownLatch(1);
        return loader;
    }

    private FakeLoader broken(String model, long version) {
        FakeLoader loader = fixture.loader(model, version, "v" + version);
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
        assertThat(fixture.manager.states("m")).isEmpty();
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        fixture.aspire("n", fixture.loader("n", 7, "a"));
        var unused = fixture.settle("m", "n");
        assertThat(fixture.manager.states("m")).hasSize(1);
        assertThat(fixture.manager.states("n").get(0).id()).isEqualTo(id("n", 7));
    }

    @Test
    void updatingStates() throws Exception {
        FakeLoader one = gated("m", 1);
        fixture.aspire("m", one);
        fixture.awaitPhase("m", 1, Phase.LOADING);
        open(one);
        fixture.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(fixture.manager.states("m")).hasSize(1);
    }

    @Test
    void getLiveAndAvailableServableStates() throws Exception {
        fixture.aspire("m", broken("m", 2), fixture.loader("m", 1, "a"));
        var unused = fixture.settle("m");
        assertThat(fixture.manager.states("m"))
                .extracting(ServableState::phase)
                .containsExactly(Phase.FAILED, Phase.AVAILABLE);
    }

    @Test
    void versionMapDescendingOrder() throws Exception {
        fixture.aspire("m", fixture.loader("m", 2, "a"), fixture.loader("m", 10, "a"), fixture.loader("m", 1, "a"));
        var unused = fixture.settle("m");
        assertThat(fixture.manager.states("m"))
                .extracting(s -> s.id().version())
                .containsExactly(10L, 2L, 1L);
    }

    @Test
    void forgetUnloadedServableStates() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"), fixture.loader("m", 2, "a"));
        var unused = fixture.settle("m");
        fixture.aspire("m", fixture.loader("m", 2, "a"));
        fixture.awaitPhase("m", 1, Phase.GONE);
        fixture.passTime();
        fixture.quiesce();
        assertThat(fixture.manager.states("m"))
                .extracting(s -> s.id().version())
                .containsExactly(2L);
    }

    @Test
    void notifyWhenServablesReachStateZeroServables() throws Exception {
        assertThat(get(until(Phase.AVAILABLE))).isEqualTo(new WaitResult(true, Map.of()));
    }

    @Test
    void notifyWhenServablesReachStateSpecificAvailable() throws Exception {
        FakeLoader one = gated("m", 1);
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, ModelRef.exact("m", 1));
        fixture.aspire("m", fixture.loader("m", 2, "a"), one);
        fixture.awaitPhase("m", 2, Phase.AVAILABLE);
        fixture.quiesce();
        assertThat(reached).as("another version does not count").isNotDone();
        open(one);
        assertThat(get(reached)).isEqualTo(new WaitResult(true, Map.of(id("m", 1), Phase.AVAILABLE)));
        assertThat(get(until(Phase.AVAILABLE, ModelRef.exact("m", 1)))).isEqualTo(get(reached));
    }

    @Test
    void notifyWhenServablesReachStateSpecificError() throws Exception {
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, ModelRef.exact("m", 1));
        fixture.aspire("m", broken("m", 1));
        assertThat(get(reached)).isEqualTo(new WaitResult(false, Map.of(id("m", 1), Phase.FAILED)));
        assertThat(get(until(Phase.FAILED, ModelRef.exact("m", 1))).all()).isTrue();
    }

    @Test
    void notifyWhenServablesReachStateServableLatestAvailable() throws Exception {
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        FakeLoader slow = gated("m", 2);
        fixture.aspire("m", fixture.loader("m", 1, "a"), slow, broken("m", 3));
        assertThat(get(reached)).isEqualTo(new WaitResult(true, Map.of(id("m", 1), Phase.AVAILABLE)));
        open(slow);
    }

    @Test
    void notifyWhenServablesReachStateLatestError() throws Exception {
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        FakeLoader slow = gated("m", 1);
        slow.failLoads = 9;
        fixture.aspire("m", slow, broken("m", 2));
        fixture.awaitPhase("m", 2, Phase.FAILED);
        fixture.quiesce();
        assertThat(reached).as("a version may still be aspired").isNotDone();
        open(slow);
        assertThat(get(reached))
                .isEqualTo(new WaitResult(false, Map.of(id("m", 1), Phase.FAILED, id("m", 2), Phase.FAILED)));
    }

    @Test
    void notifyWhenServablesReachStateFullFunctionality() throws Exception {
        fixture.manager.labels(
                "l",
                Map.of(
                        "stable",
                        new VersionLabel(List.of(new WeightedVersion(3, 1), new WeightedVersion(4, 1)), List.of())));
        CompletableFuture<WaitResult> reached = until(
                Phase.AVAILABLE,
                ModelRef.exact("m", 1),
                ModelRef.latest("n"),
                new ModelRef("l", ModelRef.ANY, "stable"));
        fixture.aspire("m", broken("m", 1));
        fixture.aspire("n", fixture.loader("n", 5, "a"));
        fixture.awaitPhase("n", 5, Phase.AVAILABLE);
        fixture.aspire("l", fixture.loader("l", 9, "a"));
        fixture.awaitPhase("l", 9, Phase.AVAILABLE);
        fixture.quiesce();
        assertThat(reached).isNotDone();
        fixture.aspire("l", fixture.loader("l", 9, "a"), fixture.loader("l", 4, "a"));
        assertThat(get(reached))
                .isEqualTo(new WaitResult(
                        false,
                        Map.of(id("m", 1), Phase.FAILED, id("n", 5), Phase.AVAILABLE, id("l", 4), Phase.AVAILABLE)));
    }

    @Test
    void notifyWhenServablesReachStateOnlyNotifiedOnce() throws Exception {
        AtomicInteger notified = new AtomicInteger();
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        CompletableFuture<Void> counted = reached.thenRun(notified::incrementAndGet);
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        counted.get(20, TimeUnit.SECONDS);
        fixture.aspire("m", fixture.loader("m", 1, "b"), fixture.loader("m", 2, "a"));
        var unused = fixture.settle("m");
        fixture.quiesce();
        assertThat(notified.get()).isEqualTo(1);
        assertThat(get(reached).phases()).as("the result does not change").containsOnlyKeys(id("m", 1));
    }

    @Test
    void waitUntilServablesReachStateFullFunctionality() throws Exception {
        FakeLoader slow = gated("m", 1);
        CompletableFuture<WaitResult> reached = fixture.manager
                .waitUntil(
                        List.of(ModelRef.latest("m"), ModelRef.latest("unknown")),
                        Phase.AVAILABLE,
                        Duration.ofSeconds(5))
                .toCompletableFuture();
        fixture.aspire("m", slow);
        ManagerFixture.await(slow.loading);
        fixture.quiesce();
        fixture.passTime();
        assertThat(get(reached)).isEqualTo(new WaitResult(false, Map.of(id("m", 1), Phase.LOADING)));
        open(slow);
    }

    @Test
    void aGoalThatIsPassedQuicklyIsNotMissed() throws Exception {
        CompletableFuture<WaitResult> warming = until(Phase.WARMING, ModelRef.exact("m", 1));
        CompletableFuture<WaitResult> unloading = until(Phase.UNLOADING, ModelRef.exact("m", 1));
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        assertThat(get(warming).all()).isTrue();
        fixture.aspire("m");
        assertThat(get(unloading)).isEqualTo(new WaitResult(true, Map.of(id("m", 1), Phase.UNLOADING)));
        assertThat(get(until(Phase.GONE, ModelRef.exact("m", 1))).all()).isTrue();
    }

    @Test
    void whoWaitsForALabelHearsOfItWhenItIsGivenToWhatServes() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        var unused = fixture.settle("m");
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, new ModelRef("m", ModelRef.ANY, "stable"));
        fixture.quiesce();
        assertThat(reached).isNotDone();
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(1)));
        assertThat(get(reached)).isEqualTo(new WaitResult(true, Map.of(id("m", 1), Phase.AVAILABLE)));
    }

    @Test
    void waitsEndAtClose() throws Exception {
        CompletableFuture<WaitResult> reached = until(Phase.AVAILABLE, ModelRef.latest("m"));
        fixture.quiesce();
        fixture.close();
        assertThatThrownBy(() -> get(reached)).hasCauseInstanceOf(ServingException.class);
        assertThatThrownBy(() -> get(until(Phase.AVAILABLE, ModelRef.latest("m"))))
                .hasCauseInstanceOf(ServingException.class);
    }
}
