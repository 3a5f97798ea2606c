// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import io.nereid.app.client.ServerClient;
import io.nereid.app.perf.InputOptions;
import io.nereid.app.perf.OptionChecks;
import io.nereid.app.perf.TargetOptions;
import io.nereid.app.perf.load.InProcessTarget;
import io.nereid.app.process.InterruptSignal;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.OutputOption;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
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

/** {@code nereid tune}: finds and writes the configuration that serves most requests within a latency limit. Confined to one thread. */
@Command(
        name = "tune",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid tune MODEL --slo PERCENTILE=TIME [--budget TIME] [OPTIONS]",
        description = {
            "Find the batch size, queue delay, instances and threads with which a model serves most requests within a latency"
                    + " limit, write them to its config.pbtxt, and load it with them.",
            "The model is loaded with each configuration that is measured: use a server without other traffic.",
            "Ctrl-C ends the search and restores the stored configuration."
        },
        footer = {
            "",
            "  nereid tune resnet --slo p99=50ms",
            "  nereid tune resnet --slo p99=50ms --budget 2m --dry-run --report tune.html",
            "  nereid tune resnet --slo p95=20ms --protocol in-process --model-repository models",
            "",
            "Exit code: 0 when the model keeps the limit at the end, 1 for an error, 2 for an invalid command line,",
            "3 when no configuration keeps the limit, 130 after Ctrl-C."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class TuneCommand implements Callable<Integer> {
    private static final int NOT_KEPT = 3;
    private static final int MOST_BATCH = 64;

    /** Measurements of the confirmation, for which time is kept. */
    private static final int KEPT = 6;

    /** How configurations are chosen. */
    enum Method {
        QUICK,
        GRID;

        @Override
        public String toString() {
            return this == QUICK ? "quick" : "grid";
        }
    }

    @Parameters(index = "0", paramLabel = "MODEL", description = "The model's name.")
    private String model;

    @Option(
            names = "--slo",
            paramLabel = "PERCENTILE=TIME",
            required = true,
            converter = ObjectiveConverter.class,
            description = "The latency limit, such as p99=20ms.")
    private LatencyObjective objective;

    @Option(
            names = "--budget",
            paramLabel = "TIME",
            defaultValue = "5m",
            converter = DurationConverter.class,
            description = "The search ends after this time with the best it has found (default: ${DEFAULT-VALUE}).")
    private String budget;

    @Option(
            names = "--batch-sizes",
            paramLabel = "N",
            split = ",",
            description =
                    "The batch sizes to try (default: 1,2,4, … up to 64, or the model's max_batch_size if that is more).")
    private @Nullable List<Integer> batchSizes;

    @Option(
            names = "--delays",
            paramLabel = "MICROSECONDS",
            split = ",",
            description = "The queue delays to try (default: 0, and 100 to 10000 as far as the limit allows).")
    private @Nullable List<Long> delays;

    @Option(
            names = "--instances",
            paramLabel = "N",
            split = ",",
            description = "The numbers of instances to try (default: 1,2,3,4, … up to twice the cores).")
    private @Nullable List<Integer> instances;

    @Option(
            names = "--threads",
            paramLabel = "N",
            split = ",",
            description = "The numbers of threads of a run to try, where the model's backend has a parameter for them"
                    + " (default: 1,2,3,4, … up to the cores).")
    private @Nullable List<Integer> threads;

    @Option(
            names = "--cores",
            paramLabel = "N",
            description = "The cores of the server (default: those of this machine when the server is on it, else the"
                    + " instances that the model has now).")
    private @Nullable Integer cores;

    @Option(
            names = "--max-concurrency",
            paramLabel = "N",
            defaultValue = "256",
            description = "The most requests in flight at the same time (default: ${DEFAULT-VALUE}).")
    private int maxConcurrency;

    @Option(
            names = "--measurement-interval",
            paramLabel = "TIME",
            defaultValue = "1s",
            converter = DurationConverter.class,
            description =
                    "The length of a measurement; up to four times that where requests are slow (default: ${DEFAULT-VALUE}).")
    private String interval;

    @Option(
            names = "--warmup",
            paramLabel = "TIME",
            defaultValue = "300ms",
            converter = DurationConverter.class,
            description = "Time before each measurement, whose requests do not count (default: ${DEFAULT-VALUE}).")
    private String warmup;

    @Option(
            names = "--search",
            paramLabel = "METHOD",
            defaultValue = "quick",
            description =
                    "quick, which follows what gains, or grid: every configuration at every load (default: ${DEFAULT-VALUE}).")
    private Method method;

    @Option(
            names = "--dry-run",
            description = "Print the fields, but do not write them, and restore the stored configuration.")
    private boolean dryRun;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description =
                    "The config.pbtxt to write (default: that of the model, where the server is on this machine).")
    private @Nullable Path file;

    @Mixin
    private InputOptions inputs;

    @Mixin
    private TargetOptions target;

    @Mixin
    private OutputOption output;

    @Option(
            names = "--report",
            paramLabel = "FILE",
            description =
                    "Also write a report: .html or .svg with a picture of rate and latency, or .json. May be repeated.")
    private List<Path> reports = new ArrayList<>();

    @Spec
    private CommandSpec spec;

    private final Clock clock = Clock.system();

    @Override
    public Integer call() {
        OptionChecks checks = new OptionChecks(spec);
        check(checks);
        inputs.check(checks);
        target.check(checks);
        reports.forEach(TuneReport::check);
        TargetOptions.Opened opened = target.open(model, inputs, maxConcurrency, spec);
        try (InterruptSignal interrupt = InterruptSignal.listen()) {
            ServerClient client = target.client(spec);
            TunedModel tuned = client != null
                    ? TunedModel.of(client, model, opened.shared())
                    : TunedModel.of((InProcessTarget) opened.target());
            return tune(opened, tuned, interrupt);
        } finally {
            opened.target().close();
        }
    }

    private void check(OptionChecks checks) {
        checks.within("--max-concurrency", maxConcurrency, 1, 10_000);
        if (cores != null) {
            checks.within("--cores", cores, 1, 4096);
        }
        each(checks, "--batch-sizes", batchSizes, 1, 1 << 20);
        each(checks, "--delays", delays, 0, 60_000_000);
        each(checks, "--instances", instances, 1, 4096);
        each(checks, "--threads", threads, 1, 4096);
        Path directory = file == null ? null : file.toAbsolutePath().getParent();
        if (directory != null && !Files.isDirectory(directory)) {
            throw checks.wrong("--config '" + file + "': its directory '" + directory + "' does not exist");
        }
        checks.above("--budget", Units.duration(budget).toMillis(), 0);
        checks.above("--measurement-interval", Units.duration(interval).toMillis(), 0);
    }

    private static void each(
            OptionChecks checks, String option, @Nullable List<? extends Number> values, long least, long most) {
        if (values != null) {
            values.forEach(value -> checks.within(option, value.longValue(), least, most));
        }
    }

    private int tune(TargetOptions.Opened opened, TunedModel tuned, InterruptSignal interrupt) {
        PrintWriter out = spec.commandLine().getOut();
        var effective = tuned.effective();
        int machine = Runtime.getRuntime().availableProcessors();
        boolean here = opened.shared() || opened.target() instanceof InProcessTarget;
        VariantConfig config = VariantConfig.of(effective, tuned.written(), machine);
        int width = cores != null
                ? cores
                : here
                        ? machine
                        : Math.max(
                                1, config.first().instances() * config.first().threads());
        SearchSpace space = space(config, width);
        LoadedVariants.Timing timing = new LoadedVariants.Timing(
                Units.duration(warmup).toNanos(), Units.duration(interval).toNanos(), inputs.seed());
        boolean table = !output.format().isDocument();
        if (table) {
            head(opened, config, space, out);
        }
        LoadedVariants variants =
                new LoadedVariants(tuned, config, opened.target(), objective, timing, interrupt::received, result -> {
                    if (table) {
                        row(result, out);
                    }
                });
        long began = clock.nanos();
        long end = began + Units.duration(budget).toNanos();
        VariantSearch search = new VariantSearch(
                space,
                objective.millis(),
                width,
                variants,
                () -> interrupt.received() || clock.nanos() + KEPT * variants.meanNanos() - end >= 0);
        VariantSearch.Outcome outcome;
        try {
            outcome = method == Method.GRID ? search.grid(config.first()) : search.search(config.first());
        } catch (RuntimeException e) {
            restoreAfter(e, variants);
            throw e;
        }
        if (outcome == null || interrupt.received()) {
            variants.restore();
            spec.commandLine().getErr().println("nereid: interrupted; the model has its stored configuration");
            spec.commandLine().getErr().flush();
            return InterruptSignal.EXIT_CODE;
        }
        ConfigVariant proposed = outcome.after().variant();
        String written = "";
        if (outcome.improved() && !dryRun) {
            Path place = file != null ? file : tuned.file();
            written = place == null ? "" : write(place, config, proposed, tuned, variants);
        }
        if (written.isEmpty()) {
            variants.restore();
        }
        TuneReport report = new TuneReport(
                model,
                opened.where(),
                objective,
                outcome,
                (clock.nanos() - began) / 1e9,
                space.measurements(),
                outcome.improved() ? config.fields(proposed) : "",
                written);
        if (table) {
            summary(report, config, out);
        } else {
            output.format().print(report.json(), out);
        }
        out.flush();
        reports.forEach(report::write);
        return report.kept() ? 0 : NOT_KEPT;
    }

    private static void restoreAfter(RuntimeException failure, LoadedVariants variants) {
        try {
            variants.restore();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    private SearchSpace space(VariantConfig config, int width) {
        ConfigVariant first = config.first();
        List<Integer> sizes = List.of(0);
        List<Long> waits = List.of(0L);
        if (config.batches()) {
            sizes = batchSizes != null ? batchSizes : powers(Math.max(MOST_BATCH, config.maxBatchSize(first)));
            sizes = SearchSpace.with(sizes, first.batchSize()).stream()
                    .filter(size -> size >= inputs.batchSize() || size == first.batchSize())
                    .toList();
            double longest = objective.millis() * 1000 / 4;
            waits = delays != null
                    ? delays
                    : List.of(0L, 100L, 500L, 1000L, 2000L, 5000L, 10_000L).stream()
                            .filter(delay -> delay <= longest)
                            .toList();
            waits = SearchSpace.with(waits, first.delayMicros());
        }
        return new SearchSpace(
                sizes,
                waits,
                config.hasInstances()
                        ? SearchSpace.with(
                                instances != null ? instances : SearchSpace.steps(2 * width), first.instances())
                        : List.of(first.instances()),
                config.hasThreads()
                        ? SearchSpace.with(threads != null ? threads : SearchSpace.steps(width), first.threads())
                        : List.of(first.threads()),
                SearchSpace.steps(maxConcurrency));
    }

    private static List<Integer> powers(int most) {
        List<Integer> result = new ArrayList<>();
        for (int value = 1; value <= most; value *= 2) {
            result.add(value);
        }
        return result;
    }

    /** Writes the file and loads the model with it; with a file that cannot be loaded, the former one comes back. */
    private static String write(
            Path place, VariantConfig config, ConfigVariant proposed, TunedModel tuned, LoadedVariants variants) {
        String before = null;
        try {
            before = Files.exists(place) ? Files.readString(place) : null;
            replace(place, config.text(before == null ? "" : before, proposed));
            tuned.load(null);
            return place.toString();
        } catch (IOException e) {
            variants.restore();
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE,
                    "'" + place + "' cannot be written: " + e.getMessage() + "; add these fields to it:\n"
                            + config.fields(proposed),
                    e);
        } catch (ServingException e) {
            try {
                if (before == null) {
                    Files.deleteIfExists(place);
                } else {
                    replace(place, before);
                }
                variants.restore();
            } catch (IOException | RuntimeException again) {
                e.addSuppressed(again);
            }
            throw e;
        }
    }

    private static void replace(Path place, String text) throws IOException {
        Path next = place.resolveSibling("." + place.getFileName() + ".tune");
        Files.writeString(next, text);
        Files.move(next, place, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
    }

    private void head(TargetOptions.Opened opened, VariantConfig config, SearchSpace space, PrintWriter out) {
        out.println(model + " version " + opened.version() + " at " + opened.where() + ", " + opened.protocol()
                + ", batch size " + opened.batchSize() + ", " + objective.metric() + " at most "
                + TuneReport.number(objective.millis()) + " ms");
        out.println("now: " + config.first().describe() + "; " + space.variants() + " configurations, "
                + space.concurrencies().size() + " loads");
        if (opened.shared()) {
            out.println("the server is on this machine: the load takes cores from it, and the best configuration with a"
                    + " client on another one may have more instances");
        }
        out.println(String.format(
                Locale.ROOT,
                "  %-52s %11s %10s %9s",
                "CONFIGURATION",
                "CONCURRENCY",
                "RATE/s",
                objective.metric().toUpperCase(Locale.ROOT) + " ms"));
        out.flush();
    }

    private void row(VariantResult result, PrintWriter out) {
        out.println(String.format(
                Locale.ROOT,
                "  %-52s %11d %10s %9s%s",
                result.variant().describe(),
                result.concurrency(),
                TuneReport.number(result.rate()),
                TuneReport.number(result.latencyMillis()),
                result.failed() > 0
                        ? "  " + result.failed() + " failed"
                        : result.keeps(objective.millis()) ? "" : "  above the limit"));
        out.flush();
    }

    private void summary(TuneReport report, VariantConfig config, PrintWriter out) {
        VariantSearch.Outcome outcome = report.outcome();
        outcome.refused()
                .forEach((variant, why) -> out.println("  not loaded with " + variant.describe() + ": " + why));
        out.println();
        out.println(outcome.measurements() + " measurements in " + Math.round(report.seconds()) + " s, of "
                + report.grid() + " of the whole grid");
        out.println("before: " + line(outcome.before()));
        if (!outcome.improved()) {
            out.println("nothing that was measured is better; the model has its stored configuration");
        } else {
            out.println("after:  " + line(outcome.after())
                    + String.format(
                            Locale.ROOT,
                            ", %.2f times the rate",
                            outcome.after().rate() / outcome.before().rate()));
            out.println();
            out.print(report.fields());
            out.println();
            if (report.fields().contains("max_batch_size") && !config.limitsRows()) {
                out.println("requests of more than "
                        + config.maxBatchSize(outcome.after().variant())
                        + " rows are refused with this configuration; without one they are split");
            }
            out.println(
                    !report.written().isEmpty()
                            ? "written to " + report.written() + "; the model is loaded with it"
                            : dryRun
                                    ? "not written (--dry-run); the model has its stored configuration"
                                    : "not written, as the model's file is not on this machine (--config FILE names one);"
                                            + " the model has its stored configuration");
        }
        if (!report.kept()) {
            out.println("no configuration keeps " + objective.metric() + " within "
                    + TuneReport.number(objective.millis()) + " ms");
        }
    }

    private String line(VariantResult result) {
        return result.variant().describe() + ": " + TuneReport.number(result.rate()) + "/s, " + objective.metric() + " "
                + TuneReport.number(result.latencyMillis()) + " ms at concurrency " + result.concurrency();
    }
}
