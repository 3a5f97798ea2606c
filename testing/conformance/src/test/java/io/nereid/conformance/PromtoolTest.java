// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Prometheus' own promtool reads the pages of metrics of a running server. */
class PromtoolTest {
    /** What promtool finds in a page that it can read, as opposed to 1 for a page that it cannot read. */
    private static final int LINT = 3;

    private static final String TFS = "/monitoring/prometheus/metrics";
    private static final String ACCEPT = "application/openmetrics-text;version=1.0.0";

    /** Dashboards and alerts for Triton expect these names. */
    private static final String TRITON_NAMES = """
        nv_cache_hit_duration_per_model counter metrics should have "_total" suffix
        nv_cache_hit_summary_per_model metric name should not include type 'summary'
        nv_cache_miss_duration_per_model counter metrics should have "_total" suffix
        nv_cache_miss_summary_per_model metric name should not include type 'summary'
        nv_cache_num_hits_per_model counter metrics should have "_total" suffix
        nv_cache_num_misses_per_model counter metrics should have "_total" suffix
        nv_inference_compute_infer_duration_us counter metrics should have "_total" suffix
        nv_inference_compute_infer_duration_us metric names should not contain abbreviated units
        nv_inference_compute_infer_summary_us metric name should not include type 'summary'
        nv_inference_compute_infer_summary_us metric names should not contain abbreviated units
        nv_inference_compute_input_duration_us counter metrics should have "_total" suffix
        nv_inference_compute_input_duration_us metric names should not contain abbreviated units
        nv_inference_compute_input_summary_us metric name should not include type 'summary'
        nv_inference_compute_input_summary_us metric names should not contain abbreviated units
        nv_inference_compute_output_duration_us counter metrics should have "_total" suffix
        nv_inference_compute_output_duration_us metric names should not contain abbreviated units
        nv_inference_compute_output_summary_us metric name should not include type 'summary'
        nv_inference_compute_output_summary_us metric names should not contain abbreviated units
        nv_inference_count counter metrics should have "_total" suffix
        nv_inference_count non-histogram and non-summary metrics should not have "_count" suffix
        nv_inference_exec_count counter metrics should have "_total" suffix
        nv_inference_exec_count non-histogram and non-summary metrics should not have "_count" suffix
        nv_inference_first_response_histogram_ms metric name should not include type 'histogram'
        nv_inference_first_response_histogram_ms metric names should not contain abbreviated units
        nv_inference_pending_request_count non-histogram and non-summary metrics should not have "_count" suffix
        nv_inference_queue_duration_us counter metrics should have "_total" suffix
        nv_inference_queue_duration_us metric names should not contain abbreviated units
        nv_inference_queue_summary_us metric name should not include type 'summary'
        nv_inference_queue_summary_us metric names should not contain abbreviated units
        nv_inference_request_duration_us counter metrics should have "_total" suffix
        nv_inference_request_duration_us metric names should not contain abbreviated units
        nv_inference_request_failure counter metrics should have "_total" suffix
        nv_inference_request_success counter metrics should have "_total" suffix
        nv_inference_request_summary_us metric name should not include type 'summary'
        nv_inference_request_summary_us metric names should not contain abbreviated units
        """;

    /** Nereid's own names that were chosen like Triton's; they stay, as clients know them. */
    private static final String OWN_NAMES = """
        nereid_batch_cut counter metrics should have "_total" suffix
        nereid_exchanges counter metrics should have "_total" suffix
        nereid_exchanges_rejected counter metrics should have "_total" suffix
        """;

    /** TensorFlow Serving has a colon in its names and no descriptions. */
    private static final String TFS_NAMES = """
        :tensorflow:serving:request_count counter metrics should have "_total" suffix
        :tensorflow:serving:request_count metric names should not contain ':'
        :tensorflow:serving:request_count no help text
        :tensorflow:serving:request_count non-histogram and non-summary metrics should not have "_count" suffix
        :tensorflow:serving:request_latency metric names should not contain ':'
        :tensorflow:serving:request_latency no help text
        :tensorflow:serving:requests_in_flight metric names should not contain ':'
        :tensorflow:serving:requests_in_flight no help text
        :tensorflow:serving:requests_queued metric names should not contain ':'
        :tensorflow:serving:requests_queued no help text
        :tensorflow:serving:runtime_latency metric names should not contain ':'
        :tensorflow:serving:runtime_latency no help text
        """;

    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @TempDir
    static Path folder;

    private static ServerProcess server;

    @BeforeAll
    static void start() throws Exception {
        assumeTrue(
                Stream.of(System.getenv("PATH").split(File.pathSeparator))
                        .anyMatch(d -> Files.isExecutable(Path.of(d, "promtool"))),
                "NOT TESTED: Prometheus' own reading of the metrics; promtool (Debian package prometheus) is not on"
                        + " the PATH");
        model("plain", "");
        model(
                "cached",
                " response_cache { enable: true } metric_tags { key: \"cost-centre\" value: \"7 \\\"a\\\" b\" }");
        Path monitoring = folder.resolve("monitoring.config");
        Files.writeString(monitoring, "prometheus_config { enable: true path: \"" + TFS + "\" }");
        server = ServerProcess.serve(
                folder.resolve("models"),
                "--monitoring_config_file=" + monitoring,
                "--metrics-config=histogram_latencies=true",
                "--metrics-config=summary_latencies=true",
                "--cache-config=local,size=100000",
                "--trace-config=triton,file=" + folder.resolve("trace.json"),
                "--trace-config=rate=1",
                "--trace-config=level=TIMESTAMPS",
                "--control",
                "--control-port=0",
                "--control-directory=" + folder.resolve("control"),
                "--model-cache=" + folder.resolve("cache"));
        String rows = "{\"instances\":[[5.1,3.5,1.4,0.2]]}";
        String tensor =
                "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1,4],\"data\":[5.1,3.5,1.4,0.2]}]}";
        for (String model : List.of("plain", "cached", "cached")) {
            assertThat(post("/v1/models/" + model + ":predict", rows)).isEqualTo(200);
            assertThat(post("/v2/models/" + model + "/infer", tensor)).isEqualTo(200);
        }
        assertThat(post("/v2/models/plain/infer", "{\"inputs\":[]}")).isEqualTo(400);
    }

    private static void model(String name, String config) throws Exception {
        Path version =
                Files.createDirectories(folder.resolve("models").resolve(name).resolve("1"));
        Files.copy(top().resolve("examples/models/iris/1/model.onnx"), version.resolve("model.onnx"));
        Files.writeString(
                version.resolveSibling("config.pbtxt"), "backend: \"onnxruntime\" max_batch_size: 8" + config);
    }

    private static Path top() {
        Path here = Path.of("").toAbsolutePath();
        return Files.isDirectory(here.resolve("apps"))
                ? here
                : here.resolve("../..").normalize();
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    private static HttpResponse<String> get(String path, String accept) throws Exception {
        URI uri = server.uri(path);
        return CLIENT.send(HttpRequest.newBuilder(uri).header("Accept", accept).build(), BodyHandlers.ofString());
    }

    private static int post(String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(server.uri(path))
                .POST(BodyPublishers.ofString(body))
                .build();
        return CLIENT.send(request, BodyHandlers.discarding()).statusCode();
    }

    /** What promtool said. */
    private record Result(int code, List<String> lines) {}

    private static Result promtool(Path input, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of("promtool"));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectInput(input.toFile())
                .start();
        List<String> lines = process.inputReader().lines().toList();
        return new Result(process.waitFor(), lines);
    }

    private static Result check(String page) throws Exception {
        return promtool(Files.writeString(folder.resolve("page"), page), "check", "metrics");
    }

    @Test
    void theTextIsReadWithoutErrorsAndOnlyNamesThatClientsKnowAreAgainstTheConventions() throws Exception {
        Result main = check(get("/metrics", "*/*").body());
        assertThat(main.code()).as(main.lines().toString()).isEqualTo(LINT);
        assertThat(new TreeSet<>(main.lines()))
                .containsExactlyInAnyOrderElementsOf(
                        (TRITON_NAMES + OWN_NAMES).lines().toList());
        Result second = check(get(TFS, "*/*").body());
        assertThat(second.code()).as(second.lines().toString()).isEqualTo(LINT);
        assertThat(new TreeSet<>(second.lines()))
                .containsExactlyInAnyOrderElementsOf(TFS_NAMES.lines().toList());
    }

    @Test
    void aPageThatCannotBeReadIsFound() throws Exception {
        String page = get("/metrics", "*/*").body();
        assertThat(check(page.replace("nv_inference_count{", "nv_inference_count {{"))
                        .code())
                .isEqualTo(1);
        assertThat(check(page + page).code()).as("every family twice").isEqualTo(1);
    }

    /** promtool has no check of OpenMetrics but imports it, with a time for each sample. */
    @Test
    void openMetricsIsReadWithoutErrors() throws Exception {
        for (String path : List.of("/metrics", TFS)) {
            HttpResponse<String> answer = get(path, ACCEPT);
            assertThat(answer.headers().firstValue("content-type"))
                    .hasValue("application/openmetrics-text; version=1.0.0; charset=utf-8");
            String page = timed(answer.body());
            Result read = imported(page);
            assertThat(read.code()).as(read.lines().toString()).isZero();
            assertThat(imported(page.replace("# EOF\n", "")).code())
                    .as("a page without its end")
                    .isNotZero();
        }
        assertThat(get("/metrics", ACCEPT).body().lines())
                .as("exemplars were among the lines")
                .anyMatch(l -> l.startsWith("nereid_request_duration_seconds_bucket") && l.contains(" # {trace_id=\""));
    }

    private static Result imported(String page) throws Exception {
        Path file = Files.writeString(folder.resolve("openmetrics"), page);
        return promtool(
                file,
                "tsdb",
                "create-blocks-from",
                "openmetrics",
                file.toString(),
                Files.createTempDirectory(folder, "blocks").toString());
    }

    private static String timed(String page) {
        StringBuilder timed = new StringBuilder();
        page.lines().forEach(line -> {
            int exemplar = line.indexOf(" # {");
            int end = exemplar < 0 ? line.length() : exemplar;
            timed.append(line, 0, end)
                    .append(line.startsWith("#") ? "" : " 1700000000")
                    .append(line, end, line.length())
                    .append('\n');
        });
        return timed.toString();
    }
}
