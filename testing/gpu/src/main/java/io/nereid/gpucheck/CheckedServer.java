// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A server in a process of its own, whose class path is the property {@code nereid.check.server}; its plugins are those of
 * {@code NEREID_PLUGIN_DIR}, with the backend of the check among them. Its requests are those of any client. Thread-safe.
 */
final class CheckedServer implements AutoCloseable {
    private static final Pattern ADDRESS = Pattern.compile("listening on https?://127\\.0\\.0\\.1:(\\d+)");
    private static final int KEPT_LINES = 30;

    private final Process process;
    private final String address;
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private CheckedServer(Process process, String address) {
        this.process = process;
        this.address = address;
    }

    /** Starts a server, and waits until its models are loaded. Its log goes to a file. */
    static CheckedServer start(Path models, Path log, List<String> options) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of("-XX:MaxDirectMemorySize=4g", "-cp", System.getProperty("nereid.check.server", "lib/*")));
        command.addAll(List.of("io.nereid.app.Main", "serve", models.toString(), "--port", "0"));
        command.addAll(options);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        Process process = builder.start();
        // Also when this program is ended from outside.
        Runtime.getRuntime().addShutdownHook(Threads.named("end").newThread(process::destroy));
        Deque<String> last = new ArrayDeque<>();
        BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            last.add(line);
            if (last.size() > KEPT_LINES) {
                last.remove();
            }
            Matcher found = ADDRESS.matcher(line);
            if (found.find()) {
                Threads.named("server output").newThread(() -> copy(lines, log)).start();
                return new CheckedServer(process, "http://127.0.0.1:" + found.group(1));
            }
        }
        throw ServingException.of(ErrorCode.INTERNAL, "the server did not start:\n" + String.join("\n", last));
    }

    /** Writes the rest of the log, so that the server never waits for its reader. */
    private static void copy(BufferedReader lines, Path log) {
        try (lines;
                Writer to = Files.newBufferedWriter(log)) {
            long unused = lines.transferTo(to);
        } catch (IOException e) {
            // The process has ended.
        }
    }

    /** Sends a request without tensors; throws for another status than 200. */
    String call(String path, String body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address + path));
        if (!body.isEmpty()) {
            request.POST(HttpRequest.BodyPublishers.ofString(body));
        }
        return new String(send(request.build(), path).body(), StandardCharsets.UTF_8);
    }

    private HttpResponse<byte[]> send(HttpRequest request, String path) {
        try {
            HttpResponse<byte[]> response = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (response.statusCode() != 200) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        path + ": " + response.statusCode() + " "
                                + new String(response.body(), StandardCharsets.UTF_8));
            }
            return response;
        } catch (IOException e) {
            throw ServingException.wrap(ErrorCode.UNAVAILABLE, path + ": " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.wrap(ErrorCode.CANCELLED, path + " was interrupted", e);
        }
    }

    /** Runs a model with rows of numbers; V2 with binary tensors. */
    float[] infer(String model, int width, float[] rows) {
        String head =
                "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[" + rows.length / width + "," + width
                        + "],\"parameters\":{\"binary_data_size\":" + 4 * rows.length
                        + "}}],\"outputs\":[{\"name\":\"OUT\",\"parameters\":{\"binary_data\":true}}]}";
        byte[] json = head.getBytes(StandardCharsets.UTF_8);
        ByteBuffer body = ByteBuffer.allocate(json.length + 4 * rows.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put(json);
        body.asFloatBuffer().put(rows);
        String path = "/v2/models/" + model + "/infer";
        HttpResponse<byte[]> response = send(
                HttpRequest.newBuilder(URI.create(address + path))
                        .header("Inference-Header-Content-Length", String.valueOf(json.length))
                        .POST(HttpRequest.BodyPublishers.ofByteArray(body.array()))
                        .build(),
                path);
        int skipped = Integer.parseInt(
                response.headers().firstValue("Inference-Header-Content-Length").orElseThrow());
        float[] out = new float[rows.length];
        ByteBuffer.wrap(response.body(), skipped, response.body().length - skipped)
                .order(ByteOrder.LITTLE_ENDIAN)
                .asFloatBuffer()
                .get(out);
        return out;
    }

    /** The value of the first metric whose line starts so. */
    double metric(String start) {
        return call("/metrics", "")
                .lines()
                .filter(line -> line.startsWith(start))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .findFirst()
                .orElseThrow(() -> ServingException.of(ErrorCode.NOT_FOUND, "the server has no metric " + start));
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
