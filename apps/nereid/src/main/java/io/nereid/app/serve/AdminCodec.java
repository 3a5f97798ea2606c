// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.client.ServerClient;
import io.nereid.base.ServingException;
import io.nereid.base.UncaughtErrors;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.engine.Engine;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.TransportStats;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.PageRenderer;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import java.io.IOException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The endpoints outside of the inference protocols: Prometheus metrics, replacement of the model list, and liveness at
 * {@code /}. Thread-safe.
 */
final class AdminCodec implements ProtocolCodec {
    private static final ResponseBody NOTHING = new ResponseBody(new byte[0], 0);

    private final Engine engine;
    private final ModelListReloader lists;
    private final Supplier<TransportStats> transport;
    private final ByteBudget budget;
    private final boolean metrics;
    private final boolean console;
    private final Consumer<MetricsWriter> more;
    private final PageRenderer<MetricsFormat> pages;

    /**
     * Creates the endpoints.
     *
     * @param metrics whether there is a page of metrics
     * @param console whether there is a web console, to which browsers are led
     * @param codecPool renders the metrics
     * @param more adds further metrics to a page
     */
    AdminCodec(
            Engine engine,
            ModelListReloader lists,
            Supplier<TransportStats> transport,
            ByteBudget budget,
            boolean metrics,
            boolean console,
            Executor codecPool,
            Consumer<MetricsWriter> more) {
        this.engine = engine;
        this.lists = lists;
        this.transport = transport;
        this.budget = budget;
        this.metrics = metrics;
        this.console = console;
        this.more = more;
        this.pages = new PageRenderer<>(codecPool, this::page);
    }

    @Override
    public String name() {
        return "admin";
    }

    @Override
    public @Nullable URL openApi() {
        return AdminCodec.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        List<HttpRoute> routes = new ArrayList<>(List.of(
                HttpRoute.get("/", Operation.HEALTH, this::root),
                HttpRoute.post(ServerClient.MODEL_CONFIG_PATH, Operation.MODEL_CONTROL, this::configure)));
        if (metrics) {
            routes.add(HttpRoute.get("/metrics", Operation.METRICS, x -> {
                MetricsFormat format = MetricsFormat.accepted(x.header("accept"));
                pages.reply(x, format, text -> HttpReply.text(200, format.contentType(), text));
            }));
        }
        return routes;
    }

    /** Leads browsers to the console; for every other client it is liveness. */
    private void root(HttpExchange x) {
        if (console && prefersHtml(x.header("accept"))) {
            x.reply(new HttpReply(302, "", new String[] {"location", "console/", "vary", "accept"}, NOTHING));
        } else {
            x.reply(HttpReply.json(200, "{\"status\":\"alive\"}"));
        }
    }

    /** Whether a client names HTML and wants it at least as much as JSON; a wildcard does not name it. */
    static boolean prefersHtml(@Nullable String accept) {
        if (accept == null) {
            return false;
        }
        double html = 0;
        double json = 0;
        for (String range : accept.split(",", -1)) {
            String[] parts = range.split(";", -1);
            double quality = 1;
            for (int i = 1; i < parts.length; i++) {
                String parameter = parts[i].strip();
                if (parameter.startsWith("q=")) {
                    try {
                        quality = Double.parseDouble(parameter.substring(2));
                    } catch (NumberFormatException e) {
                        quality = 0;
                    }
                }
            }
            String type = parts[0].strip().toLowerCase(Locale.ROOT);
            html = type.equals("text/html") ? quality : html;
            json = type.equals("application/json") ? quality : json;
        }
        return html > 0 && html >= json;
    }

    /** Replaces the model list; the body has the format of a {@code --model_config_file}. */
    private void configure(HttpExchange x) {
        x.require(Permission.MANAGE, Caller.ALL);
        byte[] bytes = new byte[x.body().size()];
        x.body().getBytes(0, bytes, 0, bytes.length);
        String text = new String(bytes, StandardCharsets.UTF_8);
        boolean dryRun = Boolean.parseBoolean(x.queryParameter("dry_run"));
        lists.configure(ModelServerConfig.parse(text, "the request"), dryRun).whenComplete((changes, e) -> {
            if (e != null) {
                x.fail(ServingException.from(ModelListReloader.cause(e)));
            } else {
                x.reply(HttpReply.json(200, ModelListReloader.json(changes)));
            }
        });
    }

    private String page(MetricsFormat format) {
        TransportStats stats = transport.get();
        MetricsWriter page = new MetricsWriter(format);
        engine.writeMetrics(page);
        more.accept(page);
        gauge(page, "nereid_connections", "Open connections", stats.connections());
        counter(
                page,
                "nereid_connections_refused_total",
                "Connections closed on arrival, beyond --max-connections or without a file descriptor",
                stats.refused());
        gauge(
                page,
                "nereid_exchanges_in_flight",
                "Exchanges and calls accepted and not yet answered",
                stats.inFlight());
        counter(page, "nereid_exchanges", "Exchanges and calls since the start", stats.exchanges());
        counter(page, "nereid_exchanges_rejected", "Rejected before their body was read", stats.rejected());
        gauge(
                page,
                "nereid_request_bytes_in_flight",
                "Bytes of request bodies held, and of responses that clients have not taken",
                budget.used());
        gauge(page, "nereid_direct_memory_bytes", "Pooled memory outside the heap", MemoryRegion.pooledBytes());
        counter(
                page,
                "nereid_uncaught_exceptions_total",
                "Exceptions that nothing expected, answered as internal errors; the log has their stacks",
                UncaughtErrors.count());
        Runtime jvm = Runtime.getRuntime();
        gauge(page, "nereid_heap_used_bytes", "Heap in use", jvm.totalMemory() - jvm.freeMemory());
        gauge(page, "process_resident_memory_bytes", "Resident memory of the process", residentBytes());
        return page.finish();
    }

    private static void gauge(MetricsWriter page, String name, String help, long value) {
        page.family(name, MetricType.GAUGE, help);
        page.sample(LabelSet.NONE, value);
    }

    private static void counter(MetricsWriter page, String name, String help, long value) {
        page.family(name, MetricType.COUNTER, help);
        page.sample(LabelSet.NONE, value);
    }

    /** Reads the resident memory from /proc; 0 on systems without it. */
    static long residentBytes() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
                }
            }
        } catch (IOException e) {
            return 0;
        }
        return 0;
    }
}
