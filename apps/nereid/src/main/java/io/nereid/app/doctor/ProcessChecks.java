// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.doctor;

import com.sun.management.HotSpotDiagnosticMXBean;
import com.sun.management.UnixOperatingSystemMXBean;
import io.nereid.app.doctor.Finding.Level;
import io.nereid.base.Units;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Checks the memory, the files, the Java runtime and Python of this process's environment. Stateless. */
final class ProcessChecks {
    private static final long FEW_FILES = 256;
    private static final long MANY_FILES = 4096;
    private static final long LITTLE_DISK = 64L << 20;
    private static final long MUCH_DISK = 1L << 30;
    private static final int PYTHON_SECONDS = 20;

    private ProcessChecks() {}

    /** The heap and the memory outside of it, against the limit of the machine or the container. */
    static Finding memory() {
        long limit = ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getTotalMemorySize();
        long heap = Runtime.getRuntime().maxMemory();
        return memory(limit, heap, direct(heap));
    }

    static Finding memory(long limit, long heap, long direct) {
        String text = "heap up to " + Units.formatBytes(heap) + ", direct memory up to " + Units.formatBytes(direct)
                + ", of " + Units.formatBytes(limit) + " of this machine or container";
        if (heap >= limit) {
            return Finding.fail(
                    "memory", text, "lower -Xmx in NEREID_JAVA_OPTS to half of the memory, or raise the limit");
        }
        // models, threads and code need memory besides both
        return heap + direct > limit - limit / 10
                ? Finding.warn(
                        "memory",
                        text + ": both together leave little for models",
                        "set -Xmx and -XX:MaxDirectMemorySize in NEREID_JAVA_OPTS so that a tenth of the memory and"
                                + " the size of the models is left")
                : Finding.ok("memory", text);
    }

    /** What a JVM allows outside of the heap: as much as the heap when nothing else is set. */
    private static long direct(long heap) {
        String set = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .getVMOption("MaxDirectMemorySize")
                .getValue();
        long bytes = Long.parseLong(set);
        return bytes > 0 ? bytes : heap;
    }

    static Finding files() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
                ? files(unix.getMaxFileDescriptorCount())
                : Finding.ok("files", "this system has no limit of open files per process");
    }

    static Finding files(long most) {
        String text = "up to " + most + " open files and connections";
        String remedy = "raise it: ulimit -n 65536, or LimitNOFILE= of systemd";
        if (most < FEW_FILES) {
            return Finding.fail("files", text, remedy);
        }
        return most < MANY_FILES ? Finding.warn("files", text, remedy) : Finding.ok("files", text);
    }

    static Finding java() {
        List<String> flags = ManagementFactory.getRuntimeMXBean().getInputArguments();
        String text = "Java " + Runtime.version() + " of " + System.getProperty("java.vendor") + ", "
                + Runtime.getRuntime().availableProcessors() + " processors";
        return flags.contains("-XX:+ExitOnOutOfMemoryError")
                ? Finding.ok("java", text)
                : Finding.warn(
                        "java",
                        text + ": -XX:+ExitOnOutOfMemoryError is not set",
                        "start with bin/nereid, which sets the flags of the server");
    }

    static Finding disk(Path directory) {
        Path there = directory.toAbsolutePath();
        while (there.getParent() != null && !Files.exists(there)) {
            there = there.getParent();
        }
        try {
            FileStore store = Files.getFileStore(there);
            return disk(directory, store.getUsableSpace(), Files.isWritable(there));
        } catch (IOException e) {
            return Finding.warn(
                    "disk", "the free space of '" + directory + "' is not known: " + e.getMessage(), "check the path");
        }
    }

    static Finding disk(Path directory, long free, boolean writable) {
        String text = Units.formatBytes(free) + " free for the cache in '" + directory + "'";
        String remedy = "set XDG_CACHE_HOME, or --model-cache for models, to a writable directory with space";
        if (!writable) {
            return Finding.warn("disk", "'" + directory + "' cannot be written", remedy);
        }
        if (free < LITTLE_DISK) {
            return Finding.fail("disk", text, remedy);
        }
        return free < MUCH_DISK ? Finding.warn("disk", text, remedy) : Finding.ok("disk", text);
    }

    /** Whether models in Python can run with an interpreter. */
    static List<Finding> python(String interpreter) {
        String remedy = "models in Python need Python 3 with numpy; name the interpreter with --backend-config"
                + " python,python=PATH";
        List<Finding> found = new ArrayList<>();
        try {
            Process process = new ProcessBuilder(interpreter, "-c", """
                            import sys
                            print('%d.%d.%d' % sys.version_info[:3])
                            try:
                                import numpy
                                print(numpy.__version__)
                            except ImportError:
                                print('none')
                            """)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            process.getOutputStream().close();
            if (!process.waitFor(PYTHON_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return List.of(Finding.warn("python", "'" + interpreter + "' does not end", remedy));
            }
            String[] lines =
                    new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).split("\n", -1);
            if (process.exitValue() != 0 || lines.length < 2) {
                return List.of(Finding.warn("python", "'" + interpreter + "' is not Python 3", remedy));
            }
            String text = "Python " + lines[0] + " (" + interpreter + ")";
            found.add(
                    lines[1].equals("none")
                            ? Finding.warn("python", text + " without numpy", remedy)
                            : new Finding(Level.OK, "python", text + ", numpy " + lines[1], null));
        } catch (IOException e) {
            found.add(Finding.warn("python", "there is no '" + interpreter + "'", remedy));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return found;
    }
}
