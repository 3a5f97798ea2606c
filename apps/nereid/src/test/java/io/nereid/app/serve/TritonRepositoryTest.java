// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.protobuf.ProtobufWriter;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A model repository with Triton's ensembles and ragged batches, served by the program as a process. */
class TritonRepositoryTest {
    private static final String PARTS = """
            backend: "identity"
            max_batch_size: 0
            input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] }
            input { name: "INPUT1" data_type: TYPE_INT32 dims: [ 1 ] optional: true }
            output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] }
            output { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 1 ] }
            parameters { key: "absent_outputs" value { string_value: "omitted" } }
            """;
    private static final String ENSEMBLE = """
            platform: "ensemble"
            input { name: "A" data_type: TYPE_INT32 dims: [ 1 ] }
            """;

    @TempDir
    static Path dir;

    private static ServeProcess server;

    @BeforeAll
    static void start() throws Exception {
        add("parts", PARTS);
        add("strict", PARTS.replace(" optional: true", ""));
        add("partial", ENSEMBLE + output("Y") + output("Z") + steps(step("parts", "INPUT0:A", "OUTPUT0:Y,OUTPUT1:Z")));
        add(
                "fed",
                ENSEMBLE
                        + output("Y")
                        + output("Z")
                        + steps(
                                step("parts", "INPUT0:A", "OUTPUT0:P,OUTPUT1:Q"),
                                step("parts", "INPUT0:P,INPUT1:Q", "OUTPUT0:Y,OUTPUT1:Z")));
        add(
                "stuck",
                ENSEMBLE
                        + output("Y")
                        + output("Z")
                        + steps(
                                step("parts", "INPUT0:A", "OUTPUT0:P,OUTPUT1:Q"),
                                step("strict", "INPUT0:P,INPUT1:Q", "OUTPUT0:Y,OUTPUT1:Z")));
        add("square", "backend: \"square\"\n");
        add(
                "joined",
                ENSEMBLE
                        + output("Y")
                        + output("Z")
                        + steps(
                                step("square", "IN:A", "OUT:P"),
                                step("square", "IN:A", "OUT:Q"),
                                step("parts", "INPUT0:P,INPUT1:Q", "OUTPUT0:Y,OUTPUT1:Z")));
        add(
                "both",
                ENSEMBLE
                        + output("Y")
                        + output("Z")
                        + steps(step("square", "IN:A", "OUT:Y"), step("square", "IN:A", "OUT:Z")));
        for (String size : List.of("max_batch_size: 4\n", "")) {
            add(
                    size.isEmpty() ? "ragged_default" : "ragged_io",
                    "backend: \"onnxruntime\"\n" + size + (size.isEmpty() ? "" : "model_transaction_policy { }\n")
                            + """
                            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
                            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
                            batch_output {
                              target_name: "OUTPUT0"
                              kind: BATCH_SCATTER_WITH_INPUT_SHAPE
                              source_input: "INPUT0"
                            }
                            dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 30000000 }
                            """.replace("[ 3 ]", size.isEmpty() ? "[ 1 ]" : "[ 3 ]"));
        }
        for (String name : List.of("ragged_io", "ragged_default")) {
            Files.write(dir.resolve("models/" + name + "/1/model.onnx"), identity());
        }
        add("exported", "");
        archive(dir.resolve("models/exported/1/model.pt2"), "model/models/model.json");
        add("compiled", "backend: \"pytorch\"\nplatform: \"torch_aoti\"\n");
        archive(dir.resolve("models/compiled/1/model.pt2"), "data/aotinductor/model/c0de.so");
        Files.writeString(
                Files.createDirectories(dir.resolve("models/planned/1")).resolve("model.plan"), "ftrt");
        server = new ServeProcess(
                        dir.resolve("cache"),
                        "--backend-config=tensorrt,plugins=/opt/layers.so",
                        "--model-repository=" + dir.resolve("models"),
                        "--exit-on-error=false",
                        "--model-control-mode=explicit",
                        "--load-model=*")
                .listening();
    }

    @AfterAll
    static void stop() throws Exception {
        server.close();
    }

    private static void archive(Path file, String entry) throws IOException {
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            zip.putNextEntry(new ZipEntry("archive_format"));
            zip.putNextEntry(new ZipEntry(entry));
        }
    }

    private static void add(String model, String config) throws IOException {
        Files.createDirectories(dir.resolve("models/" + model + "/1"));
        Files.writeString(dir.resolve("models/" + model + "/config.pbtxt"), config);
    }

    private static String output(String name) {
        return "output { name: \"" + name + "\" data_type: TYPE_INT32 dims: [ 1 ] }\n";
    }

    private static String steps(String... steps) {
        return "ensemble_scheduling { " + String.join("\n", steps) + " }\n";
    }

    private static String step(String model, String inputs, String outputs) {
        StringBuilder text = new StringBuilder("step { model_name: \"" + model + "\" model_version: -1 ");
        for (String pair : inputs.split(",")) {
            text.append("input_map { key: \"")
                    .append(pair.replace(":", "\" value: \""))
                    .append("\" } ");
        }
        for (String pair : outputs.split(",")) {
            text.append("output_map { key: \"")
                    .append(pair.replace(":", "\" value: \""))
                    .append("\" } ");
        }
        return text.append("}").toString();
    }

    /** An ONNX model: OUTPUT0 is INPUT0, both of any number of FP32 numbers. */
    private static byte[] identity() {
        ProtobufWriter out = new ProtobufWriter();
        out.varintField(1, 8);
        int graph = out.begin(7);
        int node = out.begin(1);
        out.textField(1, "INPUT0");
        out.textField(2, "OUTPUT0");
        out.textField(4, "Identity");
        out.end(node);
        out.textField(2, "identity");
        for (int field : new int[] {11, 12}) {
            int info = out.begin(field);
            out.textField(1, field == 11 ? "INPUT0" : "OUTPUT0");
            int type = out.begin(2);
            int tensor = out.begin(1);
            out.varintField(1, 1);
            int shape = out.begin(2);
            int dim = out.begin(1);
            out.textField(2, field == 11 ? "n" : "m");
            out.end(dim);
            out.end(shape);
            out.end(tensor);
            out.end(type);
            out.end(info);
        }
        out.end(graph);
        int opset = out.begin(8);
        out.varintField(2, 16);
        out.end(opset);
        return out.toByteArray();
    }

    private static String input(String name, int value) {
        return "{\"name\":\"" + name + "\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[" + value + "]}";
    }

    private static HttpResponse<String> infer(String model, String parameters, String... inputs) throws Exception {
        return server.post(
                "/v2/models/" + model + "/infer",
                "{\"parameters\":{" + parameters + "},\"inputs\":[" + String.join(",", inputs) + "]}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"partial", "fed"})
    void anOutputThatAMemberLeavesOutIsLeftOut(String ensemble) throws Exception {
        HttpResponse<String> answer = infer(ensemble, "", input("A", 5));
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        assertThat(answer.body())
                .contains("{\"name\":\"Y\",\"shape\":[1],\"datatype\":\"INT32\",\"data\":[5]}")
                .doesNotContain("\"Z\"");
    }

    @Test
    void aStepThatCannotStartIsAnError() throws Exception {
        HttpResponse<String> answer = infer("stuck", "", input("A", 5));
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body())
                .contains("in ensemble 'stuck', [request id: <id_unknown>] unexpected deadlock, at least one output is"
                        + " not set while no more ensemble steps can be made");
    }

    @Test
    void answersHaveTheSequenceOfTheirRequest() throws Exception {
        assertThat(infer("partial", "", input("A", 5)).body())
                .contains("\"sequence_id\":0", "\"sequence_start\":false", "\"sequence_end\":false");
        assertThat(infer("partial", "\"sequence_id\":7,\"sequence_start\":true", input("A", 5))
                        .body())
                .contains("\"sequence_id\":7", "\"sequence_start\":true", "\"sequence_end\":false");
        assertThat(infer("partial", "\"sequence_id\":\"s\",\"sequence_end\":true", input("A", 5))
                        .body())
                .contains("\"sequence_id\":\"s\"", "\"sequence_start\":false", "\"sequence_end\":true");
        assertThat(infer("parts", "", input("INPUT0", 5)).body()).doesNotContain("sequence_id");
    }

    @ParameterizedTest
    @ValueSource(strings = {"joined", "both"})
    void branchesOfTwoDecoupledModelsAreNotJoined(String ensemble) throws Exception {
        HttpResponse<String> index = server.post("/v2/repository/index", "{}");
        assertThat(index.body())
                .contains("in ensemble " + ensemble + ", step of model '"
                        + (ensemble.equals("joined") ? "parts" : ensemble)
                        + "' receives inputs originated from different decoupled models");
    }

    @Test
    void archivesOfTorchExportAreRefusedWithTheReason() throws Exception {
        assertThat(server.post("/v2/repository/index", "{}").body())
                .contains(
                        "is a package of AOTInductor: native code ('c0de.so') that was compiled for one kind of machine",
                        "is a program of torch.export (ExportedProgram)",
                        "torch.onnx.export(torch.export.load('" + dir.resolve("models/exported/1/model.pt2")
                                + "'), f='");
        Path alone = dir.resolve("net.pt2");
        archive(alone, "model/models/model.json");
        try (ServeProcess lone = new ServeProcess(dir.resolve("cache"), alone.toString())) {
            lone.until(line -> line.contains("torch.onnx.export(torch.export.load('" + alone + "')"));
        }
    }

    @Test
    void aPlanOfTensorRtWithoutAGpuSaysThatItNeedsOne() throws Exception {
        assertThat(server.post("/v2/repository/index", "{}").body())
                .contains("model planned: backend 'tensorrt' runs on GPUs only, and server does not support GPUs");
        assertThat(infer("planned", "", input("A", 5)).statusCode()).isEqualTo(404);
        assertThat(infer("parts", "", input("INPUT0", 5)).statusCode()).isEqualTo(200);
    }

    @Test
    void aLoadTakesTheJsonThatProtobufsParserTakes() throws Exception {
        add("loaded", "backend: \"onnxruntime\"\n");
        Files.write(dir.resolve("models/loaded/1/model.onnx"), identity());
        String config = """
                {backend: 'onnxruntime', max_batch_size: '0', response_cache: {enable: 'no',},
                 'input': [{name: "INPUT0", data_type: "type_fp32", dims: [[-1],],},],
                 output: [{name: 'OUTPUT0', dataType: 'TYPE_FP32', dims: [-1]},],
                 parameters: {note: {string_value: 'it\\'s \\"new\\"'}},
                }""";
        HttpResponse<String> answer = server.post(
                "/v2/repository/models/loaded/load",
                "{\"parameters\":{\"config\":\""
                        + config.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"}}");
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        assertThat(server.get("/v2/models/loaded/config").body())
                .contains("\"max_batch_size\":0", "\"dims\":[-1]", "it's \\\"new\\\"");

        HttpResponse<String> wrong = server.post(
                "/v2/repository/models/loaded/load", "{\"parameters\":{\"config\":\"{max_batch_size: 1,,}\"}}");
        assertThat(wrong.statusCode()).isEqualTo(400);
        HttpResponse<String> code = server.post(
                "/v2/repository/models/loaded/load", "{\"parameters\":{\"config\":\"{backend: 'python',}\"}}");
        assertThat(code.statusCode())
                .as("a backend that runs code: " + code.body())
                .isEqualTo(403);
    }

    @Test
    void raggedRequestsShareARunWhoseOutputIsSplitByTheirShapes() throws Exception {
        List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int n = 1; n <= 3; n++) {
            answers.add(ragged("ragged_io", n + 1));
        }
        for (int n = 1; n <= 3; n++) {
            HttpResponse<String> answer = answers.get(n - 1).join();
            assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
            assertThat(answer.body())
                    .contains("\"shape\":[1," + (n + 1) + "],\"datatype\":\"FP32\",\"data\":" + numbers(n + 1));
        }
        String statistics = server.get("/v2/models/ragged_io/stats").body();
        assertThat(statistics).contains("\"inference_count\":3,\"execution_count\":1,");
    }

    @Test
    void aConfigurationShowsWhatTritonFillsIn() throws Exception {
        assertThat(server.get("/v2/models/ragged_default/config").body())
                .contains(
                        "\"platform\":\"onnxruntime_onnx\"",
                        "\"backend\":\"onnxruntime\"",
                        "\"default_model_filename\":\"model.onnx\"")
                .doesNotContain("model_transaction_policy");
        assertThat(server.get("/v2/models/ragged_io/config").body())
                .contains(
                        "\"default_model_filename\":\"model.onnx\"",
                        "\"model_transaction_policy\":{\"decoupled\":false}");
        assertThat(server.get("/v2/models/fed/config").body())
                .contains("\"platform\":\"ensemble\"", "\"backend\":\"\"", "\"default_model_filename\":\"\"");
    }

    @Test
    void aRaggedModelWithoutABatchSizeIsServed() {
        HttpResponse<String> answer = ragged("ragged_default", 3).join();
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        assertThat(answer.body()).contains("\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":" + numbers(3));
    }

    private static CompletableFuture<HttpResponse<String>> ragged(String model, int length) {
        return server.postAsync(
                "/v2/models/" + model + "/infer",
                "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1," + length + "],\"data\":"
                        + numbers(length) + "}]}");
    }

    private static String numbers(int length) {
        StringBuilder text = new StringBuilder("[");
        for (int i = 0; i < length; i++) {
            text.append(i == 0 ? "" : ",").append(length * 10 + i).append(".0");
        }
        return text.append("]").toString();
    }
}
