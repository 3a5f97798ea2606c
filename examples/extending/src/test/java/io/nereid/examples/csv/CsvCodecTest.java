// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.csv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.examples.linear.LinearBackend;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.api.access.LocalAccessPolicy;
import io.nereid.transport.server.Server;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadPoolExecutor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The route in a whole server: a socket, the engine and a model. */
class CsvCodecTest {
    @TempDir
    Path models;

    private final HttpClient client = HttpClient.newHttpClient();
    private final ThreadPoolExecutor executor = Threads.pool("codec", 1);
    private Engine engine;
    private Server server;
    private AccessPolicy policy = new LocalAccessPolicy(false, Set.of());
    private URI address;

    private void start() throws IOException {
        Path version = Files.createDirectories(models.resolve("price").resolve("1"));
        Files.writeString(version.resolve("model.linear"), "bias 0.5\nweight 2\nweight -1\nend\n");
        engine = new Engine(EngineOptions.of(models), List.of(new LinearBackend()), Clock.system());
        engine.start().toCompletableFuture().join();
        server = new Server(
                ServerOptions.builder()
                        .listen("127.0.0.1", 0)
                        .eventLoops(1)
                        .access(policy)
                        .build(),
                List.of(new CsvCodec(engine, executor)));
        address = URI.create("http://127.0.0.1:" + server.start().get(0).getPort());
    }

    @AfterEach
    void stop() {
        server.close();
        engine.close();
        executor.shutdown();
    }

    private HttpResponse<String> post(String path, String body, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(address.resolve(path)).POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void aLineOfNumbersIsARow() throws Exception {
        start();
        HttpResponse<String> response = post("/csv/price", "1, 3\n10, 0\n");
        assertThat(response.body()).isEqualTo("-0.5\n20.5\n");
        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.headers().firstValue("content-type")).contains("text/csv");
        assertThat(executor.getTaskCount()).as("tasks of the executor").isZero();
    }

    @Test
    void aLargeTableIsDecodedOnTheExecutor() throws Exception {
        start();
        HttpResponse<String> response = post("/csv/price", ("1,3" + " ".repeat(2_000) + "\n").repeat(16));
        assertThat(response.body()).isEqualTo("-0.5\n".repeat(16));
        assertThat(executor.getTaskCount()).isEqualTo(1);
    }

    @Test
    void aWrongTableIsTheClientsFault() throws Exception {
        start();
        assertThat(post("/csv/price", "").body()).contains("the body is empty");
        assertThat(post("/csv/price", "1,3\n1\n").body()).contains("line 2 has 1 values (expected: 2)");
        HttpResponse<String> response = post("/csv/price", "1,3\n1,three\n");
        assertThat(response.body()).contains("line 2 has the value 'three' (expected: a number)");
        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(post("/csv/price", "1,2,3\n").statusCode()).isEqualTo(400);
    }

    @Test
    void anUnknownModelIsNotFound() throws Exception {
        start();
        assertThat(post("/csv/prize", "1,3\n").statusCode()).isEqualTo(404);
    }

    @Test
    void aCallerThatMayNotInferIsRefused() throws Exception {
        policy = (head, connection, operation, model) -> {
            if (operation.permission() == Permission.INFER && !"secret".equals(head.header("x-key"))) {
                throw ServingException.of(ErrorCode.PERMISSION_DENIED, "expecting header 'x-key' for " + model);
            }
            return Caller.ANONYMOUS;
        };
        start();
        HttpResponse<String> without = post("/csv/price", "1,3\n");
        assertThat(without.statusCode()).isEqualTo(403);
        assertThat(without.body()).contains("expecting header 'x-key' for price");
        assertThat(post("/csv/price", "1,3\n", "x-key", "guess").statusCode()).isEqualTo(403);
        assertThat(post("/csv/price", "1,3\n", "x-key", "secret").statusCode()).isEqualTo(200);
    }
}
