// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Threads;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.standard.StandardPlanner;
import io.nereid.testkit.PluginJarBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The planned containers of transformers and explainers that Nereid runs, as processes in front of a predictor over
 * sockets. Only the image, the ports and the folder are this machine's.
 */
class ComponentProcessTest {
    private static final Pattern ADDRESS = Pattern.compile("listening on http://0.0.0.0:(\\d+)");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    @TempDir
    Path directory;

    private final List<String> output = new CopyOnWriteArrayList<>();
    private final List<String> asked = new CopyOnWriteArrayList<>();
    private final ExecutorService threads = Threads.pool("predictor", 8);
    private HttpServer predictor;
    private Process process;
    private int port;

    /** A predictor whose prediction is the sum of a row's numbers. */
    @BeforeEach
    void startPredictor() throws IOException {
        predictor = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        predictor.createContext("/", exchange -> {
            try (exchange) {
                byte[] body = exchange.getRequestBody().readAllBytes();
                asked.add(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
                        + exchange.getRequestHeaders().getFirst("host") + " "
                        + exchange.getRequestHeaders().getFirst("authorization"));
                String answer = "{}";
                if (exchange.getRequestURI().getPath().endsWith(":predict")) {
                    List<Double> sums = new ArrayList<>();
                    JSON.readTree(body).path("instances").forEach(row -> {
                        double sum = 0;
                        for (JsonNode number : row) {
                            sum += number.asDouble();
                        }
                        sums.add(sum);
                    });
                    answer = "{\"predictions\":" + sums + "}";
                }
                byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("content-type", "application/json");
                exchange.sendResponseHeaders(200, bytes.length);
                exchange.getResponseBody().write(bytes);
            }
        });
        predictor.setExecutor(threads);
        predictor.start();
    }

    @AfterEach
    void stop() throws InterruptedException {
        if (process != null) {
            process.destroyForcibly();
            process.waitFor(10, TimeUnit.SECONDS);
        }
        predictor.stop(0);
        threads.shutdownNow();
    }

    private static JsonNode container(String component) {
        ObjectNode service = ManifestReader.parse(
                        "{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: iris, namespace:"
                                + " team-a, uid: u, generation: 1}, spec: {predictor: {model: {modelFormat: {name:"
                                + " sklearn}, storageUri: 'gs://models/iris'}}, " + component + "}}",
                        "service")
                .get(0);
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("image", "nereid:1");
        return StandardPlanner.plan(
                        service,
                        new RuntimeCatalog(
                                List.of(),
                                KserveCatalog.runtimes(),
                                KserveCatalog.storageContainers(),
                                InferenceServiceConfig.defaults().with(settings),
                                RuntimeCatalog.Gateway.UNKNOWN),
                        new ObservedCluster(
                                Map.of(),
                                List.of(),
                                JsonNodeFactory.instance.objectNode(),
                                secret -> null,
                                account -> null,
                                map -> null),
                        Instant.EPOCH)
                .objects()
                .stream()
                .filter(one -> one.path("kind").asText().equals("Deployment")
                        && !one.at("/metadata/name").asText().endsWith("predictor"))
                .findFirst()
                .orElseThrow()
                .at("/spec/template/spec/containers/0");
    }

    private void start(String component) throws IOException {
        JsonNode container = container(component);
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), "io.nereid.app.Main"));
        command.add(container.at("/command/1").asText());
        List<String> args = new ArrayList<>();
        container.path("args").forEach(one -> args.add(one.asText()));
        for (int i = 0; i < args.size(); i++) {
            String argument = args.get(i).replace("/mnt/models", folder().toString());
            if (i > 0 && args.get(i - 1).equals("--predictor_host")) {
                assertThat(argument).isEqualTo("iris-predictor.team-a");
                argument = "127.0.0.1:" + predictor.getAddress().getPort();
            } else if (i > 0 && args.get(i - 1).equals("--http_port")) {
                argument = "0";
            }
            command.add(argument.replaceFirst("^--grpc_port=.*", "--grpc_port=0")
                    .replaceFirst("^(--grace-period)=.*", "$1=0s"));
        }
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("XDG_CACHE_HOME", directory.resolve("cache").toString());
        process = builder.start();
        CompletableFuture<Integer> opened = new CompletableFuture<>();
        Threads.named("output").newThread(() -> read(opened)).start();
        try {
            port = opened.get(120, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new AssertionError("the component did not start: " + output, e);
        }
    }

    private void read(CompletableFuture<Integer> opened) {
        try (BufferedReader lines = process.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                output.add(line);
                Matcher address = ADDRESS.matcher(line);
                if (address.find()) {
                    opened.complete(Integer.valueOf(address.group(1)));
                }
            }
        } catch (IOException e) {
            output.add("(" + e + ")");
        }
        opened.completeExceptionally(new IOException("the process ended"));
    }

    private void awaitReady() throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (get("/readyz").statusCode() != 200) {
            assertThat(process.isAlive()).as("%s", output).isTrue();
            assertThat(System.nanoTime()).as("%s", output).isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    private Path folder() throws IOException {
        return Files.createDirectories(directory.resolve("files"));
    }

    private HttpResponse<String> get(String path) throws Exception {
        return HTTP.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private JsonNode post(String path, String body) throws Exception {
        HttpResponse<String> response = HTTP.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .header("authorization", "Bearer one")
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as("%s %s", response.body(), output).isEqualTo(200);
        return JSON.readTree(response.body());
    }

    @Test
    void aPythonFileRunsInFrontOfThePredictor() throws Exception {
        Files.writeString(folder().resolve("transformer.py"), """
                class Words:
                    def __init__(self, config):
                        self.names = config["names"].split(",")

                    def preprocess(self, payload, headers=None):
                        return {"instances": [[float(x) for x in line.split()] for line in payload["instances"]]}

                    def postprocess(self, result, headers=None):
                        return {"predictions": [self.names[int(i)] for i in result["predictions"]]}
                """);
        start("transformer: {nereid: {storageUri: 's3://steps/words', config: {names: 'a,b,c'}}}");
        awaitReady();
        assertThat(post("/v1/models/iris:predict", "{\"instances\": [\"0 1\", \"1 1\"]}")
                        .path("predictions")
                        .toString())
                .isEqualTo("[\"b\",\"c\"]");
        assertThat(asked)
                .contains("POST /v1/models/iris:predict 127.0.0.1:"
                        + predictor.getAddress().getPort() + " Bearer one");
        assertThat(get("/v2/models/iris").statusCode()).isEqualTo(200);
        assertThat(asked).anyMatch(one -> one.startsWith("GET /v2/models/iris "));
        assertThat(get("/metrics").body()).contains("nereid_gateway_requests");
        process.toHandle().destroy();
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).as("%s", output).isTrue();
        assertThat(output).contains("nereid: stopped");
    }

    @Test
    void aFileThatCannotBeLoadedEndsTheProcessWithItsWords() throws Exception {
        Files.writeString(folder().resolve("transformer.py"), "raise SystemExit('no such dictionary')\n");
        start("transformer: {nereid: {storageUri: 's3://steps/words'}}");
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).as("%s", output).isTrue();
        assertThat(process.exitValue()).isEqualTo(1);
        assertThat(String.join("\n", output)).contains("no such dictionary");
    }

    @Test
    void aJarWithStepsOnJsonRunsInFrontOfThePredictor() throws Exception {
        new PluginJarBuilder()
                .source("words.Doubled", """
                        package words;

                        import java.util.ArrayList;
                        import java.util.List;
                        import java.util.Map;

                        public final class Doubled implements io.nereid.transform.JsonTransformer {
                            @Override
                            public Object preprocess(Object payload, Map<String, String> headers) {
                                List<Object> rows = new ArrayList<>();
                                for (Object row : (List<?>) ((Map<?, ?>) payload).get("instances")) {
                                    rows.add(List.of(row, row));
                                }
                                return Map.of("instances", rows);
                            }
                        }
                        """)
                .service("io.nereid.transform.JsonTransformer", "words.Doubled")
                .build(folder().resolve("transformer.jar"));
        start("transformer: {nereid: {storageUri: 's3://steps/words'}}");
        awaitReady();
        assertThat(post("/v1/models/iris:predict", "{\"instances\": [3, 4]}")
                        .path("predictions")
                        .toString())
                .isEqualTo("[6.0,8.0]");
        assertThat(asked)
                .contains("POST /v1/models/iris:predict 127.0.0.1:"
                        + predictor.getAddress().getPort() + " Bearer one");
    }

    @Test
    void anExplainerExplainsThePredictor() throws Exception {
        Files.writeString(folder().resolve("background.csv"), "0,0\n2,2\n");
        start("explainer: {nereid: {method: kernel_shap, storageUri: 'gs://data/background'}}");
        awaitReady();
        JsonNode answer = post("/v1/models/iris:explain", "{\"instances\": [[3, 1]]}");
        assertThat(answer.path("algorithm").asText()).isEqualTo("kernel_shap_exact");
        assertThat(answer.at("/explanations/0/base_value").asDouble()).isEqualTo(2);
        assertThat(answer.at("/explanations/0/shap_values/0").asDouble()).isEqualTo(2);
        assertThat(answer.at("/background/origin").asText()).isEqualTo("file background.csv");
        assertThat(asked).allMatch(one -> one.endsWith(" Bearer one"));
    }
}
