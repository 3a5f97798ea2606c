// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.app.client.ClientOptions;
import io.nereid.app.client.ServerClient;
import io.nereid.app.connection.ServerConnection;
import io.nereid.app.process.InterruptSignal;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.Terminal;
import io.nereid.app.text.TextTable;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nereid top}: the models of a running server in a terminal, refreshed every second. Confined to one thread. */
@Command(
        name = "top",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Show the models of a running server with rate, latency, errors, queue, batch size and memory, every second.",
            "Keys: q ends; n, r, p, e, w and m sort by name, rate, p99, errors, waiting requests and memory.",
            "Without a terminal, as in a pipe, it prints one table, as with --once."
        },
        footer = {"", "  nereid top --url http://models.example.com:8080", "  nereid top --once --output json"})
@SuppressWarnings("NullAway.Init") // set by picocli
public final class TopCommand implements Callable<Integer> {
    private static final String METRICS = "/metrics";
    private static final String KEYS = "nrpewm";
    /** The lines below the table. */
    private static final int FOOTER = 2;

    @Option(names = "--once", description = "Print one table, after one interval, and end.")
    private boolean once;

    @Option(
            names = "--interval",
            paramLabel = "TIME",
            defaultValue = "1s",
            converter = DurationConverter.class,
            description = "Time between two looks at the server (default: ${DEFAULT-VALUE}).")
    private String interval;

    @Option(
            names = "--sort",
            paramLabel = "COLUMN",
            defaultValue = "name",
            description = "name, rate, p99, errors, queue or memory (default: ${DEFAULT-VALUE}).")
    private ModelRow.Order order;

    @Option(
            names = "--metrics-url",
            paramLabel = "URL",
            description = "The port of metrics, where it is not that of --url; the page is /metrics.")
    private @Nullable String metricsUrl;

    @Mixin
    private ClientOptions server;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    private final Clock clock = Clock.system();

    @Override
    public Integer call() {
        long nanos = Units.duration(interval).toNanos();
        if (nanos == 0) {
            throw new ParameterException(spec.commandLine(), "--interval " + interval + " (expected: more than 0)");
        }
        ServerClient client = server.client(spec);
        ServerConnection metrics = metricsUrl == null
                ? client.connection()
                : server.client(spec, metricsUrl).connection();
        ServerSample first = sample(client, metrics);
        if (once || output.format().isDocument() || !Terminal.out()) {
            await(nanos);
            print(sample(client, metrics).since(first));
            return 0;
        }
        return screen(client, metrics, first, nanos);
    }

    private ServerSample sample(ServerClient client, ServerConnection metrics) {
        return ServerSample.read(client, metrics, METRICS, clock.nanos());
    }

    private static void await(long nanos) {
        try {
            boolean unused = new CountDownLatch(1).await(nanos, TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void print(List<ModelRow> rows) {
        PrintWriter out = spec.commandLine().getOut();
        List<ModelRow> sorted = new ArrayList<>(rows);
        sorted.sort(order.comparator());
        if (output.format().isDocument()) {
            ArrayNode list = JsonNodeFactory.instance.arrayNode();
            sorted.forEach(row -> row.write(list.addObject()));
            output.format().print(list, out);
            return;
        }
        table(sorted).print(out);
        out.flush();
    }

    private int screen(ServerClient client, ServerConnection metrics, ServerSample first, long nanos) {
        PrintWriter out = spec.commandLine().getOut();
        String url = client.connection().server().url();
        ServerSample before = first;
        List<ModelRow> rows = first.since(first);
        String problem = "";
        try (InterruptSignal interrupt = InterruptSignal.listen();
                RawTerminal terminal = new RawTerminal(out, System.in)) {
            long next = clock.nanos() + nanos;
            while (!interrupt.received()) {
                terminal.show(lines(url, rows, problem), FOOTER);
                int key = terminal.key(Math.max(1, Math.min(next - clock.nanos(), TimeUnit.MILLISECONDS.toNanos(200))));
                if (key == 'q') {
                    return 0;
                }
                int chosen = key < 0 ? -1 : KEYS.indexOf(key);
                if (chosen >= 0) {
                    order = ModelRow.Order.values()[chosen];
                }
                if (next - clock.nanos() > 0) {
                    continue;
                }
                next = clock.nanos() + nanos;
                terminal.measure();
                try {
                    ServerSample now = sample(client, metrics);
                    rows = now.since(before);
                    before = now;
                    problem = "";
                } catch (ServingException e) {
                    problem = String.valueOf(e.getMessage()); // the next look may succeed
                }
            }
            return InterruptSignal.EXIT_CODE;
        }
    }

    private List<String> lines(String url, List<ModelRow> rows, String problem) {
        List<ModelRow> sorted = new ArrayList<>(rows);
        sorted.sort(order.comparator());
        double rate = rows.stream().mapToDouble(ModelRow::rate).sum();
        double failures = rows.stream().mapToDouble(ModelRow::failures).sum();
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "%s   %d versions   %s requests/s   %s failures/s   sorted by %s",
                url,
                rows.size(),
                number(rate),
                number(failures),
                order));
        lines.add(problem);
        StringWriter text = new StringWriter();
        PrintWriter to = new PrintWriter(text);
        table(sorted).print(to);
        to.flush();
        text.toString().lines().forEach(lines::add);
        lines.add("");
        lines.add("q quit   n name   r rate   p p99   e errors   w waiting   m memory");
        return lines;
    }

    private static TextTable table(List<ModelRow> rows) {
        TextTable table = new TextTable(
                "MODEL",
                "VERSION",
                "STATE",
                "RATE/s",
                "P50 ms",
                "P99 ms",
                "ERRORS/s",
                "QUEUE",
                "BATCH",
                "MEMORY",
                "REQUESTS");
        for (ModelRow row : rows) {
            table.row(
                    row.model(),
                    row.version().isEmpty() ? "-" : row.version(),
                    row.state(),
                    number(row.rate()),
                    number(row.p50Millis()),
                    number(row.p99Millis()),
                    number(row.failures()),
                    Double.isNaN(row.queued()) ? "-" : Long.toString(Math.round(row.queued())),
                    number(row.batch()),
                    Double.isNaN(row.memoryBytes()) ? "-" : Units.formatBytes(Math.round(row.memoryBytes())),
                    Long.toString(row.succeeded()));
        }
        return table;
    }

    private static String number(double value) {
        if (Double.isNaN(value)) {
            return "-";
        }
        return value == 0
                ? "0"
                : String.format(Locale.ROOT, value >= 100 ? "%.0f" : value >= 1 ? "%.2f" : "%.3f", value);
    }
}
