// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** A complete server with the control plane: the in-process components of services. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@SuppressWarnings("NullAway.Init") // set before the tests
class ControlledServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ROWS = "{\"instances\": [[0.5, 1.5, 0, 1, -1, 2]]}";
    private static final int SECONDS = 30;

    private record Event(String type, String id, String status, String source, String body) {}

    private Path dir;
    private final HttpClient client = HttpClient.newHttpClient();
    private final BlockingQueue<Event> events = new LinkedBlockingQueue<>();
    private final CountDownLatch never = new CountDownLatch(1);
    private ControlledServer server;
    private HttpServer receiver;
    private int port;
    private int controlPort;

    @BeforeAll
    void start(@TempDir Path made) throws IOException {
        dir = made;
        Path model = Files.createDirectories(dir.resolve("models/stump/1"));
        try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream("/io/nereid/app/stump.json"))) {
            Files.copy(in, model.resolve("model.json"));
        }
        Files.writeString(
                Files.createDirectories(dir.resolve("rows")).resolve("background.csv"), "0,0,0,0,0,0\n1,1,1,1,1,1\n");
        receiver = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        receiver.createContext("/events", x -> {
            var headers = x.getRequestHeaders();
            String status = headers.getFirst("ce-status");
            events.add(new Event(
                    headers.getFirst("ce-type"),
                    headers.getFirst("ce-id"),
                    status == null ? "" : status,
                    headers.getFirst("ce-source"),
                    new String(x.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)));
            x.sendResponseHeaders(204, -1);
            x.close();
        });
        receiver.start();
        server = new ControlledServer(dir, dir.resolve("models"));
        port = server.port;
        controlPort = server.controlPort;
    }

    @AfterAll
    void stop() {
        server.close();
        receiver.stop(0);
    }

    private HttpResponse<String> post(int to, String path, String body, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + to + path))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private String get(int from, String path) throws IOException, InterruptedException {
        return client.send(
                        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + from + path))
                                .build(),
                        HttpResponse.BodyHandlers.ofString())
                .body();
    }

    /** Applies a service, waits until it is ready, and returns its status. */
    private JsonNode apply(String name, String annotations, String predictor, String rest)
            throws IOException, InterruptedException {
        String path = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
        String storage = dir.resolve("models/stump/1").toUri().toString();
        HttpResponse<String> made =
                post(controlPort, path, String.format(Locale.ROOT, """
                    {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
                     "metadata": {"name": "%s", "annotations": {%s}},
                     "spec": {"predictor": {"model": {"modelFormat": {"name": "xgboost"}, "storageUri": "%s"}%s}%s}}
                    """, name, annotations, storage, predictor, rest));
        assertThat(made.statusCode()).as(made.body()).isEqualTo(201);
        JsonNode status = JSON.createObjectNode();
        for (int i = 0; i < SECONDS * 20; i++) {
            status = JSON.readTree(get(controlPort, path + "/" + name)).path("status");
            for (JsonNode condition : status.path("conditions")) {
                if (condition.path("type").asText().equals("Ready")
                        && condition.path("status").asText().equals("True")) {
                    return status;
                }
            }
            boolean unused = never.await(50, TimeUnit.MILLISECONDS);
        }
        throw new AssertionError("not ready: " + status);
    }

    private JsonNode explained(String path) throws IOException, InterruptedException {
        HttpResponse<String> answer = post(port, path, ROWS);
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        return JSON.readTree(answer.body());
    }

    private Event event() throws InterruptedException {
        Event event = events.poll(SECONDS, TimeUnit.SECONDS);
        if (event == null) {
            throw new AssertionError("no event came");
        }
        return event;
    }

    @Test
    void modelsOfDirectoriesAreExplained() throws Exception {
        JsonNode explanation = explained("/v1/models/stump:explain");
        assertThat(explanation.path("model_name").asText()).isEqualTo("stump");
        assertThat(explanation.path("algorithm").asText()).isEqualTo("tree_shap");
    }

    @Test
    void aServiceIsExplainedWithoutAnExplainerAndItsUrlNamesThisMachine() throws Exception {
        JsonNode status = apply("plain", "", "", "");
        assertThat(status.path("url").asText()).isEqualTo("http://plain-default.localhost:" + port);
        JsonNode explanation = explained("/serving/default/plain/v1/models/plain:explain");
        assertThat(explanation.path("model_name").asText()).isEqualTo("plain");
        assertThat(explanation.path("algorithm").asText()).isEqualTo("tree_shap");
    }

    @Test
    void anExplainerHasItsMethodItsBackgroundAndAWrongOneSaysSo() throws Exception {
        apply("own", "", "", """
            , "explainer": {"nereid": {"method": "kernel_shap", "storageUri": "ROWS"}}
            """.replace("ROWS", dir.resolve("rows").toUri().toString()));
        JsonNode explanation = explained("/serving/default/own/v1/models/own:explain");
        assertThat(explanation.path("algorithm").asText()).isEqualTo("kernel_shap_exact");
        assertThat(explanation.path("background").path("origin").asText()).isEqualTo("file background.csv");
        assertThat(post(port, "/serving/default/own/v1/models/other:explain", ROWS)
                        .statusCode())
                .isEqualTo(404);
        assertThat(post(port, "/serving/default/own/v1/models/own:predict", ROWS)
                        .statusCode())
                .isEqualTo(200);
    }

    @Test
    void whatALoggedServiceIsAskedAndAnswersIsToldFailuresToo() throws Exception {
        String url = "http://127.0.0.1:" + receiver.getAddress().getPort() + "/events";
        apply(
                "logged",
                "\"nereid.io/logger-redact\": \"$.secret\"",
                ", \"logger\": {\"url\": \"" + url + "\", \"mode\": \"all\"}",
                ", \"explainer\": {\"nereid\": {\"method\": \"shap\"}}");
        String path = "/serving/default/logged/v1/models/logged:";
        HttpResponse<String> answer = post(port, path + "predict", ROWS, "ce-id", "one");
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        List<Event> first = List.of(event(), event());
        assertThat(first).allMatch(e -> e.id().equals("one") && e.source().equals("logged-predictor-00001"));
        assertThat(first)
                .anyMatch(e -> e.type().endsWith(".request") && e.body().equals(ROWS))
                .anyMatch(e -> e.type().endsWith(".response")
                        && e.status().equals("200")
                        && e.body().equals(answer.body()));
        explained(path + "explain");
        assertThat(post(port, path + "predict", "{\"instances\": [[1]], \"secret\": 7}")
                        .statusCode())
                .isEqualTo(400);
        // If the explanation's requests were logged at the predictor, their events would come before these.
        List<Event> second = List.of(event(), event());
        assertThat(second)
                .anyMatch(e -> e.type().endsWith(".request") && e.body().contains("\"secret\":\"[redacted]\""))
                .anyMatch(e -> e.type().endsWith(".response")
                        && e.status().equals("400")
                        && e.body().contains("error"));
        String sent =
                "nereid_payload_events_sent_total{namespace=\"default\",service=\"logged\",component=\"predictor\","
                        + "revision=\"logged-predictor-00001\"} 4";
        String page = "";
        for (int i = 0; i < SECONDS * 20 && !page.contains(sent); i++) {
            page = get(port, "/metrics");
            boolean unused = never.await(50, TimeUnit.MILLISECONDS);
        }
        assertThat(page).contains(sent);
        HttpResponse<String> openMetrics = client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/metrics"))
                        .header("Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(openMetrics.headers().firstValue("content-type"))
                .hasValue("application/openmetrics-text; version=1.0.0; charset=utf-8");
        assertThat(openMetrics.body())
                .contains("# TYPE nereid_payload_events_sent counter\n", "# TYPE nv_inference_count unknown\n", sent)
                .contains("# TYPE nereid_gateway_requests counter\n", "# TYPE nereid_exchanges unknown\n")
                .endsWith("# EOF\n");
    }
}
