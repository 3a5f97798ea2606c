// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.lifecycle.policy.LabelAssignmentPolicy;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class VersionLabelTest {
    private final ManagerFixture fixture = new ManagerFixture(ManagerOptions.DEFAULT
            .withPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
            .withLoadNiceness(0));

    @AfterEach
    void close() {
        fixture.close();
    }

    private static ModelRef label(String name) {
        return new ModelRef("m", ModelRef.ANY, name);
    }

    private static VersionLabel by(WeightedVersion... targets) {
        return new VersionLabel(List.of(targets), List.of());
    }

    private void serve(long... versions) throws Exception {
        FakeLoader[] loaders = new FakeLoader[versions.length];
        for (int i = 0; i < versions.length; i++) {
            loaders[i] = fixture.loader("m", versions[i], "v" + versions[i]);
        }
        fixture.aspire("m", loaders);
        var unused = fixture.settle("m");
    }

    /** Returns how often each version is selected. */
    private Map<Long, Integer> draw(ModelRef ref, int times) {
        Map<Long, Integer> counts = new HashMap<>();
        for (int i = 0; i < times; i++) {
            try (ServableHandle handle = fixture.manager.acquire(ref)) {
                counts.merge(handle.servable().metadata().id().version(), 1, Integer::sum);
            }
        }
        return counts;
    }

    @Test
    void aLabelStandsForItsVersion() throws Exception {
        serve(1, 2);
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)));
        assertThat(draw(label("stable"), 10)).containsOnlyKeys(1L);
        assertThat(draw(label("canary"), 10)).containsOnlyKeys(2L);
        assertThat(fixture.manager.labels("m")).containsOnlyKeys("stable", "canary");
        assertThat(fixture.manager.index().get(0).labels()).isEqualTo(fixture.manager.labels("m"));
        assertThat(fixture.manager.ready(label("stable"))).isTrue();
    }

    @Test
    void aNewTableReplacesTheOldOneWhole() throws Exception {
        serve(1, 2);
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)));
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(2)));
        assertThat(draw(label("stable"), 10)).containsOnlyKeys(2L);
        assertThatThrownBy(() -> fixture.manager.acquire(label("canary")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).isEqualTo("Unrecognized servable version label: canary");
                    assertThat(e.remedy()).contains("stable");
                });
        assertThatThrownBy(() -> fixture.manager.ready(label("canary")))
                .hasMessage("Unrecognized servable version label: canary");
        fixture.manager.labels("m", Map.of());
        assertThat(fixture.manager.labels("m")).isEmpty();
        assertThatThrownBy(() -> fixture.manager.acquire(label("stable")))
                .hasMessage("Unrecognized servable version label: stable");
    }

    @Test
    void aLabelWhoseVersionIsNotThereNamesIt() throws Exception {
        serve(1);
        fixture.manager.labels("m", Map.of("next", VersionLabel.of(7)));
        assertThatThrownBy(() -> fixture.manager.acquire(label("next")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.getMessage()).isEqualTo("Servable not found for request: Specific(m, 7)");
                });
        assertThatThrownBy(() -> fixture.manager.ready(label("next"))).hasMessageContaining("Specific(m, 7)");
        FakeLoader seven = fixture.loader("m", 7, "v7");
        seven.gate = new CountDownLatch(1);
        fixture.aspire("m", fixture.loader("m", 1, "v1"), seven);
        ManagerFixture.await(seven.loading);
        fixture.quiesce();
        assertThat(fixture.manager.ready(label("next")))
                .as("known, but not yet available")
                .isFalse();
        seven.gate.countDown();
        var unused = fixture.settle("m");
        assertThat(draw(label("next"), 3))
                .as("found as soon as it is available")
                .containsOnlyKeys(7L);
    }

    @Test
    void unknownModelsStayUnknownWhateverTheLabel() {
        assertThatThrownBy(() -> fixture.manager.acquire(label("stable")))
                .hasMessage("Request for unknown model: 'm' is not found");
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(3)));
        assertThatThrownBy(() -> fixture.manager.acquire(label("stable")))
                .hasMessage("Servable not found for request: Specific(m, 3)");
        assertThat(fixture.manager.index())
                .as("labels alone do not create a model")
                .isEmpty();
    }

    @Test
    void labelsThatCameBeforeTheModelHoldForItAndOutliveItsReloads() throws Exception {
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(3)));
        serve(3, 4);
        assertThat(draw(label("stable"), 5)).containsOnlyKeys(3L);
        fixture.aspire("m", fixture.loader("m", 3, "changed"), fixture.loader("m", 4, "v4"));
        var unused = fixture.settle("m");
        try (ServableHandle handle = fixture.manager.acquire(label("stable"))) {
            assertThat(((FakeServable) handle.servable()).fingerprint).isEqualTo("changed");
        }
    }

    @Test
    void versionsShareALabelByTheirWeights() throws Exception {
        serve(1, 2, 3);
        fixture.manager.labels(
                "m",
                Map.of("canary", by(new WeightedVersion(1, 6), new WeightedVersion(2, 3), new WeightedVersion(3, 1))));
        Map<Long, Integer> counts = draw(label("canary"), 20_000);
        assertThat(counts.get(1L)).isBetween(11_500, 12_500);
        assertThat(counts.get(2L)).isBetween(5_500, 6_500);
        assertThat(counts.get(3L)).isBetween(1_700, 2_300);
    }

    @Test
    void theWeightOfAVersionThatDoesNotServeGoesToTheOthers() throws Exception {
        serve(1, 2);
        fixture.manager.labels(
                "m",
                Map.of("canary", by(new WeightedVersion(9, 98), new WeightedVersion(1, 1), new WeightedVersion(2, 1))));
        Map<Long, Integer> counts = draw(label("canary"), 10_000);
        assertThat(counts).containsOnlyKeys(1L, 2L);
        assertThat(counts.get(1L)).isBetween(4_600, 5_400);
        fixture.aspire("m", fixture.loader("m", 2, "v2"));
        fixture.awaitPhase("m", 1, Phase.GONE);
        assertThat(draw(label("canary"), 50)).containsOnlyKeys(2L);
    }

    @Test
    void aShareOfRequestsIsCopiedToTheShadow() throws Exception {
        serve(1, 2, 3);
        fixture.manager.labels(
                "m",
                Map.of(
                        "stable",
                        new VersionLabel(
                                List.of(new WeightedVersion(1, 1)),
                                List.of(
                                        new WeightedVersion(2, 0.2),
                                        new WeightedVersion(3, 0.1),
                                        new WeightedVersion(9, 0.5))),
                        "bare",
                        VersionLabel.of(1)));
        Map<Long, Integer> counts = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            try (ServableHandle handle = fixture.manager.shadow(label("stable"))) {
                if (handle != null) {
                    counts.merge(handle.servable().metadata().id().version(), 1, Integer::sum);
                }
            }
        }
        assertThat(counts)
                .as("the share of an unavailable shadow goes to no other shadow")
                .containsOnlyKeys(2L, 3L);
        assertThat(counts.get(2L)).isBetween(3_600, 4_400);
        assertThat(counts.get(3L)).isBetween(1_700, 2_300);
        assertThat(fixture.manager.shadow(label("bare"))).isNull();
        assertThat(fixture.manager.shadow(label("unknown"))).isNull();
        assertThat(fixture.manager.shadow(ModelRef.latest("m"))).isNull();
    }

    @Test
    void aShadowThatIsInUseIsNotUnloaded() throws Exception {
        serve(1);
        fixture.manager.labels(
                "m",
                Map.of(
                        "stable",
                        new VersionLabel(List.of(new WeightedVersion(1, 1)), List.of(new WeightedVersion(1, 1)))));
        FakeLoader one = fixture.loaders.element();
        ServableHandle shadow = fixture.manager.shadow(label("stable"));
        fixture.aspire("m");
        fixture.awaitPhase("m", 1, Phase.DRAINING);
        assertThat(fixture.manager.shadow(label("stable"))).isNull();
        fixture.quiesce();
        assertThat(one.unloads.get()).isZero();
        assertThat(shadow).isNotNull();
        shadow.close();
        ManagerFixture.await(one.unloaded);
    }

    @Test
    void labelsThatMakeNoSenseAreRejectedAndChangeNothing() {
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(1)));
        for (VersionLabel bad : List.of(
                new VersionLabel(List.of(), List.of()),
                by(new WeightedVersion(-1, 1)),
                by(new WeightedVersion(1, 0)),
                by(new WeightedVersion(1, Double.NaN)),
                by(new WeightedVersion(1, Double.POSITIVE_INFINITY)),
                new VersionLabel(List.of(new WeightedVersion(1, 1)), List.of(new WeightedVersion(2, 1.5))))) {
            assertThatThrownBy(() -> fixture.manager.labels("m", Map.of("good", VersionLabel.of(1), "bad", bad)))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessageContaining("'bad'");
        }
        assertThat(fixture.manager.labels("m")).containsOnlyKeys("stable");
    }

    @Test
    void aLabelMovesOnlyToWhatServes() throws Exception {
        serve(1);
        Map<String, VersionLabel> wanted = Map.of("stable", VersionLabel.of(2));
        assertThatThrownBy(() -> fixture.manager.checkLabels("m", wanted, LabelAssignmentPolicy.SERVING))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                    assertThat(e.getMessage())
                            .isEqualTo("Request to assign label to version 2 of model m, which is not currently"
                                    + " available for inference");
                });
        fixture.manager.checkLabels("m", wanted, LabelAssignmentPolicy.FIRST_ASSIGNMENT);
        fixture.manager.checkLabels("unknown", wanted, LabelAssignmentPolicy.FIRST_ASSIGNMENT);
        fixture.manager.labels("m", Map.of("stable", VersionLabel.of(1)));
        assertThatThrownBy(() -> fixture.manager.checkLabels("m", wanted, LabelAssignmentPolicy.FIRST_ASSIGNMENT))
                .hasMessageContaining("version 2 of model m");
        fixture.manager.checkLabels("m", wanted, LabelAssignmentPolicy.ANY);
        fixture.manager.labels("m", wanted);
        fixture.manager.checkLabels("m", wanted, LabelAssignmentPolicy.FIRST_ASSIGNMENT);
        serve(1, 2);
        fixture.manager.checkLabels(
                "m",
                Map.of("stable", by(new WeightedVersion(1, 1), new WeightedVersion(2, 1))),
                LabelAssignmentPolicy.SERVING);
        assertThatThrownBy(() -> fixture.manager.checkLabels(
                        "m",
                        Map.of("stable", by(new WeightedVersion(1, 1), new WeightedVersion(3, 1))),
                        LabelAssignmentPolicy.SERVING))
                .as("every target is checked")
                .hasMessageContaining("version 3");
    }

    @Test
    void requestsFollowALabelWithoutAGapWhileVersionsAreSwapped() throws Exception {
        serve(1, 2);
        fixture.manager.labels("m", Map.of("stable", by(new WeightedVersion(1, 1), new WeightedVersion(2, 1))));
        AtomicBoolean stop = new AtomicBoolean();
        ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        CountDownLatch done = new CountDownLatch(2);
        for (int t = 0; t < 2; t++) {
            Threads.named("reader")
                    .newThread(() -> {
                        while (!stop.get()) {
                            try (ServableHandle handle = fixture.manager.acquire(label("stable"))) {
                                if (((FakeServable) handle.servable()).unloaded) {
                                    wrong.add("unloaded under a handle");
                                }
                            } catch (ServingException e) {
                                wrong.add(e.describe());
                            }
                        }
                        done.countDown();
                    })
                    .start();
        }
        for (int round = 0; round < 200; round++) {
            long gone = 1 + round % 2;
            fixture.aspire("m", fixture.loader("m", 3 - gone, "v" + (3 - gone)));
            var unused = fixture.settle("m");
            serve(1, 2);
        }
        stop.set(true);
        ManagerFixture.await(done);
        assertThat(wrong).isEmpty();
    }
}
