// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Reads streams of server-sent events over a number of connections, each of which sends a request, reads its stream to the end, and begins
 * again. Prints as JSON how many events came after the warm-up and in how many seconds, and how long the first event of a stream took.
 *
 * <pre>java Streams.java PORT REQUEST_FILE CONNECTIONS WARMUP_SECONDS SECONDS EVENTS</pre>
 *
 * REQUEST_FILE has the bytes of the request, head and body. A stream with another status than 200, or another number of events than
 * EVENTS, has failed.
 */
final class Streams {
    private static final int TIMEOUT_MILLIS = 20_000;
    private static final byte[] PREFIX = "data:".getBytes(StandardCharsets.US_ASCII);

    private final int port;
    private final byte[] request;
    private final int expected;
    private final long begin;
    private final long end;
    private final AtomicLong events = new AtomicLong();
    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();

    private Streams(int port, byte[] request, int expected, double warmup, double seconds) {
        this.port = port;
        this.request = request;
        this.expected = expected;
        begin = System.nanoTime() + (long) (warmup * 1e9);
        end = begin + (long) (seconds * 1e9);
    }

    /** One connection. */
    private final class Connection implements Runnable {
        private final byte[] buffer = new byte[1 << 14];
        private long[] firsts = new long[1 << 12];
        private int count;
        // Of the stream that is being read.
        private InputStream in;
        private long asked;
        private int found;
        private int matched;

        @Override
        public void run() {
            while (System.nanoTime() < end) {
                try (Socket socket = new Socket()) {
                    socket.setTcpNoDelay(true);
                    socket.setSoTimeout(TIMEOUT_MILLIS);
                    socket.connect(new InetSocketAddress("127.0.0.1", port), TIMEOUT_MILLIS);
                    in = new BufferedInputStream(socket.getInputStream(), 1 << 16);
                    boolean open = true;
                    while (open && System.nanoTime() < end) {
                        asked = System.nanoTime();
                        found = 0;
                        matched = 0;
                        socket.getOutputStream().write(request);
                        open = stream();
                    }
                } catch (IOException e) {
                    fail();
                }
            }
        }

        private void fail() {
            if (System.nanoTime() >= begin) {
                failed.incrementAndGet();
            }
        }

        /** Reads a stream; whether the connection may be used again. */
        private boolean stream() throws IOException {
            boolean good = line().contains(" 200");
            boolean chunked = false;
            boolean open = true;
            long length = -1;
            for (String header = line(); !header.isEmpty(); header = line()) {
                String lower = header.toLowerCase(Locale.ROOT);
                if (lower.startsWith("content-length:")) {
                    length = Long.parseLong(lower.substring(15).trim());
                } else if (lower.startsWith("transfer-encoding:") && lower.contains("chunked")) {
                    chunked = true;
                } else if (lower.startsWith("connection:") && lower.contains("close")) {
                    open = false;
                }
            }
            if (chunked) {
                for (long size = Long.parseLong(line(), 16); size > 0; size = Long.parseLong(line(), 16)) {
                    body(size);
                    line();
                }
                line();
            } else {
                open &= length >= 0;
                body(length >= 0 ? length : Long.MAX_VALUE);
            }
            if (!good || found != expected) {
                fail();
            }
            return open;
        }

        /** Reads bytes of a body, at most to its end, and counts the lines that begin with "data:". */
        private void body(long size) throws IOException {
            long left = size;
            while (left > 0) {
                int read = in.read(buffer, 0, (int) Math.min(left, buffer.length));
                if (read < 0) {
                    if (size == Long.MAX_VALUE) {
                        return;
                    }
                    throw new EOFException("the server closed the connection");
                }
                left -= read;
                int lines = 0;
                for (int i = 0; i < read; i++) {
                    byte b = buffer[i];
                    if (b == '\n') {
                        matched = 0;
                    } else if (matched >= 0 && matched < PREFIX.length) {
                        matched = b == PREFIX[matched] ? matched + 1 : -1;
                        if (matched == PREFIX.length) {
                            lines++;
                        }
                    }
                }
                if (lines > 0) {
                    count(lines);
                }
            }
        }

        private void count(int lines) {
            long now = System.nanoTime();
            sent.addAndGet(lines);
            if (now >= begin && now < end) {
                events.addAndGet(lines);
                if (found == 0) {
                    if (count == firsts.length) {
                        firsts = Arrays.copyOf(firsts, 2 * count);
                    }
                    firsts[count++] = now - asked;
                }
            }
            found += lines;
        }

        private String line() throws IOException {
            StringBuilder text = new StringBuilder();
            for (int b = in.read(); b != '\n'; b = in.read()) {
                if (b < 0) {
                    throw new EOFException("the server closed the connection");
                }
                if (b != '\r') {
                    text.append((char) b);
                }
            }
            return text.toString();
        }
    }

    private static double percentile(long[] sorted, double percent) {
        return sorted.length == 0 ? 0 : sorted[Math.min(sorted.length - 1, (int) (sorted.length * percent / 100))] / 1e6;
    }

    public static void main(String[] arguments) throws Exception {
        byte[] request = Files.readAllBytes(Path.of(arguments[1]));
        double seconds = Double.parseDouble(arguments[4]);
        int port = Integer.parseInt(arguments[0]);
        Streams streams = new Streams(port, request, Integer.parseInt(arguments[5]), Double.parseDouble(arguments[3]), seconds);
        Connection[] connections = new Connection[Integer.parseInt(arguments[2])];
        Thread[] threads = new Thread[connections.length];
        for (int i = 0; i < threads.length; i++) {
            connections[i] = streams.new Connection();
            threads[i] = new Thread(null, connections[i], "connection-" + i, 256 << 10);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long[] firsts = Arrays.stream(connections)
                .flatMapToLong(c -> Arrays.stream(c.firsts, 0, c.count))
                .sorted()
                .toArray();
        String text = String.format(
                Locale.ROOT,
                "{\"sent\": %d, \"events\": %d, \"seconds\": %.3f, \"failed\": %d, \"p50\": %.4f, \"p99\": %.4f}",
                streams.sent.get(),
                streams.events.get(),
                seconds,
                streams.failed.get(),
                percentile(firsts, 50),
                percentile(firsts, 99));
        System.out.write((text + "\n").getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }
}
