// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.trees;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.scenario.Scenario;
import io.nereid.tensor.Tensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Models of CatBoost, scikit-learn and TensorFlow beside a loop of the Python package that has made them: one row, a hundred and ten
 * thousand, one thread, in alternating rounds. Needs a Python with the first two packages in {@code NEREID_BENCH_PYTHON}; TensorFlow's model
 * is left out without its package, or without its library, which the build has with {@code -Ptensorflow}. Stateless.
 */
public final class PythonLibrariesScenario implements Scenario {
    private static final String TENSORFLOW = "/org/tensorflow/internal/c_api/linux-x86_64/libtensorflow_cc.so.2";
    private static final int FEATURES = 20;
    private static final int SEED = 11;
    /** The sum of the predictions may differ by this part of the sum. */
    private static final double TOLERANCE = 1e-6;
    /** The part of the library's throughput that is to be reached. */
    private static final double LEAST = 0.95;

    /** A model that the script has trained. */
    private record Case(String name, String backend, Path file) {}

    /** The script's process. Confined to one thread. */
    private static final class Loop implements AutoCloseable {
        private final Process process;
        private final BufferedReader from;
        private final PrintStream to;
        final List<Case> cases = new ArrayList<>();

        Loop(String python, Path script, Path directory) throws IOException {
            process = new ProcessBuilder(python, script.toString(), directory.toString())
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            from = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            to = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
            for (String line = line(); !line.isEmpty(); line = line()) {
                String[] parts = line.split(" ");
                cases.add(new Case(parts[0], parts[1], directory.resolve(parts[2])));
            }
        }

        private String line() throws IOException {
            String line = from.readLine();
            if (line == null) {
                throw new IOException("the loop of the Python libraries has ended; its error is above");
            }
            return line;
        }

        /** Returns microseconds of CPU for each row, and the sum of the predictions. */
        double[] round(Case one, int rows) throws IOException {
            to.println(one.name() + " " + rows + " " + SEED + " 0.3");
            return Arrays.stream(line().split(" "))
                    .mapToDouble(Double::parseDouble)
                    .toArray();
        }

        @Override
        public void close() {
            to.close();
            try {
                if (!process.waitFor(10, TimeUnit.SECONDS)) {
                    process.destroyForcibly();
                }
            } catch (InterruptedException e) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        String python = System.getenv("NEREID_BENCH_PYTHON");
        if (python == null || python.isEmpty() || !Files.isExecutable(Path.of(python))) {
            String missing = "NEREID_BENCH_PYTHON must name a Python that has numpy, scikit-learn and catboost";
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("libraries", missing));
        }
        List<BenchmarkResult> results = new ArrayList<>();
        Path script = setting.root().resolve("testing/bench/library_loop.py");
        try (Loop loop = new Loop(python, script, setting.directory("libraries"))) {
            for (Case one : loop.cases) {
                if (one.backend().equals("tensorflow") && !hasTensorflow()) {
                    String missing =
                            "TensorFlow's library is missing; ./mvnw -Pquick,tensorflow -DskipTests -pl testing/bench -am package";
                    setting.log("SKIPPED: %s: %s", one.name(), missing);
                    results.add(BenchmarkResult.skipped("libraries, " + one.name(), missing));
                    continue;
                }
                try (SingleThreadModel model = SingleThreadModel.load(one.backend(), one.file(), setting)) {
                    for (int rows : new int[] {1, 100, 10_000}) {
                        results.add(compare(setting, loop, one, model, rows));
                    }
                }
            }
        }
        return results;
    }

    private static boolean hasTensorflow() {
        return PythonLibrariesScenario.class.getResource(TENSORFLOW) != null;
    }

    private static BenchmarkResult compare(
            BenchmarkSettings setting, Loop loop, Case one, SingleThreadModel model, int rows) throws IOException {
        double[] own = new double[setting.rounds()];
        double[] theirs = new double[setting.rounds()];
        double[] ratios = new double[setting.rounds()];
        double differ;
        Random random = new Random(SEED);
        try (Tensor in = model.input(rows, FEATURES, random::nextDouble)) {
            double sum = Arrays.stream(model.predict(in, rows)).sum();
            differ = Math.abs(sum / loop.round(one, rows)[1] - 1);
            model.micros(in, rows);
            for (int round = 0; round < own.length; round++) {
                theirs[round] = loop.round(one, rows)[0];
                own[round] = model.micros(in, rows);
                ratios[round] = theirs[round] / own[round];
            }
        }
        double ratio = BenchmarkResult.median(ratios);
        setting.log(
                "%s, %d rows: %.3f us a row, the library %.3f",
                one.name(), rows, BenchmarkResult.median(own), BenchmarkResult.median(theirs));
        return new BenchmarkResult(
                one.name() + ", " + FEATURES + " features, " + rows + (rows == 1 ? " row" : " rows") + ", one thread",
                BenchmarkResult.spread(theirs, "us CPU a row, Python library"),
                BenchmarkResult.spread(own, "us CPU a row"),
                BenchmarkResult.spread(ratios, ""),
                String.format(Locale.ROOT, "sums differ by %.1e", differ),
                String.format(Locale.ROOT, ">= %.2f of the library's rows per second", LEAST),
                BenchmarkResult.verdict(ratio >= LEAST && differ <= TOLERANCE));
    }
}
