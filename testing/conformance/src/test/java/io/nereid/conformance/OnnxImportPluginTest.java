// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The plugin {@code onnx-import} of the built distribution: its models without it, its installation, its models with it. */
class OnnxImportPluginTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Backends by the name of a model in their module's test resources. */
    private static final Map<String, String> MODELS =
            Map.of("convnet", "caffe2", "mlp", "caffe2", "mx_mlp", "mxnet", "pp_mlp", "paddle", "pp_fluid", "paddle");

    /** Rows of a request; a batch of a model without configuration has at most four. */
    private static final int ROWS = 2;

    @TempDir
    Path directory;

    private Path nets;
    private Path program;
    private Path models;
    private Map<String, String> environment;

    @BeforeEach
    void modelsOfThePluginAndOfOthers() throws IOException {
        program = BuiltDistribution.directory("the plugin onnx-import").resolve("bin/nereid");
        nets = BuiltDistribution.top().resolve("backends/onnx-import/src/test/resources/nets");
        models = directory.resolve("models");
        environment = Map.of(
                "NEREID_PLUGIN_DIR", directory.resolve("plugins").toString(),
                "NEREID_CDS", "off",
                "NEREID_JAVA_OPTS", "-XX:TieredStopAtLevel=1",
                // No repository can be reached.
                "NEREID_MAVEN_REPOSITORY", "http://127.0.0.1:9/none",
                "JAVA_HOME", System.getProperty("java.home"));
        for (String model : MODELS.keySet()) {
            Path version = Files.createDirectories(models.resolve(model).resolve("1"));
            try (Stream<Path> files = Files.list(nets.resolve(model))) {
                for (Path file : files.filter(f -> !f.endsWith("case.txt")).toList()) {
                    Files.copy(file, version.resolve(file.getFileName()));
                }
            }
        }
        Path trees =
                BuiltDistribution.top().resolve("backends/trees/src/test/resources/models/early/reg-squarederror.json");
        for (String file : List.of("model.json", "inference.json", "own-symbol.json")) {
            Path version = Files.createDirectories(
                    models.resolve("trees-" + file.replace(".json", "")).resolve("1"));
            Files.copy(trees, version.resolve(file));
        }
        Files.writeString(Files.createDirectories(models.resolve("notes/1")).resolve("notes.json"), "{\"nodes\": []}");
    }

    private String run(int expected, String... arguments) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(Stream.concat(Stream.of(program.toString()), Stream.of(arguments))
                        .toList())
                .redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).as(output).isEqualTo(expected);
        return output;
    }

    private static JsonNode post(ServerProcess server, String path, String body) throws Exception {
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(server.uri(path))
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return JSON.readTree(response.body());
    }

    /** The states of the models by name, each followed by its reason. */
    private static Map<String, String> states(ServerProcess server) throws Exception {
        Map<String, String> states = new LinkedHashMap<>();
        for (JsonNode model : post(server, "/v2/repository/index", "")) {
            states.put(
                    model.path("name").asText(),
                    model.path("state").asText() + " " + model.path("reason").asText());
        }
        return states;
    }

    private ServerProcess serve() throws Exception {
        return ServerProcess.serve(List.of(program.toString()), environment, models, "--exit-on-error=false");
    }

    private static void assertOthersAreServed(Map<String, String> states) {
        assertThat(states.get("trees-model")).startsWith("READY");
        assertThat(states.get("trees-inference")).startsWith("READY");
        assertThat(states.get("trees-own-symbol")).startsWith("READY");
        assertThat(states.getOrDefault("notes", "")).doesNotContain("READY ").doesNotContain("onnx-import");
    }

    @Test
    void itsModelsNameThePluginUntilItIsInstalledAndAnswerThen() throws Exception {
        assertThat(run(0, "plugins", "list")).containsPattern("onnx-import +backend +not installed +included");
        try (ServerProcess server = serve()) {
            Map<String, String> states = states(server);
            MODELS.forEach((model, backend) -> assertThat(states.get(model))
                    .startsWith("UNAVAILABLE")
                    .contains("model '" + model + "' needs the backend '" + backend
                            + "', whose plugin is not installed (run 'nereid plugins install onnx-import'"));
            assertOthersAreServed(states);
        }
        assertThat(run(1, "plugins", "install", "paddle")).contains("'paddle' is in the plugin 'onnx-import'");
        assertThat(run(0, "plugins", "install", "onnx-import"))
                .contains("onnx-import: included in the distribution, nothing to fetch")
                .contains("onnx-import is installed in " + directory.resolve("plugins"));
        assertThat(run(0, "plugins", "list")).containsPattern("onnx-import +backend +installed +included");
        try (ServerProcess server = serve()) {
            assertOthersAreServed(states(server));
            for (String model : MODELS.keySet()) {
                assertAnswers(server, model);
            }
        }
        run(0, "plugins", "remove", "onnx-import");
        assertThat(run(0, "plugins", "list")).containsPattern("onnx-import +backend +not installed");
    }

    /** Sends the first rows of the inputs of {@code case.txt}, and compares the outputs with it. */
    private void assertAnswers(ServerProcess server, String model) throws Exception {
        ObjectNode body = JSON.createObjectNode();
        Map<String, double[]> wanted = new LinkedHashMap<>();
        for (String line : Files.readAllLines(nets.resolve(model).resolve("case.txt"))) {
            String[] words = line.split(" ", -1);
            if (words[0].equals("output")) {
                wanted.put(words[1], numbers(words));
            } else if (words[0].equals("input")) {
                ObjectNode input = body.withArray("inputs").addObject();
                input.put("name", words[1]).put("datatype", words[2]);
                long[] shape = shape(words);
                shape[0] = ROWS;
                Arrays.stream(shape).forEach(input.withArray("shape")::add);
                for (double number : numbers(words)) {
                    input.withArray("data").add(number);
                }
            }
        }
        assertThat(wanted).isNotEmpty();
        JsonNode answer = post(server, "/v2/models/" + model + "/infer", body.toString());
        for (JsonNode output : answer.path("outputs")) {
            double[] values = wanted.remove(output.path("name").asText());
            assertThat(values).as(model).isNotNull();
            for (int i = 0; i < values.length; i++) {
                assertThat(output.path("data").path(i).asDouble()).as(model).isCloseTo(values[i], within(1e-4));
            }
        }
        assertThat(wanted).as("outputs that %s has not returned", model).isEmpty();
    }

    private static long[] shape(String[] words) {
        return Arrays.stream(words[3].split(",", -1)).mapToLong(Long::parseLong).toArray();
    }

    private static double[] numbers(String[] words) {
        return Arrays.stream(words)
                .skip(4)
                .limit((words.length - 4) / shape(words)[0] * ROWS)
                .mapToDouble(Double::parseDouble)
                .toArray();
    }
}
