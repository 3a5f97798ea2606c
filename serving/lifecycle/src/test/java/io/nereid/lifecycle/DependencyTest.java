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
    private final ManagerFixture fixture = new ManagerFixture(ManagerOptions.DEFAULT.withLoadThreads(1));

    @AfterEach
    void close() {
        fixture.close();
    }

    @Test
    void aVersionWaitsUntilWhatItDependsOnHasSettled() throws Exception {
        FakeLoader member = fixture.loader("m", 1, "a");
        member.gate = new CountDownLatch(1);
        FakeLoader ensemble = fixture.ensemble("e", 1, "x", "m");
        fixture.aspire("m", member);
        fixture.aspire("e", ensemble);
        assertThat(member.loading.await(20, TimeUnit.SECONDS)).isTrue();
        var unused = fixture.settle();
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.TRACKED);
        assertThat(ensemble.loads.get()).isZero();
        member.gate.countDown();
        assertThat(fixture.settle("e")).extracting(s -> s.phase()).containsExactly(Phase.AVAILABLE);
    }

    @Test
    void aDependencyThatIsMentionedAMomentLaterIsWaitedFor() throws Exception {
        FakeLoader ensemble = fixture.ensemble("e", 1, "x", "m");
        fixture.aspire("e", ensemble);
        var unused = fixture.settle();
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.TRACKED);
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        unused = fixture.settle("e", "m");
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.AVAILABLE);
        assertThat(ensemble.loads.get()).isEqualTo(1);
    }

    @Test
    void aDependencyThatNoSourceMentionsFailsTheVersionAfterAWhile() throws Exception {
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        var unused = fixture.settle();
        fixture.timer.runAll();
        unused = fixture.settle("e");
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.reason("e", 1)).isEqualTo("ensemble 'e' depends on 'm' which has no loaded version");
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        unused = fixture.settle("m");
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void aDependencyThatFailsCountsAsSettled() throws Exception {
        FakeLoader member = fixture.loader("m", 1, "a");
        member.failLoads = 1;
        fixture.aspire("m", member);
        fixture.manager.aspire(
                "n",
                List.of(AspiredVersion.failed(
                        new ServableId("n", 1), ServingException.of(ErrorCode.INVALID_ARGUMENT, "unreadable"))));
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        fixture.aspire("f", fixture.ensemble("f", 1, "x", "n"));
        var unused = fixture.settle("e", "f");
        assertThat(fixture.reason("e", 1)).contains("depends on 'm'");
        assertThat(fixture.reason("f", 1)).contains("depends on 'n'");
    }

    @Test
    void aReloadOfADependencyLoadsWhatDependsOnItAnewHoweverFarOff() throws Exception {
        fixture.aspire("outer", fixture.ensemble("outer", 1, "x", "inner"));
        fixture.aspire("inner", fixture.ensemble("inner", 1, "x", "m"));
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        var unused = fixture.settle("outer");
        FakeServable before = fixture.serving(ModelRef.latest("outer"));
        fixture.aspire("m", fixture.loader("m", 1, "b"));
        unused = fixture.settle("m");
        FakeServable inner = fixture.serving(ModelRef.latest("inner"));
        FakeServable outer = fixture.serving(ModelRef.latest("outer"));
        assertThat(inner).isNotNull();
        assertThat(outer).isNotNull().isNotSameAs(before);
        assertThat(fixture.members.get(outer)).containsExactly(inner);
        assertThat(fixture.members.get(inner)).extracting(s -> s.fingerprint).containsExactly("b");
        // Each was reloaded once, not once for every change in between.
        assertThat(fixture.loaders.stream()
                        .filter(l -> l.id().model().equals("outer"))
                        .mapToInt(l -> l.loads.get())
                        .sum())
                .isEqualTo(2);
    }

    @Test
    void aNewVersionOfADependencyLoadsWhatDependsOnItAnew() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        var unused = fixture.settle("e");
        fixture.aspire("m", fixture.loader("m", 2, "b"));
        unused = fixture.settle("m");
        assertThat(fixture.members.get(fixture.serving(ModelRef.latest("e"))))
                .extracting(s -> s.fingerprint)
                .containsExactly("b");
        assertThat(fixture.manager.ready()).isTrue();
    }

    @Test
    void anUnloadOfADependencyFailsWhatDependsOnItUntilItIsBack() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        FakeLoader first = fixture.ensemble("e", 1, "x", "m");
        fixture.aspire("e", first);
        var unused = fixture.settle("e");
        fixture.aspire("m");
        unused = fixture.settle("m");
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.reason("e", 1)).contains("depends on 'm' which has no loaded version");
        assertThat(first.unloaded.await(20, TimeUnit.SECONDS)).isTrue();
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        unused = fixture.settle("m");
        assertThat(fixture.state("e", 1).phase()).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void whatDependsServesOnWhileItIsLoadedAnew() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        var unused = fixture.settle("e");
        FakeServable before = fixture.serving(ModelRef.latest("e"));
        FakeLoader slow = fixture.loader("m", 1, "b");
        slow.gate = new CountDownLatch(1);
        fixture.aspire("m", slow);
        assertThat(slow.loading.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(fixture.serving(ModelRef.latest("e"))).isSameAs(before);
        slow.gate.countDown();
        unused = fixture.settle("m");
        assertThat(fixture.serving(ModelRef.latest("e"))).isNotNull().isNotSameAs(before);
    }

    @Test
    void aChangedVersionWaitsForItsDependenciesWhileItsFormerSelfServes() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        var unused = fixture.settle("e");
        FakeLoader slow = fixture.loader("n", 1, "a");
        slow.gate = new CountDownLatch(1);
        fixture.aspire("n", slow);
        FakeLoader next = fixture.ensemble("e", 1, "y", "m", "n");
        fixture.aspire("e", next);
        assertThat(slow.loading.await(20, TimeUnit.SECONDS)).isTrue();
        unused = fixture.settle();
        assertThat(next.loads.get()).isZero();
        assertThat(fixture.fingerprint("e", 1)).isEqualTo("x");
        slow.gate.countDown();
        unused = fixture.settle("e");
        assertThat(fixture.fingerprint("e", 1)).isEqualTo("y");
    }

    @Test
    void aChangeThatLackedADependencyIsTriedAgainWhenThatComes() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        var unused = fixture.settle("e");
        fixture.aspire("e", fixture.ensemble("e", 1, "y", "n"));
        unused = fixture.settle();
        fixture.timer.runAll();
        unused = fixture.settle("e");
        assertThat(fixture.fingerprint("e", 1)).isEqualTo("x");
        assertThat(fixture.reason("e", 1)).startsWith("reload failed: ensemble 'e' depends on 'n'");
        fixture.aspire("m", fixture.loader("m", 1, "b"));
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("e", 1)).isEqualTo("x");
        assertThat(fixture.reason("e", 1)).startsWith("reload failed: ensemble 'e' depends on 'n'");
        fixture.aspire("n", fixture.loader("n", 1, "a"));
        unused = fixture.settle("n");
        assertThat(fixture.fingerprint("e", 1)).isEqualTo("y");
        assertThat(fixture.reason("e", 1)).isEmpty();
    }

    @Test
    void aCircleIsRejectedAndEndsWhenOneOfItChanges() throws Exception {
        fixture.aspire("a", fixture.ensemble("a", 1, "x", "b"));
        fixture.aspire("b", fixture.ensemble("b", 1, "x", "a"));
        var unused = fixture.settle("a", "b");
        assertThat(fixture.state("a", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.state("b", 1).phase()).isEqualTo(Phase.FAILED);
        assertThat(fixture.reason("a", 1) + "; " + fixture.reason("b", 1))
                .contains("circular dependency between ensembles: ");
        fixture.aspire("b", fixture.loader("b", 1, "y"));
        unused = fixture.settle("b");
        assertThat(fixture.state("a", 1).phase()).isEqualTo(Phase.AVAILABLE);
    }

    @Test
    void anAdoptedChangeLoadsNothing() throws Exception {
        FakeLoader member = fixture.loader("m", 1, "a");
        member.adopts = true;
        fixture.aspire("m", member);
        fixture.aspire("e", fixture.ensemble("e", 1, "x", "m"));
        var unused = fixture.settle("e");
        FakeServable before = fixture.serving(ModelRef.latest("m"));
        FakeServable above = fixture.serving(ModelRef.latest("e"));
        FakeLoader next = fixture.loader("m", 1, "b");
        fixture.aspire("m", next);
        unused = fixture.settle("m");
        assertThat(member.adoptions.get()).isEqualTo(1);
        assertThat(next.loads.get()).isZero();
        assertThat(fixture.serving(ModelRef.latest("m"))).isSameAs(before);
        assertThat(fixture.serving(ModelRef.latest("e"))).isSameAs(above);
        // From now on the adopted fingerprint is compared.
        fixture.aspire("m", fixture.loader("m", 1, "b"));
        unused = fixture.settle("m");
        assertThat(member.adoptions.get()).isEqualTo(1);
    }

    @Test
    void aChangeThatIsNotAdoptedIsLoaded() throws Exception {
        fixture.aspire("m", fixture.loader("m", 1, "a"));
        var unused = fixture.settle("m");
        fixture.aspire("m", fixture.loader("m", 1, "b"));
        unused = fixture.settle("m");
        assertThat(fixture.fingerprint("m", 1)).isEqualTo("b");
    }
}
