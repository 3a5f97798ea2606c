// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckRequest;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelStreamInferResponse;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The complete program over real sockets, with only a JDK: REST, HTTP/2, gRPC, bad input, drain. */
class EndToEndTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SERVICE = "inference.GRPCInferenceService";
    private static final String BODY =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2.5]}]}";

    /** With runs of some milliseconds, in which requests gather. */
    private static final String SIZED = "backend: \"identity\" max_batch_size: %d dynamic_batching {}"
            + " parameters { key: \"execute_delay_ms\" value { string_value: \"3\" } }";

    @TempDir
    static Path repository;

    private static ServerProcess server;
    private static ManagedChannel channel;
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @BeforeAll
    static void start() throws Exception {
        model("echo", "backend: \"identity\" max_batch_size: 8");
        model("sums", "backend: \"add_sub\" max_batch_size: 8 dynamic_batching {}");
        model(
                "slow",
                "backend: \"identity\" max_batch_size: 8"
                        + " parameters { key: \"execute_delay_ms\" value { string_value: \"1500\" } }");
        model("sized", sized(4));
        server = ServerProcess.serve(repository, "--allow-model-upload");
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

    private static void model(String name, String config) throws Exception {
        Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), config);
    }

    private static HttpResponse<String> post(ServerProcess to, String path, String body) throws Exception {
        return CLIENT.send(request(to, path, body), BodyHandlers.ofString());
    }

    private static HttpRequest request(ServerProcess to, String path, String body) {
        return HttpRequest.newBuilder(to.uri(path))
                .timeout(Duration.ofSeconds(20))
                .POST(BodyPublishers.ofString(body))
                .build();
    }

    private static int get(ServerProcess from, String path) throws Exception {
        return CLIENT.send(HttpRequest.newBuilder(from.uri(path)).build(), BodyHandlers.discarding())
                .statusCode();
    }

    private static void echoes() throws Exception {
        HttpResponse<String> answer = post(server, "/v2/models/echo/infer", BODY);
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        JsonNode output = JSON.readTree(answer.body()).path("outputs").path(0);
        assertThat(output.path("name").asText()).isEqualTo("OUTPUT0");
        assertThat(output.path("data").toString()).isEqualTo("[1.0,2.5]");
    }

    @Test
    void restAnswers() throws Exception {
        echoes();
        for (String path : List.of(
                "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/echo", "/v1/models/echo", "/metrics", "/")) {
            assertThat(get(server, path)).as(path).isEqualTo(200);
        }
    }

    @Test
    void v1Answers() throws Exception {
        HttpResponse<String> answer = post(server, "/v1/models/echo:predict", "{\"instances\":[[1,2],[3,4]]}");
        assertThat(answer.body()).isEqualToIgnoringWhitespace("{\"predictions\":[[1.0,2.0],[3.0,4.0]]}");
    }

    @Test
    void restAnswersOverHttp2OnTheSamePort() throws Exception {
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            socket.setSoTimeout(10_000);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            frame(out, 4, 0, 0, new byte[0]);
            ByteArrayOutputStream headers = new ByteArrayOutputStream();
            header(headers, ":method", "POST");
            header(headers, ":scheme", "http");
            header(headers, ":path", "/v2/models/echo/infer");
            header(headers, ":authority", "localhost");
            frame(out, 1, 4, 1, headers.toByteArray());
            frame(out, 0, 1, 1, BODY.getBytes(StandardCharsets.UTF_8));
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            int firstHeaderByte = -1;
            while (true) {
                int head = in.readInt();
                int type = head & 0xff;
                int flags = in.readUnsignedByte();
                int stream = in.readInt();
                byte[] payload = in.readNBytes(head >>> 8);
                if (stream == 1 && type == 1) {
                    firstHeaderByte = payload[0] & 0xff;
                } else if (stream == 1 && type == 0) {
                    body.write(payload);
                }
                if (stream == 1 && (flags & 1) != 0) {
                    break;
                }
                assertThat(type).as("a reset or a goodbye").isNotIn(3, 7);
            }
            // Row 8 of HPACK's static table: ":status: 200".
            assertThat(firstHeaderByte).isEqualTo(0x88);
            assertThat(JSON.readTree(body.toByteArray()).at("/outputs/0/data").toString())
                    .isEqualTo("[1.0,2.5]");
        }
    }

    private static void frame(DataOutputStream out, int type, int flags, int stream, byte[] payload) throws Exception {
        out.writeInt(payload.length << 8 | type);
        out.writeByte(flags);
        out.writeInt(stream);
        out.write(payload);
    }

    private static void header(ByteArrayOutputStream out, String name, String value) throws Exception {
        out.write(0);
        out.write(name.length());
        out.write(name.getBytes(StandardCharsets.US_ASCII));
        out.write(value.length());
        out.write(value.getBytes(StandardCharsets.US_ASCII));
    }

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
    private static final MethodDescriptor<HealthCheckRequest, HealthCheckResponse> HEALTH = method(
            "grpc.health.v1.Health/Check",
            MethodDescriptor.MethodType.UNARY,
            HealthCheckRequest.getDefaultInstance(),
            HealthCheckResponse.getDefaultInstance());

    private static ModelInferRequest sums(int id, float... values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * 4).order(ByteOrder.LITTLE_ENDIAN);
        raw.asFloatBuffer().put(values);
        ModelInferRequest.Builder request =
                ModelInferRequest.newBuilder().setModelName("sums").setId(Integer.toString(id));
        for (String name : List.of("INPUT0", "INPUT1")) {
            request.addInputsBuilder()
                    .setName(name)
                    .setDatatype("FP32")
                    .addShape(1)
                    .addShape(values.length);
            request.addRawInputContents(ByteString.copyFrom(raw.array()));
        }
        return request.build();
    }

    private static float first(ModelInferResponse answer) {
        return answer.getRawOutputContents(0)
                .asReadOnlyByteBuffer()
                .order(ByteOrder.LITTLE_ENDIAN)
                .getFloat();
    }

    private static ModelInferResponse infer(ModelInferRequest request, long millis) {
        return ClientCalls.blockingUnaryCall(
                channel, INFER, CallOptions.DEFAULT.withDeadlineAfter(millis, TimeUnit.MILLISECONDS), request);
    }

    @Test
    void grpcAnswers() {
        ModelInferResponse answer = infer(sums(7, 3, 4), 10_000);
        assertThat(answer.getId()).isEqualTo("7");
        assertThat(answer.getModelVersion()).isEqualTo("1");
        assertThat(first(answer)).isEqualTo(6f);
        assertThat(ClientCalls.blockingUnaryCall(
                                channel, HEALTH, CallOptions.DEFAULT, HealthCheckRequest.getDefaultInstance())
                        .getStatus())
                .isEqualTo(HealthCheckResponse.ServingStatus.SERVING);
    }

    @Test
    void aLargeMessagePassesFlowControlBothWays() {
        float[] values = new float[2_000_000];
        values[0] = 21;
        assertThat(first(ClientCalls.blockingUnaryCall(
                        channel,
                        INFER,
                        CallOptions.DEFAULT.withMaxInboundMessageSize(1 << 26).withDeadlineAfter(20, TimeUnit.SECONDS),
                        sums(1, values))))
                .isEqualTo(42f);
    }

    @Test
    void aStreamAnswersInOrderAndOutlivesAnError() throws Exception {
        List<ModelStreamInferResponse> answers = new CopyOnWriteArrayList<>();
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
        for (int i = 0; i < 20; i++) {
            ModelInferRequest request = sums(i, i);
            requests.onNext(i == 10 ? request.toBuilder().setModelName("nosuch").build() : request);
        }
        requests.onCompleted();
        ended.get(20, TimeUnit.SECONDS);
        assertThat(answers).hasSize(20);
        for (int i = 0; i < 20; i++) {
            if (i == 10) {
                assertThat(answers.get(i).getErrorMessage()).contains("nosuch");
            } else {
                assertThat(answers.get(i).getErrorMessage()).isEmpty();
                assertThat(first(answers.get(i).getInferResponse())).isEqualTo(2f * i);
            }
        }
    }

    @Test
    void aDeadlineEndsACallAndTheServerGoesOn() throws Exception {
        ModelInferRequest slow = sums(1, 1).toBuilder()
                .setModelName("slow")
                .removeInputs(1)
                .clearRawInputContents()
                .addRawInputContents(ByteString.copyFrom(new byte[4]))
                .build();
        StatusRuntimeException failure = catchThrowableOfType(StatusRuntimeException.class, () -> infer(slow, 200));
        assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        echoes();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "echo     | nonsense                                                          | 400 | ",
                "echo     | {\"inputs\":[                                                     | 400 | ",
                "echo     | {\"inputs\":[]}                                                   | 400 | missing required"
                        + " input",
                "echo     | {\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,1],\"data\":[1]}]} |"
                        + " 400 | data-type",
                "echo     | {\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,-1],\"data\":[1]}]} |"
                        + " 400 | -1",
                "echo     |"
                        + " {\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[9,1],\"data\":[1,2,3,4,5,6,7,8,9]}]}"
                        + " | 400 | batch-size must be <= 8",
                "echo     |"
                        + " {\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[4611686018427387904,4611686018427387904],\"data\":[1]}]}"
                        + " | 400 | ",
                "echo     | {\"inputs\":[{\"name\":\"X\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[1]}]} | 400 |"
                        + " INPUT0",
                "nosuch   | {\"inputs\":[]}                                                   | 404 | nosuch",
                "echo/versions/9 | {\"inputs\":[]}                                            | 404 | ",
                "echo/versions/x | {\"inputs\":[]}                                            | 400 | has no labels"
            })
    void badInputIsTheClientsFaultAndTheNextRequestWorks(String model, String body, int status, String text)
            throws Exception {
        HttpResponse<String> answer = post(server, "/v2/models/" + model + "/infer", body);
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(status);
        assertThat(JSON.readTree(answer.body()).path("error").asText())
                .isNotEmpty()
                .contains(text == null ? "" : text)
                .doesNotContain("Exception");
        echoes();
    }

    @Test
    void theMaximumBatchSizeChangesWhileRequestsAreAnswered() throws Exception {
        AtomicInteger answered = new AtomicInteger();
        AtomicBoolean ends = new AtomicBoolean();
        List<CompletableFuture<Void>> clients = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            clients.add(asks(answered, ends));
        }
        for (int rows : new int[] {16, 2, 1, 8}) {
            if (rows == 2 || rows == 8) {
                String config = JSON.writeValueAsString(Map.of(
                        "backend",
                        "identity",
                        "max_batch_size",
                        rows,
                        "dynamic_batching",
                        Map.of(),
                        "parameters",
                        Map.of("execute_delay_ms", Map.of("string_value", "3"))));
                HttpResponse<String> loaded = post(
                        server,
                        "/v2/repository/models/sized/load",
                        JSON.writeValueAsString(Map.of("parameters", Map.of("config", config))));
                assertThat(loaded.statusCode()).as(loaded.body()).isEqualTo(200);
            } else {
                model("sized", sized(rows));
                Process command = new ProcessBuilder(command("models", "load", "sized"))
                        .redirectErrorStream(true)
                        .start();
                String said = new String(command.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                assertThat(command.waitFor()).as(said).isZero();
            }
            HttpResponse<String> larger = post(server, "/v2/models/sized/infer", rows(rows + 1));
            assertThat(larger.statusCode()).isEqualTo(400);
            assertThat(larger.body())
                    .contains("inference request batch-size must be <= " + rows + " for 'sized'. Got " + (rows + 1));
            assertThat(post(server, "/v2/models/sized/infer", rows(rows)).statusCode())
                    .isEqualTo(200);
            answered.incrementAndGet();
            int before = answered.get();
            await(() -> answered.get() > before + 60);
        }
        await(() -> batches().stream().anyMatch(size -> size > 8));
        ends.set(true);
        for (CompletableFuture<Void> client : clients) {
            client.get(20, TimeUnit.SECONDS);
        }
        JsonNode statistics = statistics();
        assertThat(batches())
                .as("sizes above the first maximum, and single requests")
                .contains(1, 16);
        assertThat(statistics.at("/inference_stats/success/count").asInt())
                .as("every request is answered by the model that was loaded first")
                .isEqualTo(answered.get());
    }

    private static String sized(int rows) {
        return String.format(Locale.ROOT, SIZED, rows);
    }

    /** Sends requests of one row, one after the other, until a test ends; fails with the first that is not answered. */
    private static CompletableFuture<Void> asks(AtomicInteger answered, AtomicBoolean ends) {
        return CLIENT.sendAsync(request(server, "/v2/models/sized/infer", rows(1)), BodyHandlers.ofString())
                .thenCompose(answer -> {
                    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
                    answered.incrementAndGet();
                    return ends.get() ? CompletableFuture.completedFuture(null) : asks(answered, ends);
                });
    }

    private static String rows(int count) {
        return "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[" + count + ",1],\"data\":"
                + Collections.nCopies(count, 1) + "}]}";
    }

    private static JsonNode statistics() throws Exception {
        return JSON.readTree(CLIENT.send(
                                HttpRequest.newBuilder(server.uri("/v2/models/sized/stats"))
                                        .build(),
                                BodyHandlers.ofString())
                        .body())
                .at("/model_stats/0");
    }

    private static List<Integer> batches() throws Exception {
        List<Integer> sizes = new ArrayList<>();
        statistics()
                .path("batch_stats")
                .forEach(each -> sizes.add(each.path("batch_size").asInt()));
        return sizes;
    }

    private static List<String> command(String... arguments) {
        List<String> command = new ArrayList<>(ServerProcess.program());
        command.addAll(List.of(arguments));
        command.addAll(List.of("--url", server.uri("").toString()));
        return command;
    }

    @Test
    void grpcErrorsCarryTheirCode() {
        assertThat(catchThrowableOfType(
                                StatusRuntimeException.class,
                                () -> infer(
                                        sums(1, 1).toBuilder()
                                                .setModelName("nosuch")
                                                .build(),
                                        5_000))
                        .getStatus()
                        .getCode())
                .isEqualTo(Status.Code.NOT_FOUND);
        assertThat(catchThrowableOfType(
                                StatusRuntimeException.class,
                                () -> infer(
                                        sums(1, 1).toBuilder()
                                                .clearRawInputContents()
                                                .build(),
                                        5_000))
                        .getStatus()
                        .getCode())
                .isEqualTo(Status.Code.INVALID_ARGUMENT);
    }

    @Test
    void sigtermTurnsReadinessFalseAndLetsRequestsFinish() throws Exception {
        try (ServerProcess draining = ServerProcess.serve(repository)) {
            CompletableFuture<HttpResponse<String>> slow =
                    CLIENT.sendAsync(request(draining, "/v2/models/slow/infer", BODY), BodyHandlers.ofString());
            await(() -> CLIENT.send(
                            HttpRequest.newBuilder(draining.uri("/metrics")).build(), BodyHandlers.ofString())
                    .body()
                    .contains("nereid_exchanges_in_flight 2"));
            draining.terminate();
            await(() -> get(draining, "/v2/health/ready") == 503);
            HttpResponse<String> answer = slow.get(20, TimeUnit.SECONDS);
            assertThat(answer.statusCode()).isEqualTo(200);
            assertThat(draining.ended(20)).isTrue();
            assertThat(draining.output()).contains("nereid: stopped");
        }
    }

    /** Polls until the condition holds; each poll is a round trip over a socket. */
    private static void await(java.util.concurrent.Callable<Boolean> condition) throws Exception {
        CountDownLatch never = new CountDownLatch(1);
        for (int i = 0; i < 1_000; i++) {
            if (condition.call()) {
                return;
            }
            assertThat(never.await(10, TimeUnit.MILLISECONDS)).isFalse();
        }
        assertThat(condition.call()).isTrue();
    }

    @Test
    void aWrongCommandLineEndsWithItsOwnCodeAndNoStackTrace() throws Exception {
        List<String> command = ServerProcess.program();
        command.addAll(List.of("serve", repository.toString(), "--prot", "1"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).isEqualTo(2);
        assertThat(output).contains("--port").doesNotContain("\tat ");
    }

    @Test
    void aPortInUseIsNamed() throws Exception {
        List<String> command = ServerProcess.program();
        command.addAll(List.of("serve", repository.toString(), "--port", Integer.toString(server.port())));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).isEqualTo(1);
        assertThat(output)
                .contains(Integer.toString(server.port()), "choose another")
                .doesNotContain("\tat ");
    }
}
