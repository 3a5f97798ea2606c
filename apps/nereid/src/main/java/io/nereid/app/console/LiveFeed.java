// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.base.Clock;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.engine.Engine;
import io.nereid.engine.ModelActivity;
import io.nereid.json.JsonWriter;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.TransportStats;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * The live data of the console: once in a second it reads what the models do, and gives each page what has changed since
 * its last line. So a thousand models of which ten work cost a page ten rows in a second.
 *
 * <p>A page first receives a line of the type {@code hello} with the past minutes, then lines of the type {@code tick} with
 * the server's figures, the models that have changed, and the names of those that are gone. It sees the models that its
 * caller may see; the server's figures are for callers who may see all models.
 *
 * <p>{@link #read} and the lines run on one thread, that of {@link LiveStreams}.
 */
final class LiveFeed {
    /** How many seconds a quantile and a rate span, and how many the history holds. */
    private static final int WINDOW = 10;

    static final int HISTORY = 900;

    private final Engine engine;
    private final Supplier<TransportStats> transport;
    private final LongSupplier residentBytes;
    private final Clock clock;
    private final String version;
    private final long startedMillis;

    private final Map<String, Row> rows = new HashMap<>();
    private final Map<String, Activity> activities = new HashMap<>();
    private final ArrayDeque<byte[]> history = new ArrayDeque<>();
    private final LatencyWindow latency = new LatencyWindow(WINDOW);
    private final RateWindow requests = new RateWindow(WINDOW);
    private final RateWindow failures = new RateWindow(WINDOW);
    private byte[] server = {};
    private long tick;
    private long cpuNanos = -1;
    private long cpuAtNanos;

    /**
     * A model as the pages see it.
     *
     * @param json empty for a model that is gone
     */
    private record Row(byte[] json, long changed) {}

    /** The past seconds of one version. */
    private static final class Activity {
        final LatencyWindow latency = new LatencyWindow(WINDOW);
        final RateWindow requests = new RateWindow(WINDOW);
        final RateWindow failures = new RateWindow(WINDOW);
    }

    /** The rate of a counter that only grows. */
    private static final class RateWindow {
        private final ArrayDeque<long[]> readings = new ArrayDeque<>();
        private final int length;

        RateWindow(int length) {
            this.length = length;
        }

        /** Takes a reading and returns the rate in the window, per second. */
        double add(long count, long nanos) {
            readings.addLast(new long[] {count, nanos});
            if (readings.size() > length + 1) {
                readings.removeFirst();
            }
            long[] first = readings.getFirst();
            long elapsed = nanos - first[1];
            return elapsed <= 0 ? 0 : Math.max(0, count - first[0]) * 1e9 / elapsed;
        }
    }

    /**
     * @param version the server's version
     * @param residentBytes the memory of the process; 0 where it is not known
     */
    LiveFeed(
            Engine engine,
            Supplier<TransportStats> transport,
            LongSupplier residentBytes,
            Clock clock,
            String version) {
        this.engine = engine;
        this.transport = transport;
        this.residentBytes = residentBytes;
        this.clock = clock;
        this.version = version;
        this.startedMillis = clock.millis();
    }

    /** Reads what the models do now. */
    void read() {
        tick++;
        long nanos = clock.nanos();
        Map<String, Map<Long, ModelActivity>> byModel = new HashMap<>();
        long[] counts = new long[ModelActivity.latencyBounds().length + 1];
        long success = 0;
        long failed = 0;
        long queued = 0;
        Set<String> versions = new HashSet<>();
        for (ModelActivity activity : engine.activity()) {
            var statistics = activity.statistics();
            byModel.computeIfAbsent(statistics.model(), m -> new HashMap<>()).put(statistics.version(), activity);
            versions.add(key(statistics.model(), statistics.version()));
            for (int i = 0; i < counts.length; i++) {
                counts[i] += activity.latencyCounts()[i];
            }
            success += statistics.success().count();
            failed += statistics.failure().count();
            queued += activity.queued();
        }
        activities.keySet().retainAll(versions);
        latency.add(counts);
        models(engine.index(), byModel, nanos);
        server = server(requests.add(success, nanos), failures.add(failed, nanos), queued, nanos);
        history.addLast(server);
        if (history.size() > HISTORY) {
            history.removeFirst();
        }
    }

    private static String key(String model, long version) {
        return model + '\n' + version;
    }

    private void models(List<ModelStatus> index, Map<String, Map<Long, ModelActivity>> activity, long nanos) {
        Set<String> present = new HashSet<>();
        for (ModelStatus model : index) {
            present.add(model.model());
            byte[] json = row(model, activity.getOrDefault(model.model(), Map.of()), nanos);
            Row before = rows.get(model.model());
            if (before == null || !Arrays.equals(before.json, json)) {
                rows.put(model.model(), new Row(json, tick));
            }
        }
        rows.replaceAll(
                (name, row) -> present.contains(name) || row.json.length == 0 ? row : new Row(new byte[0], tick));
        // A page that has not heard of a model's end by then has lost its connection and begins anew.
        rows.values().removeIf(row -> row.json.length == 0 && tick - row.changed > HISTORY);
    }

    private byte[] row(ModelStatus model, Map<Long, ModelActivity> activity, long nanos) {
        JsonWriter json = new JsonWriter(512);
        json.beginObject().name("name").value(model.model());
        if (!model.labels().isEmpty()) {
            json.name("labels").beginObject();
            model.labels().forEach((label, meaning) -> {
                json.name(label).beginObject().name("targets").beginArray();
                meaning.targets()
                        .forEach(t -> json.beginArray()
                                .value(Long.toString(t.version()))
                                .value(t.weight())
                                .endArray());
                json.endArray().name("shadows").beginArray();
                meaning.shadows()
                        .forEach(t -> json.beginArray()
                                .value(Long.toString(t.version()))
                                .value(t.weight())
                                .endArray());
                json.endArray().endObject();
            });
            json.endObject();
        }
        json.name("versions").beginArray();
        for (var state : model.versions()) {
            json.beginObject()
                    .name("version")
                    .value(Long.toString(state.id().version()))
                    .name("state")
                    .value(state.phase().name())
                    .name("backend")
                    .value(state.backend())
                    .name("loadMs")
                    .value(state.loadNanos() / 1_000_000)
                    .name("memory")
                    .value(Math.max(0, state.memoryBytes()));
            String reason = state.reason();
            if (reason != null) {
                json.name("reason").value(reason);
            }
            ModelActivity now = activity.get(state.id().version());
            if (now != null) {
                figures(json, now, nanos);
            }
            json.endObject();
        }
        json.endArray().endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    private void figures(JsonWriter json, ModelActivity now, long nanos) {
        var s = now.statistics();
        Activity past = activities.computeIfAbsent(key(s.model(), s.version()), k -> new Activity());
        past.latency.add(now.latencyCounts());
        json.name("rate")
                .value(rounded(past.requests.add(s.success().count(), nanos)))
                .name("failureRate")
                .value(rounded(past.failures.add(s.failure().count(), nanos)))
                .name("p50")
                .value(past.latency.micros(0.5))
                .name("p99")
                .value(past.latency.micros(0.99))
                .name("queued")
                .value(now.queued())
                .name("inFlight")
                .value(now.inFlight())
                .name("lastMs")
                .value(s.lastInferenceMillis())
                .name("success")
                .value(s.success().count())
                .name("failure")
                .value(s.failure().count())
                .name("rows")
                .value(s.inferences())
                .name("runs")
                .value(s.executions())
                .name("ns")
                .beginArray()
                .value(s.success().nanos())
                .value(s.queue().nanos())
                .value(s.computeInput().nanos())
                .value(s.computeInfer().nanos())
                .value(s.computeOutput().nanos())
                .endArray()
                .name("cache")
                .beginArray()
                .value(s.cacheHit().count())
                .value(s.cacheMiss().count())
                .endArray()
                .name("batches")
                .beginArray();
        s.batches()
                .forEach(b -> json.beginArray()
                        .value(b.size())
                        .value(b.computeInfer().count())
                        .endArray());
        json.endArray();
    }

    private static double rounded(double rate) {
        return Math.round(rate * 10) / 10.0;
    }

    private byte[] server(double rate, double failureRate, long queued, long nanos) {
        Runtime jvm = Runtime.getRuntime();
        TransportStats stats = transport.get();
        JsonWriter json = new JsonWriter(256);
        json.beginObject()
                .name("time")
                .value(clock.millis())
                .name("rate")
                .value(rounded(rate))
                .name("failureRate")
                .value(rounded(failureRate))
                .name("p50")
                .value(latency.micros(0.5))
                .name("p99")
                .value(latency.micros(0.99))
                .name("queued")
                .value(queued)
                .name("inFlight")
                .value(stats.inFlight())
                .name("connections")
                .value(stats.connections())
                .name("heap")
                .value(jvm.totalMemory() - jvm.freeMemory())
                .name("direct")
                .value(MemoryRegion.pooledBytes())
                .name("resident")
                .value(residentBytes.getAsLong())
                .name("cores")
                .value(rounded100(busyCores(nanos)))
                .endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    private static double rounded100(double value) {
        return Math.round(value * 100) / 100.0;
    }

    /** The processors that this process has used since the last reading. */
    private double busyCores(long nanos) {
        long used = ProcessHandle.current()
                .info()
                .totalCpuDuration()
                .orElse(Duration.ZERO)
                .toNanos();
        long before = cpuNanos;
        long elapsed = nanos - cpuAtNanos;
        cpuNanos = used;
        cpuAtNanos = nanos;
        return before < 0 || elapsed <= 0 ? 0 : Math.max(0, (double) (used - before) / elapsed);
    }

    /** The lines for one page. */
    LiveStreams.Lines lines(Caller caller) {
        boolean all = caller.may(Permission.CONSOLE, Caller.ALL);
        long[] seen = {-1};
        return () -> {
            ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
            if (server.length == 0) {
                read();
            }
            if (seen[0] < 0) {
                hello(out, all);
            }
            JsonWriter line = new JsonWriter(1024);
            line.beginObject().name("type").value("tick");
            if (all) {
                line.name("server").rawValue(server, 0, server.length);
            }
            line.name("models").beginArray();
            rows.forEach((name, row) -> {
                if (row.changed > seen[0] && row.json.length > 0 && caller.may(Permission.CONSOLE, name)) {
                    line.rawValue(row.json, 0, row.json.length);
                }
            });
            line.endArray().name("gone").beginArray();
            rows.forEach((name, row) -> {
                if (row.changed > seen[0] && row.json.length == 0 && caller.may(Permission.CONSOLE, name)) {
                    line.value(name);
                }
            });
            line.endArray().endObject();
            seen[0] = tick;
            out.write(line.array(), 0, line.length());
            out.write('\n');
            return out.toByteArray();
        };
    }

    private void hello(ByteArrayOutputStream out, boolean all) {
        JsonWriter line = new JsonWriter(1024);
        line.beginObject()
                .name("type")
                .value("hello")
                .name("version")
                .value(version)
                .name("started")
                .value(startedMillis)
                .name("processors")
                .value(Runtime.getRuntime().availableProcessors())
                .name("heapLimit")
                .value(Runtime.getRuntime().maxMemory())
                .name("history")
                .beginArray();
        if (all) {
            history.forEach(point -> line.rawValue(point, 0, point.length));
        }
        line.endArray().endObject();
        out.write(line.array(), 0, line.length());
        out.write('\n');
    }
}
