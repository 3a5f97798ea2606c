// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Loads and runs damaged copies of the test models, in processes of their own, and counts those that are rejected,
 * those that answer, and those that end the process. Not a test, because thousands of copies take minutes:
 *
 * <pre>{@code
 * java -cp CLASSPATH io.nereid.backends.tflite.DamagedModels COPIES on|off [MODEL_DIRECTORY]
 * }</pre>
 *
 * <p>{@code COPIES} is for each model, {@code on|off} the setting {@code xnnpack}. The exit status is 1 when a copy ended
 * a process. Confined to one thread in each process.
 */
final class DamagedModels {
    private static final List<String> MODELS = List.of(
            "several",
            "half_plus_two",
            "add_sub",
            "fixed",
            "typed",
            "quantized_int8",
            "quantized_uint8",
            "texts",
            "cnn");
    /** A copy that runs longer counts as one that runs forever: damage can make a loop of any length. */
    private static final int SECONDS = 20;

    private DamagedModels() {}

    public static void main(String[] args) throws Exception {
        if (args.length > 3) {
            child(args[0], args[1], Path.of(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            return;
        }
        int copies = Integer.parseInt(args[0]);
        Path root = args.length > 2 ? Path.of(args[2]) : Models.root();
        Map<String, Integer> counts = new TreeMap<>();
        for (String model : MODELS) {
            if (Files.isDirectory(root.resolve(model))) {
                int next = 0;
                while (next < copies) {
                    next = parent(model, args[1], root, next, copies, counts);
                }
            }
        }
        System.out.println("xnnpack=" + args[1] + ": " + counts);
        System.exit(counts.containsKey("process ended") ? 1 : 0);
    }

    /** Runs copies in a process until all are done or one ends it; returns the next copy. */
    private static int parent(String model, String xnnpack, Path root, int from, int to, Map<String, Integer> counts)
            throws IOException, InterruptedException {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m",
                        "-XX:ErrorFile=/dev/null",
                        "-cp",
                        System.getProperty("java.class.path"),
                        DamagedModels.class.getName(),
                        model,
                        xnnpack,
                        root.toString(),
                        String.valueOf(from),
                        String.valueOf(to))
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        int done = from;
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("copy ")) {
                    counts.merge(line.substring(5), 1, Integer::sum);
                    done++;
                }
            }
        }
        int status = process.waitFor();
        if (done < to) {
            counts.merge(status == 3 ? "ran for " + SECONDS + " s" : "process ended", 1, Integer::sum);
            System.out.println(model + ", copy " + done + ": the process ended with status " + status);
            done++;
        }
        return done;
    }

    private static void child(String model, String xnnpack, Path root, int from, int to) throws Exception {
        byte[] whole = Files.readAllBytes(root.resolve(model).resolve("1").resolve("model.tflite"));
        Path directory = Files.createTempDirectory("damaged");
        CountDownLatch done = new CountDownLatch(0);
        for (int i = from; i < to; i++) {
            done.countDown();
            done = watched();
            Random random = new Random(31L * i + model.hashCode());
            byte[] damaged = whole.clone();
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
            }
            System.out.println("copy " + outcome(model, xnnpack, directory, damaged, random));
        }
        System.exit(0);
    }

    private static String outcome(String model, String xnnpack, Path directory, byte[] damaged, Random random) {
        try (BackendModel loaded = Models.BACKEND.load(
                        Models.lay(model, directory, "model.tflite", damaged),
                        ModelConfig.unspecified(model),
                        new BackendContext(2, directory, xnnpack.equals("-") ? Map.of() : Map.of("xnnpack", xnnpack)));
                ModelInstance instance = loaded.newInstance()) {
            String outcome = "rejected when run";
            for (int rows = 1; rows <= 3; rows += 2) {
                List<Tensor> inputs = new ArrayList<>();
                try {
                    for (TensorSpec spec : loaded.config().modelInputs()) {
                        inputs.add(input(spec, loaded.config().batched(), rows, random));
                    }
                    Tensor.closeAll(instance.run(
                            inputs,
                            loaded.config().modelOutputs().stream()
                                    .map(TensorSpec::name)
                                    .toList()));
                    outcome = "answered";
                } catch (ServingException e) {
                    // Whatever the reason is, the process lives.
                } finally {
                    Tensor.closeAll(inputs);
                }
            }
            return outcome;
        } catch (ServingException e) {
            return "rejected when loaded";
        }
    }

    private static Tensor input(TensorSpec spec, boolean batched, int rows, Random random) {
        Shape shape = batched ? spec.modelShape().prepend(rows) : spec.modelShape();
        long[] dims = new long[shape.rank()];
        for (int d = 0; d < dims.length; d++) {
            dims[d] = shape.dim(d) < 0 ? rows : shape.dim(d);
        }
        Shape whole = Shape.of(dims);
        if (whole.elementCount() > 1 << 20) {
            throw ServingException.invalidArgument("too large");
        }
        if (spec.dataType() == DataType.BYTES) {
            byte[][] texts = new byte[(int) whole.elementCount()][];
            for (int i = 0; i < texts.length; i++) {
                texts[i] = Models.utf8("text " + i);
            }
            return Models.texts(spec.name(), whole, texts);
        }
        Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), whole);
        for (int i = 0; i < tensor.byteLength(); i++) {
            tensor.buffer().put(i, (byte) (spec.dataType() == DataType.FP32 ? random.nextInt(64) : i % 4 == 0 ? 1 : 0));
        }
        return tensor;
    }

    /** Ends the process when a copy takes too long; the caller counts the latch down when the copy is done. */
    private static CountDownLatch watched() {
        CountDownLatch done = new CountDownLatch(1);
        Thread watch = new Thread(() -> {
            try {
                if (!done.await(SECONDS, TimeUnit.SECONDS)) {
                    Runtime.getRuntime().halt(3);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        watch.setDaemon(true);
        watch.start();
        return done;
    }
}
