// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * What versions that come and go cost those who serve: a served model is swapped two hundred times under saturation; a model
 * of 400 MB comes and goes beside it; ten thousand models are on the list of which a thousand are stored. Has no state.
 */
final class LifecycleRow implements Bench.Row {
    private static final int SWAPS = 200;
    private static final int LOADS = 5;
    private static final int SIDE = 10_000;
    private static final int LISTED = 10_000;
    private static final int STORED = 1_000;
    private static final long SETTLE_MILLIS = 5_000;
    private static final double MAX_SWAP = 1.5;
    private static final double MAX_LOAD = 1.2;
    private static final double MAX_POLL = 0.01;

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        Path tiny = setting.root().resolve("backends/onnx/src/test/resources/models/identity_fp32.onnx");
        List<Figure> figures = new ArrayList<>();
        Load load = new Bodies(setting.scratch()).models(1);
        if (Load.onPath(load.program())) {
            figures.addAll(swaps(setting, tiny, load));
        } else {
            figures.add(Figure.skipped("version swaps under load", load.program() + " is not on the PATH"));
        }
        figures.add(list(setting, tiny));
        return figures;
    }

    private static List<Figure> swaps(Bench.Setting setting, Path tiny, Load load)
            throws IOException, InterruptedException {
        Path base = setting.directory("swapped");
        for (int version = 1; version <= 2; version++) {
            Files.copy(
                    tiny,
                    Files.createDirectories(base.resolve(Integer.toString(version)))
                            .resolve("model.onnx"));
        }
        Path large = large(setting.directory("large"));
        Path file = setting.scratch().resolve("swapped.config");
        String served = entry("m0", base, "model_version_policy { specific { versions: %d } }");
        Files.writeString(file, list(String.format(Locale.ROOT, served, 1)));
        ExecutorService driver = Executors.newSingleThreadExecutor();
        try (ServerProcess server = ServerProcess.listed(setting.distribution(), file, setting.scratch())) {
            Admin admin = new Admin(server);
            // The way of a swap is warmed up as the way of a request is.
            Future<Load.Outcome> warm = driver.submit(() -> load.run(server, setting.warmup(), setting.scratch()));
            for (int i = 0; i < SWAPS && !warm.isDone(); i++) {
                admin.configure(list(String.format(Locale.ROOT, served, i % 2 == 0 ? 2 : 1)));
            }
            get(warm);
            admin.configure(list(String.format(Locale.ROOT, served, 1)));
            double foreign = foreign(server);
            long from = System.nanoTime();
            double[] steady = new double[setting.rounds()];
            double[] swapped = new double[setting.rounds()];
            double[] loading = new double[setting.rounds()];
            double[] counting = new double[setting.rounds()];
            long failed = 0;
            long requests = 0;
            int swaps = 0;
            for (int round = 0; round < setting.rounds(); round++) {
                steady[round] =
                        load.run(server, setting.seconds(), setting.scratch()).p99();
                Future<Load.Outcome> under =
                        driver.submit(() -> load.run(server, setting.seconds(), setting.scratch()));
                int wanted = (SWAPS + setting.rounds() - 1) / setting.rounds();
                for (int i = 0; i < wanted && !under.isDone(); i++, swaps++) {
                    admin.configure(list(String.format(Locale.ROOT, served, 2 - swaps % 2)));
                }
                Load.Outcome outcome = get(under);
                swapped[round] = outcome.p99();
                failed += outcome.failed();
                requests += outcome.requests();
                String one = String.format(Locale.ROOT, served, 1 + swaps % 2);
                Future<Load.Outcome> beside =
                        driver.submit(() -> load.run(server, setting.seconds(), setting.scratch()));
                for (int i = 0; i < LOADS && !beside.isDone(); i++) {
                    admin.configure(list(one, entry("large", large, "")));
                    admin.configure(list(one));
                }
                outcome = get(beside);
                loading[round] = outcome.p99();
                failed += outcome.failed();
                requests += outcome.requests();
                counting[round] = besideNothing(setting, server, load);
                setting.say(
                        "p99 steady %.2f ms, while versions swap %.2f ms, while 400 MB load %.2f ms, beside a loop %.2f ms",
                        steady[round], swapped[round], loading[round], counting[round]);
            }
            foreign = (foreign(server) - foreign)
                    / ((System.nanoTime() - from) / 1e9 * Runtime.getRuntime().availableProcessors());
            String others = String.format(Locale.ROOT, "others took %.0f %% of the machine", 100 * foreign);
            double swapRatio = Figure.median(swapped) / Figure.median(steady);
            double loadRatio = Figure.median(loading) / Figure.median(steady);
            return List.of(
                    new Figure(
                            swaps + " swaps of a served version under saturation, REST, 16 connections",
                            Figure.spread(steady, "ms p99, steady"),
                            Figure.spread(swapped, "ms p99"),
                            String.format(Locale.ROOT, "%.2f", swapRatio),
                            failed + " of " + requests + " requests failed; " + others,
                            "none failed; p99 <= 1.5 x steady",
                            Figure.verdict(failed == 0 && swapRatio <= MAX_SWAP)),
                    new Figure(
                            "a model of 400 MB loads and unloads beside it",
                            Figure.spread(steady, "ms p99, steady"),
                            Figure.spread(loading, "ms p99"),
                            String.format(Locale.ROOT, "%.2f", loadRatio),
                            String.format(
                                    Locale.ROOT,
                                    "%s; %.2f beside a loop that only counts, under SCHED_IDLE as loads are",
                                    others,
                                    Figure.median(counting) / Figure.median(steady)),
                            "p99 <= 1.2 x steady",
                            Figure.verdict(loadRatio <= MAX_LOAD)));
        } finally {
            driver.shutdownNow();
        }
    }

    /**
     * The p99 beside a program that does nothing but count, and gives way to everybody: what a busy neighbour costs on this
     * machine whatever it does. Not a number where it cannot be started.
     */
    private static double besideNothing(Bench.Setting setting, ServerProcess server, Load load)
            throws IOException, InterruptedException {
        if (!Load.onPath("chrt")) {
            return Double.NaN;
        }
        Process loop = new ProcessBuilder("chrt", "-i", "0", "sh", "-c", "while :; do :; done").start();
        try {
            return load.run(server, setting.seconds(), setting.scratch()).p99();
        } finally {
            loop.destroyForcibly();
        }
    }

    /** Processor time of whatever is neither the server nor the load. */
    private static double foreign(ServerProcess server) {
        return Proc.busy()
                - Proc.cpu(server.pid(), false)
                - Proc.cpu(ProcessHandle.current().pid(), true);
    }

    private static Load.Outcome get(Future<Load.Outcome> run) throws IOException, InterruptedException {
        try {
            return run.get();
        } catch (ExecutionException e) {
            throw new IOException("the load failed: " + e.getCause(), e);
        }
    }

    private static Figure list(Bench.Setting setting, Path tiny) throws IOException, InterruptedException {
        Path bases = setting.directory("listed");
        String[] entries = new String[LISTED];
        for (int i = 0; i < LISTED; i++) {
            Path base = Files.createDirectories(bases.resolve("m" + i));
            if (i < STORED) {
                Files.copy(tiny, Files.createDirectories(base.resolve("1")).resolve("model.onnx"));
            }
            entries[i] = entry("m" + i, base, "");
        }
        Path file = setting.scratch().resolve("listed.config");
        Files.writeString(file, list(entries));
        try (ServerProcess server =
                ServerProcess.listed(setting.distribution(), file, setting.scratch(), "--strict-readiness=false")) {
            // What came late of the start, such as compilation, is no part of lying idle.
            Plane.pause(SETTLE_MILLIS);
            double before = Proc.cpu(server.pid(), false);
            double seconds = Math.max(10, setting.seconds() * 3);
            Plane.pause((long) (1e3 * seconds));
            double share = (Proc.cpu(server.pid(), false) - before) / seconds;
            return new Figure(
                    "10,000 listed models, 1,000 of them stored, idle",
                    "",
                    String.format(Locale.ROOT, "%.2f %% of a core", share * 100),
                    "",
                    String.format(
                            Locale.ROOT,
                            "all loaded after %.1f s; %.0f MB resident",
                            server.secondsToReady(),
                            Proc.residentBytes(server.pid()) / 1e6),
                    "< 1 % of a core",
                    Figure.verdict(share < MAX_POLL));
        }
    }

    private static String entry(String name, Path base, String more) {
        return "  config { name: \"" + name + "\" base_path: \"" + base + "\" model_platform: \"tensorflow\" " + more
                + " }\n";
    }

    private static String list(String... entries) {
        return "model_config_list {\n" + String.join("", entries) + "}\n";
    }

    /** The server's door for lists of models. */
    private record Admin(ServerProcess server, HttpClient client) {
        Admin(ServerProcess server) {
            this(server, HttpClient.newHttpClient());
        }

        void configure(String list) throws IOException, InterruptedException {
            HttpResponse<String> reply = client.send(
                    HttpRequest.newBuilder(URI.create(server.url("/admin/model-config")))
                            .POST(HttpRequest.BodyPublishers.ofString(list))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            if (reply.statusCode() != 200) {
                throw new IOException("the list was refused: " + reply.body());
            }
        }
    }

    /** A version whose one matrix is 400 MB, in a file of its own: y = x W. */
    private static Path large(Path base) throws IOException {
        Path version = Files.createDirectories(base.resolve("1"));
        byte[] row = new byte[SIDE * 4];
        for (int i = 0; i < row.length; i++) {
            row[i] = (byte) (i * 31 & 0x3F);
        }
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(version.resolve("weights.bin")))) {
            for (int i = 0; i < SIDE; i++) {
                out.write(row);
            }
        }
        Proto weights = new Proto()
                .number(1, SIDE)
                .number(1, SIDE)
                .number(2, 1)
                .text(8, "W")
                .message(13, new Proto().text(1, "location").text(2, "weights.bin"))
                .number(14, 1);
        Proto graph = new Proto()
                .message(1, new Proto().text(1, "x").text(1, "W").text(2, "y").text(4, "MatMul"))
                .text(2, "large")
                .message(5, weights)
                .message(11, value("x"))
                .message(12, value("y"));
        Files.write(
                version.resolve("model.onnx"),
                new Proto()
                        .number(1, 8)
                        .message(7, graph)
                        .message(8, new Proto().number(2, 16))
                        .bytes());
        return base;
    }

    private static Proto value(String name) {
        Proto shape = new Proto().message(1, new Proto().text(2, "batch")).message(1, new Proto().number(1, SIDE));
        return new Proto()
                .text(1, name)
                .message(2, new Proto().message(1, new Proto().number(1, 1).message(2, shape)));
    }

    /** A protobuf message, field by field. Confined to one thread. */
    private static final class Proto {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();

        Proto number(int field, long value) {
            varint((long) field << 3);
            varint(value);
            return this;
        }

        Proto text(int field, String value) {
            return put(field, value.getBytes(StandardCharsets.UTF_8));
        }

        Proto message(int field, Proto value) {
            return put(field, value.bytes());
        }

        private Proto put(int field, byte[] value) {
            varint((long) field << 3 | 2);
            varint(value.length);
            try {
                out.write(value);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return this;
        }

        private void varint(long value) {
            long v = value;
            while ((v & ~0x7FL) != 0) {
                out.write((int) (v | 0x80));
                v >>>= 7;
            }
            out.write((int) v);
        }

        byte[] bytes() {
            return out.toByteArray();
        }
    }
}
