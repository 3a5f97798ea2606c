// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.lifecycle.FakeLoader;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.Rig;
import io.nereid.spi.ServableState.Phase;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class AllOrNothingPolicyTest {
    private final Rig rig = new Rig(ManagerOptions.DEFAULT);

    @AfterEach
    void close() {
        rig.close();
    }

    private FakeLoader broken(long version, String fingerprint) {
        FakeLoader loader = rig.loader("m", version, fingerprint);
        loader.failLoads = 1;
        return loader;
    }

    @Test
    void newVersionsBecomeAvailableTogetherAndTheOldOnesGoThen() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"), rig.loader("m", 2, "a"));
        var unused = rig.settle("m");
        FakeLoader slow = rig.loader("m", 3, "b");
        slow.gate = new CountDownLatch(1);
        FakeLoader quick = rig.loader("m", 2, "b");
        CountDownLatch warmed = new CountDownLatch(1);
        quick.made = s -> warmed.countDown();
        rig.aspire("m", quick, slow);
        assertThat(warmed.await(20, TimeUnit.SECONDS)).isTrue();
        unused = rig.settle();
        assertThat(rig.fingerprint("m", 1)).isEqualTo("a");
        assertThat(rig.fingerprint("m", 2)).isEqualTo("a");
        assertThat(rig.fingerprint("m", 3)).isEmpty();
        slow.gate.countDown();
        unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEmpty();
        assertThat(rig.fingerprint("m", 2)).isEqualTo("b");
        assertThat(rig.fingerprint("m", 3)).isEqualTo("b");
        rig.closeAndCheck("");
    }

    @Test
    void oneFailureDropsAllThatIsNewAndTheOldOnesGoOn() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"), rig.loader("m", 2, "a"));
        var unused = rig.settle("m");
        FakeLoader changed = rig.loader("m", 2, "b");
        FakeLoader added = rig.loader("m", 4, "b");
        rig.aspire("m", changed, broken(3, "b"), added);
        unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEqualTo("a");
        assertThat(rig.fingerprint("m", 2)).isEqualTo("a");
        assertThat(rig.state("m", 3).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.state("m", 4).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.reason("m", 2)).startsWith("reload failed: not made available").contains("version 3: ");
        assertThat(rig.reason("m", 3)).contains("load 1 is broken");
        assertThat(rig.reason("m", 4)).contains("version 3: ");
        assertThat(changed.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(added.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(rig.manager.ready()).isTrue();
        // The same list again changes nothing.
        FakeLoader same = rig.loader("m", 2, "b");
        rig.aspire("m", same, broken(3, "b"), rig.loader("m", 4, "b"));
        unused = rig.settle("m");
        assertThat(same.loads.get()).isZero();
        // A repaired version is loaded together with the others.
        rig.aspire("m", rig.loader("m", 2, "b"), rig.loader("m", 3, "c"), rig.loader("m", 4, "b"));
        unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEmpty();
        assertThat(rig.fingerprint("m", 2)).isEqualTo("b");
        assertThat(rig.fingerprint("m", 3)).isEqualTo("c");
        assertThat(rig.fingerprint("m", 4)).isEqualTo("b");
        assertThat(rig.reason("m", 2)).isEmpty();
        rig.closeAndCheck("");
    }

    @Test
    void aVersionNoLongerAspiredStaysWhenTheReloadOfTheAspiredOneFails() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"), rig.loader("m", 2, "a"));
        var unused = rig.settle("m");
        rig.aspire("m", broken(2, "b"));
        unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEqualTo("a");
        assertThat(rig.fingerprint("m", 2)).isEqualTo("a");
        rig.aspire("m", rig.loader("m", 2, "a"));
        unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEmpty();
        assertThat(rig.fingerprint("m", 2)).isEqualTo("a");
    }

    @Test
    void theFirstLoadOfAModelServesWhatItCan() throws Exception {
        rig.aspire("m", broken(2, "a"), rig.loader("m", 1, "a"), rig.loader("m", 3, "a"));
        var unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEqualTo("a");
        assertThat(rig.state("m", 2).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.fingerprint("m", 3)).isEqualTo("a");
    }

    @Test
    void aNewerListEndsWhatIsStaged() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        var unused = rig.settle("m");
        FakeLoader slow = rig.loader("m", 3, "b");
        slow.gate = new CountDownLatch(1);
        FakeLoader staged = rig.loader("m", 2, "b");
        CountDownLatch warmed = new CountDownLatch(1);
        staged.made = s -> warmed.countDown();
        rig.aspire("m", staged, slow);
        assertThat(warmed.await(20, TimeUnit.SECONDS)).isTrue();
        // Otherwise its load may not have started when the next list arrives, and then it is never unloaded.
        assertThat(slow.loading.await(20, TimeUnit.SECONDS)).isTrue();
        rig.aspire("m", rig.loader("m", 1, "a"));
        unused = rig.settle("m");
        slow.gate.countDown();
        assertThat(staged.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(slow.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(rig.fingerprint("m", 1)).isEqualTo("a");
        assertThat(rig.fingerprint("m", 2)).isEmpty();
        rig.closeAndCheck("");
    }

    @Test
    void versionsAreShownOneByOneWhereThePolicySaysSo() throws Exception {
        rig.close();
        try (Rig other = new Rig(ManagerOptions.DEFAULT.withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING))) {
            other.aspire("m", other.loader("m", 1, "a"));
            var unused = other.settle("m");
            FakeLoader failing = other.loader("m", 3, "b");
            failing.failLoads = 1;
            other.aspire("m", other.loader("m", 2, "b"), failing);
            unused = other.settle("m");
            assertThat(other.fingerprint("m", 1)).isEmpty();
            assertThat(other.fingerprint("m", 2)).isEqualTo("b");
        }
    }
}
