// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.tensor.MemoryRegion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** What an application that opens and closes models again and again keeps. */
class NativeMemoryTest {
    private static final Path IRIS = Path.of("../../examples/models/iris/1/model.onnx");
    private static final Path STATUS = Path.of("/proc/self/status");
    private static final int CYCLES = 60;
    private static final long MEGABYTE = 1 << 20;

    private static void cycle() {
        try (Nereid nereid = Nereid.builder().model("iris", IRIS).build()) {
            Model iris = nereid.model("iris");
            for (int i = 0; i < 20; i++) {
                assertThat(iris.predict(new float[64][4]).longs("label")).hasSize(64);
            }
        }
    }

    /** Anonymous memory of the process, in bytes. */
    private static long resident() throws IOException {
        for (String line : Files.readAllLines(STATUS)) {
            if (line.startsWith("RssAnon:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        return 0;
    }

    @Test
    void closingReturnsNativeMemory() throws IOException {
        assumeTrue(Files.isReadable(STATUS), "NOT TESTED: the memory of a process is read from /proc");
        for (int i = 0; i < CYCLES; i++) {
            cycle();
        }
        long pooled = MemoryRegion.pooledBytes();
        long before = resident();
        for (int i = 0; i < CYCLES; i++) {
            cycle();
        }
        // A session of this model takes more than a megabyte: 60 of them that stayed would show.
        assertThat(resident() - before)
                .as("growth of the process over %s cycles", CYCLES)
                .isLessThan(40 * MEGABYTE);
        assertThat(MemoryRegion.pooledBytes() - pooled).as("growth of the pool").isLessThan(20 * MEGABYTE);
    }
}
