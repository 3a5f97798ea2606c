// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKinds;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Lists and watches as they go wrong; {@link ClusterClientTest} has the real API server. */
class ObjectWatchTest {
    private static final String MAPS = "/api/v1/namespaces/default/configmaps";

    private final BlockingQueue<HttpExchange> asked = new LinkedBlockingQueue<>();
    private final List<String> seen = new CopyOnWriteArrayList<>();
    private final BlockingQueue<String> changes = new LinkedBlockingQueue<>();
    private final ExecutorService threads = Threads.pool("api-server", 4);
    private HttpServer server;
    private KubernetesClient client;
    private ObjectCache cache;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        server.setExecutor(threads);
        server.createContext("/", asked::add);
        server.start();
        Config config = new ConfigBuilder(Config.empty())
                .withMasterUrl("http://localhost:" + server.getAddress().getPort())
                .withRequestRetryBackoffLimit(0)
                .build();
        client = new KubernetesClientBuilder().withConfig(config).build();
        cache = new ObjectCache(
                new ClusterClient(client),
                ResourceKinds.CONFIG_MAP,
                Set.of("default"),
                "",
                ObjectCache.ObjectFilter.ALL);
    }

    @AfterEach
    void stop() {
        cache.close();
        client.close();
        server.stop(0);
        threads.shutdownNow();
    }

    private static String map(String name, int version) {
        return "{\"metadata\":{\"namespace\":\"default\",\"name\":\"" + name + "\",\"uid\":\"u-" + name
                + "\",\"resourceVersion\":\"" + version + "\"},\"data\":{\"a\":\"" + version + "\"}}";
    }

    private static String list(int version, String next, String... maps) {
        return "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"" + version + "\",\"continue\":\""
                + next + "\"},\"items\":[" + String.join(",", maps) + "]}";
    }

    private static String event(String type, String object) {
        return "{\"type\":\"" + type + "\",\"object\":" + object + "}\n";
    }

    /** The next request, whose query must have these parts. */
    private HttpExchange next(String... parts) throws InterruptedException {
        HttpExchange exchange = Objects.requireNonNull(asked.poll(60, TimeUnit.SECONDS), "no request came");
        assertThat(exchange.getRequestURI().getPath()).isEqualTo(MAPS);
        assertThat(exchange.getRequestURI().getQuery()).contains(parts);
        return exchange;
    }

    private static void answer(HttpExchange exchange, int code, String body) {
        try {
            byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
            if ("gzip".equals(exchange.getRequestHeaders().getFirst("accept-encoding"))) {
                // As the API server compresses what is large, for those that take it.
                ByteArrayOutputStream compressed = new ByteArrayOutputStream();
                try (OutputStream gzip = new GZIPOutputStream(compressed)) {
                    gzip.write(bytes);
                }
                bytes = compressed.toByteArray();
                exchange.getResponseHeaders().set("content-encoding", "gzip");
            }
            exchange.getResponseHeaders().set("content-type", "application/json");
            exchange.sendResponseHeaders(code, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void stream(HttpExchange exchange, String text) throws IOException {
        exchange.getResponseBody().write(text.getBytes(StandardCharsets.UTF_8));
        exchange.getResponseBody().flush();
    }

    private void follow() {
        AutoCloseable unused = cache.listen((change, object) -> {
            String line = change + " " + object.path("metadata").path("name").asText() + " "
                    + object.path("metadata").path("resourceVersion").asText();
            seen.add(line);
            changes.add(line);
        });
    }

    private String nextChange() throws InterruptedException {
        return Objects.requireNonNull(changes.poll(60, TimeUnit.SECONDS), "no change came");
    }

    private HttpExchange started() throws Exception {
        follow();
        ExecutorService starter = Threads.single("starter");
        var started = starter.submit(() -> cache.start(Duration.ofSeconds(60)));
        HttpExchange first = next("limit=");
        assertThat(first.getRequestURI().getQuery()).doesNotContain("continue");
        answer(first, 200, list(10, "more", map("a", 3)));
        answer(next("continue=more"), 200, list(10, "", map("b", 4)));
        HttpExchange watch = next("watch=true", "resourceVersion=10", "allowWatchBookmarks=true");
        watch.sendResponseHeaders(200, 0);
        started.get(60, TimeUnit.SECONDS);
        starter.shutdown();
        assertThat(List.of(nextChange(), nextChange())).containsExactlyInAnyOrder("ADDED a 3", "ADDED b 4");
        return watch;
    }

    @Test
    void changesFollowTheListInAnyPieces() throws Exception {
        HttpExchange watch = started();
        String events = event("MODIFIED", map("a", 11)) + event("ADDED", map("ä", 12)) + event("DELETED", map("b", 13));
        byte[] bytes = events.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < bytes.length; i += 7) {
            watch.getResponseBody().write(bytes, i, Math.min(7, bytes.length - i));
            watch.getResponseBody().flush();
        }
        assertThat(List.of(nextChange(), nextChange(), nextChange()))
                .containsExactly("MODIFIED a 11", "ADDED ä 12", "DELETED b 4");
        assertThat(Objects.requireNonNull(cache.get("default", "a"))
                        .path("kind")
                        .asText())
                .as("elements of lists have no kind of their own")
                .isEqualTo("ConfigMap");
    }

    @Test
    void aWatchThatEndsIsOpenedAgainWhereItWas() throws Exception {
        HttpExchange watch = started();
        stream(watch, event("MODIFIED", map("a", 11)));
        assertThat(nextChange()).isEqualTo("MODIFIED a 11");
        stream(watch, event("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"20\"}}"));
        watch.close();
        HttpExchange again = next("watch=true", "resourceVersion=20");
        again.sendResponseHeaders(200, 0);
        stream(again, event("MODIFIED", map("a", 21)));
        assertThat(nextChange()).isEqualTo("MODIFIED a 21");
    }

    @Test
    void whatWentUnseenGoesWithTheNextList() throws Exception {
        HttpExchange watch = started();
        stream(watch, event("ERROR", "{\"kind\":\"Status\",\"code\":410,\"message\":\"too old resource version\"}"));
        answer(next("limit="), 200, list(30, "", map("b", 25), map("c", 26)));
        next("watch=true", "resourceVersion=30").sendResponseHeaders(200, 0);
        List<String> three = new ArrayList<>(List.of(nextChange(), nextChange(), nextChange()));
        assertThat(three).containsExactlyInAnyOrder("MODIFIED b 25", "ADDED c 26", "DELETED a 3");
        assertThat(cache.get("default", "a")).isNull();
    }

    @Test
    void aVersionThatIsGoneIsListedAgain() throws Exception {
        started().close();
        answer(next("watch=true", "resourceVersion=10"), 410, "{}");
        answer(next("limit="), 200, list(30, "", map("a", 3), map("b", 4)));
        next("watch=true", "resourceVersion=30");
        assertThat(seen).as("nothing has changed").hasSize(2);
    }

    @Test
    void anEventThatCannotBeReadLosesNothing() throws Exception {
        HttpExchange watch = started();
        stream(watch, "?\n");
        HttpExchange again = next("watch=true", "resourceVersion=10");
        again.sendResponseHeaders(200, 0);
        stream(again, event("MODIFIED", map("a", 11)));
        assertThat(nextChange()).isEqualTo("MODIFIED a 11");
    }

    @Test
    void aChangeOfTheVersionAloneIsNotTold() throws Exception {
        HttpExchange watch = started();
        stream(
                watch,
                event("MODIFIED", map("a", 3).replace("\"resourceVersion\":\"3\"", "\"resourceVersion\":\"15\"")));
        stream(watch, event("MODIFIED", map("a", 16)));
        assertThat(nextChange()).isEqualTo("MODIFIED a 16");
    }

    @Test
    void aWatchWithoutASignOfTheApiServerIsOpenedAgain() throws Exception {
        List<String> versions = new CopyOnWriteArrayList<>();
        ObjectWatch.Target target = new ObjectWatch.Target() {
            @Override
            public void seen(ObjectNode object) {
                versions.add(object.path("metadata").path("resourceVersion").asText());
            }

            @Override
            public void ended(ObjectNode object) {}

            @Override
            public void listed(Set<String> keys, long version) {}
        };
        ExecutorService pool = Threads.pool("watch", 2);
        ExecutorService starter = Threads.single("starter");
        try (ObjectWatch watch = new ObjectWatch(
                new ApiRequests(client),
                ResourceKinds.CONFIG_MAP,
                "default",
                "",
                target,
                pool,
                Duration.ofMillis(900))) {
            var started = starter.submit(() -> watch.start(Duration.ofSeconds(60)));
            answer(next("limit="), 200, list(10, ""));
            started.get(60, TimeUnit.SECONDS);
            // One that is never answered, one that is answered and then silent.
            next("watch=true", "resourceVersion=10");
            HttpExchange silent = next("watch=true", "resourceVersion=10");
            silent.sendResponseHeaders(200, 0);
            stream(silent, event("ADDED", map("a", 11)));
            next("watch=true", "resourceVersion=11");
        } finally {
            pool.shutdownNow();
            starter.shutdownNow();
        }
        assertThat(versions).containsExactly("11");
    }

    @Test
    void aListThatFailsIsTriedUntilTheLimit() throws Exception {
        server.removeContext("/");
        server.createContext("/", exchange -> answer(exchange, 503, "{\"kind\":\"Status\",\"message\":\"starting\"}"));
        assertThatThrownBy(() -> cache.start(Duration.ofMillis(700)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessage("configmaps could not be listed: starting");
    }

    @Test
    void aListThatIsForbiddenSaysSo() {
        server.removeContext("/");
        server.createContext(
                "/",
                exchange -> answer(exchange, 403, "{\"kind\":\"Status\",\"message\":\"configmaps is forbidden\"}"));
        assertThatThrownBy(() -> cache.start(Duration.ofMillis(700)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.PERMISSION_DENIED))
                .hasMessageContaining("configmaps is forbidden");
    }
}
