// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/** Calls of web pages, and refusals, over a socket. */
class CrossOriginTest {
    private static final Rig RIG =
            new Rig(o -> o.corsOrigins(List.of("https://app.example")).access((head, connection, operation, model) -> {
                if ("denied".equals(head.header("x-test"))) {
                    throw ServingException.of(ErrorCode.UNAUTHENTICATED, "who are you?");
                }
                if ("busy".equals(head.header("x-test"))) {
                    throw ServingException.retryable(
                            ErrorCode.RESOURCE_EXHAUSTED, "too many", null, Duration.ofMillis(1500));
                }
                return Caller.ANONYMOUS;
            }));

    @AfterAll
    static void stop() {
        RIG.close();
    }

    private static Rig.Reply ask(String method, String path, String... headers) throws IOException {
        StringBuilder head = new StringBuilder(method + " " + path + " HTTP/1.1\r\nhost: localhost\r\n");
        for (int i = 0; i < headers.length; i += 2) {
            head.append(headers[i]).append(": ").append(headers[i + 1]).append("\r\n");
        }
        try (Rig.Raw client = RIG.connect()) {
            return client.ask(head.append("\r\n").toString());
        }
    }

    @Test
    void aPageOfAnAllowedOriginMayCallAndRead() throws IOException {
        Rig.Reply preflight = ask(
                "OPTIONS",
                "/ok",
                "origin",
                "https://app.example",
                "access-control-request-method",
                "POST",
                "access-control-request-headers",
                "authorization");
        assertThat(preflight.status()).isEqualTo(204);
        assertThat(preflight.header("access-control-allow-origin")).isEqualTo("https://app.example");
        assertThat(preflight.header("access-control-allow-headers")).isEqualTo("authorization");
        Rig.Reply reply = ask("GET", "/ok", "origin", "https://app.example");
        assertThat(reply.status()).isEqualTo(200);
        assertThat(reply.header("access-control-allow-origin")).isEqualTo("https://app.example");
        assertThat(ask("GET", "/nope", "origin", "https://app.example").header("access-control-allow-origin"))
                .as("an error can be read, too")
                .isEqualTo("https://app.example");
    }

    @Test
    void aPageOfAnotherOriginMayNot() throws IOException {
        Rig.Reply preflight =
                ask("OPTIONS", "/ok", "origin", "https://evil.example", "access-control-request-method", "POST");
        assertThat(preflight.status()).isEqualTo(403);
        assertThat(preflight.header("access-control-allow-origin")).isNull();
        assertThat(ask("GET", "/ok", "origin", "https://evil.example").header("access-control-allow-origin"))
                .isNull();
    }

    @Test
    void aRefusalHasTheHeadersThatHttpWants() throws IOException {
        Rig.Reply unknown = ask("GET", "/ok", "x-test", "denied");
        assertThat(unknown.status()).isEqualTo(401);
        assertThat(unknown.header("www-authenticate")).startsWith("Bearer");
        Rig.Reply busy = ask("GET", "/ok", "x-test", "busy");
        assertThat(busy.status()).isEqualTo(429);
        assertThat(busy.header("retry-after")).isEqualTo("2");
    }

    @Test
    void whatIsNotAnOriginIsRefused() {
        for (String wrong : List.of("app.example", "https://app.example/path", "ftp://x", "null", "")) {
            assertThatThrownBy(() -> new CrossOrigin(List.of(wrong)))
                    .as(wrong)
                    .hasMessageContaining("is not an origin");
        }
    }
}
