// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.Main;
import io.nereid.app.process.Logging;
import io.nereid.app.serve.NereidServer;
import io.nereid.base.Clock;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TfRecordFile;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.tls.SelfSignedCertificate;
import io.nereid.transport.tls.TlsOptions;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The command against a server on sockets, with TLS and without, and in process. */
class PerfCommandTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path MODELS = Path.of("../../examples/models");

    @TempDir
    private static Path dir = Path.of("");

    private static NereidServer server;
    private static String url;
    private static String encrypted;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @BeforeAll
    static void start() throws Exception {
        Instant now = Instant.now();
        SelfSignedCertificate own = SelfSignedCertificate.make(
                "perf", List.of("localhost", "127.0.0.1"), now.minusSeconds(3600), now.plusSeconds(3600));
        Files.writeString(dir.resolve("ca.pem"), own.certificate());
        server = new NereidServer(
                EngineOptions.builder(List.of())
                        .servedModels(List.of(new ModelListEntry(
                                "simple",
                                MODELS.resolve("simple")
                                        .toAbsolutePath()
                                        .normalize()
                                        .toString(),
                                "tensorflow",
                                null,
                                Map.of(),
                                null)))
                        .deviceThreads(1)
                        .loadThreads(1)
                        .scratch(dir.resolve("scratch"))
                        .build(),
                ServerOptions.builder()
                        .listen("127.0.0.1", 0)
                        .listen(
                                "127.0.0.1",
                                0,
                                ServerOptions.Purpose.ALL,
                                TlsOptions.of(TlsOptions.Pem.text(own.certificate()), TlsOptions.Pem.text(own.key())))
                        .eventLoops(1),
                new ByteBudget(1 << 26),
                V2Options.defaults("test", 1 << 26),
                v1 -> {},
                TraceOptions.OFF,
                Logging.configure(Logging.Format.TEXT, Level.OFF),
                new AccessControl(AccessOptions.none(Clock.system())),
                new NereidServer.ClientRules(true, null),
                null);
        List<InetSocketAddress> addresses = server.listen();
        url = "http://127.0.0.1:" + addresses.get(0).getPort();
        encrypted = "https://127.0.0.1:" + addresses.get(1).getPort();
        server.load().toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    @AfterAll
    static void stop() {
        server.stop(Duration.ofSeconds(5));
    }

    private int run(String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(args);
    }

    /** Runs a short measurement with a report in JSON. */
    private JsonNode measure(String... more) throws IOException {
        List<String> args =
                new ArrayList<>(List.of("perf", "simple", "--output=json", "--warmup=10ms", "--request-count=40"));
        args.addAll(List.of(more));
        assertThat(run(args.toArray(String[]::new))).as(err.toString()).isZero();
        return JSON.readTree(out.toString());
    }

    @ParameterizedTest
    @CsvSource({"rest,false,binary", "rest,false,json", "grpc,false,binary", "rest,true,binary", "grpc,true,binary"})
    void aServerIsMeasured(String protocol, boolean tls, String encoding) throws IOException {
        JsonNode report = measure(
                "--protocol=" + protocol,
                "--url=" + (tls ? encrypted : url),
                "--ca-cert=" + dir.resolve("ca.pem"),
                "--encoding=" + encoding,
                "--concurrency=1,3",
                "--batch-size=2",
                "--assert=failed==0",
                "--assert=rate>0");
        assertThat(report.path("loads")).hasSize(2);
        assertThat(report.path("version").asText()).isEqualTo("1");
        for (JsonNode load : report.path("loads")) {
            assertThat(load.path("requests_succeeded").asLong()).isPositive();
            assertThat(load.path("requests_failed").asLong()).isZero();
            assertThat(load.path("latency_p50_ms").asDouble()).isPositive();
            assertThat(load.path("latency_p99_ms").asDouble())
                    .isGreaterThanOrEqualTo(load.path("latency_p50_ms").asDouble());
            assertThat(load.path("rate_inferences_per_second").asDouble())
                    .isGreaterThan(load.path("rate_requests_per_second").asDouble());
            // the server's own counts, which it does not read at one moment: two rows in each request
            assertThat(load.path("server").path("requests").asLong()).isPositive();
            assertThat(load.path("server").path("inferences").asLong())
                    .isGreaterThan(load.path("server").path("requests").asLong());
            assertThat(load.path("server").path("compute_infer_mean_ms").asDouble())
                    .isPositive();
        }
        assertThat(report.path("passed").asBoolean()).isTrue();
        assertThat(report.path("warnings").toString()).contains("the server is on this machine");
    }

    @ParameterizedTest
    @ValueSource(strings = {"--concurrency=2", "--rate=200"})
    void aModelInThisProcessIsMeasured(String load) throws IOException {
        JsonNode report = measure("--protocol=in-process", "--model-repository=" + MODELS, load);
        JsonNode only = report.path("loads").path(0);
        assertThat(only.path("requests_succeeded").asLong()).isPositive();
        assertThat(only.path("requests_failed").asLong()).isZero();
        assertThat(only.path("server").path("requests").asLong()).isPositive();
        assertThat(report.path("version").asText()).isEqualTo("1");
    }

    @Test
    void anOpenLoopSendsWhatIsAskedFor() throws IOException {
        JsonNode load = measure("--url=" + url, "--rate=500", "--arrival=poisson")
                .path("loads")
                .path(0);
        assertThat(load.path("mode").asText()).isEqualTo("open_loop");
        assertThat(load.path("requests_succeeded").asLong()).isPositive();
        assertThat(load.path("requests_failed").asLong()).isZero();
        assertThat(load.has("send_delay_p99_ms")).isTrue();
    }

    @Test
    void windowsThatDoNotAgreeAreReportedAsNotStable() throws IOException {
        assertThat(run(
                        "perf",
                        "simple",
                        "--output=json",
                        "--url=" + url,
                        "--warmup=0s",
                        "--measurement-interval=300ms",
                        "--stability-percentage=0.000001",
                        "--max-trials=4"))
                .isZero();
        JsonNode load = JSON.readTree(out.toString()).path("loads").path(0);
        assertThat(load.path("stable").asBoolean(true)).isFalse();
        assertThat(load.path("windows").asInt()).isEqualTo(4);
        assertThat(err.toString()).contains("the measurement is not stable after 4 windows");
    }

    @Test
    void aThresholdThatFailsIsAnExitCodeOfItsOwn() {
        assertThat(run(
                        "perf",
                        "simple",
                        "--url=" + url,
                        "--warmup=0s",
                        "--request-count=20",
                        "--assert=p50<10s",
                        "--assert=p99<1ns"))
                .isEqualTo(3);
        assertThat(out.toString())
                .contains("simple version 1 at " + url)
                .contains("concurrency 1")
                .contains("holds p50<10s at concurrency 1")
                .contains("FAILS p99<1ns at concurrency 1");
    }

    @Test
    void recordedRequestsAndFilesAreSent() throws IOException {
        Path file = dir.resolve("data.json");
        String row = Stream.iterate(1, i -> i + 1).limit(16).toList().toString();
        Files.writeString(file, "{\"data\":[{\"INPUT0\":" + row + ",\"INPUT1\":" + row + "}]}");
        assertThat(measure("--url=" + url, "--data=" + file)
                        .path("loads")
                        .path(0)
                        .path("requests_failed")
                        .asLong())
                .isZero();
        Path recorded = dir.resolve("recorded.tfrecord");
        ProtobufWriter log = new ProtobufWriter();
        List<Tensor> inputs = Stream.of("INPUT0", "INPUT1")
                .map(name -> Tensor.ofDoubles(name, DataType.INT32, Shape.of(2, 16), new double[32]))
                .toList();
        ModelSpec spec = ModelSpec.of("simple");
        PredictionLog.writePredict(log, spec, spec, inputs, List.of("OUTPUT1"), null, 1, 1_700_000_000L);
        Tensor.closeAll(inputs);
        try (TfRecordFile.Writer writer = new TfRecordFile.Writer(recorded)) {
            writer.write(log.toByteArray());
        }
        for (String protocol : List.of("rest", "grpc")) {
            JsonNode load = measure("--url=" + url, "--data=" + recorded, "--protocol=" + protocol)
                    .path("loads")
                    .path(0);
            assertThat(load.path("requests_failed").asLong()).isZero();
            // The server counts a request after its answer: one of the former run, of batch size 1, may be among them.
            assertThat(load.path("server").path("batch_size_mean").asDouble()).isGreaterThan(1);
        }
        assertThat(run("perf", "simple", "--url=" + url, "--data=" + recorded, "--batch-size=2"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("--batch-size 2").contains("recorded");
    }

    @Test
    void reportsAreFilesWithoutScripts() throws IOException {
        for (String ending : List.of("html", "svg", "json", "csv")) {
            Path file = dir.resolve("report." + ending);
            measure("--url=" + url, "--concurrency=1,2", "--report=" + file, "--assert=rate>0");
            String text = Files.readString(file);
            assertThat(text)
                    .as(ending)
                    .contains("concurrency")
                    .doesNotContain("<script")
                    .doesNotContain("NaN");
            if (!ending.equals("csv") && !ending.equals("json")) {
                assertThat(text)
                        .contains("<polyline")
                        .contains("Latency by percentile")
                        .contains("p99.9");
            }
        }
        assertThat(Files.readAllLines(dir.resolve("report.csv"))).hasSize(3);
        assertThat(JSON.readTree(dir.resolve("report.json").toFile()).path("loads"))
                .hasSize(2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--concurrency=1 --rate=1 | both --concurrency and --rate",
                "--concurrency=0.5 | --concurrency [0.5] (expected: whole numbers",
                "--protocol=in-process | needs the model (expected: --model-repository PATH)",
                "--model-repository=x | is for --protocol in-process, which is rest",
                "--encoding=json --protocol=grpc | --encoding json is for --protocol rest",
                "--grpc-url=x | is for --protocol grpc",
                "--batch-size=0 | --batch-size 0 (expected: 1 to",
                "--max-trials=2 | --max-trials 2 (expected: 3 to",
                "--percentile=100 | --percentile 100.0 (expected: between 0 and 100)",
                "--duration=0s | --duration 0s (expected: more than 0)",
                "--duration=5s --request-count=5 | both --duration and --request-count",
                "--duration=5 | '5' is not a duration",
                "--shape=A | 'A' is not a shape (expected: NAME:DIMS",
                "--protocol=http | 'http'",
                "--assert=p99 | 'p99' is not an assertion"
            })
    void wrongOptionsAreErrorsOfTheCommandLine(String options, String message) {
        List<String> args = new ArrayList<>(List.of("perf", "simple", "--url=" + url));
        args.addAll(List.of(options.split(" ")));
        assertThat(run(args.toArray(String[]::new))).as(err.toString()).isEqualTo(2);
        assertThat(err.toString()).contains(message);
    }

    @Test
    void whatCannotBeMeasuredIsAFailure() {
        assertThat(run("perf", "absent", "--url=" + url)).isEqualTo(1);
        assertThat(err.toString()).contains("absent");
        assertThat(run("perf", "simple", "--url=" + url, "--batch-size=9")).isEqualTo(1);
        assertThat(err.toString()).contains("--batch-size 9").contains("1 to 8");
        assertThat(run("perf", "simple", "--url=" + url, "--report=report.txt")).isEqualTo(1);
        assertThat(err.toString()).contains("ends with .html, .svg, .json or .csv");
        assertThat(run("perf", "absent", "--protocol=in-process", "--model-repository=" + MODELS))
                .isEqualTo(1);
        assertThat(err.toString()).contains("there is no model 'absent'").contains("simple");
        assertThat(run("perf", "simple", "--url=http://127.0.0.1:1")).isEqualTo(1);
        assertThat(err.toString()).contains("no server responds");
    }
}
