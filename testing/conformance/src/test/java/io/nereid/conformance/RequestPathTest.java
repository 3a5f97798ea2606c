// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import com.sun.jdi.Bootstrap;
import com.sun.jdi.IncompatibleThreadStateException;
import com.sun.jdi.Location;
import com.sun.jdi.StackFrame;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.ListeningConnector;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.MethodEntryEvent;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.MethodEntryRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Measures the path of a REST request through the classes of the server, and compares it with the table in
 * {@code docs/ARCHITECTURE.md}. The server runs in its own process; the debug interface of its JVM reports every entry into a
 * method of the project on the threads that serve requests, while one request is in flight. The whole path is written to
 * {@code target/request-path.txt}. Confined to the test's thread, except for the thread that collects the reports.
 */
class RequestPathTest {
    private static final Path TOP =
            Path.of("").toAbsolutePath().resolve("../..").normalize();
    private static final String HEADING = "## The path of a request";
    private static final Pattern STATION = Pattern.compile("\\| \\d+ [a-z]+ \\| ([a-z ]+) \\| `(\\w+\\.\\w+)` \\|.*");
    private static final Map<String, String> THREADS = Map.of("event loop", "nereid-io", "device executor", "device");
    private static final Pattern ADDRESS = Pattern.compile("listening on http://127\\.0\\.0\\.1:(\\d+)");
    private static final String BODY =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2.5]},"
                    + "{\"name\":\"INPUT1\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[3,4]}]}";

    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @TempDir
    static Path repository;

    private static Process server;
    private static VirtualMachine machine;
    private static int port;
    private static final List<String> PRINTED = new CopyOnWriteArrayList<>();

    /** One entry into a method: its thread, the number of the project's frames below it, and its place. Immutable. */
    private record Entry(String thread, int depth, String place) {
        static Entry of(MethodEntryEvent event) {
            ThreadReference thread = event.thread();
            int depth = 0;
            try {
                for (StackFrame frame : thread.frames()) {
                    if (frame.location().declaringType().name().startsWith("io.nereid.")) {
                        depth++;
                    }
                }
            } catch (IncompatibleThreadStateException e) {
                throw new IllegalStateException("the thread is suspended by the event", e);
            }
            return new Entry(thread.name(), depth - 1, place(event.location()));
        }

        private static String place(Location location) {
            String type = location.declaringType().name();
            return type.substring(type.lastIndexOf('.') + 1).replace('$', '.') + "."
                    + location.method().name();
        }

        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%-14s %s%s", thread, "  ".repeat(depth), place);
        }
    }

    @BeforeAll
    static void start() throws Exception {
        model("pooled", "add_sub", 20);
        model("inline", "identity", 0);
        ListeningConnector connector = Bootstrap.virtualMachineManager().listeningConnectors().stream()
                .filter(c -> c.transport().name().equals("dt_socket"))
                .findFirst()
                .orElseThrow();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("localAddress").setValue("127.0.0.1");
        arguments.get("port").setValue("0");
        arguments.get("timeout").setValue("60000");
        String address = connector.startListening(arguments);
        List<String> command = ServerProcess.program();
        command.add(1, "-agentlib:jdwp=transport=dt_socket,server=n,suspend=n,address=" + address);
        command.addAll(List.of("serve", repository.toString(), "--port", "0"));
        server = new ProcessBuilder(command).redirectErrorStream(true).start();
        CompletableFuture<Integer> ready = new CompletableFuture<>();
        Thread reader = new Thread(() -> read(ready), "server output");
        reader.setDaemon(true);
        reader.start();
        machine = connector.accept(arguments);
        connector.stopListening(arguments);
        port = ready.get(60, TimeUnit.SECONDS);
        for (String model : List.of("pooled", "inline")) {
            for (int i = 0; i < (model.equals("inline") ? 300 : 20); i++) {
                infer(model);
            }
        }
    }

    @AfterAll
    static void stop() throws Exception {
        if (machine != null) {
            machine.dispose();
        }
        if (server != null) {
            server.destroy();
            if (!server.waitFor(10, TimeUnit.SECONDS)) {
                server.destroyForcibly();
            }
        }
    }

    /** A model of one of the built-in backends with two inputs and two outputs; a delay makes it too slow for the event loop. */
    private static void model(String name, String backend, int delay) throws IOException {
        String tensor = "%s { name: \"%s%d\" data_type: TYPE_FP32 dims: [ -1 ] } ";
        StringBuilder config = new StringBuilder("backend: \"" + backend + "\" max_batch_size: 8 dynamic_batching {} ");
        for (int i = 0; i < 2; i++) {
            config.append(String.format(Locale.ROOT, tensor, "input", "INPUT", i))
                    .append(String.format(Locale.ROOT, tensor, "output", "OUTPUT", i));
        }
        config.append("parameters { key: \"execute_delay_ms\" value { string_value: \"" + delay + "\" } }");
        Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), config);
    }

    private static void read(CompletableFuture<Integer> ready) {
        try (BufferedReader lines = server.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                PRINTED.add(line);
                Matcher address = ADDRESS.matcher(line);
                if (address.find()) {
                    ready.complete(Integer.valueOf(address.group(1)));
                }
            }
        } catch (IOException e) {
            PRINTED.add("(" + e + ")");
        }
        ready.completeExceptionally(new IllegalStateException("the server ended: " + PRINTED));
    }

    private static void infer(String model) throws Exception {
        HttpResponse<String> response = CLIENT.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/v2/models/" + model + "/infer"))
                        .timeout(Duration.ofSeconds(60))
                        .POST(BodyPublishers.ofString(BODY))
                        .build(),
                BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    }

    /** All entries into methods of the project on the threads that serve requests, in their order, during one request. */
    private static List<Entry> path(String model) throws Exception {
        MethodEntryRequest entries = machine.eventRequestManager().createMethodEntryRequest();
        entries.addClassFilter("io.nereid.*");
        entries.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        AtomicBoolean answered = new AtomicBoolean();
        FutureTask<List<Entry>> path = new FutureTask<>(() -> collect(answered));
        entries.enable();
        new Thread(path, "collector").start();
        try {
            infer(model);
        } finally {
            entries.disable();
            answered.set(true);
        }
        List<Entry> measured = path.get(60, TimeUnit.SECONDS);
        machine.eventRequestManager().deleteEventRequest(entries);
        assertThat(measured).as("the server's output: %s", PRINTED).isNotEmpty();
        return measured;
    }

    /** Collects entries until the request has been answered and no more entries arrive. */
    private static List<Entry> collect(AtomicBoolean answered) throws InterruptedException {
        List<Entry> path = new ArrayList<>();
        while (true) {
            boolean last = answered.get();
            EventSet events = machine.eventQueue().remove(100);
            if (events == null) {
                if (last) {
                    return path;
                }
                continue;
            }
            for (Event event : events) {
                if (event instanceof MethodEntryEvent entry
                        && serves(entry.thread().name())) {
                    path.add(Entry.of(entry));
                }
            }
            events.resume();
        }
    }

    private static boolean serves(String thread) {
        return THREADS.values().stream().anyMatch(thread::startsWith);
    }

    /** The stations of the document: thread and method. */
    private static List<Entry> stations() throws IOException {
        List<Entry> stations = new ArrayList<>();
        boolean within = false;
        for (String line : Files.readAllLines(TOP.resolve("docs/ARCHITECTURE.md"))) {
            if (line.startsWith("## ")) {
                within = line.equals(HEADING);
            }
            Matcher station = STATION.matcher(line);
            if (within && station.matches()) {
                stations.add(new Entry(THREADS.get(station.group(1)), 0, station.group(2)));
            }
        }
        return stations;
    }

    @Test
    void aRequestPassesTheStationsOfTheDocumentInTheirOrder() throws Exception {
        List<Entry> path = path("pooled");
        Path file = TOP.resolve("testing/conformance/target/request-path.txt");
        Files.createDirectories(file.getParent());
        Files.write(file, path.stream().map(Entry::toString).toList());
        List<Entry> stations = stations();
        assertThat(stations)
                .as("the table under '%s' in docs/ARCHITECTURE.md", HEADING)
                .hasSizeGreaterThan(11);
        int at = 0;
        for (Entry station : stations) {
            int from = at;
            while (at < path.size()
                    && !(path.get(at).place().equals(station.place())
                            && path.get(at).thread().startsWith(station.thread()))) {
                at++;
            }
            if (at == path.size()) {
                fail("docs/ARCHITECTURE.md, '" + HEADING + "': the request does not pass " + station.place()
                        + " on a thread "
                        + station.thread() + "… after "
                        + (from == 0 ? "its beginning" : path.get(from - 1).place())
                        + "; the measured path is in " + file);
            }
            at++;
        }
    }

    @Test
    void aVeryShortRunStaysOnTheEventLoop() throws Exception {
        assertThat(path("inline")).extracting(Entry::thread).allMatch(name -> name.startsWith("nereid-io"));
    }
}
