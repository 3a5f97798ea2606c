// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.transport.Rig;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients that take all connections or all file descriptors, with servers in processes of few descriptors. */
class ConnectionLimitTest {
    private static final String GET = "GET /ok HTTP/1.1\r\nhost: x\r\n\r\n";

    @TempDir
    private Path directory;

    /** Whether a request on the connection is answered; false when the server closes it. */
    private static boolean served(Rig.Raw connection) throws IOException {
        try {
            return connection.ask(GET).status() == 200;
        } catch (java.net.SocketException e) {
            return false;
        } catch (IOException e) {
            if ("closed without a reply".equals(e.getMessage())) {
                return false;
            }
            throw e;
        }
    }

    /** Connects and asks; how long it took to be served or refused is checked. */
    private static boolean servedAtOnce(List<Rig.Raw> all, int port) throws IOException {
        long start = System.nanoTime();
        Rig.Raw connection = new Rig.Raw(port);
        all.add(connection);
        boolean served = served(connection);
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(10));
        return served;
    }

    private static void closeAll(List<Rig.Raw> connections) throws IOException {
        for (Rig.Raw c : connections) {
            c.close();
        }
        connections.clear();
    }

    /** Asks on new connections until one is served: closed ones are noticed a moment later. */
    private static void isServedSoon(int port) throws IOException {
        long due = System.nanoTime() + Duration.ofSeconds(5).toNanos();
        while (true) {
            try (Rig.Raw c = new Rig.Raw(port)) {
                if (served(c)) {
                    return;
                }
            }
            assertThat(System.nanoTime()).isLessThan(due);
            Thread.onSpinWait();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void connectionsBeyondTheBoundOfTheProcessAreClosedAtOnce(boolean epoll) throws IOException {
        List<Rig.Raw> open = new ArrayList<>();
        try (ServerProcess server = new ServerProcess(256, epoll, 0, directory.resolve("log"))) {
            assertThat(server.most).isBetween(16, 256 - 32);
            for (int i = 0; i < server.most; i++) {
                assertThat(servedAtOnce(open, server.port))
                        .as("connection %d", i)
                        .isTrue();
            }
            List<Rig.Raw> more = new ArrayList<>();
            for (int i = 0; i < 300; i++) {
                assertThat(servedAtOnce(more, server.port)).isFalse();
            }
            closeAll(more);
            assertThat(served(open.get(0))).isTrue();
            assertThat(server.log()).containsOnlyOnce("new connections are closed");
            open.remove(1).close();
            isServedSoon(server.port);
        } finally {
            closeAll(open);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void withoutADescriptorConnectionsAreClosedAtOnceToo(boolean epoll) throws IOException {
        List<Rig.Raw> all = new ArrayList<>();
        try (ServerProcess server = new ServerProcess(256, epoll, 256, directory.resolve("log"))) {
            List<Rig.Raw> open = new ArrayList<>();
            int refused = 0;
            for (int i = 0; i < 600; i++) {
                if (servedAtOnce(all, server.port)) {
                    open.add(all.get(all.size() - 1));
                } else {
                    refused++;
                }
            }
            assertThat(open).hasSizeBetween(50, 256);
            assertThat(refused).isGreaterThan(300);
            for (Rig.Raw kept : open) {
                assertThat(served(kept)).isTrue();
            }
            assertThat(server.log()).containsOnlyOnce("no file descriptor left");
            for (int i = 0; i < 20; i++) {
                open.get(i).close();
            }
            isServedSoon(server.port);
        } finally {
            closeAll(all);
        }
    }

    @Test
    void theBoundLeavesDescriptorsForModelsAndFiles() {
        assertThat(ConnectionLimit.derived(1024, 100)).isEqualTo(1024 - 100 - 128);
        assertThat(ConnectionLimit.derived(1 << 20, 100)).isEqualTo((1 << 20) - 100 - 1024);
        assertThat(ConnectionLimit.derived(64, 60)).isEqualTo(16);
        assertThat(ConnectionLimit.derived(Long.MAX_VALUE, 100)).isEqualTo(Integer.MAX_VALUE);
    }

    @Test
    void aBoundThatCannotBeIsRefused() {
        assertThatThrownBy(() ->
                        new Server(ServerOptions.builder().maxConnections(-1).build(), List.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("-1 connections is negative");
        assertThatThrownBy(() -> new ConnectionLimit(Integer.MAX_VALUE))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("file descriptors that the process may open");
    }

    @Test
    void metricsStayReachableWhenAllOtherConnectionsAreTaken() throws IOException {
        List<Rig.Raw> open = new ArrayList<>();
        try (Rig rig = new Rig(o -> o.maxConnections(4).listen("127.0.0.1", 0, ServerOptions.Purpose.METRICS))) {
            for (int i = 0; i < 4; i++) {
                assertThat(servedAtOnce(open, rig.port)).isTrue();
            }
            assertThat(servedAtOnce(open, rig.port)).isFalse();
            assertThat(rig.server.stats().refused()).isEqualTo(1);
            try (Rig.Raw metrics = new Rig.Raw(rig.ports.get(1))) {
                assertThat(metrics.ask("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
                                .status())
                        .isEqualTo(200);
            }
        } finally {
            closeAll(open);
        }
    }
}
