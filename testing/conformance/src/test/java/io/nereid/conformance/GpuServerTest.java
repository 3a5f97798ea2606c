// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The plugin {@code cuda} of the built distribution against the simulated driver: the report of the start, the metrics,
 * and memory of a GPU that another process shares. It is skipped without a C compiler, and without the plugin's libraries in the local Maven repository.
 */
class GpuServerTest {
    private static final String FIRST = "{gpu_uuid=\"GPU-11010203-0405-0607-0809-0a0b0c0d0e0f\"} ";
    private static final String SECOND = "{gpu_uuid=\"GPU-22010203-0405-0607-0809-0a0b0c0d0e0f\"} ";

    @TempDir
    Path directory;

    private Path program;
    private final Map<String, String> environment = new HashMap<>();

    @BeforeEach
    void installThePlugin() throws Exception {
        program = BuiltDistribution.directory("the plugin cuda").resolve("bin/nereid");
        Files.createDirectories(directory.resolve("models"));
        environment.put("NEREID_PLUGIN_DIR", directory.resolve("plugins").toString());
        environment.put("NEREID_CDS", "off");
        environment.put("NEREID_JAVA_OPTS", "-XX:TieredStopAtLevel=1");
        environment.put("NEREID_MAVEN_REPOSITORY", "http://127.0.0.1:9/none");
        environment.put("XDG_CACHE_HOME", directory.resolve("cache").toString());
        environment.put("JAVA_HOME", System.getProperty("java.home"));
        String installed = run(program.toString(), "plugins", "install", "cuda");
        if (!installed.contains("cuda is installed in")) {
            System.err.println("GpuServerTest is SKIPPED: " + installed);
        }
        assumeTrue(installed.contains("cuda is installed in"), installed);
    }

    private String run(String... command) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return output + (process.waitFor() == 0 ? "" : " (failed)");
    }

    private static Map<String, String> metrics(ServerProcess server) throws Exception {
        HttpResponse<String> page = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(server.uri("/metrics")).build(), HttpResponse.BodyHandlers.ofString());
        assertThat(page.statusCode()).isEqualTo(200);
        return page.body()
                .lines()
                .filter(line ->
                        line.startsWith("nv_gpu") || line.startsWith("nv_energy") || line.startsWith("nv_pinned"))
                .collect(Collectors.toMap(
                        line -> line.substring(0, line.lastIndexOf(' ') + 1),
                        line -> line.substring(line.lastIndexOf(' ') + 1)));
    }

    private ServerProcess serve(String... options) throws Exception {
        return ServerProcess.serve(List.of(program.toString()), environment, directory.resolve("models"), options);
    }

    private static boolean compiles() throws InterruptedException {
        try {
            return new ProcessBuilder("gcc", "--version")
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            return false;
        }
    }

    /** Compiles the simulated driver, and has servers use it. Returns the file that makes its devices fail. */
    private Path simulate() throws Exception {
        boolean compiler = compiles();
        if (!compiler) {
            System.err.println("GpuServerTest is SKIPPED: there is no gcc, so there is no simulated driver");
        }
        assumeTrue(compiler, "gcc is not there");
        Path libraries = directory.resolve("simulated");
        Path faults = directory.resolve("faults");
        assertThat(run(
                        BuiltDistribution.top()
                                .resolve("testing/gpu/simulated/build.sh")
                                .toString(),
                        libraries.toString()))
                .isEmpty();
        environment.put("LD_LIBRARY_PATH", libraries.toString());
        environment.put("SIM_GPU_FAULTS", faults.toString());
        return faults;
    }

    @Test
    void theGpusOfASimulatedDriverAreReportedAndMeasured() throws Exception {
        Path faults = simulate();
        try (ServerProcess server = serve(
                "--metrics-interval-ms=1", "--pinned-memory-pool-byte-size=1048576", "--model-load-gpu-limit=5:0.5")) {
            assertThat(String.join("\n", server.output()))
                    .contains("GPUs: 2, driver 590.00.01, which is for CUDA 13.1; CUDA runtime 13.1")
                    .contains(
                            "GPU 0: Simulated GPU 24G, GPU-11010203-0405-0607-0809-0a0b0c0d0e0f, compute capability 8.6,"
                                    + " 25.8 GB, 25.7 GB free")
                    .contains("GPU 1: Simulated GPU 8G")
                    .contains("not used: its compute capability is 5.2, below 6.0")
                    .contains("limits for GPU 5 have no effect: there are 2 GPUs");
            Map<String, String> first = metrics(server);
            double energy = Double.parseDouble(String.valueOf(first.remove("nv_energy_consumption" + FIRST)));
            assertThat(energy).isPositive();
            first.remove("nv_energy_consumption" + SECOND);
            assertThat(first)
                    .containsOnly(
                            Map.entry("nv_gpu_utilization" + FIRST, "0.37"),
                            Map.entry("nv_gpu_utilization" + SECOND, "0.04"),
                            Map.entry("nv_gpu_memory_total_bytes" + FIRST, "25769803776"),
                            Map.entry("nv_gpu_memory_total_bytes" + SECOND, "8589934592"),
                            Map.entry("nv_gpu_memory_used_bytes" + FIRST, "104857600"),
                            Map.entry("nv_gpu_memory_used_bytes" + SECOND, "104857600"),
                            Map.entry("nv_gpu_power_usage" + FIRST, "61.5"),
                            Map.entry("nv_gpu_power_usage" + SECOND, "20.25"),
                            Map.entry("nv_gpu_power_limit" + FIRST, "300"),
                            Map.entry("nv_gpu_power_limit" + SECOND, "150"),
                            Map.entry("nv_pinned_memory_pool_total_bytes ", "1048576"),
                            Map.entry("nv_pinned_memory_pool_used_bytes ", "0"));
            // A device that is lost while the server runs has no metrics any more; the server and the other one go on.
            Files.writeString(faults, "0 lost\n1 used 1000\n");
            Map<String, String> lost = metrics(server);
            assertThat(lost)
                    .containsEntry("nv_gpu_memory_used_bytes" + SECOND, "104858600")
                    .doesNotContainKey("nv_gpu_memory_used_bytes" + FIRST);
        }
        try (ServerProcess server = serve("--allow-gpu-metrics=false")) {
            assertThat(metrics(server)).isEmpty();
        }
    }

    private static HttpRequest request(ServerProcess server, String path, String body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(server.uri("/v2" + path));
        return body.isEmpty()
                ? request.build()
                : request.POST(HttpRequest.BodyPublishers.ofString(body)).build();
    }

    private static String send(ServerProcess server, String path, String body) throws Exception {
        HttpResponse<String> answer =
                HttpClient.newHttpClient().send(request(server, path, body), HttpResponse.BodyHandlers.ofString());
        return answer.statusCode() + " " + answer.body();
    }

    private static String registration(String handle, int device, int bytes) {
        return "{\"raw_handle\":{\"b64\":\""
                + Base64.getEncoder().encodeToString(HexFormat.of().parseHex(handle)) + "\"},\"device_id\":" + device
                + ",\"byte_size\":" + bytes + "}";
    }

    private static String place(int offset) {
        return ",\"parameters\":{\"shared_memory_region\":\"g\",\"shared_memory_byte_size\":64,"
                + "\"shared_memory_offset\":" + offset + "}}";
    }

    /** Sixteen numbers of 32 bits, the first of which is given, as hexadecimal digits. */
    private static String numbers(int first, int step) {
        StringBuilder digits = new StringBuilder();
        for (int i = 0; i < 16; i++) {
            digits.append(HexFormat.of().toHexDigits(Integer.reverseBytes(first + i * step)));
        }
        return digits.toString();
    }

    @Test
    void anotherProcessSharesMemoryOfAGpu() throws Exception {
        Path faults = simulate();
        Path model = BuiltDistribution.top().resolve("examples/models/simple");
        try (Stream<Path> files = Files.walk(model)) {
            for (Path file : files.toList()) {
                Files.copy(file, directory.resolve("models/simple").resolve(model.relativize(file)));
            }
        }
        Process client = new ProcessBuilder(directory.resolve("simulated/share").toString(), "0", "256").start();
        try (ServerProcess server = serve("--allow-client-shm=true", "--metrics-interval-ms=1");
                BufferedReader answers = client.inputReader();
                Writer commands = client.outputWriter()) {
            String handle = answers.readLine();
            assertThat(send(server, "", "")).contains("\"system_shared_memory\",\"cuda_shared_memory\"");
            commands.write("set 0 " + numbers(0, 1) + numbers(5, 0) + "\n");
            commands.flush();
            assertThat(answers.readLine()).isEmpty();
            String region = "/cudasharedmemory/region/g/";
            assertThat(send(server, region + "register", registration(handle, 0, 256)))
                    .isEqualTo("200 ");
            assertThat(send(server, region + "status", ""))
                    .isEqualTo("200 [{\"name\":\"g\",\"device_id\":0,\"byte_size\":256}]");
            String infer = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"INT32\",\"shape\":[1,16]" + place(0)
                    + ",{\"name\":\"INPUT1\",\"datatype\":\"INT32\",\"shape\":[1,16]" + place(64)
                    + "],\"outputs\":[{\"name\":\"OUTPUT0\"" + place(128) + "]}";
            assertThat(send(server, "/models/simple/infer", infer))
                    .startsWith("200 ")
                    .doesNotContain("data\":");
            commands.write("get 128 64\n");
            commands.flush();
            assertThat(answers.readLine()).isEqualTo(numbers(5, 1));
            HttpResponse<String> page = HttpClient.newHttpClient()
                    .send(HttpRequest.newBuilder(server.uri("/metrics")).build(), HttpResponse.BodyHandlers.ofString());
            String copied = FIRST.replace("\"} ", "\",direction=");
            assertThat(page.body())
                    .contains("nereid_gpu_copies_total" + copied + "\"from_device\"} 2\n")
                    .contains("nereid_gpu_copied_bytes_total" + copied + "\"to_device\"} 64\n");

            // The only event loop serves other requests while a copy takes its time.
            Files.writeString(faults, "0 slow\n");
            CompletableFuture<HttpResponse<String>> slow = HttpClient.newHttpClient()
                    .sendAsync(request(server, "/models/simple/infer", infer), HttpResponse.BodyHandlers.ofString());
            for (int i = 0; i < 3; i++) {
                assertThat(send(server, "/health/live", "")).startsWith("200 ");
            }
            assertThat(slow.isDone()).isFalse();
            Files.writeString(faults, "");
            assertThat(slow.join().statusCode()).isEqualTo(200);

            assertThat(send(server, "/cudasharedmemory/region/other/register", registration(handle, 1, 4)))
                    .startsWith("400 ")
                    .contains("device 1 is not used: its compute capability is 5.2");
            assertThat(send(server, region + "unregister", "{}")).isEqualTo("200 ");
            client.destroy();
            client.waitFor();
            assertThat(send(server, region + "register", registration(handle, 0, 256)))
                    .startsWith("400 {\"error\":\"failed to register shared memory region: invalid args")
                    .contains("cudaErrorInvalidResourceHandle");
            Files.writeString(faults, "0 lost\n");
            assertThat(send(server, region + "register", registration(handle, 0, 256)))
                    .startsWith("503 {\"error\":\"device 0 is lost");
        } finally {
            client.destroyForcibly();
        }
    }

    @Test
    void aServerWithoutADriverRunsAndSaysWhatIsMissing() throws Exception {
        try (ServerProcess server = serve("--pinned-memory-pool-byte-size=1")) {
            String output = String.join("\n", server.output());
            assumeTrue(!output.contains("GPUs: "), "this machine has a driver");
            assertThat(output)
                    .contains("no GPU is used: cuda: NVIDIA's driver is not there: libcuda.so.1:")
                    .contains("--pinned-memory-pool-byte-size has no effect: no GPU is used");
            assertThat(metrics(server)).isEmpty();
            assertThat(send(server, "/cudasharedmemory/region/g/register", registration("00".repeat(64), 0, 4)))
                    .startsWith("501 ")
                    .contains("failed to register CUDA shared memory region: 'g', GPUs not supported");
        }
    }
}
