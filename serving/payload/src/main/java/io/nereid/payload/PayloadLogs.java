// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.endpoint.Upstream;
import io.nereid.payload.Figures.Loss;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.DoubleSupplier;
import java.util.function.ToLongFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The payload logs of a server: what they share, and their figures. Thread-safe. */
public final class PayloadLogs implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PayloadLogs.class);
    private static final int THREADS = 4;
    private static final int CLOSE_SECONDS = 5;

    private final Clock clock;
    private final Upstream upstream;
    private final BlobSink.Opener stores;
    private final ThreadPoolExecutor pool = Threads.pool("payload-log", THREADS);
    private final ScheduledThreadPoolExecutor timer = Threads.timer("payload-timer");
    private final List<PayloadLog> logs = new CopyOnWriteArrayList<>();

    /**
     * Sends over {@code upstream}, which stays the caller's.
     *
     * @param stores opens object stores; {@link BlobSink.Opener#NONE} for none
     */
    public PayloadLogs(Clock clock, Upstream upstream, BlobSink.Opener stores) {
        this.clock = clock;
        this.upstream = upstream;
        this.stores = stores;
    }

    /**
     * Begins a log; whoever asked for it closes it.
     *
     * @throws ServingException INVALID_ARGUMENT for a place that nothing can be written to
     */
    public PayloadLog open(PayloadSettings settings, PayloadOrigin origin) {
        return open(settings, origin, () -> ThreadLocalRandom.current().nextDouble());
    }

    PayloadLog open(PayloadSettings settings, PayloadOrigin origin, DoubleSupplier random) {
        PayloadLog log = new PayloadLog(settings, origin, sink(settings, origin), clock, pool, timer, random);
        logs.add(log);
        log.drained().whenComplete((v, e) -> logs.remove(log));
        return log;
    }

    private Sink sink(PayloadSettings settings, PayloadOrigin origin) {
        String url = settings.url();
        int scheme = url.indexOf(':');
        return switch (scheme < 0 ? "" : url.substring(0, scheme)) {
            case "http", "https" -> new HttpSink(upstream, url);
            case "file" -> new BlobBatches(FileSink.of(url), settings, origin, upstream, pool);
            case "s3", "gs", "abfs", "abfss" ->
                new BlobBatches(stores.open(url, settings.storage()), settings, origin, upstream, pool);
            default ->
                throw ServingException.invalidArgument(
                        "the logger's url is '" + url + "' (expected: http://, https://, file://, s3://, gs:// or abfs://)");
        };
    }

    /** The figures of all open logs in Prometheus' text format; empty while there is none. */
    public String metrics() {
        if (logs.isEmpty()) {
            return "";
        }
        StringBuilder page = new StringBuilder();
        add(page, "events_sent_total", "counter", "Events that a sink took.", l -> l.figures().sent.sum());
        add(page, "bytes_sent_total", "counter", "Bytes of the bodies of those.", l -> l.figures().sentBytes.sum());
        add(page, "retries_total", "counter", "Deliveries that were tried again.", l -> l.figures().retries.sum());
        add(
                page,
                "requests_sampled_out_total",
                "counter",
                "Requests that the sampling rate left out.",
                l -> l.figures().sampledOut.sum());
        add(
                page,
                "bodies_withheld_total",
                "counter",
                "Bodies that did not leave because what is to be redacted could not be looked for.",
                l -> l.figures().withheld.sum());
        head(page, "events_lost_total", "counter", "Events that were dropped, by reason.");
        for (PayloadLog log : logs) {
            for (Loss loss : Loss.values()) {
                line(page, "events_lost_total", log, ",reason=\"" + Figures.label(loss) + "\"")
                        .append(log.figures().lost(loss).sum())
                        .append('\n');
            }
        }
        add(page, "queue_events", "gauge", "Events that wait or are under way.", PayloadLog::waitingEvents);
        add(page, "queue_bytes", "gauge", "Bytes of the bodies of those.", PayloadLog::waitingBytes);
        return page.toString();
    }

    private void add(StringBuilder page, String name, String type, String help, ToLongFunction<PayloadLog> value) {
        head(page, name, type, help);
        for (PayloadLog log : logs) {
            line(page, name, log, "").append(value.applyAsLong(log)).append('\n');
        }
    }

    private static void head(StringBuilder page, String name, String type, String help) {
        page.append("# HELP nereid_payload_").append(name).append(' ').append(help).append('\n');
        page.append("# TYPE nereid_payload_").append(name).append(' ').append(type).append('\n');
    }

    private static StringBuilder line(StringBuilder page, String name, PayloadLog log, String more) {
        PayloadOrigin o = log.origin();
        return page.append("nereid_payload_")
                .append(name)
                .append("{namespace=\"")
                .append(o.namespace())
                .append("\",service=\"")
                .append(o.service())
                .append("\",component=\"")
                .append(o.component())
                .append("\",revision=\"")
                .append(o.revision())
                .append('"')
                .append(more)
                .append("} ");
    }

    /** Closes every log, waits a little for what is under way, and gives the rest up. */
    @Override
    public void close() {
        List<PayloadLog> open = List.copyOf(logs);
        open.forEach(PayloadLog::close);
        try {
            CompletableFuture.allOf(open.stream()
                            .map(l -> l.drained().toCompletableFuture())
                            .toArray(CompletableFuture<?>[]::new))
                    .get(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | ExecutionException e) {
            LOG.warn("payload logs still had events after {} s; they are lost", CLOSE_SECONDS);
        }
        timer.shutdownNow();
        pool.shutdownNow();
    }
}
