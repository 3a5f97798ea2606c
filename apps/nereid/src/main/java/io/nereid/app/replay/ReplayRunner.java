// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.replay;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.client.ServerClient;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Sends recorded requests from several threads, and collects latencies, failures and differences. The threads share its
 * counters; results are read after {@link #run} has returned.
 */
final class ReplayRunner {
    private static final Duration PATIENCE = Duration.ofMinutes(5);
    private static final int SHOWN = 10;

    private final ReplayLog log;
    private final ServerClient client;
    private final int repeat;
    private final double @Nullable [] due;
    private final @Nullable ResponseComparison comparison;
    private final Clock clock;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicInteger compared = new AtomicInteger();
    private final AtomicInteger differing = new AtomicInteger();
    private final Map<String, LongAdder> failures = new ConcurrentHashMap<>();
    private final List<String> differences = new ArrayList<>();
    private final long[] latencies;
    private long nanos;

    /**
     * Creates a runner.
     *
     * @param due the time of each request, in seconds after the first one; null to send as fast as possible
     * @param comparison compares the responses; null for no comparison
     */
    ReplayRunner(
            ReplayLog log,
            ServerClient client,
            int repeat,
            double @Nullable [] due,
            @Nullable ResponseComparison comparison,
            Clock clock) {
        this.log = log;
        this.client = client;
        this.repeat = repeat;
        this.due = due;
        this.comparison = comparison;
        this.clock = clock;
        this.latencies = new long[Math.multiplyExact(log.items().size(), repeat)];
        Arrays.fill(latencies, -1);
    }

    /** Sends all requests from a number of threads, and waits for the responses. */
    void run(int threads) {
        ExecutorService pool = Threads.pool("replay", threads);
        long start = clock.nanos();
        try {
            List<Future<?>> workers = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                workers.add(pool.submit(() -> work(start)));
            }
            for (Future<?> worker : workers) {
                worker.get();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        } finally {
            pool.shutdownNow();
        }
        nanos = clock.nanos() - start;
    }

    private void work(long start) {
        int count = log.items().size();
        for (int i = next.getAndIncrement(); i < latencies.length; i = next.getAndIncrement()) {
            long from = clock.nanos();
            if (due != null) {
                // Latency counts from the due time, including the wait for a free thread. Otherwise a slow server would
                // delay requests unnoticed (coordinated omission).
                int round = i / count;
                from = start + (long) ((due[i % count] + round * period()) * 1e9);
                for (long left = from - clock.nanos(); left > 0; left = from - clock.nanos()) {
                    LockSupport.parkNanos(left);
                    if (Thread.currentThread().isInterrupted()) {
                        return;
                    }
                }
            }
            ReplayLog.Item item = log.items().get(i % count);
            try {
                HttpResponse<byte[]> answer =
                        client.connection().send(request(item), HttpResponse.BodyHandlers.ofByteArray());
                latencies[i] = clock.nanos() - from;
                take(i, item, answer);
            } catch (IOException e) {
                fail(i, String.valueOf(e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()));
            } catch (ServingException e) {
                if (e.code() == ErrorCode.CANCELLED) {
                    return;
                }
                fail(i, e.getMessage());
            }
        }
    }

    /** Returns the seconds from the first request of one repetition to that of the next. */
    private double period() {
        double[] all = java.util.Objects.requireNonNull(due);
        double last = 0;
        for (double d : all) {
            last = Math.max(last, d);
        }
        return last + (all.length > 1 ? last / (all.length - 1) : 1);
    }

    private HttpRequest request(ReplayLog.Item item) {
        return client.connection()
                .request(item.path())
                .timeout(PATIENCE)
                .header("content-type", "application/octet-stream")
                .header("inference-header-content-length", Integer.toString(item.jsonLength()))
                .POST(HttpRequest.BodyPublishers.ofByteArray(item.body()))
                .build();
    }

    private void take(int index, ReplayLog.Item item, HttpResponse<byte[]> answer) throws IOException {
        if (answer.statusCode() != 200) {
            JsonNode error;
            try {
                error = ServerClient.JSON.readTree(answer.body()).path("error");
            } catch (IOException e) {
                error = com.fasterxml.jackson.databind.node.MissingNode.getInstance();
            }
            fail(index, "HTTP " + answer.statusCode() + (error.isTextual() ? ": " + error.asText() : ""));
            return;
        }
        if (comparison == null || item.log().response() == null) {
            return;
        }
        int jsonLength = answer.headers()
                .firstValue("inference-header-content-length")
                .map(Integer::parseInt)
                .orElse(answer.body().length);
        List<String> found = comparison.differences(item.log(), answer.body(), jsonLength);
        compared.incrementAndGet();
        if (!found.isEmpty()) {
            differing.incrementAndGet();
            synchronized (differences) {
                for (String each : found) {
                    if (differences.size() < SHOWN) {
                        differences.add(item.where() + ": " + each);
                    }
                }
            }
        }
    }

    private void fail(int index, String why) {
        latencies[index] = -1;
        failures.computeIfAbsent(why, w -> new LongAdder()).increment();
    }

    /** Returns the latencies of the successful requests in nanoseconds, ascending. */
    long[] sortedLatencies() {
        return Arrays.stream(latencies).filter(l -> l >= 0).sorted().toArray();
    }

    int sent() {
        return latencies.length;
    }

    double seconds() {
        return Math.max(1, nanos) / (double) TimeUnit.SECONDS.toNanos(1);
    }

    int repeat() {
        return repeat;
    }

    Map<String, LongAdder> failures() {
        return failures;
    }

    int compared() {
        return compared.get();
    }

    /** Returns the number of responses that differ from the recorded ones. */
    int differing() {
        return differing.get();
    }

    /** Returns the first differences, up to a limit. */
    List<String> differences() {
        return differences;
    }
}
