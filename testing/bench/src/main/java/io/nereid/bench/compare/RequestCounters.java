// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.compare;

import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Instructions and system calls for each request, where this machine lets them be counted: instructions by {@code perf stat}
 * (it needs a processor whose counters the virtual machine passes on), system calls by {@code strace -c}. Stateless.
 */
final class RequestCounters {
    private static final Pattern INSTRUCTIONS = Pattern.compile("(?m)^(\\d+)[,;][^,;]*[,;]instructions");
    private static final Pattern CALLS = Pattern.compile("(?m)^\\s*(\\d+)\\s+total");
    private static final double SECONDS = 2;

    private RequestCounters() {}

    /** Instructions in user mode for each request; empty where they cannot be counted. */
    static OptionalDouble instructions(LoadGenerator load, ServerProcess server, BenchmarkSettings settings)
            throws IOException, InterruptedException {
        return counted(
                List.of("perf", "stat", "-x", ",", "-e", "instructions:u", "-p", Long.toString(server.pid())),
                INSTRUCTIONS,
                load,
                server,
                settings);
    }

    /** System calls of all threads for each request; empty where they cannot be counted. The server is slower meanwhile. */
    static OptionalDouble systemCalls(LoadGenerator load, ServerProcess server, BenchmarkSettings settings)
            throws IOException, InterruptedException {
        return counted(
                List.of("strace", "-f", "-c", "-U", "calls,name", "-p", Long.toString(server.pid())),
                CALLS,
                load,
                server,
                settings);
    }

    private static OptionalDouble counted(
            List<String> command, Pattern total, LoadGenerator load, ServerProcess server, BenchmarkSettings settings)
            throws IOException, InterruptedException {
        if (!LoadGenerator.onPath(command.get(0))) {
            return OptionalDouble.empty();
        }
        Path report = Files.createTempFile(settings.scratch(), "counters", ".txt");
        List<String> all = new ArrayList<>(command);
        all.addAll(1 + (command.get(0).equals("perf") ? 1 : 0), List.of("-o", report.toString()));
        Process counter = new ProcessBuilder(all)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        LoadGenerator.Outcome outcome;
        try {
            outcome = load.run(server, SECONDS, settings.scratch());
        } finally {
            // both programs write their totals when they are interrupted
            new ProcessBuilder("kill", "-INT", Long.toString(counter.pid()))
                    .start()
                    .waitFor();
            if (!counter.waitFor(20, TimeUnit.SECONDS)) {
                counter.destroyForcibly();
            }
        }
        Matcher matcher = total.matcher(Files.readString(report));
        if (!matcher.find() || outcome.requests() == 0) {
            settings.log("%s counts nothing on this machine", command.get(0));
            return OptionalDouble.empty();
        }
        return OptionalDouble.of(Double.parseDouble(matcher.group(1)) / outcome.requests());
    }
}
