// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * {@code minilm} in a plain loop of ONNX Runtime: prepared inputs in direct memory, discarded outputs. Confined to one
 * thread, except for the runners that it starts and waits for.
 */
public final class OnnxRuntimeLoop {
    private static final int TOKENS = 16;
    private static final List<String> INPUTS = List.of("input_ids", "attention_mask", "token_type_ids");

    private final Path model;
    private final OrtEnvironment environment = OrtEnvironment.getEnvironment();

    public OnnxRuntimeLoop(Path model) {
        this.model = model;
    }

    /**
     * The loop's parameters.
     *
     * @param runners threads that call ONNX Runtime concurrently
     * @param threads ONNX Runtime's threads for each call
     */
    public record Shape(int batch, int runners, int threads) {
        @Override
        public String toString() {
            return "batch " + batch + ", " + runners + (runners == 1 ? " runner" : " runners") + " x " + threads
                    + (threads == 1 ? " thread" : " threads");
        }
    }

    /**
     * Returns the shapes to try on a number of CPUs, in which as many sentences are in flight as a server has from so many clients: one
     * runner has all of them in its batch, several share them.
     *
     * @param maxBatch the largest batch, which is also the server's
     */
    public static List<Shape> shapes(int processors, int inFlight, int maxBatch) {
        List<Shape> shapes = new ArrayList<>();
        for (int threads = 1; threads <= processors; threads++) {
            shapes.add(new Shape(Math.min(maxBatch, inFlight), 1, threads));
        }
        if (processors > 1) {
            shapes.add(new Shape(Math.max(1, Math.min(maxBatch, inFlight / processors)), processors, 1));
        }
        return shapes;
    }

    /** Returns sentences per second over at least {@code seconds}. */
    public double run(Shape shape, double seconds) throws OrtException, InterruptedException {
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(shape.threads);
            options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.ALL_OPT);
            try (OrtSession session = environment.createSession(model.toString(), options)) {
                loop(session, shape, Math.min(1, seconds / 2));
                return loop(session, shape, seconds);
            }
        }
    }

    private double loop(OrtSession session, Shape shape, double seconds) throws InterruptedException {
        ExecutorService runners = Executors.newFixedThreadPool(shape.runners);
        try {
            List<Future<Double>> results = new ArrayList<>();
            for (int i = 0; i < shape.runners; i++) {
                results.add(runners.submit(() -> one(session, shape.batch, seconds)));
            }
            double sum = 0;
            for (Future<Double> result : results) {
                sum += result.get();
            }
            return sum;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        } finally {
            runners.shutdown();
        }
    }

    private double one(OrtSession session, int batch, double seconds) throws OrtException {
        Map<String, OnnxTensor> inputs = new LinkedHashMap<>();
        try {
            for (String name : INPUTS) {
                LongBuffer values = ByteBuffer.allocateDirect(8 * batch * TOKENS)
                        .order(ByteOrder.nativeOrder())
                        .asLongBuffer();
                for (int i = 0; i < batch * TOKENS; i++) {
                    values.put(i, name.equals("input_ids") ? 1000 + i * 37L % 20_000 : name.startsWith("a") ? 1 : 0);
                }
                inputs.put(name, OnnxTensor.createTensor(environment, values, new long[] {batch, TOKENS}));
            }
            long done = 0;
            long from = System.nanoTime();
            double took = 0;
            while (took < seconds) {
                session.run(inputs).close();
                done += batch;
                took = (System.nanoTime() - from) / 1e9;
            }
            return done / took;
        } finally {
            inputs.values().forEach(OnnxTensor::close);
        }
    }
}
