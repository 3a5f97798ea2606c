// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import io.nereid.bench.harness.ServerSetup;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/**
 * The identity model, compared with the no-op server under the same load, in alternating rounds (A B A B). The measure
 * is the CPU time of the server process per request, which depends least on the load generator. The table reports rounds
 * with other processes. Immutable.
 *
 * @param work the workload's description
 * @param load the load
 * @param served the measured server
 * @param maxRatio target for the ratio of medians; 0 for none
 * @param maxMicros target for Nereid's median in microseconds per request; 0 for none
 * @param maxP99 target for Nereid's median p99 in milliseconds; 0 for none
 */
public record IdentityModelScenario(
        String work,
        Function<RequestBodies, LoadGenerator> load,
        ServerSetup served,
        double maxRatio,
        double maxMicros,
        double maxP99)
        implements Scenario {
    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        LoadGenerator driven = load.apply(new RequestBodies(setting.scratch()));
        if (!LoadGenerator.onPath(driven.program())) {
            setting.log("SKIPPED: %s is not on the PATH", driven.program());
            return List.of(BenchmarkResult.skipped(work, driven.program() + " is not on the PATH"));
        }
        boolean big = driven.body().toFile().length() > 1 << 20;
        List<MeasuredRound> nothing = new ArrayList<>();
        List<MeasuredRound> ours = new ArrayList<>();
        try (ServerProcess nereid = served.start(setting);
                ServerProcess bare =
                        ServerProcess.nothing(nereid, big ? 4 * RequestBodies.BIG : 0, setting.scratch())) {
            driven.run(bare, setting.warmup(), setting.scratch());
            driven.run(nereid, setting.warmup(), setting.scratch());
            for (int i = 0; i < setting.rounds(); i++) {
                nothing.add(MeasuredRound.of(driven, bare, nereid, setting));
                ours.add(MeasuredRound.of(driven, nereid, bare, setting));
            }
            served.check(nereid);
        }
        return List.of(figure(nothing, ours, setting));
    }

    private BenchmarkResult figure(List<MeasuredRound> nothing, List<MeasuredRound> ours, BenchmarkSettings setting) {
        double[] bare = nothing.stream().mapToDouble(MeasuredRound::micros).toArray();
        double[] full = ours.stream().mapToDouble(MeasuredRound::micros).toArray();
        double ratio = BenchmarkResult.median(full) / BenchmarkResult.median(bare);
        double p50 = BenchmarkResult.median(
                ours.stream().mapToDouble(MeasuredRound::p50).toArray());
        double p99 = BenchmarkResult.median(
                ours.stream().mapToDouble(MeasuredRound::p99).toArray());
        double rate = BenchmarkResult.median(
                ours.stream().mapToDouble(MeasuredRound::rate).toArray());
        long noisy = ours.stream().filter(MeasuredRound::noisy).count()
                + nothing.stream().filter(MeasuredRound::noisy).count();
        List<String> targets = new ArrayList<>();
        boolean reached = true;
        if (maxRatio > 0) {
            targets.add(String.format(Locale.ROOT, "<= %.2f x do-nothing", maxRatio));
            reached &= ratio <= maxRatio;
        }
        if (maxMicros > 0) {
            targets.add(String.format(Locale.ROOT, "<= %.1f us", maxMicros));
            reached &= BenchmarkResult.median(full) <= maxMicros;
        }
        if (maxP99 > 0) {
            targets.add(String.format(Locale.ROOT, "p99 <= %.1f ms", maxP99));
            reached &= p99 <= maxP99;
        }
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(bare, "us CPU/req"),
                BenchmarkResult.spread(full, "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "p50 %.2f p99 %.2f ms, %.0f req/s", p50, p99, rate)
                        + (noisy > 0 ? ", " + noisy + " of " + 2 * setting.rounds() + " rounds noisy" : ""),
                String.join(", ", targets),
                BenchmarkResult.verdict(reached));
    }
}
