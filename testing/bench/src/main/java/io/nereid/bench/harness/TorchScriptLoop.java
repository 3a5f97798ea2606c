// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.pytorch.engine.PtEngineProvider;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import ai.djl.pytorch.engine.PtSymbolBlock;
import ai.djl.pytorch.jni.IValue;
import ai.djl.pytorch.jni.JniUtils;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;

/**
 * A TorchScript model in a plain loop of libtorch, in a process of its own: the threads that libtorch starts count for the whole
 * process, so that those of the engine would slow the loop down. Reads a number of runs from each line of its input, and answers
 * with the median time of a run in milliseconds and the first value of the output. Confined to one thread.
 */
public final class TorchScriptLoop implements AutoCloseable {
    /** The inputs' side in pixels. */
    public static final int SIDE = 224;

    private final Process process;
    private final BufferedReader from;
    private final PrintStream to;

    /** The median time of a run, and a value of its answer. */
    public record RoundResult(double millis, float first) {}

    /** Starts the process. */
    public TorchScriptLoop(Path file, int threads) throws IOException {
        process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "-XX:+UseSerialGC",
                        "-cp",
                        System.getProperty("java.class.path"),
                        TorchScriptLoop.class.getName(),
                        file.toString(),
                        Integer.toString(threads))
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        from = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        to = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
    }

    /** Runs the model so often. */
    public RoundResult round(int runs) throws IOException {
        to.println(runs);
        String line = from.readLine();
        if (line == null) {
            throw new IOException("the loop of libtorch has ended");
        }
        String[] parts = line.split(" ");
        return new RoundResult(Double.parseDouble(parts[0]), Float.parseFloat(parts[1]));
    }

    @Override
    public void close() {
        to.close();
        process.destroy();
    }

    /** A picture of random pixels, the same in each process. */
    public static float[] pixels() {
        Random random = new Random(3);
        float[] pixels = new float[3 * SIDE * SIDE];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = random.nextFloat() * 2 - 1;
        }
        return pixels;
    }

    /** Arguments: the model's file and the number of threads. */
    public static void main(String[] args) throws IOException {
        System.setProperty("ai.djl.offline", "true");
        System.setProperty("OPT_OUT_TRACKING", "true");
        System.setProperty("ai.djl.pytorch.num_threads", args[1]);
        System.setProperty("ai.djl.pytorch.num_interop_threads", "1");
        PrintStream out = System.out;
        Engine engine = new PtEngineProvider().getEngine();
        if (engine == null) {
            throw new IOException("PyTorch did not start");
        }
        JniUtils.setGradMode(false);
        PtNDManager manager = (PtNDManager) engine.newBaseManager(Device.cpu());
        PtSymbolBlock model = JniUtils.loadModule(manager, Path.of(args[0]), true, new String[0], new String[0], false);
        JniUtils.enableInferenceMode(model);
        ByteBuffer input = ByteBuffer.allocateDirect(4 * 3 * SIDE * SIDE).order(ByteOrder.nativeOrder());
        input.asFloatBuffer().put(pixels());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            double[] millis = new double[Integer.parseInt(line)];
            float first = 0;
            for (int i = 0; i < millis.length; i++) {
                long begun = System.nanoTime();
                first = run(manager, model, input);
                millis[i] = (System.nanoTime() - begun) / 1e6;
            }
            Arrays.sort(millis);
            out.println(millis[millis.length / 2] + " " + first);
            out.flush();
        }
    }

    private static float run(PtNDManager manager, PtSymbolBlock model, ByteBuffer input) {
        try (PtNDManager request = manager.newSubManager(Device.cpu())) {
            PtNDArray image = JniUtils.createNdFromByteBuffer(
                    request, input, new Shape(1, 3, SIDE, SIDE), DataType.FLOAT32, SparseFormat.DENSE, Device.cpu());
            try (IValue argument = IValue.from(image);
                    IValue answer = model.forward(argument)) {
                return answer.toTensor(request)
                        .toByteBuffer()
                        .order(ByteOrder.nativeOrder())
                        .getFloat(0);
            }
        }
    }
}
