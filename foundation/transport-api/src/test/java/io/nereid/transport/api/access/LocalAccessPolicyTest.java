// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api.access;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Who counts as a user of this machine. */
class LocalAccessPolicyTest {
    private record Client(String address, boolean serverIsLocal, boolean unixSocket, boolean secure)
            implements ClientConnection {
        @Override
        public SocketAddress remote() {
            return new InetSocketAddress(address, 40_000);
        }

        @Override
        public @Nullable String peer() {
            return null;
        }

        @Override
        public @Nullable Object remembered() {
            return null;
        }

        @Override
        public void remember(@Nullable Object result) {}
    }

    private record Head(Map<String, String> fields) implements RequestHead {
        @Override
        public String method() {
            return "POST";
        }

        @Override
        public String path() {
            return "/v2/repository/models/m/load";
        }

        @Override
        public @Nullable String authority() {
            return fields.get("host");
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return fields.get(lowerCaseName);
        }

        @Override
        public boolean hasHeader(String lowerCaseName, String value) {
            return value.equals(fields.get(lowerCaseName));
        }

        @Override
        public void headers(BiConsumer<String, String> each) {
            fields.forEach(each);
        }

        @Override
        public boolean grpc() {
            return false;
        }
    }

    private static final Client LOCAL = new Client("127.0.0.1", true, false, false);

    private static Head head(@Nullable String host, String... fields) {
        Map<String, String> all = new TreeMap<>();
        if (host != null) {
            all.put("host", host);
        }
        for (int i = 0; i < fields.length; i += 2) {
            all.put(fields[i], fields[i + 1]);
        }
        return new Head(all);
    }

    private static ErrorCode outcome(LocalAccessPolicy policy, Head head, Client client, Operation operation) {
        try {
            policy.admit(head, client, operation, "m");
            return ErrorCode.OK;
        } catch (ServingException e) {
            return e.code();
        }
    }

    private static boolean manages(Head head, Client client) {
        return outcome(new LocalAccessPolicy(false, Set.of("box.example")), head, client, Operation.MODEL_CONTROL)
                == ErrorCode.OK;
    }

    @ParameterizedTest
    @CsvSource({
        "localhost:8080, true",
        "LocalHost:8080, true",
        "localhost.:8080, true",
        "localhost, true",
        "app.localhost:8080, true",
        "127.0.0.1:8080, true",
        "127.1.2.3, true",
        "[::1]:8080, true",
        "box.example:8080, true",
        "evil.example, false",
        "localhost.evil.example, false",
        "127.0.0.1.evil.example, false",
        "evil-localhost, false",
        "127.0.0.1@evil.example, false",
        "[::2]:8080, false",
        "[localhost, false",
        "10.0.0.1:8080, false",
        "0.0.0.0:8080, false",
    })
    void theHostIsANameOfTheLoopbackInterface(String host, boolean allowed) {
        assertThat(manages(head(host), LOCAL)).isEqualTo(allowed);
    }

    @ParameterizedTest
    @CsvSource({
        "http://localhost:8080, true",
        "HTTP://LOCALHOST:8080, true",
        "https://localhost:8080, false",
        "http://localhost:3000, false",
        "http://localhost, false",
        "http://evil.example, false",
        "null, false",
    })
    void theOriginIsTheServersOwn(String origin, boolean allowed) {
        assertThat(manages(head("localhost:8080", "origin", origin), LOCAL)).isEqualTo(allowed);
    }

    @ParameterizedTest
    @CsvSource({
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-user",
        "x-forwarded-proto",
        "x-real-ip",
        "x-envoy-internal"
    })
    void aProxyIsNotALocalClient(String header) {
        assertThat(manages(head("localhost:8080", header, "x"), LOCAL)).isFalse();
        assertThat(manages(head("localhost:8080", header, "x"), new Client("127.0.0.1", true, true, false)))
                .as("a Unix socket behind a proxy")
                .isFalse();
    }

    @Test
    void bothEndsAreLoopbackAddresses() {
        assertThat(manages(head("localhost"), new Client("::1", true, false, false)))
                .isTrue();
        assertThat(manages(head("localhost"), new Client("192.0.2.1", true, false, false)))
                .isFalse();
        assertThat(manages(head("localhost"), new Client("127.0.0.1", false, false, false)))
                .isFalse();
        assertThat(manages(head(null), LOCAL)).as("HTTP/1.0 without Host").isTrue();
    }

    @Test
    void theModeOfAUnixSocketDecides() {
        Client client = new Client("127.0.0.1", false, true, false);
        assertThat(manages(head("anything"), client)).isTrue();
        assertThat(manages(head("anything", "origin", "http://anything"), client))
                .isFalse();
    }

    @Test
    void whatChangesNothingIsOpenToEveryone() {
        LocalAccessPolicy policy = new LocalAccessPolicy(false, Set.of());
        Client remote = new Client("192.0.2.1", false, false, false);
        for (Operation operation : Operation.values()) {
            ErrorCode expected = operation.permission().guarded() ? ErrorCode.PERMISSION_DENIED : ErrorCode.OK;
            assertThat(outcome(policy, head("x"), remote, operation))
                    .as(operation.name())
                    .isEqualTo(expected);
            assertThat(outcome(new LocalAccessPolicy(true, Set.of()), head("x"), remote, operation))
                    .as(operation.name())
                    .isEqualTo(ErrorCode.OK);
        }
    }
}
