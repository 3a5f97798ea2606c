// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState.Phase;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class DependencyTest {
    private final Rig rig = new Rig(ManagerOptions.DEFAULT.withLoadThreads(1));

    @AfterEach
    void close() {
        rig.close();
    }

    @Test
    void aVersionWaitsUntilWhatItDependsOnHasSettled() throws Exception {
        FakeLoader member = rig.loader("m", 1, "a");
        member.gate = new CountDownLatch(1);
        FakeLoader ensemble = rig.ensemble("e", 1, "x", "m");
        rig.aspire("m", member);
        rig.aspire("e", ensemble);
        assertThat(member.loading.await(20, TimeUnit.SECONDS)).isTrue();
        var unused = rig.settle();
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.TRACKED);
        assertThat(ensemble.loads.get()).isZero();
        member.gate.countDown();
        assertThat(rig.settle("e")).extracting(s -> s.phase()).containsExactly(Phase.AVAILABLE);
    }

    @Test
    void aDependencyThatIsMentionedAMomentLaterIsWaitedFor() throws Exception {
        FakeLoader ensemble = rig.ensemble("e", 1, "x", "m");
        rig.aspire("e", ensemble);
        var unused = rig.settle();
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.TRACKED);
        rig.aspire("m", rig.loader("m", 1, "a"));
        unused = rig.settle("e", "m");
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(ensemble.loads.get()).isEqualTo(1);
    }

    @Test
    void aDependencyThatNoSourceMentionsFailsTheVersionAfterAWhile() throws Exception {
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        var unused = rig.settle();
        rig.delays.runAll();
        unused = rig.settle("e");
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.reason("e", 1)).isEqualTo("ensemble 'e' depends on 'm' which has no loaded version");
        rig.aspire("m", rig.loader("m", 1, "a"));
        unused = rig.settle("m");
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void aDependencyThatFailsCountsAsSettled() throws Exception {
        FakeLoader member = rig.loader("m", 1, "a");
        member.failLoads = 1;
        rig.aspire("m", member);
        rig.manager.aspire(
                "n",
                List.of(AspiredVersion.failed(
                        new ServableId("n", 1), ServingException.of(ErrorCode.INVALID_ARGUMENT, "unreadable"))));
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        rig.aspire("f", rig.ensemble("f", 1, "x", "n"));
        var unused = rig.settle("e", "f");
        assertThat(rig.reason("e", 1)).contains("depends on 'm'");
        assertThat(rig.reason("f", 1)).contains("depends on 'n'");
    }

    @Test
    void aReloadOfADependencyLoadsWhatDependsOnItAnewHoweverFarOff() throws Exception {
        rig.aspire("outer", rig.ensemble("outer", 1, "x", "inner"));
        rig.aspire("inner", rig.ensemble("inner", 1, "x", "m"));
        rig.aspire("m", rig.loader("m", 1, "a"));
        var unused = rig.settle("outer");
        FakeServable before = rig.serving(ModelRef.latest("outer"));
        rig.aspire("m", rig.loader("m", 1, "b"));
        unused = rig.settle("m");
        FakeServable inner = rig.serving(ModelRef.latest("inner"));
        FakeServable outer = rig.serving(ModelRef.latest("outer"));
        assertThat(inner).isNotNull();
        assertThat(outer).isNotNull().isNotSameAs(before);
        assertThat(rig.members.get(outer)).containsExactly(inner);
        assertThat(rig.members.get(inner)).extracting(s -> s.fingerprint).containsExactly("b");
        // Each was reloaded once, not once for every change in between.
        assertThat(rig.loaders.stream()
                        .filter(l -> l.id().model().equals("outer"))
                        .mapToInt(l -> l.loads.get())
                        .sum())
                .isEqualTo(2);
    }

    @Test
    void aNewVersionOfADependencyLoadsWhatDependsOnItAnew() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        var unused = rig.settle("e");
        rig.aspire("m", rig.loader("m", 2, "b"));
        unused = rig.settle("m");
        assertThat(rig.members.get(rig.serving(ModelRef.latest("e"))))
                .extracting(s -> s.fingerprint)
                .containsExactly("b");
        assertThat(rig.manager.ready()).isTrue();
    }

    @Test
    void anUnloadOfADependencyFailsWhatDependsOnItUntilItIsBack() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        FakeLoader first = rig.ensemble("e", 1, "x", "m");
        rig.aspire("e", first);
        var unused = rig.settle("e");
        rig.aspire("m");
        unused = rig.settle("m");
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.reason("e", 1)).contains("depends on 'm' which has no loaded version");
        assertThat(first.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        rig.aspire("m", rig.loader("m", 1, "a"));
        unused = rig.settle("m");
        assertThat(rig.state("e", 1).phase()).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void whatDependsServesOnWhileItIsLoadedAnew() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        var unused = rig.settle("e");
        FakeServable before = rig.serving(ModelRef.latest("e"));
        FakeLoader slow = rig.loader("m", 1, "b");
        slow.gate = new CountDownLatch(1);
        rig.aspire("m", slow);
        assertThat(slow.loading.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(rig.serving(ModelRef.latest("e"))).isSameAs(before);
        slow.gate.countDown();
        unused = rig.settle("m");
        assertThat(rig.serving(ModelRef.latest("e"))).isNotNull().isNotSameAs(before);
    }

    @Test
    void aChangedVersionWaitsForItsDependenciesWhileItsFormerSelfServes() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        var unused = rig.settle("e");
        FakeLoader slow = rig.loader("n", 1, "a");
        slow.gate = new CountDownLatch(1);
        rig.aspire("n", slow);
        FakeLoader next = rig.ensemble("e", 1, "y", "m", "n");
        rig.aspire("e", next);
        assertThat(slow.loading.await(20, TimeUnit.SECONDS)).isTrue();
        unused = rig.settle();
        assertThat(next.loads.get()).isZero();
        assertThat(rig.fingerprint("e", 1)).isEqualTo("x");
        slow.gate.countDown();
        unused = rig.settle("e");
        assertThat(rig.fingerprint("e", 1)).isEqualTo("y");
    }

    @Test
    void aChangeThatLackedADependencyIsTriedAgainWhenThatComes() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        var unused = rig.settle("e");
        rig.aspire("e", rig.ensemble("e", 1, "y", "n"));
        unused = rig.settle();
        rig.delays.runAll();
        unused = rig.settle("e");
        assertThat(rig.fingerprint("e", 1)).isEqualTo("x");
        assertThat(rig.reason("e", 1)).startsWith("reload failed: ensemble 'e' depends on 'n'");
        rig.aspire("m", rig.loader("m", 1, "b"));
        unused = rig.settle("m");
        assertThat(rig.fingerprint("e", 1)).isEqualTo("x");
        assertThat(rig.reason("e", 1)).startsWith("reload failed: ensemble 'e' depends on 'n'");
        rig.aspire("n", rig.loader("n", 1, "a"));
        unused = rig.settle("n");
        assertThat(rig.fingerprint("e", 1)).isEqualTo("y");
        assertThat(rig.reason("e", 1)).isEmpty();
    }

    @Test
    void aCircleIsRejectedAndEndsWhenOneOfItChanges() throws Exception {
        rig.aspire("a", rig.ensemble("a", 1, "x", "b"));
        rig.aspire("b", rig.ensemble("b", 1, "x", "a"));
        var unused = rig.settle("a", "b");
        assertThat(rig.state("a", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.state("b", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(rig.reason("a", 1) + "; " + rig.reason("b", 1)).contains("circular dependency between ensembles: ");
        rig.aspire("b", rig.loader("b", 1, "y"));
        unused = rig.settle("b");
        assertThat(rig.state("a", 1).phase()).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void anAdoptedChangeLoadsNothing() throws Exception {
        FakeLoader member = rig.loader("m", 1, "a");
        member.adopts = true;
        rig.aspire("m", member);
        rig.aspire("e", rig.ensemble("e", 1, "x", "m"));
        var unused = rig.settle("e");
        FakeServable before = rig.serving(ModelRef.latest("m"));
        FakeServable above = rig.serving(ModelRef.latest("e"));
        FakeLoader next = rig.loader("m", 1, "b");
        rig.aspire("m", next);
        unused = rig.settle("m");
        assertThat(member.adoptions.get()).isEqualTo(1);
        assertThat(next.loads.get()).isZero();
        assertThat(rig.serving(ModelRef.latest("m"))).isSameAs(before);
        assertThat(rig.serving(ModelRef.latest("e"))).isSameAs(above);
        // From now on the adopted fingerprint is compared.
        rig.aspire("m", rig.loader("m", 1, "b"));
        unused = rig.settle("m");
        assertThat(member.adoptions.get()).isEqualTo(1);
    }

    @Test
    void aChangeThatIsNotAdoptedIsLoaded() throws Exception {
        rig.aspire("m", rig.loader("m", 1, "a"));
        var unused = rig.settle("m");
        rig.aspire("m", rig.loader("m", 1, "b"));
        unused = rig.settle("m");
        assertThat(rig.fingerprint("m", 1)).isEqualTo("b");
    }
}
