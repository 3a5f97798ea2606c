// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import io.nereid.control.core.Workload.Port;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A Kubernetes container probe: {@code httpGet}, {@code tcpSocket}, {@code exec} or {@code grpc}. Immutable.
 *
 * @param spec the probe's specification; missing for the default, a TCP connection to the first port
 * @param initialDelay time from the start of the process to the first probe
 * @param period time between two probes
 * @param timeout time limit of one probe
 * @param failures {@code failureThreshold}: consecutive failures that count as one
 * @param successes {@code successThreshold}: consecutive successes that count as one
 */
record Probe(JsonNode spec, Duration initialDelay, Duration period, Duration timeout, int failures, int successes) {
    private static final String HOST = "127.0.0.1";
    private static final byte[] PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /** Reads a specification; without one the probe is a TCP connection every half second. */
    static Probe of(@Nullable JsonNode spec) {
        if (spec == null || spec.isNull() || spec.isEmpty()) {
            return new Probe(
                    MissingNode.getInstance(), Duration.ZERO, Duration.ofMillis(500), Duration.ofSeconds(1), 3, 1);
        }
        return new Probe(
                spec,
                Duration.ofSeconds(Math.max(0, spec.path("initialDelaySeconds").asInt(0))),
                Duration.ofSeconds(Math.max(1, spec.path("periodSeconds").asInt(10))),
                Duration.ofSeconds(Math.max(1, spec.path("timeoutSeconds").asInt(1))),
                Math.max(1, spec.path("failureThreshold").asInt(3)),
                Math.max(1, spec.path("successThreshold").asInt(1)));
    }

    /** Runs the probe. Blocks for up to {@link #timeout}. Returns null on success, else the reason of the failure. */
    @Nullable String ask(ProcessSpec process, List<Port> ports) {
        try {
            if (spec.has("httpGet")) {
                return http(spec.path("httpGet"), process, ports);
            }
            if (spec.has("exec")) {
                return exec(spec.path("exec"), process);
            }
            if (spec.has("grpc")) {
                return grpc(spec.path("grpc"), process, ports);
            }
            JsonNode port = spec.path("tcpSocket").path("port");
            int number = port.isMissingNode()
                    ? (process.httpPort() == 0 ? process.grpcPort() : process.httpPort())
                    : port(port, process, ports);
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(host(spec.path("tcpSocket")), number), millis());
                return null;
            }
        } catch (IOException | IllegalArgumentException e) {
            return kind() + " probe failed: " + e.getMessage();
        }
    }

    private String kind() {
        return spec.has("httpGet") ? "HTTP" : spec.has("exec") ? "exec" : spec.has("grpc") ? "gRPC" : "TCP";
    }

    private int millis() {
        return (int) timeout.toMillis();
    }

    private static String host(JsonNode spec) {
        String host = spec.path("host").asText("");
        return host.isEmpty() ? HOST : host;
    }

    private static int port(JsonNode port, ProcessSpec process, List<Port> ports) {
        int number = port.asInt(0);
        if (number == 0) {
            String name = port.asText("");
            number = ports.stream()
                    .filter(p -> name.equals(p.name()))
                    .map(Port::number)
                    .findFirst()
                    .orElseThrow(() -> new IllegalArgumentException("the container has no port '" + name + "'"));
        }
        Integer assigned = process.ports().get(number);
        // A process without declared ports listens on its assigned port, whatever port its probe names.
        return assigned != null ? assigned : ports.isEmpty() && process.httpPort() != 0 ? process.httpPort() : number;
    }

    private @Nullable String http(JsonNode get, ProcessSpec process, List<Port> ports) throws IOException {
        String path = get.path("path").asText("/");
        String scheme = get.path("scheme").asText("HTTP").equalsIgnoreCase("HTTPS") ? "https" : "http";
        URI uri = URI.create(scheme + "://" + host(get) + ":" + port(get.path("port"), process, ports)
                + (path.startsWith("/") ? path : "/" + path));
        if (!(uri.toURL().openConnection(java.net.Proxy.NO_PROXY) instanceof HttpURLConnection connection)) {
            return "HTTP probe failed: " + uri;
        }
        connection.setConnectTimeout(millis());
        connection.setReadTimeout(millis());
        connection.setInstanceFollowRedirects(false);
        connection.setRequestProperty("User-Agent", "kube-probe/nereid");
        connection.setRequestProperty("Connection", "close");
        get.path("httpHeaders")
                .forEach(h -> connection.setRequestProperty(
                        h.path("name").asText(), h.path("value").asText()));
        try {
            int status = connection.getResponseCode();
            return status >= 200 && status < 400 ? null : "HTTP probe failed with statuscode: " + status;
        } finally {
            connection.disconnect();
        }
    }

    private @Nullable String exec(JsonNode exec, ProcessSpec process) throws IOException {
        List<String> command = new ArrayList<>();
        exec.path("command").forEach(c -> command.add(ProcessSpecBuilder.expand(c.asText(), process.environment(), 1)));
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        builder.environment().clear();
        builder.environment().putAll(process.environment());
        Path directory = process.workingDirectory();
        if (directory != null) {
            builder.directory(directory.toFile());
        }
        java.lang.Process child = builder.start();
        try {
            if (!child.waitFor(timeout.toMillis(), TimeUnit.MILLISECONDS)) {
                child.descendants().forEach(ProcessHandle::destroyForcibly);
                child.destroyForcibly();
                return "exec probe took longer than " + timeout.toSeconds() + " s: " + String.join(" ", command);
            }
        } catch (InterruptedException e) {
            child.destroyForcibly();
            Thread.currentThread().interrupt();
            return "exec probe was interrupted";
        }
        return child.exitValue() == 0
                ? null
                : "exec probe exited with " + child.exitValue() + ": " + String.join(" ", command);
    }

    // ---- gRPC: one call of grpc.health.v1.Health/Check over HTTP/2 without TLS. One request on stream 1 needs only a
    // handful of frames (types: 0 DATA, 1 HEADERS, 3 RST_STREAM, 4 SETTINGS, 7 GOAWAY), hence no HTTP/2 client. ----

    private @Nullable String grpc(JsonNode grpc, ProcessSpec process, List<Port> ports) throws IOException {
        int port = port(grpc.path("port"), process, ports);
        byte[] service = grpc.path("service").asText("").getBytes(StandardCharsets.UTF_8);
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), millis());
            socket.setSoTimeout(millis());
            OutputStream out = socket.getOutputStream();
            ByteArrayOutputStream b = new ByteArrayOutputStream();
            b.writeBytes(PREFACE);
            frame(b, 4, 0, 0, new byte[0]);
            frame(b, 1, 4, 1, headers(HOST + ":" + port));
            byte[] body = new byte[5 + (service.length == 0 ? 0 : 2 + service.length)];
            body[4] = (byte) (body.length - 5);
            if (service.length > 0) {
                body[5] = 0x0a;
                body[6] = (byte) service.length;
                System.arraycopy(service, 0, body, 7, service.length);
            }
            frame(b, 0, 1, 1, body);
            out.write(b.toByteArray());
            out.flush();
            return answer(new DataInputStream(socket.getInputStream()), out);
        }
    }

    private static @Nullable String answer(DataInputStream in, OutputStream out) throws IOException {
        while (true) {
            int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
            int type = in.readUnsignedByte();
            int flags = in.readUnsignedByte();
            int stream = in.readInt() & Integer.MAX_VALUE;
            if (length > 1 << 20) {
                return "gRPC probe failed: the server does not speak HTTP/2";
            }
            byte[] payload = in.readNBytes(length);
            if (type == 4 && (flags & 1) == 0) {
                ByteArrayOutputStream ack = new ByteArrayOutputStream();
                frame(ack, 4, 1, 0, new byte[0]);
                out.write(ack.toByteArray());
                out.flush();
            } else if (type == 0 && stream == 1 && payload.length >= 5) {
                // HealthCheckResponse{ status = 1 } with SERVING = 1
                boolean serving = payload.length >= 7 && payload[5] == 8 && payload[6] == 1;
                return serving ? null : "gRPC probe failed: the service is not SERVING";
            } else if (stream == 1 && (type == 3 || (type == 1 && (flags & 1) != 0))) {
                return "gRPC probe failed: the server does not implement grpc.health.v1.Health,"
                        + " or not for this service";
            } else if (type == 7) {
                return "gRPC probe failed: the connection was closed";
            }
        }
    }

    private static void frame(ByteArrayOutputStream b, int type, int flags, int stream, byte[] payload) {
        b.write(payload.length >> 16);
        b.write(payload.length >> 8);
        b.write(payload.length);
        b.write(type);
        b.write(flags);
        b.write(0);
        b.write(0);
        b.write(0);
        b.write(stream);
        b.writeBytes(payload);
    }

    private static byte[] headers(String authority) {
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        for (Map.Entry<String, String> h : List.of(
                Map.entry(":method", "POST"),
                Map.entry(":scheme", "http"),
                Map.entry(":path", "/grpc.health.v1.Health/Check"),
                Map.entry(":authority", authority),
                Map.entry("content-type", "application/grpc"),
                Map.entry("te", "trailers"))) {
            // HPACK: a literal field without indexing; name and value are not Huffman coded.
            b.write(0);
            b.write(h.getKey().length());
            b.writeBytes(h.getKey().getBytes(StandardCharsets.US_ASCII));
            b.write(h.getValue().length());
            b.writeBytes(h.getValue().getBytes(StandardCharsets.US_ASCII));
        }
        return b.toByteArray();
    }
}
