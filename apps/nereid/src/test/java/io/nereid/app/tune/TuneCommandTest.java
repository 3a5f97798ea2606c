// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

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
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The command with a model whose batches wait for rows that never come, so that a shorter delay is better on any machine. */
class TuneCommandTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path MODELS = Path.of("../../examples/models");
    private static final String BATCHING =
            "dynamic_batching { max_queue_delay_microseconds: 20000 preferred_batch_size: [ 8 ] } # slow";

    @TempDir
    private Path dir;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private Path config;
    private String stored;

    @BeforeEach
    void model() throws IOException {
        Path model = Files.createDirectories(dir.resolve("models/simple/1"));
        Files.copy(MODELS.resolve("simple/1/model.onnx"), model.resolve("model.onnx"));
        config = dir.resolve("models/simple/config.pbtxt");
        stored = Files.readString(MODELS.resolve("simple/config.pbtxt")).replace("dynamic_batching { }", BATCHING)
                + "instance_group [ { count: 1 kind: KIND_CPU } ]\n";
        assertThat(stored).contains(BATCHING);
        Files.writeString(config, stored);
    }

    private int run(String... args) {
        List<String> all = new ArrayList<>(List.of(
                "tune",
                "simple",
                "--measurement-interval=60ms",
                "--warmup=5ms",
                "--max-concurrency=3",
                "--instances=1",
                "--threads=1",
                "--batch-sizes=8",
                "--delays=0,20000"));
        all.addAll(List.of(args));
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(all.toArray(String[]::new));
    }

    private int inProcess(String... args) {
        List<String> all =
                new ArrayList<>(List.of("--protocol=in-process", "--model-repository=" + dir.resolve("models")));
        all.addAll(List.of(args));
        return run(all.toArray(String[]::new));
    }

    @Test
    void whatIsBetterIsWrittenAndNothingElseChanges() throws IOException {
        assertThat(inProcess("--slo=p50=10s")).as(err.toString()).isZero();
        assertThat(out.toString()).contains("written to " + config).contains("times the rate");
        assertThat(Files.readString(config))
                .isEqualTo(stored.replace("max_queue_delay_microseconds: 20000", "max_queue_delay_microseconds: 0")
                        .replace("preferred_batch_size: [ 8 ] ", ""));
    }

    @ParameterizedTest
    @ValueSource(strings = {"quick", "grid"})
    void aDryRunReportsAndWritesNothing(String search) throws IOException {
        Path page = dir.resolve("tune.html");
        assertThat(inProcess("--slo=p50<=10s", "--dry-run", "--output=json", "--report=" + page, "--search=" + search))
                .as(err.toString())
                .isZero();
        JsonNode report = JSON.readTree(out.toString());
        assertThat(report.path("improved").asBoolean()).isTrue();
        assertThat(report.path("before").path("max_queue_delay_microseconds").asLong())
                .isEqualTo(20_000);
        assertThat(report.path("after").path("max_queue_delay_microseconds").asLong())
                .isZero();
        assertThat(report.path("after").path("rate_requests_per_second").asDouble())
                .isGreaterThan(
                        report.path("before").path("rate_requests_per_second").asDouble());
        assertThat(report.path("fields").asText()).contains("max_queue_delay_microseconds: 0");
        assertThat(report.has("written_to")).isFalse();
        assertThat(report.path("results").size())
                .isLessThanOrEqualTo(report.path("measurements").asInt());
        assertThat(Files.readString(config)).isEqualTo(stored);
        assertThat(Files.readString(page))
                .contains("<polyline")
                .contains("frontier")
                .doesNotContain("<script");
    }

    @Test
    void aFileThatCannotBeWrittenIsReportedWithTheFields() throws IOException {
        Path folder = Files.createDirectories(dir.resolve("other/config.pbtxt/full"));
        assertThat(inProcess("--slo=p50=10s", "--config=" + folder.getParent())).isEqualTo(1);
        assertThat(err.toString()).contains("cannot be").contains("max_queue_delay_microseconds: 0");
        assertThat(Files.readString(config)).isEqualTo(stored);
    }

    @Test
    void aRunThatIsLongerThanTheMeasurementIsMeasured() throws IOException {
        assertThat(inProcess(
                        "--slo=p50=10s", "--dry-run", "--output=json", "--measurement-interval=2ms", "--warmup=1ms"))
                .as(err.toString())
                .isZero();
        assertThat(JSON.readTree(out.toString())
                        .path("before")
                        .path("rate_requests_per_second")
                        .asDouble())
                .isPositive();
    }

    @Test
    void aLimitThatNothingKeepsIsReported() throws IOException {
        assertThat(inProcess("--slo=p50=0.001us", "--dry-run")).isEqualTo(3);
        assertThat(out.toString()).contains("no configuration keeps p50");
    }

    @Test
    void aServerIsTunedAndKeepsTheResult() throws Exception {
        NereidServer server = new NereidServer(
                EngineOptions.builder(List.of(dir.resolve("models")))
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
        try {
            String url = "http://127.0.0.1:" + server.listen().get(0).getPort();
            server.load().toCompletableFuture().get(60, TimeUnit.SECONDS);
            assertThat(run("--slo=p50=10s", "--url=" + url, "--config=" + config))
                    .as(err.toString())
                    .isZero();
            assertThat(Files.readString(config)).contains("max_queue_delay_microseconds: 0");
            JsonNode effective = JSON.readTree(HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create(url + "/v2/models/simple/config"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body());
            assertThat(effective
                            .path("dynamic_batching")
                            .path("max_queue_delay_microseconds")
                            .asLong(-1))
                    .isZero();
        } finally {
            server.stop(Duration.ofSeconds(5));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "--slo=20ms; 20ms",
                "--slo=p99=20; p99=20",
                "--slo=p100=1s; p100=1s",
                "--slo=p99=0ms; p99=0ms",
                "--slo=p99=1s --instances=0; --instances 0",
                "--slo=p99=1s --budget=0s; --budget",
                "--slo=p99=1s --search=best; --search",
                "--slo=p99=1s --config=/nowhere/config.pbtxt; /nowhere/config.pbtxt",
                "--dry-run; --slo"
            })
    void aWrongCommandLineIsRefused(String args, String named) {
        assertThat(inProcess(args.split(" "))).isEqualTo(2);
        assertThat(err.toString()).contains(named);
    }
}
