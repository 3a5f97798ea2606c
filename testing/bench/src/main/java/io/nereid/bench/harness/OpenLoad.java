// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * HTTP requests whose times do not depend on the server: at random times with a mean rate, or from a fixed number of
 * clients, each of which sends the next request when it has its response. Latencies count from the time at which a
 * request was due. Used by one thread at a time.
 */
public final class OpenLoad {
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final HttpRequest request;
    private final ConcurrentLinkedQueue<Response> responses = new ConcurrentLinkedQueue<>();
    private final AtomicInteger open = new AtomicInteger();
    private double objective = Double.POSITIVE_INFINITY;

    /** A response: its status, 0 for none, how long it took, and whether it named a time to retry. */
    private record Response(int status, double seconds, double at, boolean retryAfter) {}

    /**
     * The outcome of a load; times in seconds.
     *
     * @param withinPerSecond responses within the objective, for each second of the load
     * @param refusedWithoutTime 503s without {@code retry-after}
     * @param failed responses with another status than 200 and 503, and connections that broke
     */
    public record Outcome(
            long served,
            long refused,
            long refusedWithoutTime,
            long failed,
            double servedPerSecond,
            double withinPerSecond,
            double p50,
            double p99,
            double refusedP50,
            double refusedP95) {}

    /** A load of requests in JSON. */
    public OpenLoad(ServerProcess server, String path, byte[] body) {
        this(server, path, body, List.of("content-type", "application/json"));
    }

    /**
     * A load.
     *
     * @param headers names and values in turn
     */
    public OpenLoad(ServerProcess server, String path, byte[] body, List<String> headers) {
        this.request = HttpRequest.newBuilder(URI.create(server.url(path)))
                .headers(headers.toArray(String[]::new))
                .timeout(Duration.ofMinutes(5))
                .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                .build();
    }

    /** Counts the responses that take at most so many seconds as {@link Outcome#withinPerSecond}. */
    public OpenLoad objective(double seconds) {
        objective = seconds;
        return this;
    }

    /** Sends so many requests in a second at random (Poisson), and waits for all responses. */
    public Outcome random(double perSecond, double seconds, long seed) throws InterruptedException {
        Random random = new Random(seed);
        long from = System.nanoTime();
        double due = 0;
        while (due < seconds) {
            due += -Math.log(1 - random.nextDouble()) / perSecond;
            long at = from + (long) (due * 1e9);
            for (long left = at - System.nanoTime(); left > 0; left = at - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            send(at, from, null);
        }
        return outcome(seconds);
    }

    /** Keeps so many clients busy, and waits for the last responses. */
    public Outcome clients(int count, double seconds) throws InterruptedException {
        long from = System.nanoTime();
        long end = from + (long) (seconds * 1e9);
        for (int i = 0; i < count; i++) {
            next(from, end);
        }
        return outcome(seconds);
    }

    private void next(long from, long end) {
        send(System.nanoTime(), from, () -> {
            if (System.nanoTime() - end < 0) {
                next(from, end);
            }
        });
    }

    private void send(long due, long from, @Nullable Runnable then) {
        open.incrementAndGet();
        var unused = client.sendAsync(request, HttpResponse.BodyHandlers.discarding())
                .whenComplete((reply, e) -> {
                    long now = System.nanoTime();
                    boolean retry = reply != null
                            && reply.headers().firstValue("retry-after").isPresent();
                    responses.add(new Response(
                            reply == null ? 0 : reply.statusCode(), (now - due) / 1e9, (now - from) / 1e9, retry));
                    if (then != null) {
                        then.run();
                    }
                    open.decrementAndGet();
                });
    }

    private Outcome outcome(double seconds) throws InterruptedException {
        Semaphore never = new Semaphore(0);
        while (open.get() > 0) {
            boolean unused = never.tryAcquire(20, java.util.concurrent.TimeUnit.MILLISECONDS);
        }
        double[] served = times(200);
        double[] refused = times(503);
        long within = responses.stream()
                .filter(r -> r.status == 200 && r.at <= seconds)
                .count();
        long timely = Arrays.stream(served).filter(time -> time <= objective).count();
        long silent =
                responses.stream().filter(r -> r.status == 503 && !r.retryAfter).count();
        Outcome outcome = new Outcome(
                served.length,
                refused.length,
                silent,
                responses.size() - served.length - refused.length,
                within / seconds,
                timely / seconds,
                percentile(served, 50),
                percentile(served, 99),
                percentile(refused, 50),
                percentile(refused, 95));
        responses.clear();
        return outcome;
    }

    private double[] times(int status) {
        double[] all = responses.stream()
                .filter(r -> r.status == status)
                .mapToDouble(Response::seconds)
                .toArray();
        Arrays.sort(all);
        return all;
    }

    private static double percentile(double[] sorted, int percent) {
        return sorted.length == 0 ? 0 : sorted[Math.min(sorted.length - 1, sorted.length * percent / 100)];
    }
}
