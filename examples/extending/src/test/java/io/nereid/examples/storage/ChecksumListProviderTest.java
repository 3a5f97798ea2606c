// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.storage.Storage;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.testkit.StorageProviderContract;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentSkipListMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChecksumListProviderTest extends StorageProviderContract {
    @TempDir
    Path cache;

    private final Map<String, byte[]> files = new ConcurrentSkipListMap<>();
    private HttpServer server;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            try (exchange) {
                String path = exchange.getRequestURI().getPath();
                boolean allowed =
                        "Bearer secret".equals(exchange.getRequestHeaders().getFirst("Authorization"));
                byte[] body = path.endsWith("/SHA256SUMS") ? list(path) : files.get(path);
                exchange.sendResponseHeaders(
                        !allowed ? 401 : body == null ? 404 : 200, allowed && body != null ? body.length : -1);
                if (allowed && body != null && body.length > 0) {
                    exchange.getResponseBody().write(body);
                }
            }
        });
        server.start();
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    private byte[] list(String path) {
        String directory = path.substring(0, path.lastIndexOf('/') + 1);
        StringBuilder lines = new StringBuilder();
        files.forEach((name, content) -> {
            if (name.startsWith(directory)) {
                lines.append(line(content, name.substring(directory.length())));
            }
        });
        return lines.isEmpty() ? null : lines.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static String line(byte[] content, String path) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content)) + "  " + path + "\n";
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    protected StorageProvider provider() {
        return new ChecksumListProvider();
    }

    @Override
    protected String uri(String path) {
        return "sums+http://127.0.0.1:" + server.getAddress().getPort() + "/" + path;
    }

    @Override
    protected Map<String, String> settings() {
        return Map.of("SUMS_TOKEN", "secret");
    }

    @Override
    protected boolean objects() {
        return false;
    }

    @Override
    protected Map<String, String> wrongSettings() {
        return Map.of("SUMS_TOKEN", "another-secret");
    }

    @Override
    protected void put(String path, byte[] content) {
        files.put("/" + path, content);
    }

    @Override
    protected void remove(String path) {
        files.remove("/" + path);
    }

    @Test
    void theJarNamesTheProvider() {
        assertThat(ServiceLoader.load(StorageProvider.class)).hasAtLeastOneElementOfType(ChecksumListProvider.class);
    }

    @Test
    void theServerFetchesWithIt() throws Exception {
        put("iris/1/model.onnx", "weights".getBytes(StandardCharsets.UTF_8));
        put("iris/config.pbtxt", "name: 'iris'".getBytes(StandardCharsets.UTF_8));
        try (Storage storage = new Storage(
                        StorageOptions.defaults(cache), Clock.system(), List.of(new ChecksumListProvider()));
                StorageLease stored = storage.fetch(StorageRequest.of(uri("iris"), settings()), ProgressListener.none())
                        .toCompletableFuture()
                        .join()) {
            assertThat(Files.readString(stored.path().resolve("1/model.onnx"))).isEqualTo("weights");
            assertThat(Files.readString(stored.path().resolve("config.pbtxt"))).isEqualTo("name: 'iris'");
        }
    }

    @Test
    void aListOfAnotherFormatIsRejected() {
        server.createContext("/html/SHA256SUMS", exchange -> {
            try (exchange) {
                exchange.sendResponseHeaders(200, 6);
                exchange.getResponseBody().write("<html>".getBytes(StandardCharsets.UTF_8));
            }
        });
        try (ObjectSource source = open("html", settings(), new CancellationToken())) {
            assertThatThrownBy(source::list)
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("the line '<html>'");
        }
    }
}
