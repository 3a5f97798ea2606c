// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.nereid.base.ErrorCode;
import io.nereid.client.ClientBuilder;
import io.nereid.client.NereidClient;
import io.nereid.client.ResultIterator;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.TensorDataType;
import io.nereid.client.options.ClientTlsOptions;
import io.nereid.client.options.Protocol;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.client.options.TensorEncoding;
import io.nereid.transport.tls.CertificateAuthority;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The client for Java with the program itself, over all protocols. */
class ClientTest {
    private static final float[][] FLOWERS = {{5.1f, 3.5f, 1.4f, 0.2f}, {6.7f, 3.1f, 4.4f, 1.4f}};
    private static final Duration PATIENT = Duration.ofSeconds(60);

    @TempDir
    static Path directory;

    private static ServerProcess server;

    @BeforeAll
    static void start() throws Exception {
        Path models = directory.resolve("models");
        Path iris = BuiltDistribution.top().resolve("examples/models/iris");
        for (String file : List.of("config.pbtxt", "labels.txt", "1/model.onnx")) {
            Path to = models.resolve("iris").resolve(file);
            Files.createDirectories(to.getParent());
            Files.copy(iris.resolve(file), to);
        }
        model(models, "echo", "backend: \"identity\" max_batch_size: 8");
        for (String type : List.of("FP16", "BF16", "STRING", "BOOL", "UINT64", "INT8")) {
            model(
                    models,
                    "echo_" + type,
                    "backend: \"identity\" max_batch_size: 8"
                            + " input { name: \"INPUT0\" data_type: TYPE_" + type + " dims: [ -1 ] }"
                            + " output { name: \"OUTPUT0\" data_type: TYPE_" + type + " dims: [ -1 ] }");
        }
        model(models, "repeat", "backend: \"repeat\" model_transaction_policy { decoupled: true }");
        model(
                models,
                "slow",
                "backend: \"identity\" max_batch_size: 8"
                        + " parameters { key: \"execute_delay_ms\" value { string_value: \"20000\" } }");
        server = ServerProcess.serve(models, "--model-control-mode", "explicit", "--load-model", "*");
    }

    private static void model(Path models, String name, String config) throws Exception {
        Files.createDirectories(models.resolve(name).resolve("1"));
        Files.writeString(models.resolve(name).resolve("config.pbtxt"), config);
    }

    @AfterAll
    static void stop() {
        server.close();
        assertThat(server.output()).noneMatch(line -> line.contains("LEAK:"));
    }

    /** Every way to send a tensor. */
    enum Way {
        JSON,
        BINARY,
        AUTO,
        GRPC,
        V1;

        ClientBuilder builder(int port) {
            ClientBuilder builder = NereidClient.builder((this == GRPC ? "grpc" : "http") + "://127.0.0.1:" + port)
                    .timeout(PATIENT);
            return switch (this) {
                case JSON -> builder.tensorEncoding(TensorEncoding.JSON);
                case BINARY -> builder.tensorEncoding(TensorEncoding.BINARY);
                case V1 -> builder.protocol(Protocol.V1);
                default -> builder;
            };
        }

        NereidClient client() {
            return builder(server.port()).build();
        }
    }

    @ParameterizedTest
    @EnumSource
    void allProtocolsGiveTheSameAnswers(Way way) {
        try (NereidClient client = way.client()) {
            InferResult result = client.infer(
                    InferRequest.builder("iris").input("input", FLOWERS).build());
            assertThat(result.outputs().keySet()).containsExactlyInAnyOrder("label", "probabilities");
            assertThat(result.output("label").asLongs()).containsExactly(0, 1);
            assertThat(result.output("label").shape()).containsExactly(2, 1);
            InferTensor probabilities = result.output("probabilities");
            assertThat(probabilities.shape()).containsExactly(2, 3);
            assertThat(probabilities.asFloats()[0]).isCloseTo(0.99823606f, Offset.offset(1e-6f));
            assertThat(result.modelVersion()).isEqualTo(way == Way.V1 ? "" : "1");
            InferResult one = client.infer(InferRequest.builder("iris")
                    .version("1")
                    .input("input", FLOWERS)
                    .output("probabilities")
                    .build());
            assertThat(one.outputs()).containsOnlyKeys("probabilities");
            assertThat(one.output("probabilities")).isEqualTo(probabilities);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"BINARY", "AUTO", "GRPC"})
    void everyTypeTravelsWithoutLoss(Way way) {
        Map<String, InferTensor> tensors = Map.of(
                "echo", InferTensor.of(new float[] {1.5f, Float.NaN, Float.NEGATIVE_INFINITY, 1e-40f}, 1, 4),
                "echo_FP16", InferTensor.ofHalf(new float[] {1.5f, 65504f, 6e-8f, Float.POSITIVE_INFINITY}, 2, 2),
                "echo_BF16", InferTensor.ofBrainFloat(new float[] {1.5f, 3e38f}, 1, 2),
                "echo_STRING",
                        InferTensor.ofBytes(
                                new byte[][] {{(byte) 0xff, 0}, {}, "grün".getBytes(StandardCharsets.UTF_8)}, 1, 3),
                "echo_BOOL", InferTensor.of(new boolean[] {true, false}, 2, 1),
                "echo_UINT64",
                        InferTensor.raw(
                                TensorDataType.UINT64,
                                InferTensor.of(new long[] {-1, 7}).bytes(),
                                1,
                                2),
                "echo_INT8", InferTensor.ofArray(new byte[][] {{-128, 127}}));
        try (NereidClient client = way.client()) {
            tensors.forEach((model, tensor) -> assertThat(client.infer(InferRequest.builder(model)
                                    .input("INPUT0", tensor)
                                    .build())
                            .output("OUTPUT0"))
                    .as(model)
                    .isEqualTo(tensor));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"JSON", "V1"})
    void jsonCarriesTextsAndUnsignedNumbers(Way way) {
        try (NereidClient client = way.client()) {
            assertThat(client.infer(InferRequest.builder("echo_STRING")
                                    .input("INPUT0", new String[] {"grün", "", "\"\n"}, 1, 3)
                                    .build())
                            .output(way == Way.V1 ? "predictions" : "OUTPUT0")
                            .asStrings())
                    .containsExactly("grün", "", "\"\n");
            InferTensor large = InferTensor.raw(
                    TensorDataType.UINT64, InferTensor.of(new long[] {-1, 7}).bytes(), 1, 2);
            assertThat(client.infer(InferRequest.builder("echo_UINT64")
                                    .input("INPUT0", large)
                                    .output("OUTPUT0")
                                    .build())
                            .output("OUTPUT0")
                            .asLongs())
                    .containsExactly(-1, 7);
            assertThat(client.infer(InferRequest.builder("echo_BOOL")
                                    .input("INPUT0", InferTensor.of(new boolean[] {true, false}, 2, 1))
                                    .output("OUTPUT0")
                                    .build())
                            .output("OUTPUT0")
                            .asBooleans())
                    .containsExactly(true, false);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"JSON", "BINARY", "GRPC"})
    void parametersIdAndClassificationArrive(Way way) {
        try (NereidClient client = way.client()) {
            InferResult result = client.infer(InferRequest.builder("iris")
                    .id("seven")
                    .parameter("priority", 0)
                    .input("input", FLOWERS)
                    .classification("probabilities", 1)
                    .build());
            assertThat(result.id()).isEqualTo("seven");
            assertThat(result.output("probabilities").asStrings()[0]).contains(":0:");
        }
    }

    @ParameterizedTest
    @EnumSource
    void errorsOfTheServerHaveCodeAndMessage(Way way) {
        try (NereidClient client = way.client()) {
            InferenceException unknown = fails(
                    client,
                    InferRequest.builder("nosuch").input("input", FLOWERS).build());
            assertThat(unknown.code()).isIn(ErrorCode.NOT_FOUND, ErrorCode.INVALID_ARGUMENT);
            assertThat(unknown).hasMessageContaining("nosuch");
            assertThat(unknown.attempts()).isEqualTo(1);
            InferenceException shape = fails(
                    client,
                    InferRequest.builder("iris")
                            .input("input", new float[][] {{1, 2}})
                            .build());
            assertThat(shape.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(shape.isConnectionFailure()).isFalse();
            assertThat(shape.httpStatus()).isEqualTo(way == Way.GRPC ? 0 : 400);
        }
    }

    private static InferenceException fails(NereidClient client, InferRequest request) {
        return catchThrowableOfType(InferenceException.class, () -> client.infer(request));
    }

    @ParameterizedTest
    @EnumSource
    void aDeadlineEndsACall(Way way) {
        try (NereidClient client = way.client()) {
            InferenceException late = fails(
                    client,
                    InferRequest.builder("slow")
                            .input("INPUT0", new float[] {1}, 1, 1)
                            .timeout(Duration.ofMillis(200))
                            .build());
            assertThat(late.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        }
    }

    /** The code of docs/CLIENT.md, which a test of the documents compares with it. */
    @Test
    void theFirstCallsOfTheGuide() {
        String url = "http://localhost:" + server.port();
        try (NereidClient client = NereidClient.builder(url).build()) {
            InferRequest request = InferRequest.builder("iris")
                    .input("input", new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}})
                    .build();
            InferResult result = client.infer(request);
            long label = result.output("label").asLongs()[0];
            float[] probabilities = result.output("probabilities").asFloats();

            CompletableFuture<InferResult> later = client.inferAsync(request);

            assertThat(label).isZero();
            assertThat(probabilities).hasSize(3);
            assertThat(later.join().output("label").asLongs()).containsExactly(label);
        }
    }

    @Test
    void theStreamOfTheGuide() {
        InferRequest request = repeat(3, 1, 2);
        List<Integer> values = new ArrayList<>();
        try (NereidClient client =
                NereidClient.builder("grpc://localhost:" + server.port()).build()) {
            try (ResultIterator<InferResult> results = client.inferAll(request)) {
                while (results.hasNext()) {
                    values.add(results.next().output("OUT").asInts()[0]);
                }
            }
        }
        assertThat(values).containsExactly(3, 1, 2);
    }

    /** Returns the client of the guide that has a certificate and sends a key. */
    private static NereidClient secured(String url, Path ca, Path certificate, Path key, String apiKey) {
        NereidClient client = NereidClient.builder(url)
                .tls(ClientTlsOptions.trusting(ca).withClientCertificate(certificate, key))
                .apiKey(apiKey)
                .maxConnections(4)
                .build();
        return client;
    }

    @Test
    void aDecoupledModelStreamsItsResponses() {
        try (NereidClient client = Way.GRPC.client()) {
            List<Integer> values = new ArrayList<>();
            try (ResultIterator<InferResult> results = client.inferAll(repeat(3, 1, 2))) {
                results.forEachRemaining(r -> values.add(r.output("OUT").asInts()[0]));
            }
            assertThat(values).containsExactly(3, 1, 2);
            try (ResultIterator<InferResult> results = client.inferAll(repeat())) {
                assertThat(results.hasNext()).isFalse();
            }
            // the rest of a stream that is left early is cancelled, and the client goes on
            try (ResultIterator<InferResult> results = client.inferAll(repeat(new int[1000]))) {
                assertThat(results.next().output("IDX").asLongs()).containsExactly(0);
            }
            ResultIterator<InferResult> unknown = client.inferAll(
                    InferRequest.builder("nosuch").input("IN", new int[] {1}).build());
            assertThat(catchThrowableOfType(InferenceException.class, unknown::hasNext))
                    .hasMessageContaining("nosuch");
            assertThat(client.isLive()).isTrue();
        }
        try (NereidClient rest = Way.JSON.client()) {
            assertThat(catchThrowableOfType(InferenceException.class, () -> rest.inferStream(repeat(1)))
                            .code())
                    .isEqualTo(ErrorCode.UNIMPLEMENTED);
            try (ResultIterator<String> events =
                    rest.generateAll("repeat", "", "{\"IN\":[5,6],\"DELAY\":[0,0],\"WAIT\":0}")) {
                assertThat(events.next()).contains("\"OUT\":5");
                assertThat(events.next()).contains("\"OUT\":6");
                assertThat(events.hasNext()).isFalse();
            }
            ResultIterator<String> unknown = rest.generateAll("nosuch", "", "{}");
            assertThat(catchThrowableOfType(InferenceException.class, unknown::hasNext))
                    .hasMessageContaining("nosuch");
        }
    }

    private static InferRequest repeat(int... values) {
        return InferRequest.builder("repeat")
                .input("IN", values, values.length)
                .input(
                        "DELAY",
                        InferTensor.raw(
                                TensorDataType.UINT32,
                                InferTensor.of(new int[values.length]).bytes(),
                                values.length))
                .input(
                        "WAIT",
                        InferTensor.raw(
                                TensorDataType.UINT32,
                                InferTensor.of(new int[1]).bytes(),
                                1))
                .build();
    }

    @ParameterizedTest
    @EnumSource(names = {"AUTO", "GRPC"})
    void metadataHealthAndManagementWork(Way way) {
        try (NereidClient client = way.client()) {
            assertThat(client.isLive()).isTrue();
            assertThat(client.isReady()).isTrue();
            assertThat(client.isModelReady("iris", "")).isTrue();
            assertThat(client.isModelReady("iris", "1")).isTrue();
            assertThat(client.isModelReady("nosuch", "")).isFalse();
            assertThat(client.serverMetadata().extensions()).contains("binary_tensor_data");
            ModelMetadataResponse iris = client.modelMetadata("iris", "");
            assertThat(iris.versions()).containsExactly("1");
            assertThat(iris.inputs())
                    .containsExactly(new ModelMetadataResponse.TensorMetadata("input", "FP32", List.of(-1L, 4L)));
            assertThat(client.modelConfig("iris", "")).contains("\"max_batch_size\":64", "\"data_type\":\"TYPE_FP32\"");
            client.infer(InferRequest.builder("iris").input("input", FLOWERS).build());
            ModelStatisticsResponse statistics = client.statistics("iris", "1").get(0);
            assertThat(statistics.inferenceCount()).isGreaterThanOrEqualTo(2);
            assertThat(statistics.durations().get("success").nanos()).isPositive();
            client.unload("echo_BOOL");
            assertThat(client.isModelReady("echo_BOOL", "")).isFalse();
            client.load("echo_BOOL");
            assertThat(client.repositoryIndex(true)).contains(new RepositoryModel("echo_BOOL", "1", "READY", ""));
            assertThat(catchThrowableOfType(InferenceException.class, () -> client.load("nosuch")))
                    .hasMessageContaining("nosuch");
        }
    }

    @Test
    void v1RefusesByNameWhatItDoesNotHave() {
        try (NereidClient client = Way.V1.client()) {
            assertThat(client.isLive()).isTrue();
            assertThat(client.isModelReady("iris", "")).isTrue();
            assertThat(client.isModelReady("nosuch", "")).isFalse();
            assertThat(client.predictJson("iris", "", "{\"instances\":[[5.1,3.5,1.4,0.2]]}"))
                    .contains("probabilities");
            for (Runnable call : List.<Runnable>of(
                    client::serverMetadata,
                    client::isReady,
                    () -> client.load("iris"),
                    () -> client.generate("iris", "", "{}"),
                    () -> client.repositoryIndex(true))) {
                InferenceException refused = catchThrowableOfType(InferenceException.class, call::run);
                assertThat(refused.code()).isEqualTo(ErrorCode.UNIMPLEMENTED);
                assertThat(refused).hasMessageContaining("V1 does not have");
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void manyCallsAtATimeShareTheConnections(Way way) throws Exception {
        try (NereidClient client = way.builder(server.port()).maxConnections(4).build()) {
            List<CompletableFuture<InferResult>> calls = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                calls.add(client.inferAsync(InferRequest.builder("echo")
                        .input("INPUT0", new float[] {i}, 1, 1)
                        .build()));
            }
            for (int i = 0; i < 500; i++) {
                InferTensor output = calls.get(i)
                        .get(60, TimeUnit.SECONDS)
                        .outputs()
                        .values()
                        .iterator()
                        .next();
                assertThat(output.asFloats()).containsExactly(i);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void largeTensorsTravel(Way way) {
        float[] values = new float[1_500_000];
        for (int i = 0; i < values.length; i++) {
            values[i] = i % 1000;
        }
        try (NereidClient client = way.client()) {
            assertThat(client.infer(InferRequest.builder("echo")
                                    .input("INPUT0", values, 1, values.length)
                                    .output("OUTPUT0")
                                    .build())
                            .output("OUTPUT0")
                            .asFloats())
                    .isEqualTo(values);
        }
    }

    @ParameterizedTest
    @CsvSource({"https, BINARY", "https, V1", "grpcs, GRPC"})
    void tlsVerifiesTheServerAndShowsACertificate(String scheme, Way way) throws Exception {
        Instant now = Instant.parse("2025-01-01T00:00:00Z");
        Instant later = Instant.parse("2049-01-01T00:00:00Z");
        CertificateAuthority authority = CertificateAuthority.make("tests", now, later);
        CertificateAuthority other = CertificateAuthority.make("others", now, later);
        CertificateAuthority.Issued own = authority.issue("server", List.of("127.0.0.1"), now, later);
        CertificateAuthority.Issued client = authority.issue("client", List.of("client"), now, later);
        Path tls = Files.createTempDirectory(directory, "tls");
        Path ca = write(tls, "ca.pem", authority.certificate());
        Path wrong = write(tls, "wrong.pem", other.certificate());
        Path certificate = write(tls, "client.pem", client.certificate());
        Path key = write(tls, "client-key.pem", client.key());
        try (ServerProcess secure = ServerProcess.serve(
                directory.resolve("models"),
                "--tls-cert",
                write(tls, "server.pem", own.certificate()).toString(),
                "--tls-key",
                write(tls, "server-key.pem", own.key()).toString(),
                "--tls-client-ca",
                ca.toString(),
                "--model-control-mode",
                "explicit",
                "--load-model",
                "iris")) {
            InferRequest request =
                    InferRequest.builder("iris").input("input", FLOWERS).build();
            ClientTlsOptions trusting = ClientTlsOptions.trusting(ca);
            String url = scheme + "://127.0.0.1:" + secure.port();
            try (NereidClient good = secured(way, url, trusting.withClientCertificate(certificate, key))) {
                assertThat(good.infer(request).output("label").asLongs()).containsExactly(0, 1);
            }
            if (way == Way.GRPC) {
                try (NereidClient keyed = secured(url, ca, certificate, key, "not looked at by this server")) {
                    assertThat(keyed.infer(request).output("label").asLongs()).containsExactly(0, 1);
                }
            }
            try (NereidClient untrusting = secured(way, url, ClientTlsOptions.trusting(wrong))) {
                InferenceException refused = fails(untrusting, request);
                assertThat(refused.isConnectionFailure()).isTrue();
                assertThat(refused.attempts()).isEqualTo(1);
            }
            try (NereidClient anonymous = secured(way, url, trusting)) {
                assertThat(fails(anonymous, request).isConnectionFailure()).isTrue();
            }
        }
    }

    private static NereidClient secured(Way way, String url, ClientTlsOptions tls) {
        ClientBuilder builder = NereidClient.builder(url)
                .timeout(PATIENT)
                .retries(RequestRetryPolicy.none())
                .tls(tls);
        return (way == Way.V1 ? builder.protocol(Protocol.V1) : builder).build();
    }

    private static Path write(Path directory, String name, String text) throws Exception {
        return Files.writeString(directory.resolve(name), text);
    }

    @Test
    void keysAreSentAsTheServerWantsThem() throws Exception {
        Path keys = directory.resolve("keys.json");
        String key = createKey(keys);
        try (ServerProcess guarded = ServerProcess.serve(
                directory.resolve("models"),
                "--api-keys",
                keys.toString(),
                "--model-control-mode",
                "explicit",
                "--load-model",
                "iris")) {
            InferRequest request =
                    InferRequest.builder("iris").input("input", FLOWERS).build();
            for (Way way : Way.values()) {
                try (NereidClient client =
                        way.builder(guarded.port()).apiKey(key).build()) {
                    assertThat(client.infer(request).output("label").asLongs()).containsExactly(0, 1);
                }
                try (NereidClient client =
                        way.builder(guarded.port()).header("X-Api-Key", key).build()) {
                    assertThat(client.infer(request).output("label").asLongs()).containsExactly(0, 1);
                }
                try (NereidClient client = way.builder(guarded.port()).build()) {
                    assertThat(fails(client, request).code()).isEqualTo(ErrorCode.UNAUTHENTICATED);
                }
            }
        }
    }

    private static String createKey(Path file) throws Exception {
        List<String> command = new ArrayList<>(ServerProcess.program());
        command.addAll(List.of("keys", "create", "app", "--role", "client", "--file", file.toString()));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        Matcher key = Pattern.compile("nrd_\\S+").matcher(output);
        assertThat(key.find()).as(output).isTrue();
        return key.group();
    }
}
