// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.tensor.MemoryRegion;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * What an application that opens and closes models again and again keeps. It runs in a process of its own, whose heap has its
 * final size from the beginning, so that what the process grows by is native memory.
 */
class NativeMemoryTest {
    private static final Path IRIS = Path.of("../../examples/models/iris/1/model.onnx");
    private static final Path STATUS = Path.of("/proc/self/status");
    private static final int CYCLES = 100;
    private static final long MEGABYTE = 1 << 20;
    private static final Pattern GROWTH = Pattern.compile("growth (-?[0-9]+) pool (-?[0-9]+)");

    /** The program of the process: opens and closes models, and prints what has grown. */
    public static void main(String[] arguments) throws IOException {
        boolean leak = arguments.length > 0;
        List<Nereid> kept = new ArrayList<>();
        for (int i = 0; i < CYCLES; i++) {
            cycle(false, kept);
        }
        System.gc();
        long pooled = MemoryRegion.pooledBytes();
        long before = resident();
        for (int i = 0; i < CYCLES; i++) {
            cycle(leak, kept);
        }
        System.gc();
        System.out.println("growth " + (resident() - before) + " pool " + (MemoryRegion.pooledBytes() - pooled));
        System.exit(0);
    }

    private static void cycle(boolean leak, List<Nereid> kept) {
        Nereid nereid = Nereid.builder().model("iris", IRIS).build();
        Model iris = nereid.model("iris");
        for (int i = 0; i < 20; i++) {
            assertThat(iris.predict(new float[64][4]).longs("label")).hasSize(64);
        }
        if (leak) {
            kept.add(nereid);
        } else {
            nereid.close();
        }
    }

    /** Anonymous memory of the process, in bytes. */
    private static long resident() throws IOException {
        for (String line : Files.readAllLines(STATUS)) {
            if (line.startsWith("RssAnon:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        throw new IOException(STATUS + " has no RssAnon");
    }

    private static Matcher run(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(
                ProcessHandle.current().info().command().orElseThrow(),
                "-Xms96m",
                "-Xmx96m",
                "-XX:+AlwaysPreTouch",
                "-XX:+UseSerialGC",
                // The compilers' own memory comes and goes.
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                NativeMemoryTest.class.getName()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        // Freed memory of one thread is used by the next.
        builder.environment().put("MALLOC_ARENA_MAX", "1");
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(output).isZero();
        Matcher growth = GROWTH.matcher(output);
        assertThat(growth.find()).as(output).isTrue();
        return growth;
    }

    @Test
    void closingReturnsNativeMemory() throws Exception {
        assumeTrue(Files.isReadable(STATUS), "NOT TESTED: the memory of a process is read from /proc");
        Matcher growth = run();
        // A hundred that are not closed take 70 MB; closed ones left 1 MB.
        assertThat(Long.parseLong(growth.group(1)))
                .as("growth of the process over %s cycles", CYCLES)
                .isLessThan(25 * MEGABYTE);
        assertThat(Long.parseLong(growth.group(2))).as("growth of the pool").isLessThan(10 * MEGABYTE);
    }
}
