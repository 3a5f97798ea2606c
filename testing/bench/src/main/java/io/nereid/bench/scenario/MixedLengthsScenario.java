// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * Sentences of mixed lengths to {@code minilm}: requests in padded batches chosen by length, compared with padding all that waits to
 * its longest in order of arrival, and with a batch for each length. The same build, with other parameters of the model. Stateless.
 */
public final class MixedLengthsScenario implements Scenario {
    private static final int[] CLIENTS = {16, 64};
    private static final double MIN_RATIO = 1.5;
    private static final int SENTENCES = 512;
    /** Log-normal: half of the sentences have at most so many tokens; the model takes 256. */
    private static final double MEDIAN = 24;

    private static final double SIGMA = 0.8;
    private static final int LEAST = 4;
    private static final int MOST = 256;
    private static final String PADDING = parameter("", "input_ids=0,attention_mask=0,token_type_ids=0");

    /** A way to serve the model, and what it reached in each round. */
    private record Variant(String name, String parameters, double[] rates, double[] p50, double[] p99) {
        Variant(String name, String parameters, int rounds) {
            this(name, parameters, new double[rounds], new double[rounds], new double[rounds]);
        }
    }

    private static String parameter(String suffix, String value) {
        return "parameters { key: \"batching_padding" + suffix + "\" value { string_value: \"" + value + "\" } }\n";
    }

    private static int[] lengths() {
        Random random = new Random(7);
        return IntStream.range(0, SENTENCES)
                .map(i -> (int) Math.round(Math.max(
                        LEAST, Math.min(MOST, MEDIAN * Math.exp(SIGMA * random.nextGaussian())))))
                .toArray();
    }

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path model = setting.examples().resolve("minilm");
        Path file = model.resolve("1").resolve("model.onnx");
        String missing = !Files.exists(file)
                ? "the build has not fetched " + file
                : !LoadGenerator.onPath("wrk") ? "wrk is not on the PATH" : null;
        if (missing != null) {
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("minilm, mixed lengths", missing));
        }
        int[] lengths = lengths();
        int[] sorted = lengths.clone();
        Arrays.sort(sorted);
        setting.log(
                "tokens of a sentence: mean %.0f, median %d, 90 %% %d, 99 %% %d, longest %d",
                Arrays.stream(sorted).average().orElse(0),
                sorted[SENTENCES / 2],
                sorted[SENTENCES * 9 / 10],
                sorted[SENTENCES * 99 / 100],
                sorted[SENTENCES - 1]);
        List<BenchmarkResult> results = new ArrayList<>();
        for (int clients : CLIENTS) {
            results.addAll(
                    measure(setting, model, clients, new RequestBodies(setting.scratch()).minilm(clients, lengths)));
        }
        return results;
    }

    private static List<BenchmarkResult> measure(BenchmarkSettings setting, Path model, int clients, LoadGenerator load)
            throws IOException, InterruptedException {
        int rounds = setting.rounds();
        Variant arrival = new Variant("arrival", PADDING + parameter("_order", "arrival"), rounds);
        List<Variant> variants = List.of(
                new Variant("separate", "", rounds),
                arrival,
                new Variant("length", PADDING, rounds),
                new Variant("buckets", PADDING + parameter("_buckets", "powers"), rounds));
        List<ServerProcess> servers = new ArrayList<>();
        try {
            for (Variant variant : variants) {
                servers.add(ServerProcess.nereid(
                        setting.distribution(), repository(setting, variant, model, clients), setting.scratch()));
                load.run(servers.get(servers.size() - 1), setting.warmup(), setting.scratch());
            }
            for (int i = 0; i < rounds; i++) {
                for (int v = 0; v < variants.size(); v++) {
                    Variant variant = variants.get(v);
                    LoadGenerator.Outcome outcome = load.run(servers.get(v), setting.seconds(), setting.scratch());
                    if (outcome.failed() > 0) {
                        throw new IOException(outcome.failed() + " requests failed: " + variant.name);
                    }
                    variant.rates[i] = outcome.requests() / outcome.seconds();
                    variant.p50[i] = outcome.p50();
                    variant.p99[i] = outcome.p99();
                    setting.log(
                            "%d clients, %-10s %.0f/s, p50 %.1f ms, p99 %.1f ms",
                            clients, variant.name, variant.rates[i], variant.p50[i], variant.p99[i]);
                }
            }
        } finally {
            servers.forEach(ServerProcess::close);
        }
        List<BenchmarkResult> results = new ArrayList<>();
        for (Variant variant : variants) {
            double ratio = BenchmarkResult.median(variant.rates) / BenchmarkResult.median(arrival.rates);
            boolean judged = variant.name.equals("length");
            if (variant != arrival) {
                results.add(new BenchmarkResult(
                        "minilm, mixed lengths, " + clients + " clients: " + variant.name,
                        BenchmarkResult.spread(arrival.rates, "sentences/s"),
                        BenchmarkResult.spread(variant.rates, "sentences/s"),
                        String.format(Locale.ROOT, "%.2f", ratio),
                        String.format(
                                Locale.ROOT,
                                "p50 %.0f (%.0f) ms, p99 %.0f (%.0f) ms",
                                BenchmarkResult.median(variant.p50),
                                BenchmarkResult.median(arrival.p50),
                                BenchmarkResult.median(variant.p99),
                                BenchmarkResult.median(arrival.p99)),
                        judged ? ">= 1.5 times all padded to the longest" : "",
                        judged ? BenchmarkResult.verdict(ratio >= MIN_RATIO) : "-"));
            }
        }
        return results;
    }

    private static Path repository(BenchmarkSettings setting, Variant variant, Path model, int clients)
            throws IOException {
        Path repository = setting.directory("minilm-" + variant.name + "-" + clients);
        StartupScenario.copy(model, repository.resolve("minilm"));
        Path config = repository.resolve("minilm").resolve("config.pbtxt");
        String text = Files.readString(config).replaceAll("(?m)^parameters .*batching_padding.*$", "");
        Files.writeString(config, text + "\n" + variant.parameters);
        return repository;
    }
}
