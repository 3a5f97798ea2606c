// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpServer;
import io.nereid.app.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The planned containers of Nereid's engine, as processes that load real models and answer over sockets. */
class ModelServerProcessTest {
    private static final Path ROOT =
            Path.of("").toAbsolutePath().resolve("../..").normalize();

    @TempDir
    Path directory;

    private Path folder() throws IOException {
        return Files.createDirectories(directory.resolve("models"));
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> all = Files.walk(from)) {
            for (Path one : all.toList()) {
                Path target = to.resolve(from.relativize(one).toString());
                if (Files.isDirectory(one)) {
                    Files.createDirectories(target);
                } else {
                    Files.createDirectories(target.getParent());
                    Files.copy(one, target);
                }
            }
        }
    }

    private static String ones(JsonNode shape) {
        long count = 1;
        for (JsonNode dimension : shape) {
            count *= Math.max(1, dimension.asLong());
        }
        return "1,".repeat((int) count - 1) + "1";
    }

    /** A request with ones for all inputs of a model, by its metadata. */
    private static String request(JsonNode metadata) {
        StringBuilder inputs = new StringBuilder();
        for (JsonNode input : metadata.path("inputs")) {
            StringBuilder shape = new StringBuilder();
            for (JsonNode dimension : input.path("shape")) {
                shape.append(shape.length() == 0 ? "" : ",").append(Math.max(1, dimension.asLong()));
            }
            inputs.append(inputs.length() == 0 ? "" : ",")
                    .append("{\"name\":")
                    .append(input.path("name"))
                    .append(",\"datatype\":")
                    .append(input.path("datatype"))
                    .append(",\"shape\":[")
                    .append(shape)
                    .append("],\"data\":[")
                    .append(ones(input.path("shape")))
                    .append("]}");
        }
        return "{\"inputs\":[" + inputs + "]}";
    }

    private static void answers(PodProcess pod, String model) throws Exception {
        HttpResponse<String> metadata = pod.get("/v2/models/" + model);
        assertThat(metadata.statusCode()).as("%s", pod.output()).isEqualTo(200);
        assertThat(pod.json(metadata).path("name").asText()).isEqualTo(model);
        HttpResponse<String> answer = pod.post("/v2/models/" + model + "/infer", request(pod.json(metadata)));
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        assertThat(pod.json(answer).path("model_name").asText()).isEqualTo(model);
        assertThat(pod.json(answer).path("outputs")).isNotEmpty();
    }

    @ParameterizedTest
    @CsvSource(textBlock = """
            sklearn,  backends/sklearn/src/test/resources/models/1.1.3/pca.joblib,                          model.joblib
            sklearn,  backends/mlflow/src/test/resources/mlflow/sklearn-pickle/model.pkl,                   model.pkl
            xgboost,  backends/trees/src/test/resources/models/xgboost/binary-logistic-gbtree.ubj,          model.ubj
            lightgbm, backends/trees/src/test/resources/models/lightgbm/binary-gbdt-nomissing-missing.txt,  model.txt
            catboost, backends/catboost/src/test/resources/models/reg-quantile.cbm,                         model.cbm
            onnx,     examples/models/iris/1/model.onnx,                                                    model.onnx
            onnx,     examples/models/iris/1/model.onnx,                                                    1/model.onnx
            mlflow,   backends/mlflow/src/test/resources/mlflow/onnx,                                       .
            """)
    void aFolderOfEachFormatIsServedUnderTheNameOfTheService(String format, String source, String target)
            throws Exception {
        copy(ROOT.resolve(source), target.equals(".") ? folder() : folder().resolve(target));
        String protocol = format.equals("mlflow") || format.equals("onnx") ? ", protocolVersion: v2" : "";
        try (PodProcess pod = PodProcess.start(
                "modelFormat: {name: " + format + "}, storageUri: 'gs://models/iris'" + protocol, "", folder())) {
            answers(pod, "iris");
            assertThat(pod.get("/v2/health/ready").statusCode()).isEqualTo(200);
            assertThat(pod.get("/v2/models/other").statusCode()).isEqualTo(404);
        }
    }

    @Test
    void bothProtocolsAnswerAndWhatChangesTheServerIsClosed() throws Exception {
        copy(ROOT.resolve("examples/models/iris/1/model.onnx"), folder().resolve("model.onnx"));
        try (PodProcess pod = PodProcess.start(
                "modelFormat: {name: onnx}, storageUri: 'gs://models/iris', args: ['--workers', '2']", "", folder())) {
            HttpResponse<String> v1 = pod.post("/v1/models/iris:predict", "{\"instances\":[[6.8,2.8,4.8,1.4]]}");
            assertThat(v1.statusCode()).as(v1.body()).isEqualTo(200);
            assertThat(pod.json(v1).path("predictions")).hasSize(1);
            assertThat(pod.get("/v1/models/iris").statusCode()).isEqualTo(200);
            assertThat(pod.get("/metrics").body()).contains("model=\"iris\"");
            for (String path : new String[] {
                "/v2/repository/models/iris/unload",
                "/v2/repository/models/iris/load",
                "/v2/logging",
                "/v2/trace/setting"
            }) {
                assertThat(pod.post(path, "{}").statusCode()).as(path).isIn(401, 403);
            }
            assertThat(pod.post("/admin/model-config", "{}").statusCode()).isIn(401, 403);
            answers(pod, "iris");
            assertThat(pod.output()).anyMatch(line -> line.contains("--workers") && line.contains("no effect"));
            assertThat(pod.grpcPort()).isPositive();
            // SIGTERM: requests are served until the grace period ends.
            pod.terminate();
            answers(pod, "iris");
            assertThat(pod.ended()).isZero();
        }
    }

    @Test
    void theModelsOfATritonRepositoryHaveTheirOwnNames() throws Exception {
        copy(ROOT.resolve("examples/models/iris"), folder().resolve("flowers"));
        Files.writeString(
                folder().resolve("flowers/config.pbtxt"),
                Files.readString(folder().resolve("flowers/config.pbtxt")).replace("name: \"iris\"", ""));
        copy(ROOT.resolve("examples/models/simple"), folder().resolve("simple"));
        try (PodProcess pod = PodProcess.start(
                "modelFormat: {name: onnx}, protocolVersion: v2, storageUri: 'gs://models/iris', runtime:"
                        + " nereid-tritonserver",
                "",
                folder())) {
            answers(pod, "flowers");
            answers(pod, "simple");
            assertThat(pod.get("/v2/models/iris").statusCode()).isEqualTo(404);
            assertThat(pod.post("/v2/repository/index", "{}").body()).contains("\"flowers\"", "\"simple\"");
        }
    }

    @Test
    void requestsAreLoggedAndBatchedByTheServerItself() throws Exception {
        copy(ROOT.resolve("examples/models/iris/1/model.onnx"), folder().resolve("model.onnx"));
        BlockingQueue<Map<String, String>> events = new LinkedBlockingQueue<>();
        HttpServer sink = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        sink.createContext("/", exchange -> {
            Map<String, String> event = new HashMap<>();
            exchange.getRequestHeaders()
                    .forEach((name, values) -> event.put(name.toLowerCase(Locale.ROOT), values.get(0)));
            event.put("body", new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
            events.add(event);
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        sink.start();
        try (PodProcess pod = PodProcess.start(
                "modelFormat: {name: onnx}, storageUri: 'gs://models/iris'",
                ", batcher: {maxBatchSize: 8, maxLatency: 20}, logger: {mode: all, url: 'http://127.0.0.1:"
                        + sink.getAddress().getPort() + "', metadataHeaders: [x-team]}",
                folder())) {
            String body = "{\"instances\":[[6.8,2.8,4.8,1.4]]}";
            HttpResponse<String> answer = pod.post("/v1/models/iris:predict", body, "x-team", "red");
            assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
            assertThat(pod.json(answer).hasNonNull("batchId")).as(answer.body()).isTrue();
            Map<String, Map<String, String>> byType = new HashMap<>();
            for (int i = 0; i < 2; i++) {
                Map<String, String> event = events.poll(60, TimeUnit.SECONDS);
                assertThat(event).as("%s", pod.output()).isNotNull();
                byType.put(event.getOrDefault("ce-type", ""), event);
            }
            Map<String, String> request = byType.get("org.kubeflow.serving.inference.request");
            Map<String, String> response = byType.get("org.kubeflow.serving.inference.response");
            assertThat(request).as("%s", byType).isNotNull();
            assertThat(response).as("%s", byType).isNotNull();
            assertThat(request.get("body")).isEqualTo(body);
            assertThat(response.get("body")).contains("predictions");
            assertThat(request)
                    .containsEntry("ce-inferenceservicename", "iris")
                    .containsEntry("ce-namespace", "team-a")
                    .containsEntry("ce-component", "predictor");
            assertThat(request.get("ce-metadata")).contains("red");
            assertThat(response.get("ce-id")).isEqualTo(request.get("ce-id"));
        } finally {
            sink.stop(0);
        }
    }

    @Test
    void aFolderWithoutAModelEndsTheContainerWithTheReason() throws Exception {
        Files.writeString(folder().resolve("readme.md"), "no model");
        try (PodProcess pod =
                PodProcess.start("modelFormat: {name: sklearn}, storageUri: 'gs://models/iris'", "", folder())) {
            assertThat(pod.ended()).isEqualTo(1);
            assertThat(pod.output()).anyMatch(line -> line.contains("no model file in") && line.contains("readme.md"));
        }
    }

    @Test
    void unknownOptionsAreErrorsWithoutAFolder() {
        StringWriter err = new StringWriter();
        int code = Main.commandLine()
                .setErr(new PrintWriter(err))
                .execute("serve", ROOT.resolve("examples/models").toString(), "--max-que", "5");
        assertThat(code).isEqualTo(2);
        assertThat(err.toString()).contains("--max-que", "--max-queue");
    }

    /** The two calls of the Hugging Face Hub that a download needs, for one model and callers with a token. */
    private static HttpServer hub(Map<String, byte[]> files, List<String> paths) throws IOException {
        HttpServer hub = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        hub.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            paths.add(path);
            String sha = "0".repeat(40);
            byte[] answer = null;
            if ("Bearer hf_test".equals(exchange.getRequestHeaders().getFirst("Authorization"))) {
                if (path.equals("/api/models/me/bert/revision/v2")) {
                    StringBuilder siblings = new StringBuilder();
                    files.forEach((name, content) -> siblings.append(siblings.isEmpty() ? "" : ",")
                            .append("{\"rfilename\":\"" + name + "\",\"size\":" + content.length + "}"));
                    answer = ("{\"sha\":\"" + sha + "\",\"siblings\":[" + siblings + "]}")
                            .getBytes(StandardCharsets.UTF_8);
                } else if (path.startsWith("/me/bert/resolve/" + sha + "/")) {
                    answer = files.get(path.substring(path.indexOf(sha) + sha.length() + 1));
                }
            }
            exchange.sendResponseHeaders(answer == null ? 404 : 200, answer == null ? -1 : answer.length);
            if (answer != null) {
                exchange.getResponseBody().write(answer);
            }
            exchange.close();
        });
        hub.start();
        return hub;
    }

    private static Map<String, byte[]> encoder(String folder) throws IOException {
        Map<String, byte[]> files = new HashMap<>();
        try (ZipInputStream zip = new ZipInputStream(
                Files.newInputStream(ROOT.resolve("backends/huggingface/src/test/resources/models.zip")))) {
            for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                if (entry.getName().startsWith(folder + "/") && !entry.isDirectory()) {
                    files.put(entry.getName().substring(folder.length() + 1), zip.readAllBytes());
                } else if (entry.getName().equals("wordpiece.json")) {
                    files.put("tokenizer.json", zip.readAllBytes());
                }
            }
        }
        return files;
    }

    @Test
    void aModelOfTheHubIsDownloadedByItsNameAndAnswersAsKservesServer() throws Exception {
        Map<String, byte[]> files = encoder("bert-classify");
        files.put("tf_model.h5", new byte[10]);
        files.put("onnx/model.onnx", new byte[10]);
        List<String> paths = new CopyOnWriteArrayList<>();
        HttpServer hub = hub(files, paths);
        String env = ", env: [{name: HF_ENDPOINT, value: 'http://127.0.0.1:"
                + hub.getAddress().getPort() + "'}, {name: HF_TOKEN, value: hf_test}]";
        try (PodProcess pod = PodProcess.start(
                "modelFormat: {name: huggingface}, args: [--model_name=bert, --model_id, me/bert, --model_revision=v2,"
                        + " --return_probabilities, --dtype=float32, '--max_length', '32']" + env,
                "",
                folder())) {
            JsonNode predictions = pod.json(pod.post("/v1/models/bert:predict", "{\"instances\":[\"i love it\"]}"));
            assertThat(predictions.at("/predictions/0").toString()).contains("\"0\":", "\"2\":");
            assertThat(pod.get("/v1/models").body()).contains("\"bert\"");
            assertThat(paths)
                    .anyMatch(path -> path.endsWith("/config.json"))
                    .noneMatch(path -> path.endsWith(".h5") || path.endsWith(".onnx"));
            assertThat(pod.output())
                    .anySatisfy(line -> assertThat(line).contains("downloading hf://me/bert:v2: 5 files, 0.0 MB"))
                    .anySatisfy(line -> assertThat(line).contains("downloaded hf://me/bert:v2: 5 files, 0.0 MB in "));
        } finally {
            hub.stop(0);
        }
    }

    @Test
    void aModelThatGeneratesTextsIsRefusedWithTheWayToKservesServer() throws Exception {
        Map<String, byte[]> files = encoder("bert-classify");
        for (Map.Entry<String, byte[]> file : files.entrySet()) {
            Path target = folder().resolve(file.getKey());
            Files.write(target, file.getValue());
        }
        Files.writeString(
                folder().resolve("config.json"), "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\"}");
        try (PodProcess pod =
                PodProcess.start("modelFormat: {name: huggingface}, storageUri: 'hf://meta/llama'", "", folder())) {
            assertThat(pod.ended()).isNotZero();
            assertThat(pod.output())
                    .anySatisfy(line -> assertThat(line)
                            .contains("LlamaForCausalLM", "set runtime: kserve-huggingfaceserver in the model"));
        }
    }
}
