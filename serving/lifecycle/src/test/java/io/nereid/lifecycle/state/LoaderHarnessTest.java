// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.lifecycle.FakeLoader;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.Rig;
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

    private final Rig rig = new Rig(OPTIONS);
    private final FakeLoader loader = rig.loader("m", 1, "a");

    @AfterEach
    void close() {
        rig.close();
    }

    @Test
    void init() {
        assertThat(loader.loads.get() + loader.estimates.get()).isZero();
        assertThat(new ManagedVersion(loader.id(), loader).phase).isEqualTo(Phase.TRACKED);
    }

    @Test
    void loadRequested() throws Exception {
        loader.gate = new CountDownLatch(1);
        rig.aspire("m", loader);
        Rig.await(loader.loading);
        rig.quiesce();
        assertThat(rig.phases("m", 1)).containsExactly(Phase.TRACKED, Phase.LOADING);
        loader.gate.countDown();
    }

    @Test
    void load() throws Exception {
        rig.aspire("m", loader);
        var unused = rig.settle("m");
        assertThat(rig.phase("m", 1)).isEqualTo(Phase.AVAILABLE);
        assertThat(rig.serving(ModelRef.latest("m"))).isSameAs(loader.servable);
    }

    @Test
    void unloadRequestedThenQuiesceThenUnload() throws Exception {
        rig.aspire("m", loader);
        var unused = rig.settle("m");
        ServableHandle handle = rig.manager.acquire(ModelRef.latest("m"));
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.DRAINING);
        assertThat(rig.serving(ModelRef.latest("m"))).as("no new handles").isNull();
        CountDownLatch gate = new CountDownLatch(1);
        loader.unloadGate = gate;
        handle.close();
        rig.awaitPhase("m", 1, Phase.UNLOADING);
        gate.countDown();
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(loader.unloads.get()).isEqualTo(1);
    }

    @Test
    void loadError() throws Exception {
        loader.failLoads = 9;
        loader.failure = ServingException.invalidArgument("this is not a model", "export it again");
        rig.aspire("m", loader);
        rig.awaitPhase("m", 1, Phase.FAILED);
        assertThat(rig.reason("m", 1)).isEqualTo("this is not a model (export it again)");
    }

    @Test
    void multipleLoadRequestsOnlyFirstOneSucceeds() throws Exception {
        loader.gate = new CountDownLatch(1);
        rig.aspire("m", loader);
        Rig.await(loader.loading);
        FakeLoader second = rig.loader("m", 1, "a");
        rig.aspire("m", second);
        rig.quiesce();
        loader.gate.countDown();
        var unused = rig.settle("m");
        assertThat(loader.loads.get()).isEqualTo(1);
        assertThat(second.loads.get()).isZero();
    }

    @Test
    void multipleUnloadRequestsOnlyFirstOneSucceeds() throws Exception {
        rig.aspire("m", loader);
        var unused = rig.settle("m");
        rig.aspire("m");
        rig.quiesce();
        rig.aspire("m");
        rig.awaitPhase("m", 1, Phase.GONE);
        rig.quiesce();
        assertThat(loader.unloads.get()).isEqualTo(1);
    }

    @Test
    void retryOnLoadErrorFinallySucceeds() {
        loader.failLoads = 1;
        rig.aspire("m", loader);
        rig.passTime();
        rig.awaitPhase("m", 1, Phase.AVAILABLE);
        assertThat(loader.loads.get()).isEqualTo(2);
    }

    @Test
    void retryOnLoadErrorFinallyFails() {
        loader.failLoads = 9;
        rig.aspire("m", loader);
        rig.passTime();
        rig.passTime();
        rig.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.loads.get()).as("once, and two retries").isEqualTo(3);
        assertThat(rig.reason("m", 1)).contains("load 3 is broken");
    }

    @Test
    void retryOnLoadErrorCancelledLoad() throws Exception {
        loader.failLoads = 9;
        loader.gate = new CountDownLatch(1);
        rig.aspire("m", loader);
        Rig.await(loader.loading);
        rig.aspire("m");
        rig.quiesce();
        loader.gate.countDown();
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(loader.loads.get()).isEqualTo(1);
        assertThat(rig.reason("m", 1)).contains("load 1 is broken");
    }

    @Test
    void unloadDueToCancelledLoad() throws Exception {
        loader.gate = new CountDownLatch(1);
        rig.aspire("m", loader);
        Rig.await(loader.loading);
        rig.aspire("m");
        rig.quiesce();
        loader.gate.countDown();
        rig.awaitPhase("m", 1, Phase.GONE);
        assertThat(loader.unloads.get()).isEqualTo(1);
        assertThat(rig.reason("m", 1)).isEqualTo("Loading of servable cancelled");
    }

    @Test
    void unloadDueToNonRetriableError() {
        loader.failLoads = 9;
        loader.failure = ServingException.of(ErrorCode.UNIMPLEMENTED, "operator 17 is unknown");
        rig.aspire("m", loader);
        rig.awaitPhase("m", 1, Phase.FAILED);
        assertThat(loader.loads.get()).isEqualTo(1);
        assertThat(loader.unloads.get()).as("a failed load must be cleaned up").isEqualTo(1);
        assertThat(rig.delays.waiting()).isZero();
    }

    @Test
    void modelTypeWithoutServable() throws Exception {
        loader.gate = new CountDownLatch(1);
        rig.aspire("m", loader);
        rig.awaitPhase("m", 1, Phase.LOADING);
        assertThat(rig.state("m", 1).backend()).as("known from the loader").isEqualTo("fake");
        loader.gate.countDown();
    }

    @Test
    void modelTypeWithServable() throws Exception {
        rig.aspire("m", loader);
        assertThat(rig.settle("m").get(0).backend()).isEqualTo("fake");
    }
}
