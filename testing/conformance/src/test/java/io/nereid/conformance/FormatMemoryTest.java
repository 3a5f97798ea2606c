// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Unloading a model releases its memory. An engine in a child process loads, calls and unloads a model of each format
 * of the default distribution {@value FormatChurn#ROUNDS} times. Its heap is resident from the start, so growth of
 * resident memory is native memory or metaspace.
 */
class FormatMemoryTest {
    private static final Path STATUS = Path.of("/proc/self/status");
    private static final long MB = 1 << 20;

    /**
     * Tolerated heap growth: a leak of the smallest model, with its queues and metrics, would take more over all
     * rounds.
     */
    private static final long HEAP_SLACK = 2 * MB;

    @TempDir
    Path directory;

    /** The measurements of the child process. */
    private record Measurements(long residentGrowth, long heapGrowth, long loaders, long loadersLeft, String answers) {}

    @BeforeEach
    void needsProc() {
        assumeTrue(Files.isReadable(STATUS), "NOT TESTED: memory after unloading; this system does not have " + STATUS);
    }

    private Measurements churn(String model) throws Exception {
        Path measurements = directory.resolve("measurements");
        Path output = directory.resolve("output");
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xms128m",
                "-Xmx128m",
                "-XX:+AlwaysPreTouch",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:ReservedCodeCacheSize=48m"));
        if (Runtime.version().feature() >= 24) {
            command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"));
        }
        command.addAll(List.of(
                "-cp",
                System.getProperty("java.class.path"),
                FormatChurn.class.getName(),
                directory.resolve("models").toString(),
                model,
                measurements.toString()));
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
        // Two arenas: memory that the C library's allocator caches for each thread must not count as a leak.
        builder.environment().put("MALLOC_ARENA_MAX", "2");
        Process process = builder.start();
        try {
            assertThat(process.waitFor(180, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).as(Files.readString(output)).isZero();
        } finally {
            process.destroyForcibly();
        }
        Map<String, String[]> measured = new HashMap<>();
        for (String line : Files.readAllLines(measurements)) {
            measured.put(
                    line.substring(0, line.indexOf(' ')),
                    line.substring(line.indexOf(' ') + 1).split(" "));
        }
        return new Measurements(
                growth(measured.get("resident")),
                growth(measured.get("heap")),
                Long.parseLong(measured.get("loaders")[0]),
                Long.parseLong(measured.get("loaders")[1]),
                String.join(" ", measured.get("answers")));
    }

    private static long growth(String[] beforeAndAfter) {
        return Long.parseLong(beforeAndAfter[1]) - Long.parseLong(beforeAndAfter[0]);
    }

    private void model(String name, String file, String from) throws IOException {
        Path version = Files.createDirectories(
                directory.resolve("models").resolve(name).resolve("1"));
        Files.copy(root().resolve(from), version.resolve(file));
    }

    private void config(String name, String text) throws IOException {
        Files.createDirectories(directory.resolve("models").resolve(name).resolve("1"));
        Files.writeString(directory.resolve("models").resolve(name).resolve("config.pbtxt"), text);
    }

    /** The root of the source tree: tests run in their module's directory or in the root. */
    private static Path root() {
        Path here = Path.of("").toAbsolutePath();
        return Files.isDirectory(here.resolve("backends"))
                ? here
                : here.resolve("../..").normalize();
    }

    private static void flat(Measurements measurements, long residentSlack) {
        assertThat(measurements.answers()).startsWith("[");
        assertThat(measurements.residentGrowth())
                .as("bytes resident more than before %d rounds of load, run and unload", FormatChurn.ROUNDS)
                .isLessThan(residentSlack);
        assertThat(measurements.heapGrowth())
                .as("bytes of the heap more than before %d rounds of load, run and unload", FormatChurn.ROUNDS)
                .isLessThan(HEAP_SLACK);
    }

    @ParameterizedTest
    @CsvSource({
        // The weights of mlp are 26 MB, allocated at load. The C library may keep a freed block for each of its arenas;
        // fifty leaking
        // rounds would take 1,300 MB.
        "onnx, model.onnx, backends/onnx/src/test/resources/models/mlp.onnx, 256",
        "classifier, model.onnx, backends/onnx/src/test/resources/models/zipmap_string.onnx, 8",
        "xgboost, model.json,"
                + " backends/trees/src/test/resources/models/xgboost/reg-squarederror-gbtree-exact-missing.json, 8",
        "xgboost-ubj, model.ubj, backends/trees/src/test/resources/models/xgboost/multi-softprob-gbtree-forest.ubj, 8",
        "lightgbm, model.txt,"
                + " backends/trees/src/test/resources/models/lightgbm/multiclass-gbdt-linear-missing-categorical.txt, 8",
        "sklearn, model.pkl, backends/sklearn/src/test/resources/models/1.9.1/isolation_some.pkl, 8",
        "tokenizer, tokenizer.json, backends/tokenizer/src/test/resources/tokenizer.json, 8",
    })
    void anUnloadedModelGivesItsMemoryBack(String name, String file, String from, int slack) throws Exception {
        model(name, file, from);
        if (name.equals("tokenizer")) {
            config(name, "backend: \"tokenizer\"");
        }
        flat(churn(name), slack * MB);
    }

    @ParameterizedTest
    @CsvSource({"onnx", "sklearn-pickle", "xgboost-classifier", "lightgbm-booster"})
    void anUnloadedModelOfMlflowGivesItsMemoryBack(String saved) throws Exception {
        Path from = root().resolve("backends/mlflow/src/test/resources/mlflow").resolve(saved);
        Path version = Files.createDirectories(
                directory.resolve("models").resolve(saved).resolve("1"));
        try (Stream<Path> files = Files.list(from)) {
            for (Path file : files.toList()) {
                Files.copy(file, version.resolve(file.getFileName()));
            }
        }
        flat(churn(saved), 8 * MB);
    }

    @ParameterizedTest
    @CsvSource({"identity", "add_sub"})
    void aSampleModelGivesItsMemoryBack(String sample) throws Exception {
        config(
                sample,
                "backend: \"" + sample + "\" max_batch_size: 8 dynamic_batching {}"
                        + " parameters { key: \"response_parameters\" value { string_value: \"false\" } }");
        flat(churn(sample), 8 * MB);
    }

    @Test
    void theClassLoadersOfAJarGoWithItsVersions() throws Exception {
        Path version = Files.createDirectories(directory.resolve("models/jar/1"));
        jar(version.resolve("model.jar"));
        Measurements measurements = churn("jar");
        flat(measurements, 8 * MB);
        assertThat(measurements.loaders()).isGreaterThan(FormatChurn.ROUNDS);
        assertThat(measurements.loadersLeft()).isZero();
        try (Stream<Path> left = Files.list(directory.resolve("scratch"))) {
            assertThat(left).isEmpty();
        }
    }

    /** Writes a model with a megabyte of data, which leaves a weak reference to its class loader for inspection. */
    private void jar(Path target) throws IOException {
        Path source =
                Files.createDirectories(directory.resolve("source/com/example")).resolve("Held.java");
        Files.writeString(source, String.format(Locale.ROOT, """
            package com.example;
            import io.nereid.backends.java.JavaModel;
            import io.nereid.spi.config.TensorSpec;
            import io.nereid.tensor.*;
            import java.lang.ref.WeakReference;
            import java.util.*;
            public class Held implements JavaModel {
                private static final byte[] WEIGHTS = new byte[1 << 20];
                public List<TensorSpec> inputs() { return List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))); }
                public List<TensorSpec> outputs() { return List.of(new TensorSpec("y", DataType.FP32, Shape.of(-1))); }
                @SuppressWarnings("unchecked")
                public void load(java.nio.file.Path version, Map<String, String> parameters) {
                    ((List<WeakReference<ClassLoader>>) System.getProperties().get("%s"))
                            .add(new WeakReference<>(getClass().getClassLoader()));
                }
                public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
                    Tensor y = Tensor.allocate("y", DataType.FP32, inputs.get(0).shape());
                    while (y.buffer().get(0) != WEIGHTS[0]) y.buffer().put(0, WEIGHTS[0]);
                    return List.of(y);
                }
            }
            """, FormatChurn.LOADERS));
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        Path classes = Files.createDirectories(directory.resolve("classes"));
        assertThat(compiler.run(
                        null,
                        null,
                        null,
                        "-proc:none",
                        "--release",
                        "17",
                        "-d",
                        classes.toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        source.toString()))
                .isZero();
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(target))) {
            out.putNextEntry(new JarEntry("com/example/Held.class"));
            out.write(Files.readAllBytes(classes.resolve("com/example/Held.class")));
            out.putNextEntry(new JarEntry("META-INF/services/io.nereid.backends.java.JavaModel"));
            out.write("com.example.Held".getBytes(StandardCharsets.UTF_8));
        }
    }
}
