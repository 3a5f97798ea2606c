// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.Main;
import io.nereid.app.process.Logging;
import io.nereid.app.serve.NereidServer;
import io.nereid.base.Clock;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TfRecordFile;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import picocli.CommandLine;

/** Recorded requests serve as a load test, as a regression test and for warmup. */
class ReplayTest {
    @TempDir
    private Path dir = Path.of("");

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(args);
    }

    /** Starts a server with the model {@code simple} in {@link #dir}. */
    private final class Running implements AutoCloseable {
        final NereidServer server;
        final String url;

        Running(@Nullable LoggingConfig logging) throws Exception {
            Path base = dir.resolve("models/simple");
            if (!Files.exists(base)) {
                copyVersion(1);
            }
            server = new NereidServer(
                    EngineOptions.builder(List.of())
                            .servedModels(List.of(new ModelListEntry(
                                    "simple", base.toString(), "tensorflow", null, Map.of(), logging)))
                            .deviceThreads(1)
                            .loadThreads(1)
                            .scratch(dir.resolve("scratch"))
                            .build(),
                    ServerOptions.builder().listen("127.0.0.1", 0).eventLoops(1),
                    new ByteBudget(1 << 26),
                    V2Options.defaults("test", 1 << 26),
                    v1 -> {},
                    TraceOptions.OFF,
                    Logging.configure(Logging.Format.TEXT, Level.OFF),
                    new AccessControl(AccessOptions.none(Clock.system())),
                    new NereidServer.ClientRules(true, null),
                    null);
            url = "http://127.0.0.1:" + server.listen().get(0).getPort();
            server.load().toCompletableFuture().get(60, TimeUnit.SECONDS);
        }

        @Override
        public void close() {
            server.stop(Duration.ofSeconds(5));
        }
    }

    private void copyVersion(int version) throws IOException {
        Path from = Path.of("../../examples/models/simple");
        Path to = dir.resolve("models/simple");
        Files.createDirectories(to.resolve(Integer.toString(version)));
        Files.copy(from.resolve("1/model.onnx"), to.resolve(version + "/model.onnx"));
        if (version == 1) {
            Files.copy(from.resolve("config.pbtxt"), to.resolve("config.pbtxt"));
        }
    }

    private Path recordedFile() throws IOException {
        try (Stream<Path> files = Files.list(dir.resolve("logs"))) {
            List<Path> all = files.toList();
            assertThat(all).hasSize(1);
            assertThat(all.get(0).toString()).endsWith(".tfrecord");
            return all.get(0);
        }
    }

    @Test
    void whatWasRecordedIsReplayedComparedAndWarmsUpTheNextVersion() throws Exception {
        LoggingConfig logging = new LoggingConfig("", dir.resolve("logs/simple").toString(), 1);
        try (Running first = new Running(logging)) {
            for (int i = 0; i < 3; i++) {
                String last = Integer.toString(i);
                assertThat(run(
                                "infer",
                                "simple",
                                "--url",
                                first.url,
                                "--input",
                                "INPUT0=1..16",
                                "--input",
                                "INPUT1=[[" + (last + ",").repeat(15) + last + "]]"))
                        .as(err.toString())
                        .isZero();
            }
        }
        Path file = recordedFile();
        copyVersion(2);
        Path assets = Files.createDirectories(dir.resolve("models/simple/2/assets.extra"));
        Path warmup = Files.copy(file, assets.resolve("tf_serving_warmup_requests"));
        try (Running second = new Running(null)) {
            assertThat(run("models", "--url", second.url)).isZero();
            assertThat(out.toString()).contains("READY").doesNotContain("UNAVAILABLE");
            assertThat(run(
                            "replay",
                            file.toString(),
                            "--url",
                            second.url,
                            "--compare",
                            "--repeat",
                            "5",
                            "--concurrency",
                            "3"))
                    .as(out.toString() + err)
                    .isZero();
            assertThat(out.toString())
                    .contains("15 requests in ")
                    .contains(", 0 failed")
                    .contains("latency in ms: p50 ")
                    .contains("15 responses compared: 0 differ");
        }
        // warmup really reads the file: a damaged one keeps the version from becoming available
        byte[] damaged = Files.readAllBytes(warmup);
        damaged[damaged.length - 10] ^= 1;
        Files.write(warmup, damaged);
        try (Running third = new Running(null)) {
            assertThat(run("models", "--url", third.url)).isZero();
            assertThat(out.toString()).contains("UNAVAILABLE").doesNotContain(" READY");
        }
    }

    // ---- files of other writers

    private static Tensor ints(String name, int first) {
        Tensor tensor = Tensor.allocate(name, DataType.INT32, Shape.of(1, 16));
        for (int i = 0; i < 16; i++) {
            tensor.region().setInt(4 * i, first + i);
        }
        return tensor;
    }

    /** A request for 1..16 and 0..15, with a given first element of the recorded sum. */
    private static byte[] record(String model, int sum, boolean answered) {
        List<Tensor> inputs = List.of(ints("INPUT0", 1), ints("INPUT1", 0));
        Tensor output = Tensor.allocate("OUTPUT0", DataType.INT32, Shape.of(1, 16));
        for (int i = 0; i < 16; i++) {
            output.region().setInt(4 * i, i == 0 ? sum : 1 + 2 * i);
        }
        ProtobufWriter out = new ProtobufWriter();
        ModelSpec spec = ModelSpec.of(model);
        PredictionLog.writePredict(
                out, spec, spec, inputs, List.of("OUTPUT0"), answered ? List.of(output) : null, 1, 1_700_000_000L);
        Tensor.closeAll(inputs);
        output.close();
        return out.toByteArray();
    }

    private Path file(String name, byte[]... records) throws IOException {
        Path file = dir.resolve(name);
        try (TfRecordFile.Writer writer = new TfRecordFile.Writer(file)) {
            for (byte[] record : records) {
                writer.write(record);
            }
        }
        return file;
    }

    @Test
    void answersThatDifferAndRequestsThatFailAreShownAndMakeTheExitCodeOne() throws Exception {
        byte[] classify = new PredictionLog(
                        PredictionLog.Kind.CLASSIFY, ModelSpec.of("simple"), 1, 0, new byte[0], null)
                .toBytes();
        Path file = file(
                "mixed.tfrecord",
                record("simple", 1, true),
                record("simple", 5, true),
                record("simple", 1, false),
                classify);
        Path elsewhere = file("elsewhere.tfrecord", record("nowhere", 1, true));
        try (Running server = new Running(null)) {
            assertThat(run("replay", file.toString(), "--url", server.url)).isZero();
            assertThat(out.toString())
                    .contains("1 records are skipped: classify_log")
                    .contains("3 requests in ")
                    .doesNotContain("compared");
            assertThat(run("replay", file.toString(), "--url", server.url, "--compare"))
                    .isEqualTo(1);
            assertThat(out.toString())
                    .contains("2 responses compared: 1 differ, 1 requests were recorded without a response")
                    .contains("mixed.tfrecord record 1: output 'OUTPUT0' [0] was 5 and is 1");
            assertThat(run("replay", elsewhere.toString(), file.toString(), "--url", server.url))
                    .isEqualTo(1);
            assertThat(out.toString()).contains("1 failed: HTTP 404").contains("nowhere");
            assertThat(run("replay", elsewhere.toString(), "--url", server.url, "--model", "simple", "--compare"))
                    .isZero();
            long start = Clock.system().nanos();
            assertThat(run("replay", file.toString(), "--url", server.url, "--rate", "20", "--repeat", "2"))
                    .isZero();
            assertThat(Clock.system().nanos() - start).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(5 * 50));
            assertThat(run("replay", file.toString(), "--url", server.url, "--as-recorded", "--concurrency", "2"))
                    .isZero();
        }
    }

    @Test
    void filesThatAreMissingCorruptOrOfAnotherKindAreNamed() throws Exception {
        assertThat(run("replay", dir.resolve("absent").toString())).isEqualTo(1);
        assertThat(err.toString()).contains("absent");
        Path text = Files.writeString(dir.resolve("notes.txt"), "these are not records");
        assertThat(run("replay", text.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("notes.txt").contains("TFRecord file");
        byte[] good = Files.readAllBytes(file("good.tfrecord", record("simple", 1, true)));
        Path torn = Files.write(dir.resolve("torn.tfrecord"), java.util.Arrays.copyOf(good, good.length - 9));
        assertThat(run("replay", torn.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("torn.tfrecord is damaged at record 0");
        Path foreign = file("foreign.tfrecord", new byte[] {10, 0});
        assertThat(run("replay", foreign.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("foreign.tfrecord record 0").contains("not a PredictionLog");
        Path junk = file("junk.tfrecord", new byte[] {-1, -1, -1});
        assertThat(run("replay", junk.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("junk.tfrecord record 0 cannot be replayed");
        Path empty = file("empty.tfrecord");
        assertThat(run("replay", empty.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("empty.tfrecord' has no records");
        Path nameless = file("nameless.tfrecord", record("", 1, true));
        assertThat(run("replay", nameless.toString())).isEqualTo(1);
        assertThat(err.toString()).contains("does not name a model").contains("--model NAME");
        Path fine = dir.resolve("good.tfrecord");
        assertThat(run("replay", fine.toString(), "--url", "http://127.0.0.1:1"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("no server responds at http://127.0.0.1:1");
        assertThat(run("replay", fine.toString(), "--rate", "5", "--as-recorded"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("both --rate and --as-recorded").doesNotContain("\tat ");
    }

    // ---- comparison

    private static List<String> compare(double tolerance, Tensor recorded, String type, String shape, ByteBuffer now) {
        ProtobufWriter log = new ProtobufWriter();
        ModelSpec spec = ModelSpec.of("m");
        PredictionLog.writePredict(log, spec, spec, List.of(), List.of(), List.of(recorded), 1, 1);
        recorded.close();
        byte[] json = ("{\"outputs\":[{\"name\":\"y\",\"datatype\":\"" + type + "\",\"shape\":" + shape
                        + ",\"parameters\":{\"binary_data_size\":" + now.capacity() + "}}]}")
                .getBytes(java.nio.charset.StandardCharsets.UTF_8);
        byte[] body = ByteBuffer.allocate(json.length + now.capacity())
                .put(json)
                .put(now.rewind())
                .array();
        return new ResponseComparison(tolerance).differences(PredictionLog.parse(log.toByteArray()), body, json.length);
    }

    private static ByteBuffer doubles(double... values) {
        ByteBuffer all = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (double value : values) {
            all.putDouble(value);
        }
        return all;
    }

    private static Tensor tensor(DataType type, Shape shape, ByteBuffer bytes) {
        return Tensor.over(
                "y", type, shape, MemoryRegion.copyOf(bytes.array(), 0, bytes.capacity()), 0, bytes.capacity());
    }

    @Test
    void floatingPointNumbersMayDifferByTheTolerance() {
        double[] before = {0, 1000, Double.NaN, Double.POSITIVE_INFINITY, -0.0};
        double[] near = {1e-6, 1000.009, Double.NaN, Double.POSITIVE_INFINITY, 0};
        Shape shape = Shape.of(5);
        assertThat(compare(1e-5, tensor(DataType.FP64, shape, doubles(before)), "FP64", "[5]", doubles(near)))
                .isEmpty();
        assertThat(compare(1e-7, tensor(DataType.FP64, shape, doubles(before)), "FP64", "[5]", doubles(near)))
                .containsExactly("output 'y' [0] was 0.0 and is 1.0E-6 (1 more elements differ)");
        double[] far = {0, 1000, 1, Double.MAX_VALUE, 0};
        assertThat(compare(1e-5, tensor(DataType.FP64, shape, doubles(before)), "FP64", "[5]", doubles(far)))
                .containsExactly("output 'y' [2] was NaN and is 1.0 (1 more elements differ)");
        assertThat(compare(1, tensor(DataType.FP64, shape, doubles(before)), "FP64", "[1,5]", doubles(before)))
                .containsExactly("output 'y' was FP64[5] and is FP64[1,5]");
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"BYTES"},
            mode = EnumSource.Mode.EXCLUDE)
    void everyTypeIsComparedElementByElement(DataType type) {
        ByteBuffer before = ByteBuffer.allocate(3 * type.size());
        ByteBuffer now = ByteBuffer.allocate(3 * type.size());
        // the lowest bit of a number's highest byte changes the value strongly in every type
        now.put(2 * type.size() - 1, (byte) 1);
        Shape shape = Shape.of(3);
        String name = type.name();
        assertThat(compare(1e-30, tensor(type, shape, before), name, "[3]", before))
                .isEmpty();
        List<String> found = compare(0, tensor(type, shape, before), name, "[3]", now);
        assertThat(found).singleElement().asString().startsWith("output 'y' [1] was ");
    }

    @Test
    void textsAndHalvesAreReadAsWhatTheyAre() {
        ByteBuffer before = ByteBuffer.wrap(new byte[] {1, 0, 0, 0, 'a', 2, 0, 0, 0, 'b', 'c'});
        ByteBuffer now = ByteBuffer.wrap(new byte[] {1, 0, 0, 0, 'a', 1, 0, 0, 0, 'x'});
        assertThat(compare(0, tensor(DataType.BYTES, Shape.of(2), before), "BYTES", "[2]", now))
                .containsExactly("output 'y' [1] was 'bc' and is 'x'");
        assertThat(ResponseComparison.half((short) 0x3c00)).isEqualTo(1);
        assertThat(ResponseComparison.half((short) 0xc500)).isEqualTo(-5);
        assertThat(ResponseComparison.half((short) 0x0001)).isEqualTo(0x1p-24);
        assertThat(ResponseComparison.half((short) 0x7bff)).isEqualTo(65504);
        assertThat(ResponseComparison.half((short) 0xfc00)).isEqualTo(Double.NEGATIVE_INFINITY);
        assertThat(ResponseComparison.half((short) 0x7e00)).isNaN();
    }

    @Test
    void requestsAreDueAsTheyWereRecorded() throws Exception {
        List<byte[]> records = new ArrayList<>();
        for (long second : new long[] {100, 100, 102, 102, 102, 102}) {
            PredictionLog log = PredictionLog.parse(record("m", 1, false));
            records.add(new PredictionLog(log.kind(), log.model(), 1, second, log.request(), null).toBytes());
        }
        ReplayLog log = ReplayLog.read(List.of(file("t.tfrecord", records.toArray(new byte[0][]))), null);
        assertThat(log.recordedSeconds()).containsExactly(0, 0.5, 2, 2.25, 2.5, 2.75);
    }
}
