// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Threads;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;

/** A web server on loopback with objects, ranges, conditions, and faults on request. Thread-safe. */
public final class TestServer implements AutoCloseable {
    /** Answers one request. */
    public interface Handler {
        void handle(HttpExchange exchange) throws IOException;
    }

    public record Seen(String method, String path, String query, Map<String, List<String>> headers) {
        public String header(String name) {
            return headers.getOrDefault(name, List.of("")).get(0);
        }
    }

    public record Held(byte[] bytes, String tag, String type) {}

    public final List<Seen> seen = new CopyOnWriteArrayList<>();
    public final Map<String, Held> objects = new ConcurrentHashMap<>();
    public final Map<String, Handler> handlers = new ConcurrentHashMap<>();
    public final CountDownLatch release = new CountDownLatch(1);
    private final Map<String, Deque<Handler>> faults = new ConcurrentHashMap<>();
    private final HttpServer server;
    private final ExecutorService threads = Threads.pool("test-server", 16);
    public volatile boolean ranges = true;

    public TestServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    public String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    public int port() {
        return server.getAddress().getPort();
    }

    public void put(String path, String text) {
        put(path, text.getBytes(StandardCharsets.UTF_8));
    }

    public void put(String path, byte[] bytes) {
        objects.put(
                path,
                new Held(
                        bytes,
                        "\"" + ContentDigests.sha256(bytes).substring(0, 16) + "\"",
                        "application/octet-stream"));
    }

    /** Sets the response to the next GET of a path. */
    public void fault(String path, Handler fault) {
        faults.computeIfAbsent(path, p -> new ArrayDeque<>()).add(fault);
    }

    public long count(String method, String path) {
        return seen.stream()
                .filter(s -> s.method().equals(method) && s.path().equals(path))
                .count();
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        seen.add(new Seen(
                exchange.getRequestMethod(),
                path,
                String.valueOf(exchange.getRequestURI().getRawQuery()),
                Map.copyOf(exchange.getRequestHeaders())));
        try (exchange) {
            Handler fault = null;
            if (exchange.getRequestMethod().equals("GET")) {
                synchronized (this) {
                    Deque<Handler> waiting = faults.get(path);
                    fault = waiting == null ? null : waiting.poll();
                }
            }
            if (fault != null) {
                fault.handle(exchange);
                return;
            }
            Handler handler = handlers.get(path);
            if (handler != null) {
                handler.handle(exchange);
                return;
            }
            Held held = objects.get(path);
            if (held == null) {
                status(exchange, 404);
                return;
            }
            send(exchange, held, Integer.MAX_VALUE);
        } catch (RuntimeException e) {
            throw new IOException(e);
        }
    }

    public static void status(HttpExchange exchange, int status) throws IOException {
        exchange.sendResponseHeaders(status, -1);
    }

    public static void json(HttpExchange exchange, int status, String text) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        bytes(exchange, status, text.getBytes(StandardCharsets.UTF_8));
    }

    public static void xml(HttpExchange exchange, int status, String text) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "application/xml");
        bytes(exchange, status, text.getBytes(StandardCharsets.UTF_8));
    }

    public static void bytes(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
    }

    /** The answer to a request for an object, cut off after so many bytes. */
    public void send(HttpExchange exchange, Held held, int cut) throws IOException {
        var headers = exchange.getResponseHeaders();
        var request = exchange.getRequestHeaders();
        headers.set("Content-Type", held.type());
        if (!held.tag().isEmpty()) {
            headers.set("ETag", held.tag());
        }
        if (ranges) {
            headers.set("Accept-Ranges", "bytes");
        }
        if (exchange.getRequestMethod().equals("HEAD")) {
            headers.set("Content-Length", String.valueOf(held.bytes().length));
            exchange.sendResponseHeaders(200, -1);
            return;
        }
        String match = request.getFirst("If-Match");
        if (match != null && !match.equals(held.tag())) {
            status(exchange, 412);
            return;
        }
        String range = request.getFirst("Range");
        String ifRange = request.getFirst("If-Range");
        int from = 0;
        int to = held.bytes().length;
        int status = 200;
        if (ranges && range != null && (ifRange == null || ifRange.equals(held.tag()))) {
            String[] ends = range.substring("bytes=".length()).split("-", -1);
            from = Integer.parseInt(ends[0]);
            to = ends[1].isEmpty() ? to : Math.min(to, Integer.parseInt(ends[1]) + 1);
            status = 206;
            headers.set("Content-Range", "bytes " + from + "-" + (to - 1) + "/" + held.bytes().length);
        }
        if (to == from) {
            exchange.sendResponseHeaders(status, -1);
            return;
        }
        exchange.sendResponseHeaders(status, to - from);
        int n = Math.min(cut, to - from);
        exchange.getResponseBody().write(held.bytes(), from, n);
        exchange.getResponseBody().flush();
    }

    @Override
    public void close() {
        release.countDown();
        server.stop(0);
        threads.shutdownNow();
    }
}
