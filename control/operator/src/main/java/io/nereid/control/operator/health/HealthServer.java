// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.health;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.observe.metrics.MetricsFormat;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/**
 * Answers the kubelet's probes and Prometheus: {@code /healthz}, {@code /readyz} and {@code /metrics}. It returns nothing
 * that has to be kept from other pods, changes nothing, and reads no bodies. Thread-safe.
 */
public final class HealthServer implements AutoCloseable {
    private final HttpServer server;
    private final ThreadPoolExecutor threads = Threads.pool("nereid-health", 2);

    /** @param port the port on all addresses; 0 for any free one */
    public HealthServer(
            int port, BooleanSupplier alive, BooleanSupplier ready, Function<MetricsFormat, String> metrics) {
        try {
            this.server = HttpServer.create(new InetSocketAddress(port), 16);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "--health-port: cannot listen on port " + port + ": " + e.getMessage(),
                    "choose a free port",
                    e);
        }
        server.setExecutor(threads);
        server.createContext("/", exchange -> answer(exchange, 404, "text/plain", "not found\n"));
        server.createContext("/healthz", exchange -> probe(exchange, alive.getAsBoolean()));
        server.createContext("/readyz", exchange -> probe(exchange, ready.getAsBoolean()));
        server.createContext("/metrics", exchange -> {
            MetricsFormat format =
                    MetricsFormat.accepted(exchange.getRequestHeaders().getFirst("Accept"));
            answer(exchange, 200, format.contentType(), metrics.apply(format));
        });
        server.start();
    }

    /** The port that it listens on. */
    public int port() {
        return server.getAddress().getPort();
    }

    private static void probe(HttpExchange exchange, boolean good) throws IOException {
        answer(exchange, good ? 200 : 503, "text/plain", good ? "ok\n" : "not ready\n");
    }

    private static void answer(HttpExchange exchange, int status, String type, String text) throws IOException {
        try (exchange) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", type);
            exchange.getResponseHeaders().set("X-Content-Type-Options", "nosniff");
            boolean head = exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(status, head ? -1 : bytes.length);
            if (!head) {
                exchange.getResponseBody().write(bytes);
            }
        }
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdown();
    }
}
