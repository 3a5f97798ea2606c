// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid replay}: recorded requests once more, as load or as a test. */
@Command(
        name = "replay",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid replay FILE... [--compare] [OPTIONS]",
        description = {
            "Send recorded requests to a running server, and tell how fast it answers.",
            "The files are TFRecord files of PredictionLog, as a model's logging_config makes them.",
            "With --compare, the answers are compared with the recorded ones."
        },
        footer = {
            "",
            "  nereid replay logs/resnet-*.tfrecord --concurrency 8 --repeat 10",
            "  nereid replay logs/resnet-*.tfrecord --compare --model resnet_next",
            "",
            "Exit code: 0 when every request was answered, and as recorded; else 1."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
final class ReplayCommand implements Callable<Integer> {
    private static final int SHOWN = 10;

    @Parameters(paramLabel = "FILE", arity = "1..*", description = "Files of recorded requests.")
    private List<Path> files;

    @Option(names = "--model", paramLabel = "NAME", description = "A model to ask in place of the recorded ones.")
    private @Nullable String model;

    @Option(
            names = "--concurrency",
            paramLabel = "N",
            defaultValue = "1",
            description = "Requests at a time (default: 1).")
    private int concurrency;

    @Option(names = "--rate", paramLabel = "N", description = "Requests per second; as fast as answered by default.")
    private @Nullable Double rate;

    @Option(names = "--as-recorded", description = "At the times at which they were recorded.")
    private boolean asRecorded;

    @Option(names = "--repeat", paramLabel = "N", defaultValue = "1", description = "How often (default: 1).")
    private int repeat;

    @Option(names = "--compare", description = "Compare the answers with the recorded ones.")
    private boolean compare;

    @Option(
            names = "--tolerance",
            paramLabel = "X",
            defaultValue = "1e-5",
            description = "Floating-point numbers may differ by X, or by X times the recorded one if that is more"
                    + " (default: ${DEFAULT-VALUE}).")
    private double tolerance;

    @Option(
            names = "--url",
            defaultValue = "http://127.0.0.1:8080",
            description = "The server (default: ${DEFAULT-VALUE}).")
    private String url;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        check();
        PrintWriter out = spec.commandLine().getOut();
        ReplayLog log = ReplayLog.read(files, model);
        log.skipped()
                .forEach((kind, count) ->
                        out.println(count + " records are left out: " + kind + " is not replayed, only predict_log"));
        if (log.items().isEmpty()) {
            throw ServingException.invalidArgument("nothing to replay in " + files);
        }
        ServerClient client = new ServerClient(url);
        client.get("/v2"); // is there a server at all?
        ReplayRun run = new ReplayRun(
                log, client, repeat, due(log), compare ? new AnswerComparison(tolerance) : null, Clock.system());
        Progress.during("replaying", spec.commandLine().getErr(), () -> {
            run.run(concurrency);
            return true;
        });
        boolean good = report(run, log, out);
        out.flush();
        return good ? 0 : 1;
    }

    private void check() {
        if (concurrency < 1 || repeat < 1) {
            throw ServingException.invalidArgument(
                    "--concurrency " + concurrency + ", --repeat " + repeat + " (expected: 1 or more)");
        }
        if (concurrency > 10_000) {
            throw ServingException.invalidArgument("--concurrency " + concurrency + " (expected: at most 10000)");
        }
        if (rate != null && !(rate > 0 && Double.isFinite(rate))) {
            throw ServingException.invalidArgument("--rate " + rate + " (expected: more than 0)");
        }
        if (rate != null && asRecorded) {
            throw ServingException.invalidArgument("both --rate and --as-recorded are given (expected one of them)");
        }
        if (!(tolerance >= 0)) {
            throw ServingException.invalidArgument("--tolerance " + tolerance + " (expected: 0 or more)");
        }
    }

    private double @Nullable [] due(ReplayLog log) {
        if (asRecorded) {
            return log.recordedSeconds();
        }
        if (rate == null) {
            return null;
        }
        double[] due = new double[log.items().size()];
        for (int i = 0; i < due.length; i++) {
            due[i] = i / rate;
        }
        return due;
    }

    private boolean report(ReplayRun run, ReplayLog log, PrintWriter out) {
        long[] sorted = run.sortedLatencies();
        int failed = run.sent() - sorted.length;
        out.println(String.format(
                Locale.ROOT,
                "%d requests in %.2f s: %.1f per second, %d failed",
                run.sent(),
                run.seconds(),
                run.sent() / run.seconds(),
                failed));
        if (sorted.length > 0) {
            out.println(String.format(
                    Locale.ROOT,
                    "latency in ms: p50 %.2f, p90 %.2f, p99 %.2f, max %.2f",
                    quantile(sorted, 0.5),
                    quantile(sorted, 0.9),
                    quantile(sorted, 0.99),
                    quantile(sorted, 1)));
        }
        run.failures().entrySet().stream()
                .sorted((a, b) -> Long.compare(b.getValue().sum(), a.getValue().sum()))
                .limit(SHOWN)
                .forEach(e -> out.println("  " + e.getValue().sum() + " failed: " + e.getKey()));
        if (compare) {
            out.println(run.compared() + " answers compared: " + run.differing() + " differ"
                    + (log.unanswered() > 0 ? ", " + log.unanswered() + " requests were recorded without one" : ""));
            run.differences().forEach(difference -> out.println("  " + difference));
        }
        return failed == 0 && run.differing() == 0;
    }

    private static double quantile(long[] sorted, double share) {
        return sorted[(int) Math.min(sorted.length - 1L, (long) Math.ceil(share * sorted.length) - 1)] / 1e6;
    }
}
