// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.IOException;
import java.util.Locale;
import java.util.Objects;

/**
 * One round of load on one of two servers, while the other is idle. Immutable.
 *
 * @param micros microseconds of CPU time of the server for each request
 * @param p50 median latency in milliseconds
 * @param p99 99th percentile of the latency in milliseconds
 * @param rate requests per second
 * @param foreign what other processes used, as a share of the machine
 */
public record MeasuredRound(double micros, double p50, double p99, double rate, double foreign) {
    private static final double NOISE = 0.10;
    private static final int REPEATS = 2;

    /** Whether other processes used more than a tenth of the machine. */
    public boolean noisy() {
        return foreign > NOISE;
    }

    /**
     * Measures a round. One in which other processes used more than a tenth of the machine is repeated, twice at most; if all
     * attempts are noisy, the cheapest one counts.
     *
     * @param idle the other server, whose CPU time is not that of other processes
     * @throws IOException if a request failed
     */
    public static MeasuredRound of(
            LoadGenerator load, ServerProcess server, ServerProcess idle, BenchmarkSettings settings)
            throws IOException, InterruptedException {
        MeasuredRound best = null;
        for (int i = 0; i <= REPEATS; i++) {
            MeasuredRound round = once(load, server, idle, settings);
            if (best == null || !round.noisy() || round.micros < best.micros) {
                best = round;
            }
            settings.log(
                    "%-10s %8.2f us/req  %8.0f req/s  p50 %.3f ms  p99 %.3f ms%s",
                    server.name(), round.micros, round.rate, round.p50, round.p99, round.noise());
            if (!round.noisy()) {
                break;
            }
        }
        return Objects.requireNonNull(best);
    }

    private String noise() {
        return noisy() ? String.format(Locale.ROOT, "  (others took %.0f %% of the machine)", 100 * foreign) : "";
    }

    private static MeasuredRound once(
            LoadGenerator load, ServerProcess server, ServerProcess idle, BenchmarkSettings settings)
            throws IOException, InterruptedException {
        long self = ProcessHandle.current().pid();
        double cpu = ProcessStatistics.cpu(server.pid(), false);
        double known = cpu + ProcessStatistics.cpu(idle.pid(), false) + ProcessStatistics.cpu(self, true);
        double busy = ProcessStatistics.busy();
        long from = System.nanoTime();
        LoadGenerator.Outcome outcome = load.run(server, settings.seconds(), settings.scratch());
        double wall = (System.nanoTime() - from) / 1e9;
        double busyAfter = ProcessStatistics.busy();
        double cpuAfter = ProcessStatistics.cpu(server.pid(), false);
        double knownAfter = cpuAfter + ProcessStatistics.cpu(idle.pid(), false) + ProcessStatistics.cpu(self, true);
        if (outcome.failed() > 0 || outcome.requests() == 0) {
            throw new IOException(
                    outcome.failed() + " of " + outcome.requests() + " requests to " + server.name() + " failed");
        }
        double foreign = (busyAfter - busy - (knownAfter - known))
                / (wall * Runtime.getRuntime().availableProcessors());
        return new MeasuredRound(
                (cpuAfter - cpu) * 1e6 / outcome.requests(),
                outcome.p50(),
                outcome.p99(),
                outcome.requests() / outcome.seconds(),
                foreign);
    }
}
