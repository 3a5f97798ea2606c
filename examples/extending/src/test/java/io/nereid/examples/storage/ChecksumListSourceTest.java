// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.TlsSettings;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.ObjectEntry;
import io.nereid.storage.object.ObjectSource;
import io.nereid.storage.request.CancellationToken;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageSettings;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChecksumListSourceTest {
    @TempDir
    Path cache;

    private final Map<String, String> files = new TreeMap<>();
    private HttpServer server;
    private HttpClients clients;
    private String token = "";

    @BeforeEach
    void start() throws IOException {
        clients = new HttpClients(StorageOptions.defaults(cache), Clock.system());
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            try (exchange) {
                String file = files.get(exchange.getRequestURI().getPath());
                String given = String.valueOf(exchange.getRequestHeaders().getFirst("Authorization"));
                boolean allowed = token.isEmpty() || given.equals("Bearer " + token);
                byte[] body = file == null ? new byte[0] : file.getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(
                        !allowed ? 401 : file == null ? 404 : 200, allowed && body.length > 0 ? body.length : -1);
                if (allowed && body.length > 0) {
                    exchange.getResponseBody().write(body);
                }
            }
        });
        server.start();
    }

    @AfterEach
    void stop() {
        server.stop(0);
        clients.close();
    }

    private HttpSession session() {
        HttpSession.RetryPolicy once = new HttpSession.RetryPolicy(Duration.ofSeconds(10), Duration.ofSeconds(10), 1);
        return new HttpSession(
                clients, TlsSettings.MACHINE, StorageSettings.of(Map.of(), Map.of()), once, new CancellationToken());
    }

    private ObjectSource source(Map<String, String> credentials) {
        String uri = "sums+http://127.0.0.1:" + server.getAddress().getPort() + "/models/iris";
        return new ChecksumListSource(uri, StorageSettings.of(credentials, Map.of()), session());
    }

    private void publish(String path, String content) {
        files.put("/models/iris/" + path, content);
        files.merge("/models/iris/SHA256SUMS", ContentDigests.sha256(content) + "  " + path + "\n", String::concat);
    }

    @Test
    void theListedFilesAreThoseOfTheList() {
        publish("1/model.onnx", "weights");
        publish("config file.pbtxt", "name: 'iris'");
        ObjectSource.Listing listing = source(Map.of()).list();
        assertThat(listing.items()).extracting(ObjectEntry::path).containsExactly("1/model.onnx", "config file.pbtxt");
        assertThat(listing.versioned()).isTrue();
        assertThat(listing.bytes()).isEqualTo(-1);
    }

    @Test
    void aListedFileIsFetchedAndHasTheListedChecksum() {
        publish("config file.pbtxt", "name: 'iris'");
        ObjectEntry entry = source(Map.of()).list().items().get(0);
        HttpSession.Answer answer =
                session().send("the file", () -> entry.fetch().call(0, -1));
        assertThat(answer.text()).isEqualTo("name: 'iris'");
        assertThat(entry.checksum().hex()).isEqualTo(ContentDigests.sha256(answer.body()));
    }

    @Test
    void aChangedFileHasAnotherVersion() {
        publish("model.onnx", "weights");
        String before = source(Map.of()).list().items().get(0).version();
        files.clear();
        publish("model.onnx", "other weights");
        assertThat(source(Map.of()).list().items().get(0).version()).isNotEqualTo(before);
    }

    @Test
    void theTokenIsSent() {
        publish("model.onnx", "weights");
        token = "secret";
        assertThat(source(Map.of("SUMS_TOKEN", "secret")).list().items()).hasSize(1);
        assertThatThrownBy(() -> source(Map.of()).list())
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAUTHENTICATED));
    }

    @Test
    void aListOfAnotherFormatIsRejected() {
        files.put("/models/iris/SHA256SUMS", "<html>");
        assertThatThrownBy(() -> source(Map.of()).list())
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("the line '<html>'");
    }
}
