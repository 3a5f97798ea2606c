// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.lifecycle.FakeLoader;
import io.nereid.lifecycle.ManagerFixture;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState.Phase;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The test cases of TensorFlow Serving's {@code LoaderHarness}, under their original names.
 *
 * <table>
 * <caption>Cases without a counterpart</caption>
 * <tr><td>LoadApproved</td><td>one thread reserves memory and loads in one step</td></tr>
 * <tr><td>ExternallySignalledError, …WithCallback</td><td>an available version does not fail as a whole; only its
 * requests do</td></tr>
 * <tr><td>AdditionalState, NoAdditionalState</td><td>versions have no additional state</td></tr>
 * </table>
 */
@Timeout(60)
class LoaderHarnessTest {
    private static final ManagerOptions OPTIONS = ManagerOptions.DEFAULT
            .withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
            .withRetries(2, Duration.ofSeconds(30))
            .withLoadNiceness(0);

    private final ManagerFixture fixture = new ManagerFixture(OPTIONS);
    private final FakeLoader loader = fixture.loader("m", 1, "a");

    @AfterEach
    void close() {
        fixture.close();
    }

    @Test
    void init() {
        assertThat(loader.loads.get() + loader.estimates.get()).isZero();
        assertThat(new ManagedVersion(loader.id(), loader).phase).isEqualTo(Phase.TRACKED);
    }

    @Test
    void loadRequested() throws Exception {
        loader.gate = new CountDownLatch(1);
        fixture.aspire("m", loader);
        ManagerFixture.await(loader.loading);
        fixture.quiesce();
        assertThat(fixture.phases("m", 1)).containsExactly(Phase.TRACKED, Phase.LOADING);
        loader.gate.countDown();
    }

    @Test
    void load() throws Exception {
        fixture.aspire("m", loader);
        var unused = fixture.settle("m");
        assertThat(fixture.phase("m", 1)).isEqualTo(Phase.AVAILABLE);
        assertThat(fixture.serving(ModelRef.latest("m"))).isSameAs(loader.servable);
    }

    @Test
    void unloadRequestedThenQuiesceThenUnload() throws Exception {
        fixture.aspire("m", loader);
        var unused = fixture.settle("m");
        ServableHandle handle = fixture.manager.acquire(ModelRef.latest("m"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        assertThat(fixture.serving(ModelRef.latest("m"))).as("no new handles").isNull();
        CountDownLatch gate = new CountDownLatch(1);
        loader.unloadGate = gate;
        handle.close();
        fixture.awaitPhase("m", 1, Phase.UNLOADING);
        gate.countDown();
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(loader.unloads.get()).isEqualTo(1);
    }

    @Test
    void loadError() throws Exception {
        loader.failLoads = 9;
        loader.failure = ServingException.invalidArgument("this is not a model", "export it again");
        fixture.aspire("m", loader);
        fixture.awaitPhase("m", 1, Phase.FAILED);
        assertThat(fixture.reason("m", 1)).isEqualTo("this is not a model (export it again)");
    }

    @Test
    void multipleLoadRequestsOnlyFirstOneSucceeds() throws Exception {
        loader.gate = new CountDownLatch(1);
        fixture.aspire("m", loader);
        ManagerFixture.await(loader.loading);
        FakeLoader second = fixture.loader("m", 1, "a");
        fixture.aspire("m", second);
        fixture.quiesce();
        loader.gate.countDown();
        var unused = fixture.settle("m");
        assertThat(loader.loads.get()).isEqualTo(1);
        assertThat(second.loads.get()).isZero();
    }

    @Test
    void multipleUnloadRequestsOnlyFirstOneSucceeds() throws Exception {
        fixture.aspire("m", loader);
        var unused = fixture.settle("m");
        fixture.aspire("m");
        fixture.quiesce();
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.GONE);
        fixture.quiesce();
        assertThat(loader.unloads.get()).isEqualTo(1);
    }

    @Test
    void retryOnLoadErrorFinallySucceeds() {
        loader.failLoads = 1;
        fixture.aspire("m", loader);
        fixture.passTime();
        fixture.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(loader.loads.get()).isEqualTo(2);
    }

    @Test
    void retryOnLoadErrorFinallyFails() {
        loader.failLoads = 9;
        fixture.aspire("m", loader);
        fixture.passTime();
        fixture.passTime();
        fixture.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.loads.get()).as("once, and two retries").isEqualTo(3);
        assertThat(fixture.reason("m", 1)).contains("load 3 is broken");
    }

    @Test
    void retryOnLoadErrorCancelledLoad() throws Exception {
        loader.failLoads = 9;
        loader.gate = new CountDownLatch(1);
        fixture.aspire("m", loader);
        ManagerFixture.await(loader.loading);
        fixture.aspire("m");
        fixture.quiesce();
        loader.gate.countDown();
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(loader.loads.get()).isEqualTo(1);
        assertThat(fixture.reason("m", 1)).contains("load 1 is broken");
    }

    @Test
    void unloadDueToCancelledLoad() throws Exception {
        loader.gate = new CountDownLatch(1);
        fixture.aspire("m", loader);
        ManagerFixture.await(loader.loading);
        fixture.aspire("m");
        fixture.quiesce();
        loader.gate.countDown();
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(loader.unloads.get()).isEqualTo(1);
        assertThat(fixture.reason("m", 1)).isEqualTo("Loading of servable cancelled");
    }

    @Test
    void unloadDueToNonRetriableError() {
        loader.failLoads = 9;
        loader.failure = ServingException.of(ErrorCode.UNIMPLEMENTED, "operator 17 is unknown");
        fixture.aspire("m", loader);
        fixture.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.loads.get()).isEqualTo(1);
        assertThat(loader.unloads.get()).as("a failed load must be cleaned up").isEqualTo(1);
        assertThat(fixture.timer.waiting()).isZero();
    }

    @Test
    void modelTypeWithoutServable() throws Exception {
        loader.gate = new CountDownLatch(1);
        fixture.aspire("m", loader);
        fixture.awaitPhase("m", 1, Phase.LOADING);
        assertThat(fixture.state("m", 1).backend()).as("known from the loader").isEqualTo("fake");
        loader.gate.countDown();
    }

    @Test
    void modelTypeWithServable() throws Exception {
        fixture.aspire("m", loader);
        assertThat(fixture.settle("m").get(0).backend()).isEqualTo("fake");
    }
}
