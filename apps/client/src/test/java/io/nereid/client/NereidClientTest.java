// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.TensorDataType;
import io.nereid.client.options.Attempt;
import io.nereid.client.options.ClientTlsOptions;
import io.nereid.client.options.Protocol;
import io.nereid.client.options.RequestInterceptor;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.client.options.TensorEncoding;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The client with an HTTP server whose responses are scripted. */
class NereidClientTest {
    private static final String RESPONSE =
            "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[2.5]}]}";
    private static final InferRequest REQUEST =
            InferRequest.builder("m").input("x", new float[] {1}).build();
    private static final RequestRetryPolicy QUICK =
            RequestRetryPolicy.ofAttempts(3).withDelays(Duration.ofMillis(1), Duration.ofMillis(2));

    private ScriptedServer server;

    @BeforeEach
    void start() throws Exception {
        server = new ScriptedServer();
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private ClientBuilder builder() {
        return NereidClient.builder(server.url())
                .tensorEncoding(TensorEncoding.JSON)
                .timeout(Duration.ofSeconds(60))
                .retries(QUICK);
    }

    private InferenceException fails(NereidClient client, InferRequest request) {
        return catchThrowableOfType(InferenceException.class, () -> client.infer(request));
    }

    @ParameterizedTest
    @ValueSource(ints = {502, 503})
    void aServerThatIsNotAvailableIsAskedAgain(int status) {
        server.reply(status, "{\"error\":\"starting\"}").reply(200, RESPONSE);
        try (NereidClient client = builder().build()) {
            assertThat(client.infer(REQUEST).output("y").asFloats()).containsExactly(2.5f);
        }
        assertThat(server.received).hasSize(2);
        assertThat(server.received.get(1).body())
                .isEqualTo(server.received.get(0).body());
    }

    @Test
    void theLastFailureIsThrownWhenAllAttemptsFail() {
        server.reply(503, "").reply(503, "").reply(503, "{\"error\":\"draining\"}");
        try (NereidClient client = builder().build()) {
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(failure.attempts()).isEqualTo(3);
            assertThat(failure.httpStatus()).isEqualTo(503);
            assertThat(failure).hasMessageContaining("draining").hasMessageContaining("after 3 attempts");
            assertThat(failure.getStackTrace())
                    .anyMatch(e -> e.getClassName().equals(getClass().getName()));
        }
        assertThat(server.received).hasSize(3);
    }

    @Test
    void overloadIsAskedAgainOnlyWhenTheServerSaysWhen() {
        server.reply(429, "", "retry-after", "0").reply(200, RESPONSE).reply(429, "{\"error\":\"full\"}");
        try (NereidClient client = builder().build()) {
            assertThat(client.infer(REQUEST).output("y").asFloats()).containsExactly(2.5f);
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
            assertThat(failure.attempts()).isEqualTo(1);
        }
        assertThat(server.received).hasSize(3);
    }

    @Test
    void aWaitBeyondTheDeadlineIsNotBegun() {
        server.reply(503, "", "retry-after", "3600");
        try (NereidClient client = builder().build()) {
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(failure.retryAfter()).isEqualTo(Duration.ofHours(1));
        }
        assertThat(server.received).hasSize(1);
    }

    @Test
    void sequencesAndManagementAreSentOnce() {
        server.reply(503, "").reply(503, "").reply(503, "");
        try (NereidClient client = builder().build()) {
            InferRequest sequence = InferRequest.builder("m")
                    .input("x", new float[] {1})
                    .sequence(7, true, false)
                    .build();
            assertThat(fails(client, sequence).attempts()).isEqualTo(1);
            assertThat(server.received.get(0).text())
                    .contains("\"parameters\":{\"sequence_id\":7,\"sequence_start\":true,\"sequence_end\":false}");
            assertThatThrownBy(() -> client.load("m")).isInstanceOf(InferenceException.class);
            assertThatThrownBy(() -> client.unload("m")).isInstanceOf(InferenceException.class);
        }
        assertThat(server.received).hasSize(3);
        server.reply(503, "").reply(200, "");
        try (NereidClient client = builder().retries(QUICK.withManagement()).build()) {
            client.load("m");
        }
        assertThat(server.received).hasSize(5);
    }

    @ParameterizedTest
    @ValueSource(ints = {400, 401, 403, 404, 409, 422, 500, 501, 504})
    void otherErrorsAreNotRepeated(int status) {
        server.reply(status, "{\"detail\":\"because\"}");
        try (NereidClient client = builder().build()) {
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.httpStatus()).isEqualTo(status);
            assertThat(failure.code()).isEqualTo(InferenceException.codeOf(status));
            assertThat(failure).hasMessageContaining("because").hasMessageContaining(server.url());
        }
        assertThat(server.received).hasSize(1);
    }

    @Test
    void aConnectionThatIsLostBeforeTheResponseIsMadeAgain() {
        server.reply(0, "").reply(200, RESPONSE);
        try (NereidClient client = builder().build()) {
            assertThat(client.infer(REQUEST).output("y").asFloats()).containsExactly(2.5f);
        }
        assertThat(server.received).hasSize(2);
    }

    @Test
    void aResponseThatBreaksOffIsNotAskedForAgain() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
                NereidClient client = NereidClient.builder("http://127.0.0.1:" + socket.getLocalPort())
                        .tensorEncoding(TensorEncoding.JSON)
                        .retries(QUICK)
                        .build()) {
            CompletableFuture<InferResult> call = client.inferAsync(REQUEST);
            try (var connection = socket.accept()) {
                connection.getInputStream().read(new byte[10_000]);
                connection
                        .getOutputStream()
                        .write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".getBytes(StandardCharsets.US_ASCII));
            }
            InferenceException failure = failure(call);
            assertThat(failure.isConnectionFailure()).isTrue();
            assertThat(failure.isTransient()).isFalse();
            assertThat(failure.attempts()).isEqualTo(1);
            assertThat(failure).hasMessageContaining("during the response");
        }
    }

    private static InferenceException failure(CompletableFuture<?> call) throws Exception {
        ExecutionException thrown =
                catchThrowableOfType(ExecutionException.class, () -> call.get(60, TimeUnit.SECONDS));
        assertThat(thrown).as("the failure of %s", call).isNotNull();
        return (InferenceException) thrown.getCause();
    }

    @ParameterizedTest
    @ValueSource(strings = {"http", "grpc"})
    void withoutAServerTheConnectionFails(String scheme) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        try (NereidClient client = NereidClient.builder(scheme + "://127.0.0.1:" + port)
                .retries(QUICK)
                .build()) {
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(failure.isConnectionFailure()).isTrue();
            assertThat(failure.attempts()).isEqualTo(3);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"http", "grpc"})
    void aServerThatNeverAnswersMeetsTheDeadline(String scheme) throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
                NereidClient client = NereidClient.builder(scheme + "://127.0.0.1:" + silent.getLocalPort())
                        .timeout(Duration.ofMillis(150))
                        .build()) {
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"http", "grpc"})
    void closingEndsTheCallsInProgress(String scheme) throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            NereidClient client = NereidClient.builder(scheme + "://127.0.0.1:" + silent.getLocalPort())
                    .build();
            CompletableFuture<InferResult> call = client.inferAsync(REQUEST);
            try (var connection = silent.accept()) {
                assertThat(connection.isConnected()).isTrue();
                client.close();
                assertThat(failure(call).code()).isEqualTo(ErrorCode.CANCELLED);
            }
            assertThat(fails(client, REQUEST)).hasMessageContaining("the client is closed");
        }
    }

    @Test
    void cancellingAFutureClosesTheConnection() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
                NereidClient client = NereidClient.builder("http://127.0.0.1:" + silent.getLocalPort())
                        .tensorEncoding(TensorEncoding.JSON)
                        .build()) {
            CompletableFuture<InferResult> call = client.inferAsync(REQUEST);
            try (var connection = silent.accept()) {
                connection.setSoTimeout(60_000);
                connection.getInputStream().read();
                assertThat(call.cancel(true)).isTrue();
                byte[] rest = connection.getInputStream().readAllBytes();
                assertThat(rest).isNotEmpty();
            }
        }
    }

    @Test
    void callsBeyondTheConnectionsWaitTheirTurn() throws Exception {
        try (NereidClient client = builder().maxConnections(1).build()) {
            CompletableFuture<InferResult> first = client.inferAsync(REQUEST);
            CompletableFuture<InferResult> dropped = client.inferAsync(REQUEST);
            CompletableFuture<InferResult> third = client.inferAsync(REQUEST);
            assertThat(dropped.cancel(true)).isTrue();
            server.reply(200, RESPONSE);
            first.get(60, TimeUnit.SECONDS);
            server.reply(200, RESPONSE);
            third.get(60, TimeUnit.SECONDS);
            assertThat(server.received).hasSize(2);
        }
    }

    @Test
    void binaryDataIsSentWhenTheServerHasTheExtension() {
        byte[] json = ("{\"outputs\":[{\"name\":\"y\",\"datatype\":\"INT16\",\"shape\":[2],"
                        + "\"parameters\":{\"binary_data_size\":4}}]}")
                .getBytes(StandardCharsets.UTF_8);
        byte[] body = java.util.Arrays.copyOf(json, json.length + 4);
        body[json.length] = 5;
        body[json.length + 2] = (byte) 0xff;
        body[json.length + 3] = (byte) 0xff;
        ScriptedServer.Reply reply = new ScriptedServer.Reply(
                200, java.util.Map.of("Inference-Header-Content-Length", Integer.toString(json.length)), body);
        server.reply(200, "{\"name\":\"s\",\"version\":\"1\",\"extensions\":[\"binary_tensor_data\"]}")
                .reply(reply)
                .reply(reply);
        try (NereidClient client = NereidClient.builder(server.url())
                .timeout(Duration.ofSeconds(60))
                .build()) {
            assertThat(client.infer(REQUEST).output("y").asInts()).containsExactly(5, -1);
            assertThat(client.infer(REQUEST).output("y").asInts()).containsExactly(5, -1);
        }
        assertThat(server.received)
                .extracting(ScriptedServer.Received::path)
                .containsExactly("/v2", "/v2/models/m/infer", "/v2/models/m/infer");
        ScriptedServer.Received sent = server.received.get(1);
        String head = "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\","
                + "\"shape\":[1],\"parameters\":{\"binary_data_size\":4}}]}";
        assertThat(sent.headers()).containsEntry("inference-header-content-length", Integer.toString(head.length()));
        assertThat(sent.text()).startsWith(head);
        assertThat(sent.body()).hasSize(head.length() + 4).endsWith(0, 0, 0x80, 0x3f);
    }

    @Test
    void jsonIsSentWhenTheServerDoesNotSayThatItTakesBinaryData() {
        server.reply(404, "{\"error\":\"no such route\"}").reply(200, RESPONSE).reply(200, RESPONSE);
        try (NereidClient client = NereidClient.builder(server.url())
                .timeout(Duration.ofSeconds(60))
                .build()) {
            client.infer(REQUEST);
            client.infer(REQUEST);
        }
        assertThat(server.received).hasSize(3);
        assertThat(server.received.get(2).text())
                .isEqualTo("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1.0]}]}");
    }

    @Test
    void numbersOfEveryFormAreRead() {
        server.reply(
                200,
                "{\"outputs\":["
                        + "{\"name\":\"early\",\"data\":[[1,2],[3,4]],\"shape\":[2,2],\"datatype\":\"INT8\"},"
                        + "{\"name\":\"odd\",\"datatype\":\"FP64\",\"shape\":[5],\"data\":[NaN,-Infinity,\"Infinity\",null,1e300]},"
                        + "{\"name\":\"big\",\"datatype\":\"UINT64\",\"shape\":[1],\"data\":[18446744073709551615]},"
                        + "{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"\\u00fc\",{\"b64\":\"/w==\"}]},"
                        + "{\"name\":\"half\",\"datatype\":\"FP16\",\"shape\":[1],\"data\":[1.5]}],"
                        + "\"parameters\":{\"a\":1,\"b\":true,\"c\":[1]},\"model_version\":null,\"unknown\":{\"x\":[1]}}");
        try (NereidClient client = builder().build()) {
            InferResult result = client.infer(REQUEST);
            assertThat(result.output("early").asInts()).containsExactly(1, 2, 3, 4);
            assertThat(result.output("odd").asDoubles())
                    .containsExactly(Double.NaN, Double.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY, Double.NaN, 1e300);
            assertThat(result.output("big").asLongs()).containsExactly(-1);
            assertThat(result.output("text").asByteArrays()).isDeepEqualTo(new byte[][] {
                {(byte) 0xc3, (byte) 0xbc}, {-1}
            });
            assertThat(result.output("half").dataType()).isEqualTo(TensorDataType.FP16);
            assertThat(result.parameters())
                    .containsEntry("a", 1L)
                    .containsEntry("b", true)
                    .containsEntry("c", "[1]");
            assertThatThrownBy(() -> result.output("z")).hasMessageContaining("[early, odd, big, text, half]");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "no json",
                "[]",
                "{}",
                "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1]}]}",
                "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[\"x\"]}]}",
                "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP33\",\"shape\":[1],\"data\":[1]}]}",
                "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1.5]}]}",
                "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1]}]}",
                "{\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1],"
                        + "\"parameters\":{\"binary_data_size\":4}}]}"
            })
    void aResponseThatIsNotTheProtocolsIsAnErrorWithAReason(String body) {
        server.reply(200, body);
        try (NereidClient client = builder().build()) {
            InferenceException failure = fails(client, REQUEST);
            assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(failure).hasMessageContaining("cannot be read");
        }
    }

    @Test
    void v1SendsRowsAndReadsWhatServersWrite() {
        server.reply(200, "{\"predictions\":[[1,2],[3,4]]}")
                .reply(200, "{\"predictions\":[{\"a\":1.5,\"b\":[\"x\"]},{\"a\":2,\"b\":[\"y\"]}]}")
                .reply(200, "{\"outputs\":{\"s\":5}}")
                .reply(200, "{\"predictions\":[[1],[2,3]]}");
        try (NereidClient client = NereidClient.builder(server.url() + "/prefix/")
                .protocol(Protocol.V1)
                .build()) {
            InferResult one = client.infer(InferRequest.builder("a b")
                    .version("3")
                    .input("x", new float[][] {{1, 2}, {3, 4}})
                    .build());
            assertThat(one.output("predictions").toString()).isEqualTo("INT64[2,2]");
            InferResult two = client.infer(InferRequest.builder("m")
                    .version("labels/stable")
                    .input("x", new long[] {1, 2})
                    .input("t", InferTensor.ofBytes(new byte[][] {{-1}, {'k'}}))
                    .parameter("signature_name", "other")
                    .output("a")
                    .build());
            assertThat(two.outputs()).containsOnlyKeys("a");
            assertThat(two.output("a").asDoubles()).containsExactly(1.5, 2);
            InferResult three = client.infer(InferRequest.builder("m")
                    .input("scalar", new int[] {1}, new long[] {1})
                    .input("x", new int[] {1, 2})
                    .build());
            assertThat(three.output("s").shape()).isEmpty();
            assertThat(fails(client, REQUEST)).hasMessageContaining("rows have one length");
        }
        assertThat(server.received)
                .extracting(ScriptedServer.Received::path)
                .startsWith("/prefix/v1/models/a%20b/versions/3:predict", "/prefix/v1/models/m/labels/stable:predict");
        assertThat(server.received)
                .extracting(ScriptedServer.Received::text)
                .startsWith(
                        "{\"instances\":[[1.0,2.0],[3.0,4.0]]}",
                        "{\"signature_name\":\"other\",\"instances\":[{\"x\":1,\"t\":{\"b64\":\"/w==\"}},"
                                + "{\"x\":2,\"t\":\"k\"}]}",
                        "{\"inputs\":{\"scalar\":[1],\"x\":[1,2]}}");
    }

    @Test
    void v1RefusesWhatItCannotExpress() {
        try (NereidClient client =
                NereidClient.builder(server.url()).protocol(Protocol.V1).build()) {
            for (InferRequest request : List.of(
                    InferRequest.builder("m")
                            .input("x", new float[] {1})
                            .id("i")
                            .build(),
                    InferRequest.builder("m")
                            .input("x", new float[] {1})
                            .sequence(1, true, true)
                            .build(),
                    InferRequest.builder("m")
                            .input("x", new float[] {1})
                            .parameter("p", 1)
                            .build(),
                    InferRequest.builder("m")
                            .input("x", new float[] {1})
                            .classification("y", 2)
                            .build(),
                    InferRequest.builder("m").build())) {
                InferenceException refused = fails(client, request);
                assertThat(refused.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(refused).hasMessageContaining("V1 does not have");
            }
        }
        assertThat(server.received).isEmpty();
    }

    @Test
    void interceptorsSeeEveryAttemptAndAddHeaders() {
        server.reply(503, "").reply(200, RESPONSE);
        List<String> seen = new CopyOnWriteArrayList<>();
        RequestInterceptor recorder = new RequestInterceptor() {
            @Override
            public void before(Attempt attempt) {
                seen.add("before " + attempt.operation() + " " + attempt.model() + " " + attempt.number() + " "
                        + attempt.attribute("span"));
                attempt.attribute("span", attempt.number());
                attempt.header("X-Attempt", Integer.toString(attempt.number()));
            }

            @Override
            public void after(Attempt attempt, InferenceException failure) {
                seen.add("after " + attempt.number() + " " + (failure == null ? "ok" : failure.code()));
                throw new IllegalStateException("an interceptor that fails afterwards changes nothing");
            }
        };
        String parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        try (NereidClient client = builder()
                .apiKey("nrd_secret")
                .interceptor(RequestInterceptor.traceparent(() -> parent))
                .interceptor(recorder)
                .build()) {
            client.infer(InferRequest.builder("m")
                    .input("x", new float[] {1})
                    .header("X-Own", "1")
                    .build());
        }
        assertThat(seen)
                .containsExactly("before infer m 1 null", "after 1 UNAVAILABLE", "before infer m 2 1", "after 2 ok");
        assertThat(server.received.get(1).headers())
                .containsEntry("authorization", "Bearer nrd_secret")
                .containsEntry("traceparent", parent)
                .containsEntry("x-attempt", "2")
                .containsEntry("x-own", "1");
    }

    @Test
    void healthIsFalseForAServerThatSaysSo() {
        server.reply(503, "")
                .reply(200, "{\"ready\":false}")
                .reply(200, "{\"live\":true}")
                .reply(401, "");
        try (NereidClient client = builder().retries(RequestRetryPolicy.none()).build()) {
            assertThat(client.isReady()).isFalse();
            assertThat(client.isReady()).isFalse();
            assertThat(client.isLive()).isTrue();
            assertThatThrownBy(client::isReady).isInstanceOf(InferenceException.class);
        }
    }

    @Test
    void settingsThatDoNotFitTogetherAreRefused() {
        assertThatThrownBy(() -> NereidClient.builder("ftp://x")).hasMessageContaining("expected: http://HOST:PORT");
        assertThatThrownBy(() -> NereidClient.builder("http://user@x")).hasMessageContaining("without user");
        assertThatThrownBy(() -> NereidClient.builder("grpc://x").build()).hasMessageContaining("has no port");
        assertThatThrownBy(() -> NereidClient.builder("grpc://x:1/path").build())
                .hasMessageContaining("has a path");
        assertThatThrownBy(() -> NereidClient.builder("grpc://x:1").protocol(Protocol.V1))
                .hasMessageContaining("V1 with grpc://");
        assertThatThrownBy(() -> NereidClient.builder("http://x").tls(ClientTlsOptions.standard()))
                .hasMessageContaining("expected: https://");
        assertThatThrownBy(() -> NereidClient.builder("http://x").timeout(Duration.ZERO))
                .hasMessageContaining("timeout PT0S");
        assertThatThrownBy(() -> NereidClient.builder("grpc://x:1")
                        .tensorEncoding(TensorEncoding.JSON)
                        .build())
                .hasMessageContaining("tensorEncoding JSON");
        assertThatThrownBy(() -> NereidClient.builder("https://x")
                        .tls(ClientTlsOptions.trusting(java.nio.file.Path.of("/no/such.pem")))
                        .build())
                .hasMessageContaining("/no/such.pem");
        try (NereidClient client = builder().header("host", "elsewhere").build()) {
            assertThat(fails(client, REQUEST)).hasMessageContaining("cannot be made");
        }
    }
}
