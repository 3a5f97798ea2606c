// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ClientOptions;
import io.nereid.app.client.ServerClient;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid replay}: sends recorded requests again, as a load test or as a regression test. */
@Command(
        name = "replay",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid replay FILE... [--compare] [OPTIONS]",
        description = {
            "Send recorded requests to a running server, and report throughput and latency.",
            "The files are TFRecord files of PredictionLog, as a model's logging_config writes them.",
            "With --compare, the responses are compared with the recorded ones."
        },
        footer = {
            "",
            "  nereid replay logs/resnet-*.tfrecord --concurrency 8 --repeat 10",
            "  nereid replay logs/resnet-*.tfrecord --compare --model resnet_next",
            "",
            "Exit code: 0 when every request succeeded, with the recorded response; else 1."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ReplayCommand implements Callable<Integer> {
    private static final int SHOWN = 10;

    @Parameters(paramLabel = "FILE", arity = "1..*", description = "Files of recorded requests.")
    private List<Path> files;

    @Option(names = "--model", paramLabel = "NAME", description = "The model to call instead of the recorded one.")
    private @Nullable String model;

    @Option(
            names = "--concurrency",
            paramLabel = "N",
            defaultValue = "1",
            description = "Concurrent requests (default: 1).")
    private int concurrency;

    @Option(names = "--rate", paramLabel = "N", description = "Requests per second; unlimited by default.")
    private @Nullable Double rate;

    @Option(names = "--as-recorded", description = "Send the requests at their recorded times.")
    private boolean asRecorded;

    @Option(
            names = "--repeat",
            paramLabel = "N",
            defaultValue = "1",
            description = "Number of repetitions" + " (default: 1).")
    private int repeat;

    @Option(names = "--compare", description = "Compare the responses with the recorded ones.")
    private boolean compare;

    @Option(
            names = "--tolerance",
            paramLabel = "X",
            defaultValue = "1e-5",
            description = "Floating-point numbers may differ by X, or by X times the recorded value if that is more"
                    + " (default: ${DEFAULT-VALUE}).")
    private double tolerance;

    @Mixin
    private ClientOptions server;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        check();
        PrintWriter out = spec.commandLine().getOut();
        ReplayLog log = ReplayLog.read(files, model);
        PrintWriter notes = output.format().isDocument() ? spec.commandLine().getErr() : out;
        log.skipped()
                .forEach((kind, count) -> notes.println(
                        count + " records are skipped: " + kind + " cannot be replayed, only predict_log"));
        if (log.items().isEmpty()) {
            throw ServingException.invalidArgument("nothing to replay in " + files);
        }
        ServerClient client = server.client(spec);
        client.get("/v2"); // is there a server at all?
        ReplayRunner run = new ReplayRunner(
                log, client, repeat, due(log), compare ? new ResponseComparison(tolerance) : null, Clock.system());
        ProgressPrinter.during("replaying", spec.commandLine().getErr(), () -> {
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

    private boolean report(ReplayRunner run, ReplayLog log, PrintWriter out) {
        long[] sorted = run.sortedLatencies();
        int failed = run.sent() - sorted.length;
        if (output.format().isDocument()) {
            output.format().print(document(run, log, sorted), out);
            return failed == 0 && run.differing() == 0;
        }
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
            out.println(run.compared() + " responses compared: " + run.differing() + " differ"
                    + (log.unanswered() > 0
                            ? ", " + log.unanswered() + " requests were recorded without a" + " response"
                            : ""));
            run.differences().forEach(difference -> out.println("  " + difference));
        }
        return failed == 0 && run.differing() == 0;
    }

    private ObjectNode document(ReplayRunner run, ReplayLog log, long[] sorted) {
        ObjectNode document = ServerClient.JSON.createObjectNode().put("requests", run.sent());
        document.put("requests_failed", run.sent() - sorted.length).put("duration_seconds", run.seconds());
        document.put("rate_requests_per_second", run.sent() / run.seconds());
        if (sorted.length > 0) {
            document.put("latency_p50_ms", quantile(sorted, 0.5)).put("latency_p90_ms", quantile(sorted, 0.9));
            document.put("latency_p99_ms", quantile(sorted, 0.99)).put("latency_max_ms", quantile(sorted, 1));
        }
        ObjectNode failures = document.putObject("failures");
        run.failures().forEach((reason, count) -> failures.put(reason, count.sum()));
        if (compare) {
            document.put("responses_compared", run.compared()).put("responses_different", run.differing());
            document.put("requests_without_recorded_response", log.unanswered());
            ArrayNode differences = document.putArray("differences");
            run.differences().forEach(differences::add);
        }
        return document;
    }

    private static double quantile(long[] sorted, double share) {
        return sorted[(int) Math.min(sorted.length - 1L, (long) Math.ceil(share * sorted.length) - 1)] / 1e6;
    }
}
