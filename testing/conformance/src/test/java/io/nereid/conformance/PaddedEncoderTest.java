// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.client.NereidClient;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An encoder whose requests of different lengths share padded batches gives the answers that it gives them alone, over sockets. */
class PaddedEncoderTest {
    private static final String PADDING = " parameters { key: \"batching_padding\" value { string_value:"
            + " \"input_ids=0, attention_mask=0\" } }"
            + " parameters { key: \"nereid.batch_id\" value { string_value: \"true\" } }";

    @TempDir
    static Path repository;

    private static ServerProcess server;

    @BeforeAll
    static void start() throws Exception {
        model("alone", "max_batch_size: 8");
        // A batch closes with eight rows, and with less only after a long time.
        model(
                "arrival",
                "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 60000000 }" + PADDING
                        + " parameters { key: \"batching_padding_order\" value { string_value: \"arrival\" } }");
        model("length", "max_batch_size: 8 dynamic_batching { }" + PADDING);
        model(
                "buckets",
                "max_batch_size: 8 dynamic_batching { }" + PADDING
                        + " parameters { key: \"batching_padding_buckets\" value { string_value: \"8, 16\" } }");
        server = ServerProcess.serve(repository);
    }

    private static void model(String name, String config) throws Exception {
        Path version = repository.resolve(name).resolve("1");
        Files.createDirectories(version);
        Files.copy(
                Path.of("..", "..", "backends/onnx/src/test/resources/models/encoder.onnx"),
                version.resolve("model.onnx"));
        Files.writeString(
                repository.resolve(name).resolve("config.pbtxt"),
                "backend: \"onnxruntime\" " + config
                        + " input [ { name: \"input_ids\" data_type: TYPE_INT64 dims: [ -1 ] },"
                        + " { name: \"attention_mask\" data_type: TYPE_INT64 dims: [ -1 ] } ]"
                        + " output [ { name: \"tokens\" data_type: TYPE_FP32 dims: [ -1, 8 ] },"
                        + " { name: \"attention\" data_type: TYPE_FP32 dims: [ -1, -1 ] },"
                        + " { name: \"pooled\" data_type: TYPE_FP32 dims: [ 8 ] } ]");
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
            assertThat(server.output()).noneMatch(line -> line.contains("LEAK:"));
        }
    }

    private static InferRequest request(String model, int rows, int length, Random random) {
        long[] ids = random.longs((long) rows * length, 0, 16).toArray();
        long[] mask = new long[rows * length];
        Arrays.fill(mask, 1);
        return InferRequest.builder(model)
                .input("input_ids", InferTensor.of(ids, rows, length))
                .input("attention_mask", InferTensor.of(mask, rows, length))
                .build();
    }

    @ParameterizedTest
    @ValueSource(strings = {"http", "grpc"})
    void aBatchOfEightLengthsIsAnsweredAsEachOfThemAlone(String scheme) {
        Set<Object> batches = same(scheme, "arrival", new int[] {3, 1, 12, 7, 2, 12, 5, 9}, 1);
        assertThat(batches).as("batches of eight requests").hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"http", "grpc"})
    void lengthsInAnyOrderAreAnsweredAsEachOfThemAlone(String scheme) {
        int[] lengths = new Random(3).ints(60, 1, 30).toArray();
        same(scheme, "length", lengths, 1);
        same(scheme, "buckets", lengths, 3);
    }

    /** Sends all requests at once, and compares with those that run alone. Returns the runs that answered them. */
    private static Set<Object> same(String scheme, String model, int[] lengths, int mostRows) {
        List<CompletableFuture<InferResult>> answers = new ArrayList<>();
        List<InferResult> alone = new ArrayList<>();
        try (NereidClient client = NereidClient.builder(scheme + "://127.0.0.1:" + server.port())
                .timeout(Duration.ofSeconds(60))
                .build()) {
            for (int i = 0; i < lengths.length; i++) {
                int rows = 1 + i % mostRows;
                answers.add(client.inferAsync(request(model, rows, lengths[i], new Random(i))));
            }
            for (int i = 0; i < lengths.length; i++) {
                alone.add(client.infer(request("alone", 1 + i % mostRows, lengths[i], new Random(i))));
            }
            for (int i = 0; i < lengths.length; i++) {
                InferResult answer = answers.get(i).join();
                for (String output : List.of("tokens", "attention", "pooled")) {
                    InferTensor expected = alone.get(i).output(output);
                    InferTensor actual = answer.output(output);
                    String what = output + " of length " + lengths[i];
                    assertThat(actual.shape()).as(what).containsExactly(expected.shape());
                    float[] values = actual.asFloats();
                    float[] those = expected.asFloats();
                    for (int v = 0; v < those.length; v++) {
                        assertThat(values[v]).as(what).isBetween(those[v] - 1e-5f, those[v] + 1e-5f);
                    }
                }
            }
            return answers.stream()
                    .map(a -> a.join().parameters().getOrDefault("batch_id", ""))
                    .collect(Collectors.toSet());
        }
    }
}
