// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.lifecycle.FakeLoader;
import io.nereid.lifecycle.ManagerFixture;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.spi.ServableState.Phase;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class AllOrNothingPolicyTest {
    private final ManagerFixture fixture = new ManagerFixture(ManagerOptions.DEFAULT);

    @AfterEach
    void close() {
        fixture.close();
    }

    private FakeLoader broken(long version, String fingerprint) {
        FakeLoader loader = fixture.loader("m", version, fingerprint);
        loader.failLoads = 1;
        return loader;
    }

    @Test
    void newVersionsBecomeAvailableTogetherAndTheOldOnesGoThen() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"), fixture.loader("m", 2, "a"));
        var unused = fixture.settle("m");
        FakeLoader slow = fixture.loader("m", 3, "b");
        slow.gate = new CountDownLatch(1);
        FakeLoader quick = fixture.loader("m", 2, "b");
        CountDownLatch warmed = new CountDownLatch(1);
        quick.made = s -> warmed.countDown();
        fixture.aspire("m", quick, slow);
        assertThat(warmed.await(20, TimeUnit.SECONDS)).isTrue();
        unused = fixture.settle();
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("a");
        assertThat(fixture.fingerprint("m", 2)).isEqualTo("a");
        assertThat(fixture.fingerprint("m", 3)).isEmpty();
        slow.gate.countDown();
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEmpty();
        assertThat(fixture.fingerprint("m", 2)).isEqualTo("b");
        assertThat(fixture.fingerprint("m", 3)).isEqualTo("b");
        fixture.closeAndCheck("");
    }

    @Test
    void oneFailureDropsAllThatIsNewAndTheOldOnesGoOn() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"), fixture.loader("m", 2, "a"));
        var unused = fixture.settle("m");
        FakeLoader changed = fixture.loader("m", 2, "b");
        FakeLoader added = fixture.loader("m", 4, "b");
        fixture.aspire("m", changed, broken(3, "b"), added);
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("a");
        assertThat(fixture.fingerprint("m", 2)).isEqualTo("a");
        assertThat(fixture.state("m", 3).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.state("m", 4).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.reason("m", 2))
                .startsWith("reload failed: not made available")
                .contains("version 3: ");
        assertThat(fixture.reason("m", 3)).contains("load 1 is broken");
        assertThat(fixture.reason("m", 4)).contains("version 3: ");
        assertThat(changed.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(added.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(fixture.manager.ready()).isTrue();
        // The same list again changes nothing.
        FakeLoader same = fixture.loader("m", 2, "b");
        fixture.aspire("m", same, broken(3, "b"), fixture.loader("m", 4, "b"));
        unused = fixture.settle("m");
        assertThat(same.loads.get()).isZero();
        // A repaired version is loaded together with the others.
        fixture.aspire("m", fixture.loader("m", 2, "b"), fixture.loader("m", 3, "c"), fixture.loader("m", 4, "b"));
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEmpty();
        assertThat(fixture.fingerprint("m", 2)).isEqualTo("b");
        assertThat(fixture.fingerprint("m", 3)).isEqualTo("c");
        assertThat(fixture.fingerprint("m", 4)).isEqualTo("b");
        assertThat(fixture.reason("m", 2)).isEmpty();
        fixture.closeAndCheck("");
    }

    @Test
    void aVersionNoLongerAspiredStaysWhenTheReloadOfTheAspiredOneFails() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"), fixture.loader("m", 2, "a"));
        var unused = fixture.settle("m");
        fixture.aspire("m", broken(2, "b"));
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("a");
        assertThat(fixture.fingerprint("m", 2)).isEqualTo("a");
        fixture.aspire("m", fixture.loader("m", 2, "a"));
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEmpty();
        assertThat(fixture.fingerprint("m", 2)).isEqualTo("a");
    }

    @Test
    void theFirstLoadOfAModelServesWhatItCan() throws Exception {
        fixture.aspire("m", broken(2, "a"), fixture.loader("m", 1, "a"), fixture.loader("m", 3, "a"));
        var unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("a");
        assertThat(fixture.state("m", 2).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.fingerprint("m", 3)).isEqualTo("a");
    }

    @Test
    void aNewerListEndsWhatIsStaged() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        var unused = fixture.settle("m");
        FakeLoader slow = fixture.loader("m", 3, "b");
        slow.gate = new CountDownLatch(1);
        FakeLoader staged = fixture.loader("m", 2, "b");
        CountDownLatch warmed = new CountDownLatch(1);
        staged.made = s -> warmed.countDown();
        fixture.aspire("m", staged, slow);
        assertThat(warmed.await(20, TimeUnit.SECONDS)).isTrue();
        // Otherwise its load may not have started when the next list arrives, and then it is never unloaded.
        assertThat(slow.loading.await(20, TimeUnit.SECONDS)).isTrue();
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        unused = fixture.settle("m");
        slow.gate.countDown();
        assertThat(staged.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(slow.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("a");
        assertThat(fixture.fingerprint("m", 2)).isEmpty();
        fixture.closeAndCheck("");
    }

    @Test
    void versionsAreShownOneByOneWhereThePolicySaysSo() throws Exception {
        fixture.close();
        try (ManagerFixture other =
                new ManagerFixture(ManagerOptions.DEFAULT.withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING))) {
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
