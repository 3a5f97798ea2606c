// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Threads;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One request over a socket, against a peer that answers with given bytes. */
class PlainHttpTest {
    private static final byte[] BODY = "grüße".getBytes(StandardCharsets.UTF_8);

    private String request = "";

    /** Sends a request to a peer that reads it and answers with these characters, each a byte. */
    private HttpText answered(String answer) throws IOException {
        try (ServerSocket peer = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            CompletableFuture<String> seen = CompletableFuture.supplyAsync(
                    () -> serve(peer, answer),
                    task -> Threads.named("peer").newThread(task).start());
            try {
                return PlainHttp.exchange(
                        "POST",
                        URI.create("http://127.0.0.1:" + peer.getLocalPort() + "/v2/a%20b?c=d"),
                        Map.of("authorization", "Bearer t"),
                        BODY,
                        5_000);
            } finally {
                request = seen.join();
            }
        }
    }

    private static String serve(ServerSocket peer, String answer) {
        ByteArrayOutputStream seen = new ByteArrayOutputStream();
        try (Socket socket = peer.accept()) {
            InputStream in = socket.getInputStream();
            String ending = "\r\n\r\n" + new String(BODY, StandardCharsets.ISO_8859_1);
            while (!seen.toString(StandardCharsets.ISO_8859_1).endsWith(ending)) {
                seen.write(in.read());
            }
            socket.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        return seen.toString(StandardCharsets.ISO_8859_1);
    }

    @Test
    void theRequestIsThatOfAnHttpClient() throws IOException {
        assertThat(answered("HTTP/1.1 204 No Content\r\n\r\n")).isEqualTo(new HttpText(204, ""));
        assertThat(request)
                .startsWith("POST /v2/a%20b?c=d HTTP/1.1\r\nhost: 127.0.0.1:")
                .contains("\r\nconnection: close\r\n")
                .contains("\r\nauthorization: Bearer t\r\n")
                .contains("\r\ncontent-length: " + BODY.length + "\r\n");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
                "HTTP/1.1 200\r\ncontent-length:2\r\n\r\n{}",
                "HTTP/1.0 200 OK\r\n\r\n{}",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;a=b\r\n}\r\n0\r\nx: y\r\n\r\n"
            })
    void allFormsOfAnAnswerAreRead(String answer) throws IOException {
        assertThat(answered(answer)).isEqualTo(new HttpText(200, "{}"));
    }

    @Test
    void theBodyIsUtf8() throws IOException {
        String bytes = new String(BODY, StandardCharsets.ISO_8859_1);
        HttpText text = answered("HTTP/1.1 404 Not Found\r\ncontent-length: " + BODY.length + "\r\n\r\n" + bytes);
        assertThat(text).isEqualTo(new HttpText(404, "grüße"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "HTTP/1.1 200 OK\r\ncontent-le",
                "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
                "HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\n{}",
                "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{}\r\n",
                "HTTP/1.1 abc\r\n\r\n",
                "\u0015\u0003\u0003\u0000\u0002\u0002\u0046\n",
                "SSH-2.0-OpenSSH_9.6\r\n"
            })
    void anAnswerThatIsCutOffOrNotHttpIsAnError(String answer) {
        assertThatThrownBy(() -> answered(answer)).isInstanceOf(IOException.class);
    }

    @Test
    void aPortThatSpeaksAnotherProtocolIsNamed() {
        assertThatThrownBy(() -> answered("SSH-2.0-OpenSSH_9.6\r\n"))
                .hasMessageContaining("no bytes of HTTP/1.1")
                .hasMessageContaining("SSH-2.0");
    }

    @Test
    void aClosedPortIsReportedAsSuch() throws IOException {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        assertThatThrownBy(
                        () -> PlainHttp.exchange("GET", URI.create("http://127.0.0.1:" + port), Map.of(), null, 5_000))
                .isInstanceOf(ConnectException.class);
    }

    @Test
    void aNameThatDoesNotExistIsReportedAsUnreachable() {
        assertThatThrownBy(
                        () -> PlainHttp.exchange("GET", URI.create("http://no-such.invalid:1"), Map.of(), null, 5_000))
                .isInstanceOf(ConnectException.class);
    }

    @Test
    void aHeaderCannotContainAnother() {
        assertThatThrownBy(() -> PlainHttp.exchange(
                        "GET", URI.create("http://127.0.0.1:1"), Map.of("authorization", "a\r\nb: c"), null, 5_000))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("authorization");
    }
}
