// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Units;
import io.nereid.device.Device;
import io.nereid.device.DeviceDriverProvider;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceMemory;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.DoubleStream;
import org.bytedeco.cuda.cudart.cudaIpcMemHandle_t;
import org.bytedeco.cuda.global.cudart;

/**
 * Checks a machine with a GPU: starts a server with {@link DenseBackend}, uses it as clients do, and prints a table with
 * a row for each check. Exit status 0 when all have passed, 1 when one has not, 77 without a GPU. With
 * {@code --simulated} the models are small, and figures of speed are printed and not judged.
 *
 * <pre>{@code
 * java -Dnereid.check.server='lib/*' -cp 'lib/*:plugins/gpucheck/*' io.nereid.gpucheck.GpuCheck FOLDER [--simulated]
 * }</pre>
 */
public final class GpuCheck {
    private static final int SKIPPED = 77;
    private static final long MIB = 1 << 20;
    private static final DenseShape SMALL = new DenseShape(4, 128, 3);
    private static final String USED = "nv_gpu_memory_used_bytes";

    private final PrintStream out;
    private final boolean simulated;
    private final Path folder;
    private final Devices devices;
    private final Device gpu;
    private final DenseShape large;
    private final int batch;
    private final List<String> rows = new ArrayList<>();
    private boolean failed;

    private GpuCheck(PrintStream out, boolean simulated, Path folder, Devices devices) {
        this.out = out;
        this.simulated = simulated;
        this.folder = folder;
        this.devices = devices;
        this.gpu = devices.all().get(0);
        this.large = simulated ? new DenseShape(2, 64, 1) : new DenseShape(32, 4096, 4);
        this.batch = simulated ? 4 : 64;
    }

    /** Runs the check; see the class. */
    public static void main(String... arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.exit(run(out, arguments));
    }

    static int run(PrintStream out, String... arguments) throws IOException {
        boolean simulated = List.of(arguments).contains("--simulated");
        if (arguments.length == 0 || arguments[0].startsWith("--")) {
            out.println("usage: GpuCheck FOLDER [--simulated]");
            return 2;
        }
        String why = "no driver for GPUs is on the class path";
        for (DeviceDriverProvider provider : ServiceLoader.load(DeviceDriverProvider.class)) {
            // Beyond the pools of a server, since the plain loop has its weights here.
            DeviceLimits limits = new DeviceLimits(2048 * MIB, Map.of(0, 8192 * MIB), Map.of(), 6, 0);
            try (Devices devices = new Devices(provider.open(), limits)) {
                String missing = Cuda.missing();
                if (missing == null) {
                    return new GpuCheck(out, simulated, Path.of(arguments[0]), devices).all();
                }
                why = missing + " (install cuBLAS and NVRTC of CUDA 13, or add their folder to LD_LIBRARY_PATH)";
            } catch (ServingException e) {
                if (e.code() != ErrorCode.UNAVAILABLE && e.code() != ErrorCode.FAILED_PRECONDITION) {
                    throw e;
                }
                why = e.describe();
            }
        }
        out.println("SKIPPED, nothing was checked: " + why);
        return SKIPPED;
    }

    private int all() throws IOException {
        out.println("GPU 0: " + gpu.name() + ", compute capability " + gpu.capability() + ", "
                + Units.formatBytes(gpu.totalBytes()) + "; " + devices.driverVersion()
                + (simulated ? "; SIMULATED: figures of speed say nothing" : ""));
        model("cpu", SMALL, 8, "instance_group [{ kind: KIND_CPU count: 1 }]");
        model("gpu", SMALL, 8, "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]\ndynamic_batching {}");
        model("tail", SMALL, 8, "instance_group [{ kind: KIND_GPU count: 1 gpus: [0] }]");
        ensemble("pair", "gpu", "tail");
        model("one", large, batch, "instance_group [{ kind: KIND_GPU count: 1 gpus: [0] }]");
        model("two", large, batch, "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]");
        model("twin", large, batch, "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]");
        List<String> options = new ArrayList<>(List.of(
                "--model-control-mode=explicit",
                "--allow-client-shm=true",
                "--metrics-interval-ms=1",
                "--cuda-memory-pool-byte-size=0:8589934592"));
        for (String name : List.of("cpu", "gpu", "tail", "pair", "one", "two", "twin")) {
            options.add("--load-model=" + name);
        }
        try (CheckedServer server =
                CheckedServer.start(folder.resolve("models"), folder.resolve("server.log"), options)) {
            check("metrics of NVML", () -> metrics(server));
            check("answers, greatest difference to the CPU", () -> answers(server));
            check("memory shared by this process, difference", () -> shared(server));
            check("two dense members in an ensemble: copies in and out per request", () -> ensemble(server));
            check("memory after loads and unloads", () -> flat(server));
            check("pinned copies beside the link", this::copies);
            double[] loop = new double[2];
            check("a plain loop of one thread and of two, runs/s", () -> {
                loop[0] = loop(1);
                loop[1] = loop(2);
                return row(true, text("%.1f, %.1f: overlap %.2f", loop[0], loop[1], loop[1] / loop[0]), "figures");
            });
            check("throughput beside the plain loop", () -> throughput(server, loop[1]));
            check("copy and compute of two instances beside one", () -> overlap(server));
            check("two models, share of the first", () -> shares(server));
        }
        out.println();
        out.println("| check | measured | expected | |");
        out.println("|---|---|---|---|");
        rows.forEach(out::println);
        return failed ? 1 : 0;
    }

    private interface Check {
        String[] run() throws IOException;
    }

    private static String text(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }

    private static String[] row(boolean passed, String measured, String expected) {
        return new String[] {measured, expected, passed ? "passed" : "FAILED"};
    }

    /** A figure of speed, which a simulated GPU does not have. */
    private String[] speed(boolean passed, String measured, String expected) {
        return simulated ? new String[] {measured, expected, "not judged"} : row(passed, measured, expected);
    }

    private void check(String name, Check check) throws IOException {
        out.println(name + " ...");
        String[] row;
        try {
            row = check.run();
        } catch (ServingException e) {
            row = row(false, e.describe().lines().findFirst().orElse(""), "");
        }
        failed |= row[2].equals("FAILED");
        rows.add("| " + name + " | " + row[0] + " | " + row[1] + " | " + row[2] + " |");
    }

    private void model(String name, DenseShape shape, int most, String rest) throws IOException {
        Path version =
                Files.createDirectories(folder.resolve("models").resolve(name).resolve("1"));
        Files.writeString(version.resolve("model.dense"), shape.text());
        Files.writeString(
                folder.resolve("models").resolve(name).resolve("config.pbtxt"),
                "backend: \"dense\"\nmax_batch_size: " + most + "\n" + rest + "\n");
    }

    /** Two models of the small shape, one after the other. */
    private void ensemble(String name, String first, String second) throws IOException {
        Path directory = folder.resolve("models").resolve(name);
        Path unused = Files.createDirectories(directory.resolve("1"));
        String tensor = "{ name: \"%s\" data_type: TYPE_FP32 dims: [" + SMALL.width() + "] }\n";
        String step = "{ model_name: \"%s\" model_version: -1 input_map { key: \"IN\" value: \"%s\" }"
                + " output_map { key: \"OUT\" value: \"%s\" } }";
        Files.writeString(
                directory.resolve("config.pbtxt"),
                "platform: \"ensemble\"\nmax_batch_size: 8\ninput " + text(tensor, "IN") + "output "
                        + text(tensor, "OUT") + "ensemble_scheduling { step [" + text(step, first, "IN", "between")
                        + ", " + text(step, second, "between", "OUT") + "] }\n");
    }

    /** The tensor between the members stays on the GPU. */
    private String[] ensemble(CheckedServer server) {
        int requests = 10;
        float[] in = DenseShape.numbers(17, 3 * SMALL.width(), 1);
        float[] expected = server.infer("cpu", SMALL.width(), server.infer("cpu", SMALL.width(), in));
        double most = difference(expected, server.infer("pair", SMALL.width(), in));
        double[] before = {copied(server, "to_device"), copied(server, "from_device")};
        for (int i = 0; i < requests; i++) {
            most = Math.max(most, difference(expected, server.infer("pair", SMALL.width(), in)));
        }
        double to = (copied(server, "to_device") - before[0]) / requests;
        double from = (copied(server, "from_device") - before[1]) / requests;
        return row(
                to == 1 && from == 1 && most <= 1e-3,
                text("%.1f and %.1f, difference %.1e", to, from, most),
                "1 and 1, at most 1e-3");
    }

    private double copied(CheckedServer server, String direction) {
        return server.metric(
                "nereid_gpu_copies_total{gpu_uuid=\"" + gpu.uuid() + "\",direction=\"" + direction + "\"}");
    }

    private String[] metrics(CheckedServer server) {
        double total = server.metric("nv_gpu_memory_total_bytes");
        double used = server.metric(USED);
        double power = server.metric("nv_gpu_power_usage");
        double busy = server.metric("nv_gpu_utilization");
        boolean right = Math.abs(total - gpu.totalBytes()) < 0.05 * gpu.totalBytes()
                && used > 0
                && used < total
                && power > 0
                && busy >= 0
                && busy <= 1;
        return row(
                right,
                text("%.1f of %.1f GB used, %.0f W, utilization %.2f", used / 1e9, total / 1e9, power, busy),
                "within the GPU's");
    }

    private static double difference(float[] one, float[] other) {
        double most = 0;
        for (int i = 0; i < one.length; i++) {
            double difference = Math.abs(one[i] - other[i]);
            most = Double.isNaN(difference) ? Double.POSITIVE_INFINITY : Math.max(most, difference);
        }
        return most;
    }

    private String[] answers(CheckedServer server) {
        double most = 0;
        double largest = 0;
        for (int count : new int[] {1, 3, 8}) {
            float[] in = DenseShape.numbers(100 + count, count * SMALL.width(), 1);
            float[] cpu = server.infer("cpu", SMALL.width(), in);
            most = Math.max(most, difference(cpu, server.infer("gpu", SMALL.width(), in)));
            largest = Math.max(largest, difference(cpu, new float[cpu.length]));
        }
        return row(most <= 1e-3 && largest > 0.1, text("%.1e of numbers up to %.1f", most, largest), "at most 1e-3");
    }

    /** This process has the memory, and the server computes from it and into it. */
    private String[] shared(CheckedServer server) {
        int numbers = 8 * SMALL.width();
        int bytes = 4 * numbers;
        float[] in = DenseShape.numbers(7, numbers, 1);
        MemoryPlacement place = MemoryPlacement.device(0);
        try (DeviceMemory memory = devices.allocate(place, 2L * bytes);
                DeviceMemory host = devices.allocate(MemoryPlacement.PINNED, 2L * bytes);
                cudaIpcMemHandle_t handle = new cudaIpcMemHandle_t()) {
            floats(host).put(in);
            memory.copyFrom(host);
            Cuda.select(0);
            Cuda.check(cudart.cudaIpcGetMemHandle(handle, new Cuda.Address(memory.address())), "cudaIpcGetMemHandle");
            byte[] raw = new byte[cudart.CUDA_IPC_HANDLE_SIZE];
            for (int i = 0; i < raw.length; i++) {
                raw[i] = handle.reserved(i);
            }
            String region = "/v2/cudasharedmemory/region/check/";
            String unused = server.call(
                    region + "register",
                    "{\"raw_handle\":{\"b64\":\"" + Base64.getEncoder().encodeToString(raw)
                            + "\"},\"device_id\":0,\"byte_size\":" + 2 * bytes + "}");
            String shape = "\"datatype\":\"FP32\",\"shape\":[8," + SMALL.width() + "],";
            unused = server.call(
                    "/v2/models/gpu/infer",
                    "{\"inputs\":[{\"name\":\"IN\"," + shape + place(0, bytes) + "],\"outputs\":[{\"name\":\"OUT\","
                            + place(bytes, bytes) + "]}");
            unused = server.call(region + "unregister", "{}");
            host.copyFrom(memory);
            float[] computed = new float[numbers];
            floats(host).position(numbers).get(computed);
            double most = difference(server.infer("cpu", SMALL.width(), in), computed);
            return row(most <= 1e-3, text("%.1e", most), "at most 1e-3");
        }
    }

    private static String place(int offset, int bytes) {
        return "\"parameters\":{\"shared_memory_region\":\"check\",\"shared_memory_byte_size\":" + bytes
                + ",\"shared_memory_offset\":" + offset + "}}";
    }

    private static FloatBuffer floats(DeviceMemory host) {
        return host.view().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    }

    private String[] flat(CheckedServer server) {
        int cycles = simulated ? 5 : 1000;
        int first = simulated ? 2 : 20;
        double before = 0;
        for (int i = 0; i < cycles + first; i++) {
            if (i == first) {
                before = server.metric(USED);
            }
            String unused = server.call("/v2/repository/models/gpu/unload", "{}");
            long end = Clock.system().nanos() + 10_000_000_000L;
            while (server.call("/v2/repository/index", "{\"ready\":true}").contains("\"gpu\"")) {
                if (Clock.system().nanos() > end) {
                    return row(false, "not unloaded after 10 s", "");
                }
            }
            unused = server.call("/v2/repository/models/gpu/load", "{}");
        }
        double more = server.metric(USED) - before;
        return row(
                Math.abs(more) <= 16 * MIB,
                text("%+.1f MB after %d", more / 1e6, cycles),
                "at most " + Units.formatBytes(16 * MIB) + " more");
    }

    /** How often actions run each second in so many threads; each thread runs its action at least once. */
    private double rate(int threads, double seconds, Runnable... actions) {
        AtomicLong done = new AtomicLong();
        long start = Clock.system().nanos();
        long end = start + (long) (seconds * 1e9);
        during(threads, () -> Clock.system().nanos() < end, done, actions);
        return done.get() / ((Clock.system().nanos() - start) / 1e9);
    }

    private static void during(int threads, BooleanSupplier going, AtomicLong done, Runnable... actions) {
        List<Thread> all = new ArrayList<>();
        List<RuntimeException> failures = Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < threads; i++) {
            Runnable action = actions[i % actions.length];
            Thread thread = Threads.named("load").newThread(() -> {
                try {
                    do {
                        action.run();
                        done.incrementAndGet();
                    } while (going.getAsBoolean());
                } catch (RuntimeException e) {
                    failures.add(e);
                }
            });
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw ServingException.wrap(ErrorCode.CANCELLED, "interrupted", e);
            }
        }
        if (!failures.isEmpty()) {
            throw failures.get(0);
        }
    }

    private double seconds() {
        return simulated ? 0.05 : 5;
    }

    /** Copies by the account of devices beside the same calls of the runtime alone. */
    private String[] copies() {
        long bytes = simulated ? MIB : 256 * MIB;
        try (DeviceMemory pinned = devices.allocate(MemoryPlacement.PINNED, bytes);
                DeviceMemory memory = devices.allocate(MemoryPlacement.device(0), bytes)) {
            double[] ratio = new double[2];
            double[] link = new double[2];
            for (int way = 0; way < 2; way++) {
                DeviceMemory to = way == 0 ? memory : pinned;
                DeviceMemory from = way == 0 ? pinned : memory;
                int kind = way == 0 ? cudart.cudaMemcpyHostToDevice : cudart.cudaMemcpyDeviceToHost;
                Runnable plain = () -> {
                    Cuda.select(0);
                    Cuda.check(
                            cudart.cudaMemcpyAsync(
                                    new Cuda.Address(to.address()),
                                    new Cuda.Address(from.address()),
                                    bytes,
                                    kind,
                                    null),
                            "cudaMemcpyAsync");
                    Cuda.check(cudart.cudaStreamSynchronize(null), "cudaStreamSynchronize");
                };
                plain.run();
                link[way] = rate(1, seconds() / 2, plain) * bytes / 1e9;
                ratio[way] = rate(1, seconds() / 2, () -> to.copyFrom(from)) * bytes / 1e9 / link[way];
            }
            return speed(
                    ratio[0] >= 0.8 && ratio[1] >= 0.8,
                    text(
                            "to the GPU %.0f %% of %.1f GB/s, back %.0f %% of %.1f GB/s",
                            100 * ratio[0], link[0], 100 * ratio[1], link[1]),
                    "at least 80 %");
        }
    }

    /** The runs of a loop without a server, as many at once as there are threads. */
    private double loop(int threads) {
        try (DenseWeights weights = new DenseWeights(devices, gpu, large)) {
            List<DenseRunner> runners = new ArrayList<>();
            Runnable[] actions = new Runnable[threads];
            for (int i = 0; i < threads; i++) {
                DenseRunner runner = new DenseRunner(devices, weights, batch);
                runners.add(runner);
                floats(runner.memory()).put(input());
                actions[i] = () -> runner.run(batch);
                runner.run(batch);
            }
            double runs = rate(threads, seconds(), actions);
            runners.forEach(DenseRunner::close);
            return runs;
        }
    }

    private static FloatBuffer floats(java.nio.ByteBuffer view) {
        return view.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    }

    private float[] input() {
        return DenseShape.numbers(11, batch * large.width(), 1);
    }

    private double served(CheckedServer server, String model, int threads, double seconds) {
        float[] in = input();
        Runnable request = () -> {
            float[] unused = server.infer(model, large.width(), in);
        };
        request.run();
        return rate(threads, seconds, request);
    }

    private String[] throughput(CheckedServer server, double loop) {
        double best = DoubleStream.of(served(server, "two", 8, seconds()), served(server, "two", 8, seconds()))
                .max()
                .orElse(0);
        return speed(best >= 0.95 * loop, text("%.1f runs/s, %.3f of the loop", best, best / loop), "at least 0.95");
    }

    private String[] overlap(CheckedServer server) {
        double one = served(server, "one", 8, seconds());
        double two = served(server, "two", 8, seconds());
        return speed(two >= 0.98 * one, text("%.1f beside %.1f runs/s: %.2f", two, one, two / one), "not fewer (0.98)");
    }

    private String[] shares(CheckedServer server) {
        float[] in = input();
        AtomicLong first = new AtomicLong();
        AtomicLong second = new AtomicLong();
        double unusedRate = rate(
                8,
                2 * seconds(),
                () -> {
                    float[] unused = server.infer("two", large.width(), in);
                    first.incrementAndGet();
                },
                () -> {
                    float[] unused = server.infer("twin", large.width(), in);
                    second.incrementAndGet();
                });
        double share = first.get() / (double) Math.max(1, first.get() + second.get());
        return speed(share >= 0.45 && share <= 0.55, text("%.3f", share), "0.45 to 0.55");
    }
}
