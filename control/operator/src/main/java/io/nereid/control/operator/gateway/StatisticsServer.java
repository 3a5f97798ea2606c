// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * Tells the autoscaler the load of this gateway, on a port of its own: {@code GET /stats} answers with the report of the
 * last second; {@code GET /stats?watch=1} with that and every later one, each in a line, until the connection ends. A
 * watcher that does not read is disconnected. Thread-safe.
 */
final class StatisticsServer implements AutoCloseable {
    private static final int MOST_WATCHERS = 8;
    private static final int MOST_UNREAD = 64;
    private static final String END = "";

    private final LoadSampler sampler;
    private final HttpServer server;
    private final ThreadPoolExecutor threads = Threads.pool("gateway-statistics", MOST_WATCHERS + 2);
    private final AtomicInteger watchers = new AtomicInteger();
    private volatile boolean closed;

    /** @param port the port on all addresses; 0 for any free one */
    StatisticsServer(int port, LoadSampler sampler) {
        this.sampler = sampler;
        try {
            this.server = HttpServer.create(new InetSocketAddress(port), 16);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "--stats-port: cannot listen on port " + port + ": " + e.getMessage(),
                    "choose a free port",
                    e);
        }
        server.setExecutor(threads);
        server.createContext("/", exchange -> answer(exchange, 404, "not found\n"));
        server.createContext("/stats", this::statistics);
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void statistics(HttpExchange exchange) throws IOException {
        String query = exchange.getRequestURI().getQuery();
        if (!exchange.getRequestMethod().equals("GET")) {
            answer(exchange, 405, "expected: GET\n");
        } else if (query == null || !query.equals("watch=1")) {
            answer(exchange, 200, sampler.last().toJson() + "\n");
        } else if (watchers.incrementAndGet() > MOST_WATCHERS) {
            watchers.decrementAndGet();
            answer(exchange, 503, MOST_WATCHERS + " clients watch already\n");
        } else {
            try {
                watch(exchange);
            } finally {
                watchers.decrementAndGet();
            }
        }
    }

    private void watch(HttpExchange exchange) throws IOException {
        ArrayBlockingQueue<String> lines = new ArrayBlockingQueue<>(MOST_UNREAD);
        Consumer<LoadReport> listener = report -> {
            if (!lines.offer(report.toJson() + "\n")) {
                lines.clear();
                boolean unused = lines.offer(END);
            }
        };
        try (exchange) {
            exchange.getResponseHeaders().set("Content-Type", "application/x-ndjson");
            exchange.sendResponseHeaders(200, 0);
            sampler.add(listener);
            OutputStream out = exchange.getResponseBody();
            while (!closed) {
                String line = Objects.requireNonNull(lines.take());
                if (line.equals(END)) {
                    return;
                }
                out.write(line.getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            sampler.remove(listener);
        }
    }

    private static void answer(HttpExchange exchange, int status, String text) throws IOException {
        try (exchange) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", status == 200 ? "application/json" : "text/plain");
            exchange.sendResponseHeaders(status, bytes.length);
            exchange.getResponseBody().write(bytes);
        }
    }

    @Override
    public void close() {
        closed = true;
        server.stop(0);
        threads.shutdownNow();
    }
}
