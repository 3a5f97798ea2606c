// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Models and ensembles that are added, changed, adopted and removed or fail at random, with few load threads. */
@Timeout(120)
class SimulationTest {
    private static final String[] PLAIN = {"a", "b", "c"};
    private static final String[] COMPOSED = {"e", "f", "g"};

    private static final Set<Phase> UNDER_WAY = EnumSet.of(Phase.TRACKED, Phase.LOADING, Phase.WARMING);

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whateverComesEverythingSettlesAndEnsemblesStandOnWhatServes(long seed) throws Exception {
        Random random = new Random(seed);
        ManagerOptions options = ManagerOptions.DEFAULT.withLoadThreads(1 + random.nextInt(2));
        if (seed % 4 == 0) {
            options = options.withPolicy(
                    seed % 8 == 0
                            ? AspiredVersionPolicy.RESOURCE_PRESERVING
                            : AspiredVersionPolicy.AVAILABILITY_PRESERVING);
        }
        Rig rig = new Rig(options);
        for (int round = 0; round < 400; round++) {
            for (int i = random.nextInt(4); i >= 0; i--) {
                change(rig, random);
            }
            if (random.nextInt(3) == 0) {
                rig.delays.runAll();
            }
            if (random.nextInt(4) == 0) {
                check(rig, "seed " + seed + " round " + round);
            }
        }
        check(rig, "seed " + seed + " at the end");
        rig.closeAndCheck("seed " + seed);
    }

    private static void change(Rig rig, Random random) {
        boolean plain = random.nextInt(3) > 0;
        String model = plain ? PLAIN[random.nextInt(PLAIN.length)] : COMPOSED[random.nextInt(COMPOSED.length)];
        List<FakeLoader> list = new ArrayList<>();
        for (int version = 1; version <= 2; version++) {
            if (random.nextInt(3) == 0) {
                continue;
            }
            String fingerprint = "f" + random.nextInt(3);
            FakeLoader loader = plain
                    ? rig.loader(model, version, fingerprint)
                    : rig.ensemble(model, version, fingerprint, dependencies(model, fingerprint));
            loader.failLoads = random.nextInt(5) == 0 ? 1 : 0;
            loader.adopts = random.nextInt(3) == 0;
            list.add(loader);
        }
        if (random.nextInt(4) == 0) {
            rig.manager.retry(model);
        }
        rig.aspire(model, list.toArray(FakeLoader[]::new));
    }

    /** Returns the same dependencies for the same fingerprint, sometimes with a circle. */
    private static String[] dependencies(String model, String fingerprint) {
        int n = fingerprint.charAt(1) - '0';
        return switch (model) {
            case "e" -> n == 0 ? new String[] {"a", "b"} : new String[] {n == 1 ? "b" : "g"};
            case "f" -> n == 0 ? new String[] {"e"} : new String[] {"e", "c"};
            default -> n == 0 ? new String[] {"f", "unknown"} : new String[] {"f"};
        };
    }

    private static void check(Rig rig, String as) throws Exception {
        List<String> all = new ArrayList<>(List.of(PLAIN));
        all.addAll(List.of(COMPOSED));
        long end = Clock.system().nanos() + 20_000_000_000L;
        boolean still = false;
        for (int i = 0; i < 2 || !still; i++) {
            var asked = rig.manager.settled(all).toCompletableFuture();
            while (!asked.isDone()) {
                assertThat(Clock.system().nanos() - end)
                        .as("%s %s", as, rig.manager.index())
                        .isNegative();
                rig.delays.runAll();
                Thread.onSpinWait();
            }
            // Work that a delay has just started must settle too; after that nothing starts new work.
            try {
                rig.manager.settled(all).toCompletableFuture().get(200, TimeUnit.MILLISECONDS);
                still = true;
            } catch (TimeoutException e) {
                still = false;
            }
            // Aspired versions have settled; a load that was cancelled may still be in progress.
            still = still
                    && all.stream()
                            .flatMap(model -> rig.manager.states(model).stream())
                            .noneMatch(state -> UNDER_WAY.contains(state.phase()));
        }
        for (String model : all) {
            for (ServableState state : rig.manager.states(model)) {
                assertThat(state.phase()).as("%s %s", as, state).isNotIn(UNDER_WAY);
                FakeServable servable =
                        rig.serving(ModelRef.exact(model, state.id().version()));
                if (servable == null) {
                    continue;
                }
                assertThat(servable.unloaded).as("%s %s", as, state).isFalse();
                List<FakeServable> members = rig.members.get(servable);
                if (members != null && aspired(rig, model, state)) {
                    String[] names = dependencies(model, servable.fingerprint);
                    for (int i = 0; i < names.length; i++) {
                        assertThat(members.get(i))
                                .as("%s %s on %s", as, state, names[i])
                                .isSameAs(rig.serving(ModelRef.latest(names[i])));
                    }
                }
            }
        }
    }

    /** Returns whether a version is available only because its reload failed; it is not reloaded then. */
    private static boolean aspired(Rig rig, String model, ServableState state) {
        return rig.manager.states(model).stream()
                .allMatch(s ->
                        s.phase() == Phase.AVAILABLE && s.reason() == null || s.equals(state) && s.reason() == null);
    }
}
