// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.boot4;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** A web application of Spring Boot 4 with the starter, started as its users start it. */
class Boot4ApplicationTest {
    private static final String FILE = "../../examples/models/iris/1/model.onnx";
    private static final float[][] SETOSA = {{5.1f, 3.5f, 1.4f, 0.2f}};

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    @Test
    void anApplicationHasModelsHealthAndMeters() throws Exception {
        int closedPort;
        try (ServerSocket socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            closedPort = socket.getLocalPort();
        }
        try (ConfigurableApplicationContext context = new SpringApplication(Application.class)
                .run(
                        "--server.port=0",
                        "--server.address=127.0.0.1",
                        "--spring.main.banner-mode=off",
                        "--nereid.embedded.models.iris.path=" + FILE,
                        "--nereid.client.url=http://127.0.0.1:" + closedPort,
                        "--nereid.client.retries.max-attempts=1",
                        "--management.endpoint.health.show-details=always",
                        "--management.endpoint.health.probes.enabled=true",
                        "--management.endpoint.health.group.readiness.include=readinessState,nereid")) {
            assertThat(context.getBean("iris", Model.class).predict(SETOSA).longs("label"))
                    .containsExactly(0);
            assertThat(context.getBean(MeterRegistry.class)
                            .get("nereid.requests")
                            .tag("model", "iris")
                            .tag("outcome", "success")
                            .functionTimer())
                    .isNotNull();
            String port = context.getEnvironment().getProperty("local.server.port");
            assertThat(answer(port, "health/readiness")).startsWith("200 ").contains("\"iris\":{\"1\":\"AVAILABLE\"}");
            // The server of the client is away, which is part of the health of the whole.
            assertThat(answer(port, "health")).startsWith("503 ").contains("UNAVAILABLE");

            context.getBean(Nereid.class).close();
            assertThat(answer(port, "health/readiness")).startsWith("503 ").contains("DOWN");
        }
    }

    private static String answer(String port, String path) throws IOException, InterruptedException {
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/actuator/" + path))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        return response.statusCode() + " " + response.body();
    }

    @Test
    void theIndicatorsCanBeSwitchedOffAndReplaced() {
        ApplicationContextRunner runner = new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(Boot4HealthAutoConfiguration.class))
                .withBean(
                        Nereid.class,
                        () -> Nereid.builder().model("iris", Path.of(FILE)).build());
        runner.run(context -> assertThat(context).hasSingleBean(HealthIndicator.class));
        runner.withPropertyValues("management.health.nereid.enabled=false")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(HealthIndicator.class));
        runner.withBean("nereidHealthIndicator", String.class, () -> "mine")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(HealthIndicator.class));
    }
}
