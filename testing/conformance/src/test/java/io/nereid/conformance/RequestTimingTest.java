// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import io.nereid.protocols.v2.proto.OpenInference.InferParameter;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelStreamInferResponse;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A request's own times in its response, and the samples of slow and failed requests, of a real server. */
class RequestTimingTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SERVICE = "inference.GRPCInferenceService";
    private static final String INPUTS =
            "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2.5]}]";
    private static final String[] TIMES = {
        "total", "decode", "queue", "batch_wait", "input", "compute", "output", "encode"
    };

    @TempDir
    static Path repository;

    private static ServerProcess server;
    private static ManagedChannel channel;
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @BeforeAll
    static void start() throws Exception {
        String io = " input { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 2 ] }"
                + " output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 2 ] }";
        model("echo", "backend: \"identity\" max_batch_size: 8" + io);
        model(
                "slow",
                "backend: \"identity\" max_batch_size: 8" + io
                        + " parameters { key: \"execute_delay_ms\" value { string_value: \"30\" } }");
        model(
                "pairs",
                "backend: \"identity\" max_batch_size: 2" + io
                        + " dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 20000000 }");
        model("kept", "backend: \"identity\" max_batch_size: 8 response_cache { enable: true }" + io);
        model(
                "steps",
                "platform: \"ensemble\" max_batch_size: 8" + io + " ensemble_scheduling { step ["
                        + step("slow", "INPUT0", "middle") + "," + step("slow", "middle", "OUTPUT0") + " ] }");
        server = ServerProcess.serve(
                repository, "--cache-config", "local,size=1048576", "--metrics-config", "slow_request_ms=20");
        channel = NettyChannelBuilder.forAddress("127.0.0.1", server.port())
                .usePlaintext()
                .build();
    }

    @AfterAll
    static void stop() {
        channel.shutdownNow();
        server.close();
        assertThat(server.output()).noneMatch(line -> line.contains("LEAK:"));
    }

    private static String step(String model, String from, String to) {
        return "{ model_name: \"" + model + "\" model_version: -1 input_map { key: \"INPUT0\" value: \"" + from
                + "\" } output_map { key: \"OUTPUT0\" value: \"" + to + "\" } }";
    }

    private static void model(String name, String config) throws Exception {
        Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), config);
    }

    private static HttpRequest request(String path, String body, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(server.uri(path)).POST(BodyPublishers.ofString(body));
        for (int i = 0; i < headers.length; i += 2) {
            request.header(headers[i], headers[i + 1]);
        }
        return request.build();
    }

    private static HttpResponse<String> post(String path, String body, String... headers) throws Exception {
        HttpResponse<String> answer = CLIENT.send(request(path, body, headers), BodyHandlers.ofString());
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        return answer;
    }

    private static String timed(String id) {
        return "{\"id\":\"" + id + "\",\"parameters\":{\"nereid_timing\":true}," + INPUTS + "}";
    }

    /** The durations of a header, in milliseconds by name. */
    private static Map<String, Double> durations(HttpResponse<?> answer) {
        String header = answer.headers().firstValue("server-timing").orElse("");
        Map<String, Double> durations = new HashMap<>();
        for (String metric : header.split(", ")) {
            String[] parts = metric.split(";dur=");
            if (parts.length == 2) {
                durations.put(parts[0], Double.valueOf(parts[1]));
            }
        }
        assertThat(durations).as(header).containsOnlyKeys(TIMES);
        return durations;
    }

    /** The parameters have all times, which add up to no more than the total, and {@code compute} of the model. */
    private static void complete(JsonNode parameters, long computeMicros) {
        long sum = 0;
        for (String time : TIMES) {
            JsonNode value = parameters.path("nereid_" + time + "_us");
            assertThat(value.isIntegralNumber()).as(time + " of " + parameters).isTrue();
            assertThat(value.asLong()).as(time).isNotNegative();
            // Waiting for the batch is a part of the queue.
            sum += time.equals("total") || time.equals("batch_wait") ? 0 : value.asLong();
        }
        assertThat(sum).isLessThanOrEqualTo(parameters.path("nereid_total_us").asLong());
        assertThat(parameters.path("nereid_compute_us").asLong()).isGreaterThanOrEqualTo(computeMicros);
        assertThat(parameters.path("nereid_batch_size").asLong()).isPositive();
        assertThat(parameters.path("nereid_cache_hit").asBoolean(true)).isFalse();
    }

    @Test
    void aRequestParameterAsksForTheTimes() throws Exception {
        HttpResponse<String> answer = post("/v2/models/slow/infer", timed("t1"));
        JsonNode body = JSON.readTree(answer.body());
        complete(body.path("parameters"), 30_000);
        assertThat(body.path("outputs").path(0).path("data").toString()).isEqualTo("[1.0,2.5]");
        assertThat(durations(answer).get("compute")).isGreaterThanOrEqualTo(30.0);
    }

    @Test
    void aHeaderAsksForTheTimesAlsoOfABinaryResponse() throws Exception {
        String body = "{\"parameters\":{\"binary_data_output\":true}," + INPUTS + "}";
        HttpResponse<byte[]> answer = CLIENT.send(
                request("/v2/models/slow/infer", body, "nereid-timing", "true"), BodyHandlers.ofByteArray());
        assertThat(answer.statusCode()).isEqualTo(200);
        int length = Integer.parseInt(
                answer.headers().firstValue("inference-header-content-length").orElseThrow());
        assertThat(answer.body()).hasSize(length + 8);
        complete(
                JSON.readTree(new String(answer.body(), 0, length, StandardCharsets.UTF_8))
                        .path("parameters"),
                30_000);
        assertThat(durations(answer).get("total")).isGreaterThanOrEqualTo(30.0);
    }

    @Test
    void v1AndGenerateReturnTheHeader() throws Exception {
        HttpResponse<String> answer =
                post("/v1/models/slow:predict", "{\"instances\":[[1,2]]}", "nereid-timing", "true");
        assertThat(durations(answer).get("compute")).isGreaterThanOrEqualTo(30.0);
        answer = post("/v2/models/slow/generate", "{\"INPUT0\":[1,2],\"nereid_timing\":true}");
        assertThat(durations(answer).get("compute")).isGreaterThanOrEqualTo(30.0);
        answer = post("/v2/models/slow/generate_stream", "{\"INPUT0\":[1,2]}", "nereid-timing", "true");
        assertThat(durations(answer).get("compute")).isGreaterThanOrEqualTo(30.0);
    }

    @Test
    void withoutBeingAskedNothingIsReturned() throws Exception {
        for (String path : List.of("/v2/models/echo/infer", "/v1/models/echo:predict")) {
            String body = path.startsWith("/v1")
                    ? "{\"instances\":[[1,2]]}"
                    : "{\"parameters\":{\"nereid_timing\":false}," + INPUTS + "}";
            HttpResponse<String> answer = post(path, body, "nereid-timing", "false");
            assertThat(answer.headers().firstValue("server-timing")).isEmpty();
            assertThat(answer.body()).doesNotContain("nereid_");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v2/models/echo/infer", "/v1/models/echo:predict", "/v2/models/echo/generate"})
    void aHeaderWithAnotherValueIsRefused(String path) throws Exception {
        HttpResponse<String> answer = CLIENT.send(request(path, "{}", "nereid-timing", "yes"), BodyHandlers.ofString());
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).contains("nereid-timing", "'yes'", "true or false");
    }

    @Test
    void aParameterOfAnotherTypeIsRefused() throws Exception {
        HttpResponse<String> answer = CLIENT.send(
                request("/v2/models/echo/infer", "{\"parameters\":{\"nereid_timing\":1}," + INPUTS + "}"),
                BodyHandlers.ofString());
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).contains("nereid_timing");
    }

    /** The first of two requests waits for the second, and for nothing else. */
    @Test
    void theWaitForTheBatchIsAPartOfTheQueue() throws Exception {
        CompletableFuture<HttpResponse<String>> first =
                CLIENT.sendAsync(request("/v2/models/pairs/infer", timed("first")), BodyHandlers.ofString());
        String metrics = "";
        while (!metrics.contains("nv_inference_pending_request_count{model=\"pairs\",version=\"1\"} 1")) {
            assertThat(first.isDone())
                    .as("a request that waits for another one")
                    .isFalse();
            metrics = CLIENT.send(HttpRequest.newBuilder(server.uri("/metrics")).build(), BodyHandlers.ofString())
                    .body();
        }
        CompletableFuture<HttpResponse<String>> second =
                CLIENT.sendAsync(request("/v2/models/pairs/infer", timed("second")), BodyHandlers.ofString());
        long waited = 0;
        for (HttpResponse<String> answer : List.of(first.get(20, TimeUnit.SECONDS), second.get(20, TimeUnit.SECONDS))) {
            JsonNode parameters = JSON.readTree(answer.body()).path("parameters");
            complete(parameters, 0);
            assertThat(parameters.path("nereid_batch_size").asInt()).isEqualTo(2);
            assertThat(parameters.path("nereid_batch_requests").asInt()).isEqualTo(2);
            long wait = parameters.path("nereid_batch_wait_us").asLong();
            assertThat(wait)
                    .isLessThanOrEqualTo(parameters.path("nereid_queue_us").asLong());
            waited += wait > 0 ? 1 : 0;
        }
        assertThat(waited).as("requests that waited for the other one").isEqualTo(1);
    }

    @Test
    void aHitOfTheResponseCacheIsNamed() throws Exception {
        HttpResponse<String> miss = post("/v2/models/kept/infer", timed("m"));
        assertThat(JSON.readTree(miss.body())
                        .path("parameters")
                        .path("nereid_cache_hit")
                        .asBoolean(true))
                .isFalse();
        HttpResponse<String> hit = post("/v2/models/kept/infer", timed("h"));
        assertThat(JSON.readTree(hit.body())
                        .path("parameters")
                        .path("nereid_cache_hit")
                        .asBoolean(false))
                .isTrue();
        assertThat(hit.headers().firstValue("server-timing").orElse("")).contains("cache;desc=\"hit\"");
    }

    @Test
    void anEnsembleHasTheSumsOfItsSteps() throws Exception {
        HttpResponse<String> answer = post("/v2/models/steps/infer", timed("e"));
        complete(JSON.readTree(answer.body()).path("parameters"), 60_000);
    }

    // ---- gRPC

    private static <Q extends Message, A extends Message> MethodDescriptor<Q, A> method(
            String name, MethodDescriptor.MethodType type, Q request, A answer) {
        return MethodDescriptor.<Q, A>newBuilder()
                .setType(type)
                .setFullMethodName(name)
                .setRequestMarshaller(ProtoUtils.marshaller(request))
                .setResponseMarshaller(ProtoUtils.marshaller(answer))
                .build();
    }

    private static final MethodDescriptor<ModelInferRequest, ModelInferResponse> INFER = method(
            SERVICE + "/ModelInfer",
            MethodDescriptor.MethodType.UNARY,
            ModelInferRequest.getDefaultInstance(),
            ModelInferResponse.getDefaultInstance());
    private static final MethodDescriptor<ModelInferRequest, ModelStreamInferResponse> STREAM = method(
            SERVICE + "/ModelStreamInfer",
            MethodDescriptor.MethodType.BIDI_STREAMING,
            ModelInferRequest.getDefaultInstance(),
            ModelStreamInferResponse.getDefaultInstance());

    private static ModelInferRequest.Builder call(String id) {
        ModelInferRequest.Builder request =
                ModelInferRequest.newBuilder().setModelName("slow").setId(id);
        request.addInputsBuilder()
                .setName("INPUT0")
                .setDatatype("FP32")
                .addShape(1)
                .addShape(2);
        return request.addRawInputContents(ByteString.copyFrom(new byte[8]));
    }

    private static void complete(ModelInferResponse answer) {
        Map<String, InferParameter> parameters = answer.getParametersMap();
        for (String time : TIMES) {
            assertThat(parameters).containsKey("nereid_" + time + "_us");
        }
        assertThat(parameters.get("nereid_compute_us").getInt64Param()).isGreaterThanOrEqualTo(30_000);
        assertThat(parameters.get("nereid_batch_size").getInt64Param()).isEqualTo(1);
        assertThat(parameters.get("nereid_cache_hit").getBoolParam()).isFalse();
        assertThat(answer.getRawOutputContents(0).size()).isEqualTo(8);
    }

    @Test
    void grpcReturnsTheTimesAsParameters() {
        ModelInferRequest asking = call("g")
                .putParameters(
                        "nereid_timing",
                        InferParameter.newBuilder().setBoolParam(true).build())
                .build();
        complete(ClientCalls.blockingUnaryCall(channel, INFER, CallOptions.DEFAULT, asking));
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of("nereid-timing", Metadata.ASCII_STRING_MARSHALLER), "true");
        Channel timed = ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(headers));
        complete(ClientCalls.blockingUnaryCall(
                timed, INFER, CallOptions.DEFAULT, call("h").build()));
        assertThat(ClientCalls.blockingUnaryCall(
                                channel, INFER, CallOptions.DEFAULT, call("i").build())
                        .getParametersMap())
                .doesNotContainKey("nereid_total_us");
    }

    @Test
    void aStreamReturnsTheTimesOfTheRequestsThatAsk() throws Exception {
        List<ModelStreamInferResponse> answers = new java.util.concurrent.CopyOnWriteArrayList<>();
        CompletableFuture<Void> ended = new CompletableFuture<>();
        StreamObserver<ModelInferRequest> requests = ClientCalls.asyncBidiStreamingCall(
                channel.newCall(STREAM, CallOptions.DEFAULT), new StreamObserver<ModelStreamInferResponse>() {
                    @Override
                    public void onNext(ModelStreamInferResponse answer) {
                        answers.add(answer);
                    }

                    @Override
                    public void onError(Throwable t) {
                        ended.completeExceptionally(t);
                    }

                    @Override
                    public void onCompleted() {
                        ended.complete(null);
                    }
                });
        requests.onNext(call("s")
                .putParameters(
                        "nereid_timing",
                        InferParameter.newBuilder().setBoolParam(true).build())
                .build());
        requests.onNext(call("plain").build());
        requests.onCompleted();
        ended.get(20, TimeUnit.SECONDS);
        assertThat(answers).hasSize(2);
        complete(answers.get(0).getInferResponse());
        assertThat(answers.get(1).getInferResponse().getParametersMap()).doesNotContainKey("nereid_total_us");
    }

    // ---- samples

    private static JsonNode samples(String path) throws Exception {
        HttpResponse<String> answer =
                CLIENT.send(HttpRequest.newBuilder(server.uri(path)).build(), BodyHandlers.ofString());
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        return JSON.readTree(answer.body()).path("model_requests").path(0);
    }

    @Test
    void slowAndFailedRequestsAreFoundByTheirIds() throws Exception {
        HttpResponse<String> unused = post("/v2/models/slow/infer", "{\"id\":\"the slow one\"," + INPUTS + "}");
        HttpResponse<String> bad = CLIENT.send(
                request("/v2/models/slow/infer", "{\"id\":\"the bad one\"," + INPUTS.replace("INPUT0", "NONE") + "}"),
                BodyHandlers.ofString());
        assertThat(bad.statusCode()).isEqualTo(400);
        for (String path : List.of("/v2/models/slow/requests/slow", "/v2/models/slow/versions/1/requests/slow")) {
            JsonNode samples = samples(path);
            assertThat(samples.path("name").asText()).isEqualTo("slow");
            assertThat(samples.path("version").asText()).isEqualTo("1");
            assertThat(samples.path("threshold_us").asLong()).isEqualTo(20_000);
            JsonNode slow = found(samples.path("slow"), "the slow one");
            assertThat(slow.path("total_us").asLong()).isGreaterThanOrEqualTo(30_000);
            assertThat(slow.path("compute_us").asLong()).isGreaterThanOrEqualTo(30_000);
            assertThat(slow.path("rows").asInt()).isEqualTo(1);
            assertThat(slow.path("time_ms").asLong()).isPositive();
            JsonNode failed = found(samples.path("errors"), "the bad one");
            assertThat(failed.path("code").asText()).isEqualTo("INVALID_ARGUMENT");
            assertThat(failed.path("message").asText()).contains("NONE");
        }
        HttpResponse<String> missing = CLIENT.send(
                HttpRequest.newBuilder(server.uri("/v2/models/missing/requests/slow"))
                        .build(),
                BodyHandlers.ofString());
        assertThat(missing.statusCode()).isEqualTo(400);
        assertThat(missing.body()).contains("missing");
    }

    private static JsonNode found(JsonNode list, String id) {
        for (JsonNode one : list) {
            if (one.path("id").asText().equals(id)) {
                return one;
            }
        }
        throw new AssertionError("no '" + id + "' in " + list);
    }
}
