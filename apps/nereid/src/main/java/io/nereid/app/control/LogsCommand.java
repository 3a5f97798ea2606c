// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import io.nereid.app.control.ControlOptions.Named;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKinds;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid logs}: shows the output of a service's processes, and the load messages of its models. */
@Command(
        name = "logs",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Show the output of an InferenceService's processes, and the load messages of its models.",
            "In a Kubernetes cluster, that are the logs of its pods, each line with its pod and container in front if"
                    + " there are several."
        },
        footer = {
            "",
            "  nereid logs iris",
            "  nereid logs iris -c transformer -f",
            "  nereid logs iris --context prod --container kserve-container --previous"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class LogsCommand implements Callable<Integer> {
    private static final int FOLLOWED = 5000;

    @Parameters(paramLabel = "NAME", description = "The service, as iris or isvc/iris.")
    private String name;

    @Option(
            names = {"-c", "--component"},
            paramLabel = "PART",
            description = "predictor, transformer or explainer; all by default.")
    private @Nullable String component;

    @Option(
            names = "--container",
            paramLabel = "NAME",
            description = "Only this container of the pods, such as kserve-container or storage-initializer; all by"
                    + " default. For clusters.")
    private @Nullable String container;

    @Option(
            names = {"-p", "--previous"},
            description = "The logs of the containers before their last restart. For clusters.")
    private boolean previous;

    @Option(
            names = "--tail",
            paramLabel = "LINES",
            defaultValue = "500",
            description = "Number of lines from the end of each log (default: 500).")
    private int tail;

    @Option(
            names = {"-f", "--follow"},
            description = "Follow the log.")
    private boolean follow;

    @Mixin
    private ControlOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        if (component != null
                && !List.of("predictor", "transformer", "explainer").contains(component)) {
            throw ServingException.invalidArgument(
                    "--component " + component + " is not known (expected predictor, transformer or explainer)");
        }
        if (tail < 0) {
            throw ServingException.invalidArgument("--tail is " + tail + " (expected: a number of lines)");
        }
        Named named = name.contains("/")
                ? options.named(List.of(name)).get(0)
                : options.named(ResourceKinds.INFERENCE_SERVICE, name);
        if (follow && previous) {
            throw ServingException.invalidArgument(
                    "both --follow and --previous are given (expected one of them)",
                    "a container that has ended writes nothing more");
        }
        if (named.kind() != ResourceKinds.INFERENCE_SERVICE) {
            throw ServingException.invalidArgument(
                    "resources of kind " + named.kind().kind() + " do not have logs",
                    "for example: nereid logs" + " isvc/iris");
        }
        ControlClient client = options.client(spec);
        if (client.isCluster()) {
            new PodLogs(client, named, new PodLogs.Choice(component, container, previous, tail), spec.commandLine())
                    .print(follow);
            return 0;
        }
        if (container != null || previous) {
            throw ServingException.invalidArgument(
                    (container != null ? "--container" : "--previous")
                            + " is for clusters: on one machine, all starts of a component share one log",
                    "leave it out, or name the cluster with --kubeconfig or --context");
        }
        PrintWriter out = spec.commandLine().getOut();
        List<String> lines = lines(client, named, tail);
        lines.forEach(out::println);
        out.flush();
        if (!follow) {
            if (lines.isEmpty() && tail > 0) {
                spec.commandLine()
                        .getErr()
                        .println((component == null ? "" : "the " + component + " of ") + named.name()
                                + " has not written anything, or does not exist: nereid describe isvc " + named.name()
                                + " -n "
                                + named.namespace());
                spec.commandLine().getErr().flush();
            }
            return 0;
        }
        List<String> seen = new ArrayList<>(lines(client, named, FOLLOWED));
        ScheduledThreadPoolExecutor timer = Threads.timer("logs");
        ScheduledFuture<?> ticks = timer.scheduleWithFixedDelay(
                () -> {
                    List<String> now = lines(client, named, FOLLOWED);
                    now.subList(overlap(seen, now), now.size()).forEach(out::println);
                    out.flush();
                    seen.clear();
                    seen.addAll(now);
                },
                500,
                500,
                TimeUnit.MILLISECONDS);
        try {
            ticks.get();
        } catch (ExecutionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            timer.shutdownNow();
        }
        return 0;
    }

    private List<String> lines(ControlClient client, Named named, int most) {
        return client.text(named.path() + "/logs?tail=" + most + (component == null ? "" : "&component=" + component))
                .lines()
                .toList();
    }

    /** Returns how many lines at the start of {@code now} are the end of {@code before}. */
    static int overlap(List<String> before, List<String> now) {
        for (int length = Math.min(before.size(), now.size()); length > 0; length--) {
            if (before.subList(before.size() - length, before.size()).equals(now.subList(0, length))) {
                return length;
            }
        }
        return 0;
    }
}
