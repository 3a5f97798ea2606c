// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.app.controlplane.ServiceCredentials;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.operator.nodeagent.ModelFetcher;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Downloads of a node's agent from a real HTTP server. */
class StoreModelFetcherTest {
    private static final int SIZE = 24 << 20;

    @TempDir
    Path directory;

    private final byte[] content = new byte[SIZE];
    private final AtomicLong sent = new AtomicLong();
    private final List<ResourceStore.Key> read = new ArrayList<>();
    private HttpServer server;
    private StoreModelFetcher fetcher;

    @BeforeEach
    void start() throws IOException {
        new Random(7).nextBytes(content);
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/zoo/model.bin", this::answer);
        server.start();
        fetcher = new StoreModelFetcher(
                new ServiceCredentials(this::object, namespace -> InferenceServiceConfig.defaults()),
                List.of(),
                Clock.system(),
                true);
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    private synchronized @Nullable ObjectNode object(ResourceStore.Key key) {
        read.add(key);
        if (key.type().plural().equals("serviceaccounts") && key.name().equals("reader")) {
            ObjectNode account = JsonNodeFactory.instance.objectNode();
            account.putArray("secrets").addObject().put("name", "gone");
            return account;
        }
        return null;
    }

    /** The whole or a range, with an entity tag. */
    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            exchange.getResponseHeaders().set("ETag", "\"one\"");
            exchange.getResponseHeaders().set("Accept-Ranges", "bytes");
            String range = exchange.getRequestHeaders().getFirst("Range");
            int from = 0;
            int to = SIZE;
            if (range != null) {
                String[] bounds = range.substring("bytes=".length()).split("-", -1);
                from = Integer.parseInt(bounds[0]);
                to = bounds[1].isEmpty() ? SIZE : Math.min(SIZE, Integer.parseInt(bounds[1]) + 1);
                exchange.getResponseHeaders().set("Content-Range", "bytes " + from + "-" + (to - 1) + "/" + SIZE);
            }
            if (exchange.getRequestMethod().equals("HEAD")) {
                exchange.getResponseHeaders().set("Content-Length", Integer.toString(to - from));
                exchange.sendResponseHeaders(200, -1);
                return;
            }
            exchange.sendResponseHeaders(range == null ? 200 : 206, to - from);
            try (OutputStream out = exchange.getResponseBody()) {
                for (int at = from; at < to; at += 1 << 16) {
                    int length = Math.min(1 << 16, to - at);
                    out.write(content, at, length);
                    sent.addAndGet(length);
                }
            }
        }
    }

    private ModelFetcher.Source source(@Nullable String account) {
        return new ModelFetcher.Source(
                "http://127.0.0.1:" + server.getAddress().getPort() + "/zoo/model.bin",
                "team",
                account,
                null,
                Map.of());
    }

    private static Path file(Path in, String name) throws IOException {
        try (Stream<Path> all = Files.walk(in)) {
            return all.filter(one -> one.getFileName().toString().equals(name))
                    .findFirst()
                    .orElseThrow();
        }
    }

    @Test
    void anInterruptedDownloadContinuesAndADamagedPartIsNotTaken() throws Exception {
        Path to = directory.resolve("model");
        assertThatThrownBy(() -> fetcher.fetch(source(null), to, SIZE, (bytes, total) -> {
                    if (bytes > SIZE / 2) {
                        throw ServingException.of(ErrorCode.CANCELLED, "the agent ends");
                    }
                }))
                .hasMessageContaining("the agent ends");
        try (Stream<Path> all = Files.walk(to)) {
            assertThat(all.filter(Files::isRegularFile)
                            .anyMatch(one -> one.getFileName().toString().equals("model.bin")
                                    && one.getParent().equals(to)))
                    .as("a part is not where the model belongs")
                    .isFalse();
        }
        // The parts of a download that are there are shortened, as by a crash of the node.
        try (Stream<Path> all = Files.walk(to)) {
            for (Path part : all.filter(Files::isRegularFile)
                    .filter(one -> one.toFile().length() > 1 << 20)
                    .toList()) {
                byte[] bytes = Files.readAllBytes(part);
                Files.write(part, Arrays.copyOf(bytes, bytes.length / 3));
            }
        }
        fetcher.fetch(source(null), to, SIZE, (bytes, total) -> {});
        assertThat(Files.readAllBytes(file(to, "model.bin"))).isEqualTo(content);
        long once = sent.get();
        fetcher.fetch(source(null), to, SIZE, (bytes, total) -> {});
        assertThat(sent.get()).as("a complete model is not downloaded again").isEqualTo(once);
    }

    @Test
    void theExceptionOfTheProgressEndsTheDownload() {
        assertThatThrownBy(() -> fetcher.fetch(source(null), directory.resolve("large"), 1000, (bytes, total) -> {
                    if (Math.max(bytes, total) > 1000) {
                        throw ServingException.of(ErrorCode.RESOURCE_EXHAUSTED, "too large");
                    }
                }))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED));
        assertThat(sent.get()).as("it is not downloaded as a whole").isLessThan(SIZE);
    }

    @Test
    void credentialsAreThoseOfTheNamespace() {
        assertThatThrownBy(() -> fetcher.fetch(source("reader"), directory.resolve("a"), SIZE, (bytes, total) -> {}))
                .hasMessageContaining("there is no Secret 'gone'");
        assertThat(read).extracting(ResourceStore.Key::namespace).containsOnly("team");
        assertThatThrownBy(() -> fetcher.fetch(
                        new ModelFetcher.Source("file:///etc", "team", null, null, Map.of()),
                        directory.resolve("b"),
                        SIZE,
                        (bytes, total) -> {}))
                .hasMessageContaining("is on a node or in a volume already");
    }
}
