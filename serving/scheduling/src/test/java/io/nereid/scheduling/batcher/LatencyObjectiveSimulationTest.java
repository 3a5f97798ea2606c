// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.scheduling.batcher.BatchingSimulation.Model;
import io.nereid.scheduling.batcher.ObjectiveSimulation.Load;
import io.nereid.scheduling.batcher.ObjectiveSimulation.Outcome;
import io.nereid.scheduling.batcher.ObjectiveSimulation.Setting;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * {@link io.nereid.scheduling.objective.LatencyController} in virtual time: models of which two runs fit into the objective, on one to
 * four instances that do not disturb each other, or of which each run makes the others half as long again.
 */
class LatencyObjectiveSimulationTest {
    private static final long SEED = 7;
    private static final double WARMUP = 5;
    private static final double SECONDS = 24;

    private static final Model MINILM = new Model("minilm", 910.6, 4927.9, 0.065);
    private static final Model OCR = new Model("ocr_rec", 0, 15669.3, 0.050);
    private static final Model SHORT = new Model("short", 300, 900, 0.065);
    private static final Model FIXED = new Model("fixed", 6000, 150, 0.08);

    private record Case(Setting setting, LatencyObjective objective) {
        double capacity() {
            return setting.capacity(objective);
        }

        Outcome with(Load load) {
            return new ObjectiveSimulation(setting, load, objective, SEED).run(WARMUP, SECONDS);
        }

        Outcome without(Load load) {
            return new ObjectiveSimulation(setting, load, null, SEED).run(WARMUP, SECONDS);
        }

        Load steady(int percent) {
            return Load.steady(percent + " %", percent / 100.0 * capacity(), 1);
        }

        String of(Load load) {
            return setting.model().name() + " " + objective + ", " + setting.instances() + " instances, contention "
                    + setting.contention() + ", " + load.name();
        }
    }

    private static List<Case> cases() {
        List<Case> cases = new ArrayList<>();
        for (int instances : new int[] {1, 2, 4}) {
            for (double contention : instances == 1 ? new double[] {0} : new double[] {0, 0.5}) {
                cases.add(new Case(new Setting(MINILM, instances, contention), LatencyObjective.parse("p99=100ms")));
                cases.add(new Case(new Setting(OCR, instances, contention), LatencyObjective.parse("p99=200ms")));
                cases.add(new Case(new Setting(SHORT, instances, contention), LatencyObjective.parse("p99=20ms")));
                cases.add(new Case(new Setting(FIXED, instances, contention), LatencyObjective.parse("p99=60ms")));
            }
        }
        return cases;
    }

    private static void keeps(Case one, Load load, Outcome outcome) {
        assertThat(outcome.answered).as(one.of(load)).isPositive();
        assertThat(outcome.quantile(0.99) / one.objective.nanos())
                .as("%s: p99 as a share of the objective", one.of(load))
                .isLessThanOrEqualTo(1.1);
        if (outcome.refused > 0) {
            assertThat(outcome.leastRetry).as(one.of(load)).isGreaterThanOrEqualTo(TimeUnit.SECONDS.toNanos(1));
        }
    }

    @Test
    void belowTheCapacityItCostsNothing() {
        for (Case one : cases()) {
            for (int percent : new int[] {2, 30, 60}) {
                Load load = one.steady(percent);
                Outcome outcome = one.with(load);
                keeps(one, load, outcome);
                assertThat((double) outcome.refused / outcome.answered)
                        .as("%s: refused", one.of(load))
                        .isLessThan(0.01);
                assertThat(outcome.runsPerRequest())
                        .as("%s: runs for each request", one.of(load))
                        .isLessThanOrEqualTo(1.02 * one.without(load).runsPerRequest());
            }
        }
    }

    @Test
    void aboveTheCapacityTheExcessIsRefusedAndNothingElse() {
        for (Case one : cases()) {
            for (int percent : new int[] {100, 150}) {
                Load load = one.steady(percent);
                Outcome outcome = one.with(load);
                keeps(one, load, outcome);
                assertThat(outcome.goodput() / one.capacity())
                        .as("%s: goodput", one.of(load))
                        .isGreaterThanOrEqualTo(0.85);
                assertThat((double) outcome.lateRefused / outcome.answered)
                        .as("%s: refused after they had waited", one.of(load))
                        .isLessThan(0.02);
            }
        }
    }

    @Test
    void burstsAndStepsAreKept() {
        for (Case one : cases()) {
            double capacity = one.capacity();
            Load bursts = Load.steady("bursts", 0.3 * capacity, 12);
            keeps(one, bursts, one.with(bursts));
            Load step = new Load("step", t -> (t > 12e9 ? 1.5 : 0.2) * capacity, 1.5 * capacity, 1);
            Outcome outcome = one.with(step);
            keeps(one, step, outcome);
            double expected = (0.2 * (12 - WARMUP) + (WARMUP + SECONDS - 12)) / SECONDS * capacity;
            assertThat(outcome.goodput() / expected)
                    .as("%s: goodput", one.of(step))
                    .isGreaterThanOrEqualTo(0.85);
        }
    }

    /** Run times scatter by 40 %, so that single requests are refused at a low load, and estimates of two runs at once are far off. */
    @Test
    void refusalsAtALowLoadTakeNoInstanceAway() {
        for (double contention : new double[] {0, 0.3}) {
            Case one = new Case(
                    new Setting(new Model("noisy", 1500, 1270, 0.4), 2, contention),
                    LatencyObjective.parse("p99=100ms"));
            double capacity = 2 * ObjectiveSimulation.MAX_BATCH / (1e3 * (1500 + 1270 * ObjectiveSimulation.MAX_BATCH));
            double[] shares = {1, 0.3, 0.6, 0.9};
            Load steps =
                    new Load("steps", t -> shares[(int) Math.min(shares.length - 1, t / 10e9)] * capacity, capacity, 1);
            ObjectiveSimulation simulation = new ObjectiveSimulation(one.setting, steps, one.objective, SEED);
            Outcome outcome = simulation.run(30, 20);
            // One instance serves 0.45 of the capacity, two serve it all divided by their contention.
            assertThat(outcome.goodput() / capacity)
                    .as("%s: goodput", one.of(steps))
                    .isGreaterThanOrEqualTo(0.8 / (1 + contention));
        }
    }

    @Test
    void withSlackThereAreFewerRuns() {
        Case one = new Case(new Setting(FIXED, 4, 0), LatencyObjective.parse("p99=60ms"));
        Load load = one.steady(2);
        assertThat(one.with(load).runsPerRequest())
                .isLessThan(0.5 * one.without(load).runsPerRequest());
    }

    @Test
    void aSteadyLoadSettles() {
        for (int percent : new int[] {30, 150}) {
            Case one = new Case(new Setting(MINILM, 2, 0), LatencyObjective.parse("p99=100ms"));
            ObjectiveSimulation simulation =
                    new ObjectiveSimulation(one.setting, one.steady(percent), one.objective, SEED);
            simulation.run(60, 0.001);
            long before = changes(simulation);
            simulation = new ObjectiveSimulation(one.setting, one.steady(percent), one.objective, SEED);
            simulation.run(60, 60);
            assertThat(changes(simulation) - before)
                    .as("changes in 30 windows at %s %%", percent)
                    .isLessThanOrEqualTo(15);
            assertThat(simulation.log).isNotEmpty().allMatch(line -> line.startsWith("model 'm' keeps p99=100ms: "));
        }
    }

    private static long changes(ObjectiveSimulation simulation) {
        return simulation.control == null ? 0 : simulation.control.status().changes();
    }
}
