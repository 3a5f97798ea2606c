// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

/** An HTTP server whose responses a test decides. Thread-safe. */
final class ScriptedServer implements AutoCloseable {
    /** What the server received. */
    record Received(String method, String path, Map<String, String> headers, byte[] body) {
        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }
    }

    /** A response. */
    record Reply(int status, Map<String, String> headers, byte[] body) {
        static Reply of(int status, String body, String... headers) {
            Map<String, String> all = new TreeMap<>();
            for (int i = 0; i < headers.length; i += 2) {
                all.put(headers[i], headers[i + 1]);
            }
            return new Reply(status, all, body.getBytes(StandardCharsets.UTF_8));
        }
    }

    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final LinkedBlockingQueue<Reply> replies = new LinkedBlockingQueue<>();
    final List<Received> received = new CopyOnWriteArrayList<>();

    ScriptedServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::handle);
        server.setExecutor(threads);
        server.start();
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    /** Adds the response to the next request; requests wait for theirs. */
    ScriptedServer reply(int status, String body, String... headers) {
        replies.add(Reply.of(status, body, headers));
        return this;
    }

    ScriptedServer reply(Reply reply) {
        replies.add(reply);
        return this;
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
            exchange.getRequestHeaders().forEach((name, values) -> headers.put(name, values.get(0)));
            received.add(new Received(
                    exchange.getRequestMethod(),
                    exchange.getRequestURI().getRawPath(),
                    headers,
                    exchange.getRequestBody().readAllBytes()));
            Reply reply = replies.take();
            if (reply.status == 0) {
                return;
            }
            reply.headers.forEach(exchange.getResponseHeaders()::set);
            exchange.sendResponseHeaders(reply.status, reply.body.length == 0 ? -1 : reply.body.length);
            exchange.getResponseBody().write(reply.body);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
