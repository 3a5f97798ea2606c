// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import io.nereid.app.perf.load.LoadLevel;
import io.nereid.app.perf.load.LoadMeasurement;
import io.nereid.app.perf.load.LoadResult;
import io.nereid.app.perf.load.LoadTimer;
import io.nereid.app.perf.report.JsonReport;
import io.nereid.app.perf.report.PerfReport;
import io.nereid.app.perf.report.PerfReport.AssertionCheck;
import io.nereid.app.perf.report.ReportFile;
import io.nereid.app.perf.report.ResultTable;
import io.nereid.app.process.InterruptSignal;
import io.nereid.app.text.OutputOption;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid perf}: measures the throughput and latency of a model under load. Confined to one thread. */
@Command(
        name = "perf",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid perf MODEL [--concurrency LOADS | --rate LOADS] [OPTIONS]",
        description = {
            "Measure throughput and latency of a model under load: of a running server over REST or gRPC, or in this process.",
            "Requests are made up from the model's metadata, read from a file, or recorded ones.",
            "Ctrl-C ends the measurement and reports what has been measured."
        },
        footer = {
            "",
            "  nereid perf simple --concurrency 1:16:x2",
            "  nereid perf simple --rate 100,200,400 --arrival poisson --protocol grpc",
            "  nereid perf simple --protocol in-process --model-repository examples/models",
            "  nereid perf simple --concurrency 8 --output json --assert 'p99<20ms' --assert 'rate>=500' --assert failed==0",
            "",
            "Exit code: 0 when every assertion holds, 1 when there is nothing to measure, 2 for an invalid command line,",
            "3 when an assertion fails, 130 after Ctrl-C."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class PerfCommand implements Callable<Integer> {
    /** The exit code when a measurement has succeeded and does not keep a threshold. */
    static final int ASSERTION_FAILED = 3;

    /** A delay of sending that is this share of the latency makes it doubtful. */
    private static final double DOUBTFUL = 0.1;

    @Parameters(index = "0", paramLabel = "MODEL", description = "The model's name.")
    private String model;

    @Mixin
    private MeasurementOptions measurement;

    @Mixin
    private InputOptions inputs;

    @Mixin
    private TargetOptions target;

    @Option(
            names = "--assert",
            paramLabel = "CONDITION",
            converter = PerfAssertion.Converter.class,
            description =
                    "A threshold that every load must keep, such as p99<20ms, rate>=500 or failed==0; may be repeated."
                            + " Metrics: p50, p90, p95, p99, p999, mean, min, max, rate, inferences, failed.")
    private List<PerfAssertion> assertions = new ArrayList<>();

    @Mixin
    private OutputOption output;

    @Option(
            names = "--report",
            paramLabel = "FILE",
            description = "Also write the report to a file: .html or .svg with charts of latency over load and by"
                    + " percentile, .json or .csv. May be repeated.")
    private List<Path> reports = new ArrayList<>();

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        OptionChecks checks = new OptionChecks(spec);
        measurement.check(checks);
        inputs.check(checks);
        target.check(checks);
        reports.forEach(ReportFile::check);
        PrintWriter out = spec.commandLine().getOut();
        PrintWriter err = spec.commandLine().getErr();
        TargetOptions.Opened opened = target.open(model, inputs, measurement.mostInFlight(), spec);
        try (InterruptSignal interrupt = InterruptSignal.listen()) {
            List<String> warnings = new ArrayList<>();
            if (opened.shared()) {
                warn(
                        "the server is on this machine: the load takes cores from it, so the results are lower than with a"
                                + " client on another one",
                        warnings,
                        err);
            }
            List<LoadResult> results = measure(opened, interrupt, warnings);
            boolean interrupted = interrupt.received();
            if (results.isEmpty()) {
                err.println("nereid: interrupted before there was anything to report");
                err.flush();
                return InterruptSignal.EXIT_CODE;
            }
            PerfReport report = new PerfReport(
                    model,
                    opened.version(),
                    opened.where(),
                    opened.protocol(),
                    opened.batchSize(),
                    results,
                    checked(results),
                    warnings,
                    interrupted);
            if (output.format().isDocument()) {
                output.format().print(JsonReport.of(report), out);
            } else {
                assertions(report, out);
            }
            out.flush();
            reports.forEach(file -> ReportFile.write(file, report));
            requireResponses(results, interrupted);
            return interrupted ? InterruptSignal.EXIT_CODE : report.passed() ? 0 : ASSERTION_FAILED;
        } finally {
            opened.target().close();
        }
    }

    private List<LoadResult> measure(TargetOptions.Opened opened, InterruptSignal interrupt, List<String> warnings) {
        PrintWriter out = spec.commandLine().getOut();
        PrintWriter err = spec.commandLine().getErr();
        ResultTable table = new ResultTable(out, opened.batchSize());
        if (!output.format().isDocument()) {
            out.println(model + " version " + opened.version() + " at " + opened.where() + ", " + opened.protocol()
                    + ", batch size " + opened.batchSize());
            table.head();
        }
        LoadMeasurement measure = new LoadMeasurement(
                opened.target(), measurement.plan(inputs.seed()), LoadTimer.system(), interrupt::received);
        List<LoadResult> results = new ArrayList<>();
        for (LoadLevel level : measurement.levels()) {
            LoadResult result = interrupt.received() ? null : measure.measure(level);
            if (result == null) {
                break;
            }
            results.add(result);
            if (!output.format().isDocument()) {
                table.row(result);
            }
            doubts(result).forEach(doubt -> warn(doubt, warnings, err));
        }
        return results;
    }

    private static void warn(String text, List<String> warnings, PrintWriter err) {
        warnings.add(text);
        err.println("nereid: warning: " + text);
        err.flush();
    }

    private static List<String> doubts(LoadResult result) {
        List<String> doubts = new ArrayList<>();
        String load = result.level().describe();
        if (Boolean.FALSE.equals(result.stable())) {
            doubts.add(load + ": the measurement is not stable after " + result.windows()
                    + " windows; raise --measurement-interval, --max-trials or --stability-percentage");
        }
        if (result.delayMillis(99) > 1 && result.delayMillis(99) > DOUBTFUL * result.percentileMillis(99)) {
            doubts.add(String.format(
                    Locale.ROOT,
                    "%s: one percent of the requests was sent %.1f ms late or later, which their latency contains: this"
                            + " machine or --max-in-flight is the limit",
                    load,
                    result.delayMillis(99)));
        }
        return doubts;
    }

    private List<AssertionCheck> checked(List<LoadResult> results) {
        List<AssertionCheck> checks = new ArrayList<>();
        for (PerfAssertion assertion : assertions) {
            for (LoadResult result : results) {
                checks.add(new AssertionCheck(
                        assertion.text(),
                        result.level().describe(),
                        assertion.actual(result, inputs.batchSize()),
                        assertion.unit(),
                        assertion.holds(result, inputs.batchSize())));
            }
        }
        return checks;
    }

    private static void assertions(PerfReport report, PrintWriter out) {
        for (AssertionCheck check : report.checks()) {
            out.println(String.format(
                    Locale.ROOT,
                    "  %s %s at %s: %.3f%s",
                    check.passed() ? "holds" : "FAILS",
                    check.text(),
                    check.load(),
                    check.actual(),
                    check.unit()));
        }
    }

    /** A load to which the model did not respond at all is not a measurement. */
    private static void requireResponses(List<LoadResult> results, boolean interrupted) {
        for (LoadResult result : results) {
            if (result.succeeded() == 0 && !interrupted) {
                String reason = result.failures().isEmpty()
                        ? "no response came within its time"
                        : result.failures().keySet().iterator().next();
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        result.level().describe() + ": not one request succeeded: " + reason,
                        "try one with: nereid infer");
            }
        }
    }
}
