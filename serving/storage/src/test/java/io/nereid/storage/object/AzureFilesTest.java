// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.request.StorageLease;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** File shares of Azure against a server that speaks the public API of Azure Files. */
class AzureFilesTest {
    private static final String KEY = Base64.getEncoder().encodeToString("key".getBytes(StandardCharsets.UTF_8));

    @TempDir
    Path directory;

    private TestServer server;
    private Storage storage;
    private Map<String, String> settings;

    @BeforeEach
    void start() throws Exception {
        server = new TestServer();
        storage = Given.storage(directory);
        settings = new HashMap<>(Map.of("AZURE_STORAGE_FILE_ENDPOINT", server.url(), "AZURE_STORAGE_ACCESS_KEY", KEY));
    }

    @AfterEach
    void stop() {
        storage.close();
        server.close();
    }

    /** A directory, a page for each entry: names that end with a slash are directories. */
    private void directory(String path, String... entries) {
        server.handlers.put(path, exchange -> {
            String query = String.valueOf(exchange.getRequestURI().getQuery());
            if (!query.contains("restype=directory&comp=list")) {
                TestServer.status(exchange, 409);
                return;
            }
            int at = query.contains("marker=") ? Integer.parseInt(query.replaceAll(".*marker=", "")) : 0;
            StringBuilder xml = new StringBuilder("<?xml version='1.0'?><EnumerationResults><Entries>");
            if (at < entries.length) {
                String name = entries[at];
                TestServer.Held held = server.objects.get(path + "/" + name);
                xml.append(
                        name.endsWith("/")
                                ? "<Directory><Name>" + name.substring(0, name.length() - 1) + "</Name></Directory>"
                                : "<File><Name>" + name + "</Name><Properties><Content-Length>" + held.bytes().length
                                        + "</Content-Length><Etag>" + held.tag() + "</Etag></Properties></File>");
            }
            xml.append("</Entries><NextMarker>")
                    .append(at + 1 < entries.length ? String.valueOf(at + 1) : "")
                    .append("</NextMarker></EnumerationResults>");
            TestServer.xml(exchange, 200, xml.toString());
        });
    }

    @Test
    void directoriesAreReadWithTheirSubdirectoriesAndASharedKey() throws Exception {
        byte[] big = Given.random(20 << 20, 41);
        server.put("/share/iris/big.bin", big);
        server.put("/share/iris/sub/x.txt", "x");
        directory("/share/iris", "big.bin", "sub/");
        directory("/share/iris/sub", "x.txt");
        String uri = "https://acct.file.core.windows.net/share/iris";
        try (StorageLease stored = Given.fetch(storage, uri, settings)) {
            assertThat(Given.files(stored.path()).keySet()).containsExactly("big.bin", "sub/x.txt");
            assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(big);
        }
        assertThat(server.count("GET", "/share/iris/big.bin")).isEqualTo(3);
        TestServer.Seen listing = server.seen.stream()
                .filter(s -> s.path().equals("/share/iris") && s.method().equals("GET"))
                .findFirst()
                .orElseThrow();
        String text = "GET\n\n\n\n\n\n\n\n\n\n\n\n" + "x-ms-date:" + listing.header("X-ms-date")
                + "\nx-ms-file-extended-info:true\nx-ms-file-request-intent:backup\nx-ms-version:"
                + listing.header("X-ms-version")
                + "\n/acct/share/iris\ncomp:list\ninclude:ETag,Timestamps\nrestype:directory";
        assertThat(listing.header("Authorization"))
                .isEqualTo("SharedKey acct:"
                        + Base64.getEncoder()
                                .encodeToString(ContentDigests.hmac("key".getBytes(StandardCharsets.UTF_8), text)));
        Given.fetch(storage, uri, settings).close();
        assertThat(server.count("GET", "/share/iris/big.bin")).as("unchanged").isEqualTo(3);
    }

    @Test
    void aFileAndAWholeShareAreRead() throws Exception {
        server.put("/share/m.onnx", "weights");
        directory("/share", "m.onnx");
        for (String path : new String[] {"share/m.onnx", "share", "share/"}) {
            try (StorageLease stored =
                    Given.fetch(storage, "https://acct.z9.file.core.windows.net/" + path, settings)) {
                assertThat(Given.files(stored.path())).isEqualTo(Map.of("m.onnx", "weights"));
            }
        }
        server.seen.clear();
        Given.fetch(storage, "https://acct.file.core.windows.net/share/m.onnx?sv=1&sig=abc", settings)
                .close();
        assertThat(server.seen)
                .isNotEmpty()
                .allMatch(s -> s.query().contains("sig=abc")
                        && s.header("Authorization").isEmpty());
    }

    @Test
    void aFileThatChangesMeanwhileIsReadAgain() throws Exception {
        server.put("/share/m.bin", "before");
        directory("/share", "m.bin");
        server.fault("/share/m.bin", exchange -> {
            server.put("/share/m.bin", "after!");
            server.send(exchange, server.objects.get("/share/m.bin"), Integer.MAX_VALUE);
        });
        try (StorageLease stored = Given.fetch(storage, "https://acct.file.core.windows.net/share", settings)) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("m.bin", "after!"));
        }
    }

    @Test
    void whatIsNotThereIsTold() {
        assertThatThrownBy(() -> Given.fetch(storage, "https://acct.file.core.windows.net/share/none", settings))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessageContaining("No model found");
        assertThatThrownBy(() -> Given.fetch(storage, "https://acct.file.core.windows.net/", settings))
                .hasMessageContaining("the share is missing");
    }
}
