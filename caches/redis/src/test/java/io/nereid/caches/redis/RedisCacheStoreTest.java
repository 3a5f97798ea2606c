// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.caches.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.nereid.backend.CacheStore;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RedisCacheStoreTest {
    @TempDir
    Path directory;

    private @Nullable Process server;

    @AfterEach
    void stopServer() throws InterruptedException {
        Process running = server;
        if (running != null) {
            running.destroyForcibly();
            running.waitFor(10, TimeUnit.SECONDS);
        }
    }

    @Test
    void theProviderIsFoundByItsName() {
        assertThat(ServiceLoader.load(CacheStoreProvider.class))
                .extracting(CacheStoreProvider::name)
                .containsExactly("redis");
    }

    @Test
    void whatIsPutIsFoundUnderTheSameKeyOnlyAndPurgedByItsPrefix() throws Exception {
        int port = startServer("secret");
        try (RedisCacheStore store = store(port, Map.of("password", "secret"))) {
            store.probe();
            byte[] large = new byte[3 << 20];
            new Random(1).nextBytes(large);
            store.put(key("nereid:m[1]*:1:a"), large);
            store.put(key("nereid:m[1]*:1:b"), new byte[] {0, 1, 2});
            store.put(key("nereid:m1x:1:c"), new byte[0]);
            await(() -> store.statistics().get("pending_bytes") == 0);
            assertThat(get(store, "nereid:m[1]*:1:a")).isEqualTo(large);
            assertThat(get(store, "nereid:m[1]*:1:b")).containsExactly(0, 1, 2);
            assertThat(get(store, "nereid:m[1]*:1:x")).isNull();
            try (RedisCacheStore other = store(port, Map.of("password", "secret", "db", "1"))) {
                assertThat(get(other, "nereid:m[1]*:1:b")).isNull();
            }
            store.purge(key("nereid:m[1]*:1:"));
            await(() -> get(store, "nereid:m[1]*:1:a") == null && get(store, "nereid:m[1]*:1:b") == null);
            assertThat(get(store, "nereid:m1x:1:c")).isEmpty();
            assertThat(store.statistics()).containsEntry("errors", 0L);
        }
    }

    @Test
    void manyThreadsGetWhatBelongsToTheirKeys() throws Exception {
        int port = startServer("");
        try (RedisCacheStore store = store(port, Map.of())) {
            for (int i = 0; i < 500; i++) {
                store.put(key("k" + i), key("v" + i));
            }
            List<CompletionStage<byte @Nullable []>> found = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                found.add(store.get(key("k" + i)));
            }
            for (int i = 0; i < 500; i++) {
                byte[] value = found.get(i).toCompletableFuture().get(10, TimeUnit.SECONDS);
                if (value != null) {
                    assertThat(new String(value, StandardCharsets.UTF_8)).isEqualTo("v" + i);
                }
            }
            assertThat(get(store, "k499")).isEqualTo(key("v499"));
        }
    }

    @Test
    void aWrongPasswordIsRejectedAtTheStart() throws Exception {
        int port = startServer("secret");
        assertThatThrownBy(() -> new RedisCacheProvider()
                        .open(Map.of("host", "localhost", "port", "" + port, "password", "wrong")))
                .isInstanceOf(ServingException.class)
                .hasMessageStartingWith("redis at localhost:" + port + "/0 rejects the connection: ");
    }

    @Test
    void aServerThatGoesAwayIsAMissAndDelaysNoRequest() throws Exception {
        int port = startServer("");
        try (RedisCacheStore store = store(port, Map.of())) {
            store.put(key("k"), key("v"));
            assertThat(get(store, "none")).isNull();
            stopServer();
            assertThat(get(store, "k")).isNull();
            assertThat(store.statistics().get("errors")).isPositive();
            long before = store.statistics().get("skipped");
            assertThat(store.get(key("k")).toCompletableFuture())
                    .as("paused: completes at once")
                    .isCompletedWithValue(null);
            assertThat(store.statistics().get("skipped")).isGreaterThan(before);
        }
    }

    @Test
    void aServerThatIsNotThereAtTheStartIsNoReasonNotToStart() {
        try (CacheStore store = new RedisCacheProvider().open(Map.of("host", "localhost", "port", "1"))) {
            store.put(key("k"), key("v"));
            assertThat(store.get(key("k")).toCompletableFuture().join()).isNull();
        }
    }

    @Test
    void settingsAreCheckedAndTheEnvironmentNamesTheUser() {
        RedisSettings s = RedisSettings.of(
                Map.of("host", "h", "wait_timeout", "7"),
                Map.of("TRITONCACHE_REDIS_USERNAME", "u", "TRITONCACHE_REDIS_PASSWORD", "p"));
        assertThat(s).isEqualTo(new RedisSettings("h", 6379, "u", "p", 0, 4, 1_000, 1_000, 7));
        assertThat(s.toString()).doesNotContain("p", "u").isEqualTo("h:6379/0");
        assertThatThrownBy(() -> RedisSettings.of(Map.of(), Map.of())).hasMessage("the redis cache needs a host");
        assertThatThrownBy(() -> RedisSettings.of(Map.of("host", "h", "port", "x"), Map.of()))
                .hasMessage("the redis cache has port='x' (expected: a number from 1 to 65535)");
        assertThatThrownBy(() -> RedisSettings.of(Map.of("host", "h", "prot", "1"), Map.of()))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).isEqualTo("did you mean 'port'?"));
        assertThatThrownBy(() -> RedisSettings.of(Map.of("host", "h", "tls_enabled", "true"), Map.of()))
                .hasMessageContaining("TLS connections to Redis are not supported");
    }

    private RedisCacheStore store(int port, Map<String, String> more) {
        Map<String, String> settings = new java.util.HashMap<>(more);
        settings.put("host", "localhost");
        settings.put("port", "" + port);
        return new RedisCacheStore(RedisSettings.of(settings, Map.of()), Clock.system());
    }

    private static byte[] key(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte @Nullable [] get(RedisCacheStore store, String key) throws Exception {
        return store.get(key(key)).toCompletableFuture().get(10, TimeUnit.SECONDS);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(Condition condition) throws Exception {
        long end = Clock.system().nanos() + TimeUnit.SECONDS.toNanos(10);
        while (!condition.holds()) {
            assertThat(Clock.system().nanos()).isLessThan(end);
            Thread.onSpinWait();
        }
    }

    private int startServer(String password) throws Exception {
        String binary = null;
        for (String path : Objects.requireNonNullElse(System.getenv("PATH"), "").split(File.pathSeparator)) {
            File file = new File(path, "redis-server");
            binary = file.canExecute() ? file.getPath() : binary;
        }
        assumeThat(binary)
                .as("SKIPPED: there is no redis-server on the PATH, so the Redis cache is not tested against one")
                .isNotNull();
        int port;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
        List<String> command = new ArrayList<>(List.of(
                Objects.requireNonNull(binary),
                "--port",
                "" + port,
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--dir",
                directory.toString()));
        if (!password.isEmpty()) {
            command.addAll(List.of("--requirepass", password));
        }
        Process started = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("redis.log").toFile())
                .start();
        server = started;
        await(() -> {
            assertThat(started.isAlive()).isTrue();
            try (Socket socket = new Socket("127.0.0.1", port)) {
                return socket.isConnected();
            } catch (IOException e) {
                return false;
            }
        });
        return port;
    }
}
