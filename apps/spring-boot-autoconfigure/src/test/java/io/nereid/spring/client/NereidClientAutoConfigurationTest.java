// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.nereid.client.NereidClient;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferenceException;
import io.nereid.embedded.Nereid;
import io.nereid.embedded.server.EmbeddedServer;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.ContextPropagators;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

class NereidClientAutoConfigurationTest {
    private static Nereid nereid;
    private static EmbeddedServer server;

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(NereidClientAutoConfiguration.class));

    @BeforeAll
    static void start() {
        nereid = Nereid.builder()
                .model("iris", Path.of("../../examples/models/iris/1/model.onnx"))
                .build();
        server = EmbeddedServer.builder(nereid).listen("127.0.0.1", 0).start();
    }

    @AfterAll
    static void stop() {
        server.close();
        nereid.close();
    }

    @Test
    void callsTheServerOfTheUrl() {
        for (String scheme : List.of("http", "grpc")) {
            runner.withPropertyValues("nereid.client.url=" + scheme + "://127.0.0.1:" + server.port())
                    .run(context -> {
                        NereidClient client = context.getBean("nereidClient", NereidClient.class);
                        InferRequest request = InferRequest.builder("iris")
                                .input("input", new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}})
                                .build();
                        assertThat(client.infer(request).output("label").asLongs())
                                .containsExactly(0);
                        assertThat(ServerHealth.of(client)).isEqualTo(new ServerHealth(true, "ready"));
                    });
        }
    }

    @Test
    void readinessOfV1IsLiveness() {
        runner.withPropertyValues("nereid.client.url=http://127.0.0.1:" + server.port(), "nereid.client.protocol=v1")
                .run(context -> assertThat(ServerHealth.of(context.getBean(NereidClient.class)))
                        .isEqualTo(new ServerHealth(true, "ready")));
    }

    @Test
    void aServerThatIsAwayIsDown() throws IOException {
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
        runner.withPropertyValues("nereid.client.url=http://127.0.0.1:" + port, "nereid.client.retries.max-attempts=1")
                .run(context -> {
                    ServerHealth health = ServerHealth.of(context.getBean(NereidClient.class));
                    assertThat(health.up()).isFalse();
                    assertThat(health.state()).contains("UNAVAILABLE");
                });
    }

    @Test
    void aServerThatDoesNotAnswerIsDown() throws IOException {
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            runner.withPropertyValues("nereid.client.url=http://127.0.0.1:" + silent.getLocalPort())
                    .run(context -> {
                        NereidClient client = context.getBean(NereidClient.class);
                        assertThat(ServerHealth.of(client, Duration.ofMillis(10)))
                                .isEqualTo(new ServerHealth(false, "DEADLINE_EXCEEDED: no answer within 10 ms"));
                    });
        }
    }

    @Test
    void propertiesReachTheRequestsAndTheRetries() throws IOException {
        List<Map<String, List<String>>> seen = new CopyOnWriteArrayList<>();
        HttpServer http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        http.createContext("/", exchange -> {
            seen.add(Map.copyOf(exchange.getRequestHeaders()));
            exchange.sendResponseHeaders(503, -1);
            exchange.close();
        });
        http.start();
        SpanContext span = SpanContext.create(
                "0af7651916cd43dd8448eb211c80319c",
                "b7ad6b7169203331",
                TraceFlags.getSampled(),
                TraceState.getDefault());
        try (Scope scope = Span.wrap(span).makeCurrent()) {
            runner.withPropertyValues(
                            "nereid.client.url=http://127.0.0.1:"
                                    + http.getAddress().getPort(),
                            "nereid.client.api-key=secret",
                            "nereid.client.headers.x-tenant=blue",
                            "nereid.client.timeout=20s",
                            "nereid.client.retries.max-attempts=2",
                            "nereid.client.retries.initial-delay=1ms",
                            "nereid.client.retries.max-delay=2ms")
                    .withBean(
                            OpenTelemetry.class,
                            () -> OpenTelemetry.propagating(
                                    ContextPropagators.create(W3CTraceContextPropagator.getInstance())))
                    .withBean(NereidClientCustomizer.class, () -> builder -> builder.header("x-last", "yes"))
                    .run(context -> {
                        assertThat(context.getBean(NereidClientProperties.class).toString())
                                .doesNotContain("secret");
                        NereidClient client = context.getBean(NereidClient.class);
                        assertThatThrownBy(client::serverMetadata).isInstanceOf(InferenceException.class);
                    });
            assertThat(scope).isNotNull();
        } finally {
            http.stop(0);
        }
        assertThat(seen).hasSize(2).allSatisfy(headers -> {
            assertThat(headers).containsEntry("Authorization", List.of("Bearer secret"));
            assertThat(headers).containsEntry("X-tenant", List.of("blue"));
            assertThat(headers).containsEntry("X-last", List.of("yes"));
            assertThat(headers)
                    .containsEntry("Traceparent", List.of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        });
    }

    @Test
    void doesNothingWithoutAUrlWhenSwitchedOffOrWithoutTheClient() {
        String url = "nereid.client.url=http://127.0.0.1:1";
        runner.run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(NereidClient.class));
        runner.withPropertyValues(url, "nereid.client.enabled=false")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(NereidClient.class));
        runner.withPropertyValues(url)
                .withClassLoader(new FilteredClassLoader("io.nereid.client"))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean("nereidClient"));
        runner.withPropertyValues(url)
                .withBean(
                        "own",
                        NereidClient.class,
                        () -> NereidClient.builder("http://127.0.0.1:2").build())
                .run(context ->
                        assertThat(context).hasSingleBean(NereidClient.class).hasBean("own"));
    }

    @Test
    void wrongValuesNameTheProperty() {
        String url = "nereid.client.url=http://127.0.0.1:1";
        String tls = "nereid.client.url=https://127.0.0.1:1";
        fails("nereid.client.url", "http://HOST:PORT", "nereid.client.url=127.0.0.1");
        fails("nereid.client.url", "has no port", "nereid.client.url=grpc://localhost");
        fails("nereid.client.protocol", "V1", "nereid.client.url=grpc://localhost:1", "nereid.client.protocol=v1");
        fails("nereid.client.timeout", "more than 0", url, "nereid.client.timeout=0s");
        fails("nereid.client.connect-timeout", "more than 0", url, "nereid.client.connect-timeout=-1s");
        fails("nereid.client.max-connections", "1 or more", url, "nereid.client.max-connections=0");
        fails("nereid.client.retries", "1 or more", url, "nereid.client.retries.max-attempts=0");
        fails("nereid.client.tls", "https://", url, "nereid.client.tls.certificate-authorities=ca.pem");
        fails("nereid.client.tls", "missing.pem", tls, "nereid.client.tls.certificate-authorities=missing.pem");
        fails("nereid.client.tls.private-key", "without its", tls, "nereid.client.tls.certificate=a.pem");
        fails("nereid.client.tls.certificate", "without its", tls, "nereid.client.tls.private-key=a.pem");
        fails(
                "nereid.client.tls.bundle",
                "either",
                tls,
                "nereid.client.tls.certificate=a.pem",
                "nereid.client.tls.bundle=mine");
    }

    private void fails(String name, String reason, String... properties) {
        runner.withPropertyValues(properties).run(context -> {
            assertThat(context).hasFailed();
            Throwable failure = context.getStartupFailure();
            while (!(failure instanceof InvalidConfigurationPropertyValueException) && failure.getCause() != null) {
                failure = failure.getCause();
            }
            assertThat(failure).isInstanceOfSatisfying(InvalidConfigurationPropertyValueException.class, e -> {
                assertThat(e.getName()).isEqualTo(name);
                assertThat(e.getReason()).contains(reason);
            });
        });
    }
}
