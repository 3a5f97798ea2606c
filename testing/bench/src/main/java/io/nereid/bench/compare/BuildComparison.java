// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.compare;

import io.nereid.bench.harness.AllocationProbe;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkResult.Interval;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.DoubleSummaryStatistics;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.ToDoubleFunction;

/**
 * Says whether a build is better, the same or worse than another one. For each kind of request the servers of both builds run
 * at the same time and are measured in turn, in an order that changes from round to round, so that a trend of the machine is
 * not taken for a difference. Both are started anew {@value #STARTS} times for each row: what a JVM compiles, and so what a
 * request costs, differs a little from process to process.
 *
 * <p>A verdict compares the 95 % interval of the ratio over the pairs of rounds with 1. Bytes allocated depend on the build
 * alone, so that they have a limit in place of an interval. Confined to one thread.
 *
 * <p>Example: {@code testing/bench/run.sh --compare=HEAD~1 rest-small grpc-mux}
 */
public final class BuildComparison {
    private static final int STARTS = 2;
    /** Less than this is the same, for what has no interval. */
    private static final double SAME_BYTES = 0.02;
    /** The exit status says so when a row is worse by more than this for certain. */
    private static final double WORSE = 1.05;

    private final BenchmarkSettings base;
    private final BenchmarkSettings candidate;
    private final List<String[]> table = new ArrayList<>();
    private boolean worse;

    private BuildComparison(BenchmarkSettings base, BenchmarkSettings candidate) {
        this.base = base;
        this.candidate = candidate;
    }

    /** The names of the rows. */
    public static Set<String> rows() {
        return ComparedRequest.ROWS.keySet();
    }

    /**
     * Measures and prints a table.
     *
     * @param base the settings with the distribution to compare with
     * @param candidate the settings with the distribution in question
     * @param names rows; empty for all
     * @return whether no row is worse by more than a twentieth for certain
     * @throws IOException if a server does not start or does not answer
     */
    public static boolean run(BenchmarkSettings base, BenchmarkSettings candidate, Collection<String> names)
            throws IOException, InterruptedException {
        BuildComparison comparison = new BuildComparison(base, candidate);
        for (String name : names.isEmpty() ? rows() : names) {
            comparison.row(name, Objects.requireNonNull(ComparedRequest.ROWS.get(name), name));
        }
        comparison.print();
        return !comparison.worse;
    }

    private void row(String name, ComparedRequest request) throws IOException, InterruptedException {
        LoadGenerator load = request.load().apply(new RequestBodies(candidate.scratch()));
        if (!LoadGenerator.onPath(load.program())) {
            skipped(name, load.program() + " is not on the PATH");
            return;
        }
        Path missing = request.served().missing(candidate);
        if (missing != null) {
            skipped(name, "the build has not fetched " + missing);
            return;
        }
        candidate.log("%s: %s", name, request.work());
        List<MeasuredRound> before = new ArrayList<>();
        List<MeasuredRound> after = new ArrayList<>();
        double[] bytes = new double[2];
        OptionalDouble[] instructions = new OptionalDouble[2];
        OptionalDouble[] calls = new OptionalDouble[2];
        int rounds = Math.max(1, (candidate.rounds() + STARTS - 1) / STARTS);
        for (int start = 0; start < STARTS; start++) {
            try (ServerProcess old = request.served().start(base).named("base");
                    ServerProcess now = request.served().start(candidate).named("this")) {
                load.run(old, candidate.warmup(), candidate.scratch());
                load.run(now, candidate.warmup(), candidate.scratch());
                for (int i = 0; i < rounds; i++) {
                    if ((i + start) % 2 == 0) {
                        before.add(MeasuredRound.of(load, old, now, candidate));
                        after.add(MeasuredRound.of(load, now, old, candidate));
                    } else {
                        after.add(MeasuredRound.of(load, now, old, candidate));
                        before.add(MeasuredRound.of(load, old, now, candidate));
                    }
                }
                request.served().check(now);
                bytes[0] += allocated(load, old) / STARTS;
                bytes[1] += allocated(load, now) / STARTS;
                if (start == STARTS - 1) {
                    instructions[0] = RequestCounters.instructions(load, old, base);
                    instructions[1] = RequestCounters.instructions(load, now, candidate);
                    calls[0] = RequestCounters.systemCalls(load, old, base);
                    calls[1] = RequestCounters.systemCalls(load, now, candidate);
                }
            }
        }
        String noise = noise(before, after);
        compared(name, "CPU, us a request", before, after, MeasuredRound::micros, false, noise);
        compared("", "requests a second", before, after, MeasuredRound::rate, true, "");
        compared("", "p50, ms", before, after, MeasuredRound::p50, false, "");
        compared("", "p99, ms", before, after, MeasuredRound::p99, false, "");
        counted("bytes a request", bytes[0], bytes[1]);
        if (instructions[0].isPresent() && instructions[1].isPresent()) {
            counted("instructions a request", instructions[0].getAsDouble(), instructions[1].getAsDouble());
        }
        if (calls[0].isPresent() && calls[1].isPresent()) {
            counted("system calls a request", calls[0].getAsDouble(), calls[1].getAsDouble());
        }
    }

    private void skipped(String name, String why) {
        table.add(new String[] {name, "", "", "", "", "", "SKIPPED: " + why});
    }

    private double allocated(LoadGenerator load, ServerProcess server) throws IOException, InterruptedException {
        try (AllocationProbe probe = new AllocationProbe(server)) {
            double bytes = probe.bytes();
            LoadGenerator.Outcome outcome = load.run(server, candidate.seconds(), candidate.scratch());
            return (probe.bytes() - bytes) / outcome.requests();
        }
    }

    private static String noise(List<MeasuredRound> before, List<MeasuredRound> after) {
        long noisy = before.stream().filter(MeasuredRound::noisy).count()
                + after.stream().filter(MeasuredRound::noisy).count();
        return noisy == 0
                ? ""
                : " (" + noisy + " of " + (before.size() + after.size()) + " rounds beside other processes)";
    }

    private void compared(
            String row,
            String measure,
            List<MeasuredRound> before,
            List<MeasuredRound> after,
            ToDoubleFunction<MeasuredRound> value,
            boolean more,
            String noise) {
        double[] old = before.stream().mapToDouble(value).toArray();
        double[] now = after.stream().mapToDouble(value).toArray();
        double[] ratios = new double[old.length];
        Arrays.setAll(ratios, i -> now[i] / old[i]);
        Interval interval = Interval.ofRatios(ratios);
        boolean above = interval.low() > 1;
        boolean below = interval.high() < 1;
        worse |= more ? interval.high() < 1 / WORSE : interval.low() > WORSE;
        String verdict = more && above || !more && below ? "better" : above || below ? "worse" : "same";
        line(
                row,
                measure,
                spread(old),
                spread(now),
                String.format(Locale.ROOT, "%.3f", interval.mean()),
                String.format(Locale.ROOT, "%.3f to %.3f", interval.low(), interval.high()),
                verdict + noise);
    }

    private void counted(String measure, double old, double now) {
        double ratio = now / old;
        worse |= ratio > WORSE;
        line(
                "",
                measure,
                number(old),
                number(now),
                String.format(Locale.ROOT, "%.3f", ratio),
                "",
                ratio > 1 + SAME_BYTES ? "worse" : ratio < 1 - SAME_BYTES ? "better" : "same");
    }

    private void line(String... cells) {
        table.add(cells);
    }

    private static String spread(double[] values) {
        DoubleSummaryStatistics all = Arrays.stream(values).summaryStatistics();
        return number(BenchmarkResult.median(values)) + " (" + number(all.getMin()) + " to " + number(all.getMax())
                + ")";
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, value >= 100 ? "%.0f" : value >= 1 ? "%.2f" : "%.3f", value);
    }

    private void print() throws IOException {
        StringBuilder text = new StringBuilder(
                "| row | measure | base | this | ratio | 95 % interval | |\n|---|---|---|---|---|---|---|\n");
        for (String[] row : table) {
            text.append("| ").append(String.join(" | ", row)).append(" |\n");
        }
        candidate.out().print("\n" + text);
        Path report = Files.createDirectories(candidate.root().resolve("target/bench"))
                .resolve("compare.md");
        Files.writeString(report, text);
        candidate.out().println("\nwritten to " + report);
    }
}
