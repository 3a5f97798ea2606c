// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.base.ErrorCode;
import io.nereid.client.ClientBuilder;
import io.nereid.client.NereidClient;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.options.Protocol;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.client.options.TensorEncoding;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The client for Java with a server of another implementation: KServe's SDK for Python. Skipped without an interpreter that
 * has it: that of {@code run-clients.sh}, or the one that NEREID_CLIENTS_PYTHON names.
 */
class ClientOfKServeTest {
    @TempDir
    static Path directory;

    private static Process process;
    private static int http;
    private static int grpc;

    /** The ways to send a tensor. */
    enum Way {
        JSON,
        BINARY,
        GRPC,
        V1
    }

    @BeforeAll
    static void start() throws Exception {
        String python = Objects.requireNonNullElse(
                System.getenv("NEREID_CLIENTS_PYTHON"),
                BuiltDistribution.top()
                        .resolve("testing/conformance/target/clients/venv/bin/python")
                        .toString());
        assumeTrue(
                Files.isExecutable(Path.of(python)) && runs(List.of(python, "-c", "import kserve")),
                "NOT TESTED: the client for Java with KServe's server in Python; " + python
                        + " does not have the package kserve (testing/conformance/run-clients.sh installs it)");
        http = freePort();
        grpc = freePort();
        process = new ProcessBuilder(
                        python,
                        BuiltDistribution.top()
                                .resolve("testing/conformance/clients/control/kserve_child.py")
                                .toString(),
                        "--model_name=adder",
                        "--http_port=" + http,
                        "--grpc_port=" + grpc)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("kserve.log").toFile())
                .start();
        // the retries of the client wait for the server
        for (Way way : List.of(Way.JSON, Way.GRPC)) {
            try (NereidClient client = builder(way)
                    .timeout(Duration.ofSeconds(120))
                    .retries(RequestRetryPolicy.ofAttempts(1000)
                            .withDelays(Duration.ofMillis(100), Duration.ofMillis(500)))
                    .build()) {
                assertThat(client.isLive())
                        .as(() -> "the server is live: " + log())
                        .isTrue();
            }
        }
    }

    private static String log() {
        try {
            return Files.readString(directory.resolve("kserve.log"));
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static boolean runs(List<String> command) throws Exception {
        Process started = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        return started.waitFor(120, TimeUnit.SECONDS) && started.exitValue() == 0;
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @AfterAll
    static void stop() throws Exception {
        if (process != null) {
            process.destroy();
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }
    }

    private static ClientBuilder builder(Way way) {
        ClientBuilder builder = NereidClient.builder(
                        way == Way.GRPC ? "grpc://127.0.0.1:" + grpc : "http://127.0.0.1:" + http)
                .timeout(Duration.ofSeconds(60));
        return switch (way) {
            case JSON -> builder.tensorEncoding(TensorEncoding.JSON);
            case BINARY -> builder.tensorEncoding(TensorEncoding.BINARY);
            case GRPC -> builder;
            case V1 -> builder.protocol(Protocol.V1);
        };
    }

    @ParameterizedTest
    @EnumSource
    void rowsAreSummed(Way way) {
        try (NereidClient client = builder(way).build()) {
            InferResult result = client.infer(InferRequest.builder("adder")
                    .input("input", new float[][] {{1, 2, 3}, {4, 5, 6}})
                    .build());
            InferTensor sums = result.outputs().values().iterator().next();
            assertThat(sums.asDoubles()).containsExactly(6, 15);
            assertThat(sums.shape()).containsExactly(2);
            assertThat(result.modelName()).isEqualTo("adder");
        }
    }

    @ParameterizedTest
    @EnumSource
    void anUnknownModelIsNotFound(Way way) {
        try (NereidClient client = builder(way).build()) {
            InferRequest request = InferRequest.builder("nosuch")
                    .input("input", new float[][] {{1}})
                    .build();
            InferenceException failure = catchThrowableOfType(InferenceException.class, () -> client.infer(request));
            assertThat(failure.code()).isEqualTo(ErrorCode.NOT_FOUND);
            assertThat(failure).hasMessageContaining("nosuch");
        }
    }

    @Test
    void halfPrecisionIsBinaryWithoutBeingAskedFor() {
        try (NereidClient client =
                NereidClient.builder("http://127.0.0.1:" + http).build()) {
            InferResult result = client.infer(InferRequest.builder("adder")
                    .input("input", InferTensor.ofHalf(new float[] {0.5f, 0.25f}, 1, 2))
                    .build());
            assertThat(result.output("output-0").asDoubles()).containsExactly(0.75);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"JSON", "GRPC"})
    void healthAndMetadataAreRead(Way way) {
        try (NereidClient client = builder(way).build()) {
            assertThat(client.isReady()).isTrue();
            assertThat(client.isModelReady("adder", "")).isTrue();
            assertThat(client.isModelReady("nosuch", "")).isFalse();
            assertThat(client.serverMetadata().name()).isEqualTo("kserve");
            assertThat(client.modelMetadata("adder", "").name()).isEqualTo("adder");
        }
    }

    @Test
    void v1KnowsWhetherAModelIsReady() {
        try (NereidClient client = builder(Way.V1).build()) {
            assertThat(client.isLive()).isTrue();
            assertThat(client.isModelReady("adder", "")).isTrue();
            assertThat(client.isModelReady("nosuch", "")).isFalse();
            assertThat(client.predictJson("adder", "", "{\"instances\":[[1,2]]}"))
                    .contains("3.0");
        }
    }
}
