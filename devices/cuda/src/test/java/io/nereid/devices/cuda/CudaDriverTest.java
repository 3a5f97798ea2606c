// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The binding against a simulated driver, each time in a process of its own. It is skipped without a C compiler. */
class CudaDriverTest {
    private static final String FIRST = "GPU-11010203-0405-0607-0809-0a0b0c0d0e0f";
    private static final String SECOND = "GPU-22010203-0405-0607-0809-0a0b0c0d0e0f";

    @TempDir
    private static Path directory;

    private static Path libraries;

    @BeforeAll
    static void compile() throws IOException, InterruptedException {
        libraries = directory.resolve("simulated");
        Path script = Path.of("../../testing/gpu/simulated/build.sh").toAbsolutePath();
        boolean compiler;
        try {
            compiler = new ProcessBuilder("gcc", "--version")
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            compiler = false;
        }
        if (!compiler) {
            System.err.println("CudaDriverTest is SKIPPED: there is no gcc, so there is no simulated driver");
        }
        assumeTrue(compiler, "gcc is not there");
        assertEquals(
                0,
                new ProcessBuilder(script.toString(), libraries.toString())
                        .inheritIO()
                        .start()
                        .waitFor());
    }

    @Test
    void devicesAreFoundAndTheirMemoryIsUsedUntilTheyAreLost() throws IOException, InterruptedException {
        Path faults = directory.resolve("faults");
        List<String> lines = run(libraries, Map.of("SIM_GPU_FAULTS", faults.toString()), faults.toString());
        assertEquals(
                List.of(
                        "version driver 590.00.01, which is for CUDA 13.1; CUDA runtime 13.1",
                        "Device[ordinal=0, uuid=" + FIRST
                                + ", name=Simulated GPU 24G, major=8, minor=6, totalBytes=25769803776, mig=null] USABLE",
                        "Device[ordinal=1, uuid=" + SECOND
                                + ", name=Simulated GPU 8G, major=5, minor=2, totalBytes=8589934592, mig=null] UNSUPPORTED",
                        "copied 123456789abcdef0",
                        "back 123456789abcdef0",
                        "driver counts 1048584",
                        "account 1048584 8",
                        "beyond the pool: RESOURCE_EXHAUSTED cannot allocate 104.9 MB of device 0 memory: 103.8 MB of 104.9 MB"
                                + " are free",
                        "beyond the pinned pool: RESOURCE_EXHAUSTED cannot allocate 3.1 MB of pinned memory: 2.1 MB of 2.1 MB"
                                + " are free",
                        "unsupported: FAILED_PRECONDITION device 1 is not used: its compute capability is 5.2, below 6.0",
                        "no device: INVALID_ARGUMENT there is no device 2",
                        "out of memory: RESOURCE_EXHAUSTED cannot allocate 1.0 MB of device 0 memory: cudaMalloc:"
                                + " cudaErrorMemoryAllocation (2), out of memory",
                        "account 1048584 USABLE",
                        "admitted: done",
                        "too large: RESOURCE_EXHAUSTED model 'm' does not fit into the memory of device 0: it needs 26.8 GB,"
                                + " and 25.7 GB of 25.8 GB are free",
                        "over the limit: UNAVAILABLE can not create model 'm': memory limit set for KIND_GPU 0 has"
                                + " exceeded, model loading is rejected: 14.1 GB of 25.8 GB are used, and the limit is 12.9 GB",
                        "lost: UNAVAILABLE device 0 is lost: cudaSetDevice: cudaErrorLaunchFailure (719), unspecified"
                                + " launch failure",
                        "state DeviceState[status=LOST, reason=cudaSetDevice: cudaErrorLaunchFailure (719), unspecified"
                                + " launch failure]",
                        "stays lost: UNAVAILABLE device 0 is lost: cudaSetDevice: cudaErrorLaunchFailure (719),"
                                + " unspecified launch failure",
                        "reading null",
                        "other UNSUPPORTED 8589934592",
                        "account 0 0"),
                lines);
    }

    @Test
    void anUncorrectableErrorOfTheMemoryEndsTheUseOfADevice() throws IOException, InterruptedException {
        Path faults = directory.resolve("ecc");
        List<String> lines = run(libraries, Map.of("SIM_GPU_FAULTS", faults.toString()), faults.toString());
        assertTrue(
                lines.contains(
                        "lost: UNAVAILABLE device 0 is lost: its memory has an uncorrectable error: cudaSetDevice:"
                                + " cudaErrorECCUncorrectable (214), uncorrectable ECC error encountered"),
                () -> String.join("\n", lines));
        assertEquals("account 0 0", lines.get(lines.size() - 1));
    }

    @Test
    void theVisibleDevicesAreTheDrivers() throws IOException, InterruptedException {
        List<String> lines = run(libraries, Map.of("CUDA_VISIBLE_DEVICES", "MIG-22,0", "SIM_GPU_MIG", "1"));
        assertEquals(
                List.of(
                        "Device[ordinal=0, uuid=" + SECOND.replace("GPU", "MIG")
                                + ", name=Simulated GPU 8G, major=9, minor=0, totalBytes=8589934592,"
                                + " mig=MigPart[parentUuid=GPU-33000000-0000-0000-0000-000000000000, gpuInstance=3,"
                                + " computeInstance=0]] USABLE",
                        "Device[ordinal=1, uuid=" + FIRST
                                + ", name=Simulated GPU 24G, major=8, minor=6, totalBytes=25769803776, mig=null] USABLE"),
                lines.subList(1, lines.size()));
        assertEquals(
                List.of(
                        "UNAVAILABLE the driver has no device: cudaGetDeviceCount: cudaErrorNoDevice (100), no CUDA-capable"
                                + " device is detected (look at nvidia-smi, and at CUDA_VISIBLE_DEVICES)"),
                run(libraries, Map.of("CUDA_VISIBLE_DEVICES", "")));
    }

    @Test
    void whatIsMissingIsNamed() throws IOException, InterruptedException {
        List<String> none = run(directory.resolve("none"), Map.of());
        assumeTrue(none.size() == 1, "this machine has a driver");
        assertEquals(
                "UNAVAILABLE NVIDIA's driver is not there: libcuda.so.1: cannot open shared object file: No such file or"
                        + " directory (install the driver, or give the container the GPU and the driver's libraries)",
                none.get(0));
        Path half = Files.createDirectories(directory.resolve("half"));
        for (String name : List.of("libcuda.so.1", "libnvidia-ml.so.1")) {
            Files.copy(libraries.resolve(name), half.resolve(name));
        }
        assertTrue(
                run(half, Map.of()).get(0).startsWith("UNAVAILABLE the CUDA runtime is not there: libcudart.so.13:"));
        assertEquals(
                "FAILED_PRECONDITION the driver is too old for CUDA 13: cudaGetDeviceCount: cudaErrorInsufficientDriver"
                        + " (35), CUDA driver version is insufficient for CUDA runtime version (install a driver of version"
                        + " 580 or newer)",
                run(libraries, Map.of("SIM_GPU_OLD_DRIVER", "1")).get(0));
    }

    @Test
    void memoryOfAnotherProcessIsOpenedByItsHandle() throws IOException, InterruptedException {
        Process owner = start(libraries, Map.of(), "own");
        List<String> lines;
        String last;
        try (BufferedReader output = owner.inputReader(StandardCharsets.UTF_8)) {
            String handle = String.valueOf(output.readLine());
            assertTrue(handle.matches("0 [0-9a-f]{128}"), handle);
            Path faults = directory.resolve("shared");
            lines = run(
                    libraries,
                    Map.of("SIM_GPU_FAULTS", faults.toString(), "SIM_GPU_MIG", "1"),
                    handle.substring(2),
                    faults.toString());
            owner.getOutputStream().close();
            last = String.valueOf(output.readLine());
        }
        assertEquals("0 123456789abcdef0", last);
        String unable = "INVALID_ARGUMENT cannot open shared memory of device 0: cudaIpcOpenMemHandle: ";
        assertEquals(
                List.of(
                        "opened 64 64",
                        "read 12345678",
                        "counted Copied[copies=1, bytes=8] Copied[copies=1, bytes=4]",
                        "no handle: " + unable + "cudaErrorInvalidValue (1), invalid argument",
                        "a short handle: INVALID_ARGUMENT a handle of shared memory has 63 bytes (expected: 64)",
                        "another device: " + unable.replace("device 0", "device 1")
                                + "cudaErrorPeerAccessUnsupported (217), peer access is not supported between these two devices",
                        "lost: UNAVAILABLE device 0 is lost: cudaSetDevice: cudaErrorLaunchFailure (719), unspecified"
                                + " launch failure"),
                lines.subList(3, lines.size()));
    }

    private static Process start(Path libraries, Map<String, String> environment, String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xshare:auto",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                DriverSession.class.getName()));
        command.addAll(List.of(arguments));
        Path errors = directory.resolve("errors");
        ProcessBuilder process = new ProcessBuilder(command).redirectError(errors.toFile());
        Map<String, String> variables = new HashMap<>(environment);
        variables.put("LD_LIBRARY_PATH", libraries.toString());
        variables.put("XDG_CACHE_HOME", directory.resolve("cache") + File.separator);
        process.environment().keySet().removeIf(name -> name.startsWith("CUDA_"));
        process.environment().putAll(variables);
        return process.start();
    }

    /** Runs {@link DriverSession} with libraries, and returns what it prints. */
    private static List<String> run(Path libraries, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        Process running = start(libraries, environment, arguments);
        List<String> lines = new String(running.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .toList();
        assertEquals(0, running.waitFor(), () -> {
            try {
                return Files.readString(directory.resolve("errors"));
            } catch (IOException e) {
                return e.toString();
            }
        });
        return lines;
    }
}
