// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import io.nereid.bench.compare.BuildComparison;
import io.nereid.bench.control.ColdStartScenario;
import io.nereid.bench.control.GatewayScenario;
import io.nereid.bench.control.ThousandServicesScenario;
import io.nereid.bench.encoder.HuggingFaceScenario;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerSetup;
import io.nereid.bench.lifecycle.LifecycleScenario;
import io.nereid.bench.lifecycle.LoadIsolationScenario;
import io.nereid.bench.lifecycle.ManyModelsScenario;
import io.nereid.bench.scenario.AccessScenario;
import io.nereid.bench.scenario.ArrowScenario;
import io.nereid.bench.scenario.BatcherScenario;
import io.nereid.bench.scenario.EmbeddedScenario;
import io.nereid.bench.scenario.EncryptionScenario;
import io.nereid.bench.scenario.EngineScenario;
import io.nereid.bench.scenario.EnsembleScenario;
import io.nereid.bench.scenario.IdentityModelScenario;
import io.nereid.bench.scenario.JsonScenario;
import io.nereid.bench.scenario.MinilmScenario;
import io.nereid.bench.scenario.MixedLengthsScenario;
import io.nereid.bench.scenario.ObjectiveScenario;
import io.nereid.bench.scenario.OverloadScenario;
import io.nereid.bench.scenario.PythonBackendScenario;
import io.nereid.bench.scenario.ResponseCacheScenario;
import io.nereid.bench.scenario.Scenario;
import io.nereid.bench.scenario.SoakScenario;
import io.nereid.bench.scenario.StartupScenario;
import io.nereid.bench.scenario.TailScenario;
import io.nereid.bench.scenario.TfliteScenario;
import io.nereid.bench.scenario.TorchScriptScenario;
import io.nereid.bench.trees.NativeTreesScenario;
import io.nereid.bench.trees.PythonLibrariesScenario;
import io.nereid.bench.trees.ServedTreesScenario;
import io.nereid.bench.trees.TreesScenario;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** The benchmark program: measures the rows of the results table and prints it. One thread, one row at a time. */
public final class Bench {
    private static final Map<String, Scenario> ROWS = rows();
    private static final List<String> OPTIONS = List.of("--rounds", "--seconds", "--warmup", "--soak", "--compare");

    private Bench() {}

    private static Map<String, Scenario> rows() {
        Map<String, Scenario> rows = new LinkedHashMap<>();
        rows.put(
                "rest-small",
                new IdentityModelScenario(
                        "V2 REST JSON, 16 floats, 16 connections",
                        RequestBodies::restSmall,
                        ServerSetup.IDENTITY,
                        1.3,
                        0,
                        0.5));
        rows.put(
                "grpc-single",
                new IdentityModelScenario(
                        "V2 gRPC raw, 16 floats, 16 conns x 1",
                        b -> b.grpcSmall(16, 1),
                        ServerSetup.IDENTITY,
                        1.3,
                        0,
                        0));
        rows.put(
                "grpc-mux",
                new IdentityModelScenario(
                        "V2 gRPC raw, 16 floats, 4 conns x 16",
                        b -> b.grpcSmall(4, 16),
                        ServerSetup.IDENTITY,
                        0,
                        4,
                        0));
        rows.put(
                "rest-big",
                new IdentityModelScenario(
                        "V2 REST binary, 4.8 MB", RequestBodies::restBig, ServerSetup.IDENTITY, 1.25, 0, 0));
        rows.put(
                "grpc-big",
                new IdentityModelScenario(
                        "V2 gRPC raw, 4.8 MB", RequestBodies::grpcBig, ServerSetup.IDENTITY, 1.25, 0, 0));
        rows.put("tails", new TailScenario());
        rows.put("access", new AccessScenario());
        rows.put("tls", new EncryptionScenario());
        rows.put("json-floats", new JsonScenario());
        rows.put("arrow", new ArrowScenario());
        rows.put("python", new PythonBackendScenario());
        rows.put("trees", new TreesScenario());
        rows.put("trees-native", new NativeTreesScenario());
        rows.put("libraries", new PythonLibrariesScenario());
        rows.put("trees-served", new ServedTreesScenario());
        rows.put("batcher", new BatcherScenario());
        rows.put("engine", new EngineScenario());
        rows.put("embedded", new EmbeddedScenario());
        rows.put("tflite", new TfliteScenario());
        rows.put("torchscript", new TorchScriptScenario());
        rows.put("huggingface", new HuggingFaceScenario());
        rows.put("ensemble", new EnsembleScenario());
        rows.put("cache", new ResponseCacheScenario());
        rows.put("gateway", new GatewayScenario());
        rows.put("cold-start", new ColdStartScenario());
        rows.put("thousand", new ThousandServicesScenario());
        rows.put("models", new ManyModelsScenario());
        rows.put("lifecycle", new LifecycleScenario());
        rows.put("isolation", new LoadIsolationScenario());
        rows.put("minilm", new MinilmScenario());
        rows.put("minilm-lengths", new MixedLengthsScenario());
        rows.put("slo", new ObjectiveScenario());
        rows.put("start", new StartupScenario());
        rows.put("overload", new OverloadScenario());
        rows.put("soak", new SoakScenario());
        return rows;
    }

    /** Arguments: options, then the names of rows; without names all rows are measured. */
    public static void main(String[] args) throws IOException, InterruptedException {
        Map<String, String> options = new LinkedHashMap<>();
        List<String> names = new ArrayList<>();
        for (String arg : args) {
            if (arg.startsWith("--")) {
                int equals = arg.indexOf('=');
                options.put(equals < 0 ? arg : arg.substring(0, equals), equals < 0 ? "" : arg.substring(equals + 1));
            } else {
                names.add(arg);
            }
        }
        for (String option : options.keySet()) {
            if (!OPTIONS.contains(option)) {
                System.err.println(
                        "bench: unknown option '" + option + "' (options: " + String.join(", ", OPTIONS) + ")");
                System.exit(2);
            }
        }
        String base = options.get("--compare");
        Set<String> known = base == null ? ROWS.keySet() : BuildComparison.rows();
        for (String name : names) {
            if (!known.contains(name)) {
                System.err.println("bench: unknown row '" + name + "' (rows: " + String.join(", ", known) + ")");
                System.exit(2);
            }
        }
        if (!ProcessStatistics.available()) {
            System.err.println("bench: requires /proc to read a server's CPU time; nothing measured");
            System.exit(2);
        }
        Path scratch = Files.createTempDirectory("nereid-bench");
        boolean met;
        try {
            BenchmarkSettings settings = new BenchmarkSettings(
                    Path.of(System.getProperty("nereid.distribution")),
                    Path.of(System.getProperty("nereid.root")),
                    scratch,
                    Integer.parseInt(options.getOrDefault("--rounds", base == null ? "3" : "10")),
                    Double.parseDouble(options.getOrDefault("--seconds", "4")),
                    Double.parseDouble(options.getOrDefault("--warmup", "15")),
                    Double.parseDouble(options.getOrDefault("--soak", "600")),
                    System.out);
            met = base == null
                    ? run(settings, names.isEmpty() ? new ArrayList<>(ROWS.keySet()) : names)
                    : BuildComparison.run(settings.of(Path.of(base)), settings, names);
        } finally {
            BenchmarkSettings.delete(scratch);
        }
        if (!met) {
            System.exit(1);
        }
    }

    /** Returns false when a required scenario failed or missed its target. */
    private static boolean run(BenchmarkSettings setting, List<String> names) throws IOException, InterruptedException {
        System.out.printf(
                Locale.ROOT,
                "%s, %d processors, Java %s, %d rounds of %.0f s%n%n",
                machine(),
                Runtime.getRuntime().availableProcessors(),
                System.getProperty("java.version"),
                setting.rounds(),
                setting.seconds());
        List<BenchmarkResult> table = new ArrayList<>();
        boolean met = true;
        for (String name : names) {
            Scenario row = ROWS.get(name);
            System.out.println(name);
            try {
                for (BenchmarkResult figure : row == null ? List.<BenchmarkResult>of() : row.measure(setting)) {
                    table.add(figure);
                    met &= !(row != null && row.required() && figure.verdict().equals("MISS"));
                }
            } catch (IOException e) {
                System.out.println("  FAILED: " + e.getMessage());
                met &= !(row != null && row.required());
                table.add(BenchmarkResult.skipped(
                        name,
                        "failed: "
                                + String.valueOf(e.getMessage())
                                        .lines()
                                        .findFirst()
                                        .orElse("")));
            }
        }
        System.out.println();
        BenchmarkResult.print(table, System.out);
        return met;
    }

    private static String machine() throws IOException {
        return Files.readString(Path.of("/proc/cpuinfo"))
                .lines()
                .filter(l -> l.startsWith("model name"))
                .map(l -> l.substring(l.indexOf(':') + 2))
                .findFirst()
                .orElse("unknown processor");
    }
}
