// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The behavior of the API server that kubectl does not exercise. */
@SuppressWarnings("NullAway.Init") // set before each test
class ApiServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";

    @TempDir
    private Path dir;

    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private TestApiServer server;

    @BeforeEach
    void start() {
        server = new TestApiServer(dir);
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private HttpResponse<String> send(String method, String path, @Nullable String type, String body, String... headers)
            throws Exception {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(server.url() + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (type != null) {
            builder.header("content-type", type);
        }
        if (headers.length > 0) {
            builder.headers(headers);
        }
        return http.send(builder.build(), HttpResponse.BodyHandlers.ofString());
    }

    private JsonNode ok(String method, String path, String body) throws Exception {
        HttpResponse<String> response = send(method, path, "application/json", body);
        assertThat(response.statusCode()).as(response.body()).isBetween(200, 201);
        return JSON.readTree(response.body());
    }

    private static String service(String name) {
        return "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\",\"metadata\":{\"name\":\""
                + name
                + "\"},\"spec\":{\"predictor\":{\"model\":{\"modelFormat\":{\"name\":\"sklearn\"},\"storageUri\":\"gs://b/m\"}}},"
                + "\"status\":{\"url\":\"mine\"}}";
    }

    private JsonNode failure(HttpResponse<String> response, int code, String reason) throws Exception {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(code);
        JsonNode status = JSON.readTree(response.body());
        assertThat(status.path("kind").asText()).isEqualTo("Status");
        assertThat(status.path("status").asText()).isEqualTo("Failure");
        assertThat(status.path("code").asInt()).isEqualTo(code);
        assertThat(status.path("reason").asText()).isEqualTo(reason);
        return status;
    }

    @Test
    void webPagesAndForeignHostsAreRejected() throws Exception {
        assertThat(failure(send("GET", "/version", null, "", "origin", "http://evil.example"), 403, "Forbidden")
                        .path("message")
                        .asText())
                .contains("the request came from a web page of another origin, 'http://evil.example'");
        assertThat(raw("evil.example:80"))
                .contains("403")
                .contains("the host 'evil.example' is not a name of this machine's loopback interface");
        assertThat(raw("169.254.0.1")).contains("403");
        assertThat(raw("localhost.evil.example")).contains("403");
        for (String host : new String[] {"localhost:8090", "127.0.0.1", "[::1]:8090", "models.example", "LOCALHOST."}) {
            assertThat(raw(host)).as(host).contains("200");
        }
    }

    /** Sends a request with a host that the Java client does not allow. */
    private String raw(String host) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            OutputStream out = socket.getOutputStream();
            out.write(("GET /version HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
                    .getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void specAndStatusAreUpdatedSeparately() throws Exception {
        JsonNode created = ok("POST", SERVICES, service("a"));
        assertThat(created.has("status")).isFalse();
        assertThat(created.at("/metadata/generation").asInt()).isEqualTo(1);
        JsonNode found = ok(
                "PUT",
                SERVICES + "/a/status",
                created.deepCopy()
                        .toString()
                        .replace("\"spec\":{", "\"status\":{\"url\":\"http://a\"},\"spec\":{\"x\":1,"));
        assertThat(found.at("/status/url").asText()).isEqualTo("http://a");
        assertThat(found.at("/spec/x").isMissingNode()).isTrue();
        assertThat(found.at("/metadata/generation").asInt()).isEqualTo(1);
        JsonNode replaced = ok("PUT", SERVICES + "/a", service("a").replace("gs://b/m", "gs://b/n"));
        assertThat(replaced.at("/status/url").asText()).isEqualTo("http://a");
        assertThat(replaced.at("/metadata/generation").asInt()).isEqualTo(2);
        failure(send("PUT", SERVICES + "/a", "application/json", found.toString()), 409, "Conflict");
    }

    @Test
    void errorsAreReportedAsKubernetesDoes() throws Exception {
        ok("POST", SERVICES, service("a"));
        JsonNode exists = failure(send("POST", SERVICES, "application/json", service("a")), 409, "AlreadyExists");
        assertThat(exists.at("/details/name").asText()).isEqualTo("a");
        assertThat(exists.at("/details/group").asText()).isEqualTo("serving.kserve.io");
        JsonNode invalid = failure(send("POST", SERVICES, "application/json", service("A")), 422, "Invalid");
        assertThat(invalid.at("/details/causes/0/field").asText()).isEqualTo("metadata.name");
        JsonNode two = failure(
                send(
                        "POST",
                        SERVICES,
                        "application/json",
                        service("b").replace("\"spec\":{\"predictor\":{", "\"spec\":{\"x\":1,\"predictor\":{\"y\":2,")),
                422,
                "Invalid");
        assertThat(two.path("message").asText())
                .startsWith("InferenceService.serving.kserve.io \"b\" is invalid: [spec.")
                .doesNotContain("problems");
        assertThat(two.at("/details/causes").findValuesAsText("field"))
                .containsExactlyInAnyOrder("spec.x", "spec.predictor.y");
        failure(send("POST", SERVICES, "application/json", "{"), 400, "BadRequest");
        failure(send("POST", SERVICES, "application/json", service("b").replace("v1beta1", "v9")), 400, "BadRequest");
        failure(send("POST", SERVICES, "text/csv", "a,b"), 415, "UnsupportedMediaType");
        failure(send("GET", SERVICES, null, "", "accept", "image/png"), 406, "NotAcceptable");
        failure(send("PATCH", "/version", null, ""), 405, "MethodNotAllowed");
        failure(send("GET", "/apis/no.such.group/v1", null, ""), 404, "NotFound");
        failure(send("GET", SERVICES + "?labelSelector=%3D%3D", null, ""), 400, "BadRequest");
        failure(send("GET", SERVICES + "?fieldSelector=spec.x%3D1", null, ""), 400, "BadRequest");
        failure(send("GET", SERVICES + "?watch=1&resourceVersion=99999", null, ""), 410, "Expired");
        failure(
                send(
                        "PATCH",
                        SERVICES + "/a",
                        "application/json-patch+json",
                        "[{\"op\":\"test\",\"path\":\"/kind\",\"value\":1}]"),
                400,
                "BadRequest");
    }

    @Test
    void listsArePaged() throws Exception {
        for (String name : new String[] {"c", "a", "e", "b", "d"}) {
            ok("POST", SERVICES, service(name));
        }
        StringBuilder names = new StringBuilder();
        String next = "";
        int pages = 0;
        do {
            JsonNode page = ok("GET", SERVICES + "?limit=2&continue=" + next, "");
            page.path("items")
                    .forEach(item -> names.append(item.at("/metadata/name").asText()));
            next = page.at("/metadata/continue").asText("");
            pages++;
        } while (!next.isEmpty());
        assertThat(names).hasToString("abcde");
        assertThat(pages).isEqualTo(3);
        assertThat(ok("GET", SERVICES + "?fieldSelector=metadata.name%3Db", "").path("items"))
                .hasSize(1);
        assertThat(ok("GET", SERVICES + "?fieldSelector=metadata.name!%3Db", "").path("items"))
                .hasSize(4);
    }

    @Test
    void aWatchWithASelectorSeesResourcesStartAndStopMatching() throws Exception {
        JsonNode created = ok("POST", SERVICES, service("a"));
        HttpRequest request = HttpRequest.newBuilder(
                        URI.create(
                                server.url() + SERVICES
                                        + "?watch=true&labelSelector=team%3Da&allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=20"))
                .timeout(Duration.ofSeconds(20))
                .build();
        HttpResponse<Stream<String>> response = http.send(request, HttpResponse.BodyHandlers.ofLines());
        try (Stream<String> lines = response.body()) {
            Iterator<String> events = lines.iterator();
            JsonNode bookmark = JSON.readTree(events.next());
            assertThat(bookmark.path("type").asText()).isEqualTo("BOOKMARK");
            assertThat(bookmark.at("/object/metadata/annotations/k8s.io~1initial-events-end")
                            .asText())
                    .isEqualTo("true");
            assertThat(bookmark.at("/object/metadata/resourceVersion"))
                    .isEqualTo(created.at("/metadata/resourceVersion"));
            label("\"a\"");
            assertThat(JSON.readTree(events.next()).path("type").asText()).isEqualTo("ADDED");
            ok(
                    "PUT",
                    SERVICES + "/a",
                    service("a")
                            .replace("gs://b/m", "gs://b/n")
                            .replace("\"name\":\"a\"", "\"name\":\"a\",\"labels\":{\"team\":\"a\"}"));
            assertThat(JSON.readTree(events.next()).path("type").asText()).isEqualTo("MODIFIED");
            label("\"b\"");
            assertThat(JSON.readTree(events.next()).path("type").asText()).isEqualTo("DELETED");
            label("\"a\"");
            assertThat(JSON.readTree(events.next()).path("type").asText()).isEqualTo("ADDED");
            ok("DELETE", SERVICES + "/a", "");
            assertThat(JSON.readTree(events.next()).path("type").asText()).isEqualTo("DELETED");
        }
    }

    @Test
    void aWatchFromAnEarlierVersionMissesNothing() throws Exception {
        ok("POST", SERVICES, service("a"));
        label("\"a\"");
        String version = ok("GET", SERVICES + "?labelSelector=team%3Da", "")
                .at("/metadata/resourceVersion")
                .asText();
        label("\"b\"");
        HttpResponse<String> response = send(
                "GET",
                SERVICES + "?watch=true&timeoutSeconds=1&labelSelector=team%3Da&resourceVersion=" + version,
                null,
                "");
        assertThat(response.body().lines()).hasSize(1);
        assertThat(JSON.readTree(response.body()).path("type").asText()).isEqualTo("DELETED");
    }

    private void label(String value) throws Exception {
        HttpResponse<String> response = send(
                "PATCH",
                SERVICES + "/a",
                "application/merge-patch+json",
                "{\"metadata\":{\"labels\":{\"team\":" + value + "}}}");
        assertThat(response.statusCode()).isEqualTo(200);
    }

    @Test
    void aWatchEndsAfterItsTime() throws Exception {
        HttpResponse<String> response = send("GET", SERVICES + "?watch=True&timeoutSeconds=1", null, "");
        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.body()).isEmpty();
        for (String no : List.of("false", "False", "0")) {
            assertThat(ok("GET", SERVICES + "?timeoutSeconds=1&watch=" + no, "")
                            .path("kind")
                            .asText())
                    .isEqualTo("InferenceServiceList");
        }
    }

    @Test
    void nothingIsStoredInADryRun() throws Exception {
        assertThat(ok("POST", SERVICES + "?dryRun=All", service("a"))
                        .at("/metadata/uid")
                        .asText())
                .isNotEmpty();
        failure(send("GET", SERVICES + "/a", null, ""), 404, "NotFound");
        ok("POST", SERVICES, service("a"));
        ok("DELETE", SERVICES + "/a?dryRun=All", "");
        ok("GET", SERVICES + "/a", "");
        failure(send("POST", SERVICES + "?dryRun=Some", "application/json", service("b")), 400, "BadRequest");
    }

    @Test
    void logsAndSelectionAreSubresources() throws Exception {
        ok("POST", SERVICES, service("a"));
        assertThat(send("GET", SERVICES + "/a/logs?component=predictor", null, "")
                        .body())
                .isEqualTo("first of a\nlast of predictor\n");
        JsonNode selection = ok("GET", SERVICES + "/a/selection", "");
        assertThat(selection.path("chosen").asText()).isEqualTo("kserve-sklearnserver");
        assertThat(selection.path("considered").size()).isGreaterThan(3);
        assertThat(ok("POST", SERVICES + "/x/selection", service("x"))).isEqualTo(selection);
        failure(send("GET", SERVICES + "/nope/logs", null, ""), 404, "NotFound");
    }

    @Test
    void openApiV2IsDeclinedAndV3IsServed() throws Exception {
        failure(
                send(
                        "GET",
                        "/openapi/v2",
                        null,
                        "",
                        "accept",
                        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
                406,
                "NotAcceptable");
        JsonNode index = ok("GET", "/openapi/v3", "");
        String path = index.at("/paths/apis~1serving.kserve.io~1v1beta1/serverRelativeURL")
                .asText();
        assertThat(ok("GET", path, "").at("/components/schemas").toString()).contains("InferenceService");
    }

    @Test
    void everythingIsThereAfterARestart() throws Exception {
        JsonNode created = ok("POST", SERVICES, service("a"));
        server.close();
        server = new TestApiServer(dir);
        assertThat(ok("GET", SERVICES + "/a", "")).isEqualTo(created);
    }

    @Test
    void aClientThatIsSlowToReadDoesNotStopTheOthers() throws Exception {
        ok("POST", SERVICES, service("a"));
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.getOutputStream()
                    .write(("GET " + SERVICES + "?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            assertThat(in.readLine()).contains("200");
            for (int i = 0; i < 50; i++) {
                ok("PUT", SERVICES + "/a", service("a").replace("gs://b/m", "gs://b/" + i));
            }
        }
        assertThat(ok("GET", SERVICES + "/a", "").at("/metadata/generation").asInt())
                .isGreaterThan(40);
    }

    @Test
    void aWatchWhoseClientHasDisconnectedEnds() throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.getOutputStream()
                    .write(("GET " + SERVICES + "?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            assertThat(in.readLine()).contains("200");
            assertThat(server.inFlight()).isEqualTo(1);
        }
        CountDownLatch never = new CountDownLatch(1);
        for (int poll = 0; server.inFlight() > 0 && poll < 500; poll++) {
            assertThat(never.await(20, TimeUnit.MILLISECONDS)).isFalse();
        }
        assertThat(server.inFlight()).isZero();
    }
}
