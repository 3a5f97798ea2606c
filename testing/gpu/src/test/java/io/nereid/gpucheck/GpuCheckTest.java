// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The whole check with the simulated driver, as {@code run.sh} runs it on a machine with a GPU. */
class GpuCheckTest {
    @TempDir
    Path directory;

    private record Ended(int status, String output) {}

    private static Path here() {
        Path working = Path.of("").toAbsolutePath();
        return Files.exists(working.resolve("pack.sh")) ? working : working.resolve("testing/gpu");
    }

    private static Ended run(Map<String, String> environment, Object... command) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(
                        List.of(command).stream().map(String::valueOf).toList())
                .redirectErrorStream(true);
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().put("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1");
        builder.environment().putAll(environment);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), output);
    }

    private static void required(boolean there, String what) {
        if (!there) {
            System.err.println("GpuCheckTest is SKIPPED: " + what);
        }
        assumeTrue(there, what);
    }

    @Test
    void aServerWithASimulatedGpuPassesWhatDoesNotNeedAGpu() throws Exception {
        boolean compiler;
        try {
            compiler = run(Map.of(), "gcc", "--version").status() == 0;
        } catch (IOException e) {
            compiler = false;
        }
        required(compiler, "there is no gcc, so there is no simulated driver");
        Path folder = directory.resolve("pack");
        Ended packed = run(Map.of(), here().resolve("pack.sh"), folder, "--no-runtime");
        required(!packed.output().contains("is not built"), packed.output());
        assertThat(packed.status()).as(packed.output()).isZero();
        Path libraries = directory.resolve("simulated");
        assertThat(run(Map.of(), here().resolve("simulated/build.sh"), libraries))
                .isEqualTo(new Ended(0, ""));

        Ended without = run(Map.of("LD_LIBRARY_PATH", ""), folder.resolve("run.sh"), "--simulated");
        required(without.status() != 0, "this machine has a GPU");
        assertThat(without.status()).as(without.output()).isEqualTo(77);
        assertThat(without.output())
                .contains("SKIPPED, nothing was checked: NVIDIA's driver is not there: libcuda.so.1");

        Ended checked = run(Map.of("LD_LIBRARY_PATH", libraries.toString()), folder.resolve("run.sh"), "--simulated");
        assertThat(checked.status()).as(checked.output()).isZero();
        assertThat(checked.output().lines().filter(line -> line.endsWith("| passed |")))
                .as(checked.output())
                .hasSize(6);
        assertThat(checked.output())
                .doesNotContain("FAILED")
                .contains("memory shared by this process", "| 1.0 and 1.0, ");
    }

    @Test
    void aModelIsDescribedByItsText() {
        DenseShape shape = DenseShape.parse("layers=3 width=2 matrices=1\n");
        assertThat(DenseShape.parse(shape.text())).isEqualTo(shape);
        assertThatThrownBy(() -> DenseShape.parse("layers=1 width=2 matrices=3"))
                .hasMessageContaining("no more matrices than layers");
        assertThatThrownBy(() -> DenseShape.parse("width=2")).hasMessageContaining("expected: layers=L");
        // One layer of width 2 by hand.
        float[] weights = shape.weights(0);
        float[] biases = shape.biases(0);
        float[] expected = new float[2];
        for (int j = 0; j < 2; j++) {
            expected[j] = Math.max(0, 2 * weights[j] + 3 * weights[2 + j] + biases[j]);
        }
        assertThat(new DenseShape(1, 2, 1).compute(new float[] {2, 3})).containsExactly(expected);
    }
}
