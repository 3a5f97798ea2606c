// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.payload.PayloadMetrics.Loss;
import io.nereid.transport.api.UpstreamClient;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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

/**
 * The payload logs of a server: their shared threads and their metrics. Thread-safe.
 *
 * <pre>{@code
 * try (PayloadLogs logs = new PayloadLogs(clock, upstream, ObjectStore.Opener.NONE)) {
 *     PayloadLog log = logs.open(PayloadSettings.read(url, "all", specification, Map.of()), origin);
 *     ...
 *     log.close();
 * }
 * }</pre>
 */
public final class PayloadLogs implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PayloadLogs.class);
    private static final String PREFIX = "nereid_payload_";
    private static final int THREADS = 4;
    /** Writing blocks on a disk or a store. With this many threads, a few that hang do not stop the other logs. */
    private static final int WRITERS = 16;

    private static final int CLOSE_SECONDS = 5;

    private final Clock clock;
    private final UpstreamClient upstream;
    private final ObjectStore.Opener stores;
    private final ThreadPoolExecutor pool = Threads.pool("payload-log", THREADS);
    private final ThreadPoolExecutor writers = Threads.pool("payload-write", WRITERS);
    private final ScheduledThreadPoolExecutor timer = Threads.timer("payload-timer");
    private final List<PayloadLog> logs = new CopyOnWriteArrayList<>();

    /**
     * Creates the logs of a server.
     *
     * @param upstream sends to HTTP receivers; stays the caller's
     * @param stores opens object stores; {@link ObjectStore.Opener#NONE} for none
     */
    public PayloadLogs(Clock clock, UpstreamClient upstream, ObjectStore.Opener stores) {
        this.clock = clock;
        this.upstream = upstream;
        this.stores = stores;
    }

    /**
     * Opens a log. The caller closes it.
     *
     * @throws ServingException INVALID_ARGUMENT for a URL that cannot be written to
     */
    public PayloadLog open(PayloadSettings settings, PayloadOrigin origin) {
        return open(settings, origin, upstream);
    }

    /** Opens a log that sends over other connections. */
    public PayloadLog open(PayloadSettings settings, PayloadOrigin origin, UpstreamClient over) {
        return open(settings, origin, over, () -> ThreadLocalRandom.current().nextDouble());
    }

    PayloadLog open(PayloadSettings settings, PayloadOrigin origin, DoubleSupplier random) {
        return open(settings, origin, upstream, random);
    }

    private PayloadLog open(
            PayloadSettings settings, PayloadOrigin origin, UpstreamClient over, DoubleSupplier random) {
        EventSink sink = sink(settings, origin, over);
        PayloadLog log;
        synchronized (logs) {
            // A log that replaces another one of the same revision continues its counters.
            List<PayloadLog> same = byRevision().getOrDefault(labels(origin), List.of());
            PayloadMetrics metrics =
                    same.isEmpty() ? new PayloadMetrics() : same.get(0).metrics();
            log = new PayloadLog(settings, origin, sink, metrics, clock, pool, timer, random);
            logs.add(log);
        }
        log.drained().whenComplete((v, e) -> logs.remove(log));
        return log;
    }

    private static LabelSet labels(PayloadOrigin o) {
        return LabelSet.of("namespace", o.namespace())
                .with("service", o.service())
                .with("component", o.component())
                .with("revision", o.revision());
    }

    private Map<LabelSet, List<PayloadLog>> byRevision() {
        Map<LabelSet, List<PayloadLog>> all = new LinkedHashMap<>();
        for (PayloadLog log : logs) {
            all.computeIfAbsent(labels(log.origin()), k -> new ArrayList<>()).add(log);
        }
        return all;
    }

    private EventSink sink(PayloadSettings settings, PayloadOrigin origin, UpstreamClient over) {
        String url = settings.url();
        int scheme = url.indexOf(':');
        return switch (scheme < 0 ? "" : url.substring(0, scheme)) {
            case "http", "https" -> new HttpEventSink(over, url);
            case "file" -> new ObjectEventSink(FileObjectStore.of(url), settings, origin, over, writers);
            case "s3", "gs", "abfs", "abfss" ->
                new ObjectEventSink(stores.open(url, settings.storage(), origin), settings, origin, over, writers);
            default ->
                throw ServingException.invalidArgument("the logger's url is '" + url
                        + "' (expected: http://, https://, file://, s3://, gs:// or abfs://)");
        };
    }

    /** Adds the metrics of all open logs to a page; nothing without logs. */
    public void writeMetrics(MetricsWriter page) {
        Map<LabelSet, List<PayloadLog>> all = byRevision();
        if (all.isEmpty()) {
            return;
        }
        counter(page, all, "events_sent_total", "Events that a sink accepted.", f -> f.sent.sum());
        counter(page, all, "bytes_sent_total", "Bytes of the bodies of these events.", f -> f.sentBytes.sum());
        counter(page, all, "retries_total", "Deliveries that were tried again.", f -> f.retries.sum());
        counter(
                page,
                all,
                "requests_sampled_out_total",
                "Requests that were not logged because of the sampling rate.",
                f -> f.sampledOut.sum());
        counter(
                page,
                all,
                "bodies_withheld_total",
                "Bodies that were not sent because they could not be parsed for redaction.",
                f -> f.withheld.sum());
        page.family(PREFIX + "events_lost_total", MetricType.COUNTER, "Events that were dropped, by reason.");
        all.forEach((labels, open) -> {
            for (Loss loss : Loss.values()) {
                page.sample(
                        labels.with("reason", PayloadMetrics.label(loss)),
                        open.get(0).metrics().lost(loss).sum());
            }
        });
        gauge(page, all, "queue_events", "Events that are queued or being sent.", PayloadLog::waitingEvents);
        gauge(page, all, "queue_bytes", "Bytes of the bodies of these events.", PayloadLog::waitingBytes);
    }

    private static void counter(
            MetricsWriter page,
            Map<LabelSet, List<PayloadLog>> all,
            String name,
            String help,
            ToLongFunction<PayloadMetrics> value) {
        page.family(PREFIX + name, MetricType.COUNTER, help);
        all.forEach((labels, open) ->
                page.sample(labels, value.applyAsLong(open.get(0).metrics())));
    }

    private static void gauge(
            MetricsWriter page,
            Map<LabelSet, List<PayloadLog>> all,
            String name,
            String help,
            ToLongFunction<PayloadLog> value) {
        page.family(PREFIX + name, MetricType.GAUGE, help);
        all.forEach((labels, open) ->
                page.sample(labels, open.stream().mapToLong(value).sum()));
    }

    /** Closes every log, waits a few seconds for the events that are queued, and drops the rest. */
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
        writers.shutdownNow();
    }
}
