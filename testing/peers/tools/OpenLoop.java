// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Sends HTTP/1.1 requests at random times (Poisson) with a mean rate, whatever the responses do, and prints the latencies as JSON. A
 * latency counts from the time at which the request was due, also when all connections were busy then, so that a server that
 * stands still is not asked less often.
 *
 * <pre>java OpenLoop.java PORT REQUEST_FILE RATE WARMUP_SECONDS SECONDS CONNECTIONS SEED</pre>
 *
 * REQUEST_FILE has the bytes of the request, head and body. The requests of the warm-up do not count.
 */
final class OpenLoop {
    private static final long TIMEOUT_MILLIS = 20_000;

    private final int port;
    private final byte[] request;
    private final long[] due;
    private final long[] latencies;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private final int counted;
    private long start;

    private OpenLoop(int port, byte[] request, double rate, double warmup, double seconds, long seed) {
        this.port = port;
        this.request = request;
        Random random = new Random(seed);
        long[] times = new long[(int) (rate * (warmup + seconds) * 1.5) + 100];
        int count = 0;
        int first = 0;
        double time = 0;
        while (count < times.length) {
            time += -Math.log(1 - random.nextDouble()) / rate;
            if (time > warmup + seconds) {
                break;
            }
            if (time < warmup) {
                first = count + 1;
            }
            times[count++] = (long) (time * 1e9);
        }
        due = Arrays.copyOf(times, count);
        latencies = new long[count];
        counted = first;
    }

    private void connection() {
        int index = next.getAndIncrement();
        while (index < due.length) {
            try (Socket socket = new Socket()) {
                socket.setTcpNoDelay(true);
                socket.setSoTimeout((int) TIMEOUT_MILLIS);
                socket.connect(new InetSocketAddress("127.0.0.1", port), (int) TIMEOUT_MILLIS);
                InputStream in = new BufferedInputStream(socket.getInputStream(), 1 << 16);
                OutputStream out = socket.getOutputStream();
                for (; index < due.length; index = next.getAndIncrement()) {
                    long at = start + due[index];
                    for (long left = at - System.nanoTime(); left > 0; left = at - System.nanoTime()) {
                        LockSupport.parkNanos(left);
                    }
                    out.write(request);
                    boolean good = respond(in);
                    latencies[index] = System.nanoTime() - at;
                    if (!good) {
                        count(index);
                    }
                }
            } catch (IOException e) {
                latencies[index] = System.nanoTime() - start - due[index];
                count(index);
                index = next.getAndIncrement();
            }
        }
    }

    private void count(int index) {
        if (index >= counted) {
            failed.incrementAndGet();
        }
    }

    /** Reads a response; whether its status is 200. */
    private static boolean respond(InputStream in) throws IOException {
        boolean good = line(in).contains(" 200");
        long length = 0;
        boolean chunked = false;
        for (String header = line(in); !header.isEmpty(); header = line(in)) {
            String lower = header.toLowerCase(Locale.ROOT);
            if (lower.startsWith("content-length:")) {
                length = Long.parseLong(lower.substring(15).trim());
            } else if (lower.startsWith("transfer-encoding:") && lower.contains("chunked")) {
                chunked = true;
            }
        }
        if (!chunked) {
            in.skipNBytes(length);
            return good;
        }
        for (long size = Long.parseLong(line(in), 16); size > 0; size = Long.parseLong(line(in), 16)) {
            in.skipNBytes(size);
            line(in);
        }
        line(in);
        return good;
    }

    private static String line(InputStream in) throws IOException {
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

    private double percentile(long[] sorted, double percent) {
        return sorted.length == 0 ? 0 : sorted[Math.min(sorted.length - 1, (int) (sorted.length * percent / 100))] / 1e6;
    }

    public static void main(String[] arguments) throws Exception {
        byte[] request = Files.readAllBytes(Path.of(arguments[1]));
        OpenLoop loop = new OpenLoop(
                Integer.parseInt(arguments[0]),
                request,
                Double.parseDouble(arguments[2]),
                Double.parseDouble(arguments[3]),
                Double.parseDouble(arguments[4]),
                Long.parseLong(arguments[6]));
        Thread[] threads = new Thread[Integer.parseInt(arguments[5])];
        loop.start = System.nanoTime() + 50_000_000;
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(null, loop::connection, "connection-" + i, 256 << 10);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long[] sorted = Arrays.copyOfRange(loop.latencies, loop.counted, loop.latencies.length);
        Arrays.sort(sorted);
        String text = String.format(
                Locale.ROOT,
                "{\"sent\": %d, \"requests\": %d, \"failed\": %d, \"p50\": %.4f, \"p99\": %.4f, \"p999\": %.4f}",
                loop.latencies.length,
                sorted.length,
                loop.failed.get(),
                loop.percentile(sorted, 50),
                loop.percentile(sorted, 99),
                loop.percentile(sorted, 99.9));
        System.out.write((text + "\n").getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }
}
