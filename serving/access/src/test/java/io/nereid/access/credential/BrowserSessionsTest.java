// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.access.RequestHead;
import java.util.Map;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

/** How long sessions live, and what a request with their cookie needs. */
class BrowserSessionsTest {
    private long now = 1_000;

    private final BrowserSessions sessions = new BrowserSessions(new Clock() {
        @Override
        public long nanos() {
            return now * 1_000_000;
        }

        @Override
        public long millis() {
            return now;
        }
    });

    private static RequestHead head(String method, Map<String, String> headers) {
        return new RequestHead() {
            @Override
            public boolean grpc() {
                return false;
            }

            @Override
            public boolean hasHeader(String name, String value) {
                return value.equals(headers.get(name));
            }

            @Override
            public void headers(BiConsumer<String, String> each) {
                headers.forEach(each);
            }

            @Override
            public String method() {
                return method;
            }

            @Override
            public String path() {
                return "/v2/models/iris/infer";
            }

            @Override
            public String authority() {
                return "localhost";
            }

            @Override
            public String header(String name) {
                return headers.get(name);
            }
        };
    }

    private static String cookie(BrowserSessions.Session session) {
        return "theme=dark; " + BrowserSessions.COOKIE + "=" + session.id() + "; other=1";
    }

    @Test
    void aCookieStandsForTheCredentials() {
        BrowserSessions.Session alice = sessions.open("nrd_a", "alice");
        BrowserSessions.Session bob = sessions.open("nrd_b", "bob");
        assertThat(alice.id()).hasSizeGreaterThan(40).isNotEqualTo(bob.id());
        assertThat(sessions.find(cookie(alice)).name()).isEqualTo("alice");
        assertThat(sessions.credentials(head("GET", Map.of("cookie", cookie(bob)))))
                .isEqualTo("nrd_b");
        assertThat(sessions.find(null)).isNull();
        assertThat(sessions.find(BrowserSessions.COOKIE + "=" + alice.id() + "x"))
                .isNull();
        assertThat(sessions.find("x" + BrowserSessions.COOKIE + "=" + alice.id()))
                .isNull();
    }

    @Test
    void aChangeNeedsTheTokenOfTheSameSession() {
        BrowserSessions.Session alice = sessions.open("nrd_a", "alice");
        BrowserSessions.Session bob = sessions.open("nrd_b", "bob");
        for (Map<String, String> headers : java.util.List.of(
                Map.of("cookie", cookie(alice)),
                Map.of("cookie", cookie(alice), BrowserSessions.CSRF_HEADER, bob.csrfToken()),
                Map.of("cookie", cookie(alice), BrowserSessions.CSRF_HEADER, ""))) {
            assertThatThrownBy(() -> sessions.credentials(head("POST", headers)))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.PERMISSION_DENIED))
                    .hasMessageContaining("CSRF");
        }
        Map<String, String> whole = Map.of("cookie", cookie(alice), BrowserSessions.CSRF_HEADER, alice.csrfToken());
        assertThat(sessions.credentials(head("DELETE", whole))).isEqualTo("nrd_a");
    }

    @Test
    void aSessionEndsWhenItIsNotUsedAndAfterItsLifetime() {
        BrowserSessions.Session session = sessions.open("nrd_a", "alice");
        long begun = now;
        while (now - begun < BrowserSessions.LIFETIME.toMillis()) {
            assertThat(sessions.find(cookie(session))).isNotNull();
            now += BrowserSessions.IDLE.toMillis();
        }
        now = begun + BrowserSessions.LIFETIME.toMillis() + 1;
        assertThat(sessions.find(cookie(session))).isNull();

        BrowserSessions.Session idle = sessions.open("nrd_a", "alice");
        now += BrowserSessions.IDLE.toMillis() + 1;
        assertThat(sessions.find(cookie(idle))).isNull();

        BrowserSessions.Session closed = sessions.open("nrd_a", "alice");
        sessions.close(closed);
        assertThat(sessions.find(cookie(closed))).isNull();
    }

    @Test
    void manySessionsEndThoseThatAreUsedLeast() {
        BrowserSessions.Session first = sessions.open("nrd_a", "first");
        now++;
        BrowserSessions.Session second = sessions.open("nrd_a", "second");
        now++;
        assertThat(sessions.find(cookie(first))).isNotNull();
        for (int i = 0; i < 999; i++) {
            now++;
            var unused = sessions.open("nrd_a", "more");
        }
        assertThat(sessions.find(cookie(second))).isNull();
        assertThat(sessions.find(cookie(first))).isNotNull();
    }
}
