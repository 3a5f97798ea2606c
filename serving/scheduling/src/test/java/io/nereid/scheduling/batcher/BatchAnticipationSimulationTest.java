// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.scheduling.batcher.BatchingSimulation.Model;
import io.nereid.scheduling.batcher.BatchingSimulation.Outcome;
import io.nereid.scheduling.batcher.BatchingSimulation.Rule;
import io.nereid.scheduling.batcher.BatchingSimulation.Workload;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** {@link BatchAnticipation} in virtual time, beside the rules without it and beside the best that is possible. */
class BatchAnticipationSimulationTest {
    private static final long SEED = 7;
    private static final long DELAY = 2_000_000;
    private static final Rule EAGER = new Rule(0, false);
    private static final Rule NEW = new Rule(0, true);
    /** Triton's rule, and Nereid's with anticipation switched off. */
    private static final Rule DELAYED = new Rule(DELAY, false);

    private static final Rule NEW_DELAYED = new Rule(DELAY, true);

    private static final Model IRIS = new Model("iris", 4.1, 0.1, 0.166);
    private static final Model MINILM = new Model("minilm", 910.6, 4927.9, 0.065);
    private static final Model OCR = new Model("ocr_rec", 0, 15669.3, 0.050);
    /** Not real ones: a model of short runs, and one whose batches gain much. */
    private static final Model SHORT = new Model("short", 300, 900, 0.065);

    private static final Model FIXED = new Model("fixed", 6000, 150, 0.08);

    /** The least share of throughput, and of the inverse of a time, of the rule without anticipation. */
    private static final double LEAST = 0.97;

    @Test
    void noWorkloadIsServedWorseThanWithout() {
        List<String> worse = new ArrayList<>();
        for (Model model : List.of(IRIS, MINILM, OCR, SHORT, FIXED)) {
            for (int instances = 1; instances <= 2; instances++) {
                for (Workload load : workloads(model, instances)) {
                    for (Rule rule : List.of(NEW, NEW_DELAYED)) {
                        if (worst(model, instances, load, rule, 2_000) < LEAST) {
                            // The 99 % time of a short run is that of 20 requests: a long run decides.
                            double worst = worst(model, instances, load, rule, 60_000);
                            if (worst < LEAST) {
                                worse.add(model.name() + ", " + instances + " instances, " + load.name() + ", " + rule
                                        + ": " + worst);
                            }
                        }
                    }
                }
            }
        }
        assertThat(worse).isEmpty();
    }

    private static List<Workload> workloads(Model model, int instances) {
        double capacity = model.capacity(instances);
        List<Workload> all = new ArrayList<>();
        for (int clients : new int[] {1, 2, 4, 16, 64}) {
            for (double think : new double[] {0, 50, 1_000, 20_000}) {
                all.add(Workload.closed(clients, think));
            }
        }
        for (int percent = 10; percent <= 90; percent += 20) {
            all.add(Workload.open(percent + " % open", percent / 100.0 * capacity, 1));
        }
        all.add(Workload.open("20 % in bursts", 0.2 * capacity, 12));
        all.add(Workload.open("60 % in bursts", 0.6 * capacity, 12));
        all.add(Workload.closed(8, 50).and(0.2 * capacity));
        all.add(Workload.closed(16, 5_000).and(0.3 * capacity));
        return all;
    }

    /** Returns the smallest of the ratios of throughput, median and 99 % time to those of the same rule without anticipation. */
    private static double worst(Model model, int instances, Workload load, Rule rule, int requests) {
        Outcome before = run(model, instances, new Rule(rule.delay(), false), load, requests);
        Outcome after = run(model, instances, rule, load, requests);
        return Math.min(after.rate() / before.rate(), Math.min(before.p50() / after.p50(), before.p99() / after.p99()));
    }

    private static Outcome run(Model model, int instances, Rule rule, Workload load, int requests) {
        return new BatchingSimulation(model, instances, 15_000, rule, load, SEED).run(1_000, requests);
    }

    @Test
    void aDelayCostsClosedLoopsNothing() {
        for (Model model : List.of(MINILM, OCR, SHORT, FIXED)) {
            for (int instances = 1; instances <= 2; instances++) {
                for (int clients : new int[] {1, 2, 4, 16, 64}) {
                    Workload load = Workload.closed(clients, 50);
                    double without = run(model, instances, EAGER, load, 4_000).rate();
                    assertThat(run(model, instances, NEW_DELAYED, load, 4_000).rate())
                            .as("%s, %s instances, %s clients", model.name(), instances, clients)
                            .isGreaterThan(LEAST * without);
                }
            }
        }
        // What this is about: all clients meet in one batch, so that one of two instances has nothing to do.
        Workload load = Workload.closed(16, 50);
        assertThat(run(MINILM, 2, DELAYED, load, 4_000).rate())
                .isLessThan(0.55 * run(MINILM, 2, NEW_DELAYED, load, 4_000).rate());
    }

    @Test
    void closedLoopsGainWhatARunLessSaves() {
        assertThat(gain(FIXED, 1, 2)).isGreaterThan(1.7);
        assertThat(gain(FIXED, 1, 16)).isGreaterThan(1.3);
        assertThat(gain(FIXED, 2, 4)).isGreaterThan(1.3);
        assertThat(gain(FIXED, 2, 16)).isGreaterThan(1.25);
    }

    private static double gain(Model model, int instances, int clients) {
        Workload load = Workload.closed(clients, 50);
        return run(model, instances, NEW, load, 4_000).rate()
                / run(model, instances, EAGER, load, 4_000).rate();
    }

    @Test
    void closedLoopsComeNearToTheBest() {
        for (Model model : List.of(MINILM, OCR, SHORT, FIXED)) {
            Model exact = exact(model);
            for (int clients = 1; clients <= 4; clients++) {
                Workload load = Workload.closed(clients, 0);
                double best = 240 / optimum(model).timeOf(240, clients, load.back()) * 1e9;
                for (Rule rule : List.of(NEW, NEW_DELAYED)) {
                    Outcome outcome = new BatchingSimulation(exact, 1, 0, rule, load, SEED).run(1_000, 2_000);
                    // In a closed loop the mean time follows from the throughput.
                    assertThat(outcome.rate())
                            .as("%s, %s clients, %s", model.name(), clients, rule)
                            .isGreaterThan(best / 1.1);
                }
            }
        }
    }

    /**
     * Without a delay. The programme knows random arrivals, which nothing can learn: where the rule without anticipation is
     * further from it than 10 %, the new rule is not further.
     */
    @Test
    void randomArrivalsComeNearToTheBest() {
        for (Model model : List.of(MINILM, OCR, SHORT, FIXED)) {
            Model exact = exact(model);
            for (int percent = 10; percent <= 90; percent += 20) {
                Workload load = Workload.open(percent + " % open", percent / 100.0 * model.capacity(1), 1);
                int requests = 400;
                BatchingSimulation simulation = new BatchingSimulation(exact, 1, 0, NEW, load, SEED);
                double mean = 1e3 * simulation.run(0, requests).mean();
                double before = 1e3
                        * new BatchingSimulation(exact, 1, 0, EAGER, load, SEED)
                                .run(0, requests)
                                .mean();
                double best = optimum(model).meanTime(simulation.arrivals(requests));
                assertThat(mean)
                        .as("%s, %s: %s of the best", model.name(), load.name(), mean / best)
                        .isBetween(0.999 * best, Math.max(1.1 * best, 1.001 * before));
            }
        }
    }

    private static Model exact(Model model) {
        return new Model(model.name(), model.fixedMicros(), model.rowMicros(), 0);
    }

    private static BatchingOptimum optimum(Model model) {
        return new BatchingOptimum(
                (long) (1e3 * model.fixedMicros()), (long) (1e3 * model.rowMicros()), BatchingSimulation.MAX_BATCH);
    }
}
