// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.Threads;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** An HTTP/1.1 server that records every request as bytes and sends 200 to each. */
final class RecordingChild implements AutoCloseable {
    /** A request: its head up to the empty line, and its body. */
    record Request(String head, String body) {
        /** The request line. */
        String line() {
            return head.substring(0, head.indexOf("\r\n"));
        }

        /** How often a header occurs, with lines ended by CR, LF or both. */
        long count(String lowerCaseName) {
            return head.lines()
                    .filter(l -> l.toLowerCase(Locale.ROOT).startsWith(lowerCaseName + ":"))
                    .count();
        }
    }

    private final ServerSocket listener;
    private final BlockingQueue<Request> requests = new LinkedBlockingQueue<>();
    private final ExecutorService threads = Threads.pool("test-child", 8);

    RecordingChild() {
        try {
            listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        threads.execute(() -> {
            while (!listener.isClosed()) {
                try {
                    Socket socket = listener.accept();
                    threads.execute(() -> serve(socket));
                } catch (IOException e) {
                    return;
                }
            }
        });
    }

    int port() {
        return listener.getLocalPort();
    }

    /** The requests that have arrived before the one to this path, in their order; waits for it. */
    List<Request> before(String path) throws InterruptedException {
        List<Request> earlier = new ArrayList<>();
        while (true) {
            Request next = Objects.requireNonNull(requests.poll(10, TimeUnit.SECONDS), "no request for " + path);
            if (next.line().equals("GET " + path + " HTTP/1.1")) {
                return earlier;
            }
            earlier.add(next);
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            InputStream in = socket.getInputStream();
            while (true) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                while (!bytes.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
                    int c = in.read();
                    if (c < 0) {
                        return;
                    }
                    bytes.write(c);
                }
                String head = bytes.toString(StandardCharsets.ISO_8859_1);
                int at = head.toLowerCase(Locale.ROOT).indexOf("\r\ncontent-length: ");
                int length = at < 0 ? 0 : Integer.parseInt(head.substring(at + 18, head.indexOf('\r', at + 18)));
                String body = new String(in.readNBytes(length), StandardCharsets.ISO_8859_1);
                requests.add(new Request(head, body));
                String reply =
                        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n" + (head.startsWith("HEAD ") ? "" : "child");
                socket.getOutputStream().write(reply.getBytes(StandardCharsets.US_ASCII));
                socket.getOutputStream().flush();
            }
        } catch (IOException e) {
            // the proxy has closed the connection
            return;
        }
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        threads.shutdownNow();
    }
}
