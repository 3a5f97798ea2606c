// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.lang.management.ManagementFactory;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The program of {@link FormatMemoryTest}'s child process: repeatedly loads, calls and unloads a model, and writes the
 * memory of the process before and after to a file. Confined to its thread.
 */
final class FormatChurn {
    /**
     * Property under which a model's classes store weak references to their loaders: properties are visible to every
     * loader.
     */
    static final String LOADERS = "nereid.test.loaders";

    static final int ROUNDS = 50;
    /** Rounds after which everything that is set up once exists: pools, arenas, compiled code, the engine itself. */
    private static final int WARM_UP = 15;

    private static final int SWEEPS = 4;

    private FormatChurn() {}

    /** Arguments: the repository, the model's name, and the file for the measurements. */
    public static void main(String[] arguments) throws Exception {
        Path repository = Path.of(arguments[0]);
        String model = arguments[1];
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        System.getProperties().put(LOADERS, loaders);
        List<Backend> backends = new ArrayList<>();
        ServiceLoader.load(Backend.class).forEach(backends::add);
        EngineOptions options = EngineOptions.builder(List.of(repository))
                .repository(RepositorySource.Options.DEFAULT
                        .withMode(RepositorySource.Mode.EXPLICIT)
                        .withSettle(Duration.ZERO))
                .deviceThreads(1)
                .loadThreads(1)
                .scratch(Path.of(arguments[2]).resolveSibling("scratch"))
                .build();
        try (Engine engine = new Engine(options, backends, Clock.system())) {
            engine.start().toCompletableFuture().get(60, TimeUnit.SECONDS);
            String answers = "";
            for (int i = 0; i < WARM_UP; i++) {
                answers = round(engine, model);
            }
            long[] before = held();
            for (int i = 0; i < ROUNDS; i++) {
                round(engine, model);
            }
            // First: a class loader that the JIT compiler still holds has its model's data.
            long left = left(loaders);
            long[] after = held();
            Files.writeString(
                    Path.of(arguments[2]),
                    "resident " + before[0] + ' ' + after[0] + "\nheap " + before[1] + ' ' + after[1] + "\nloaders "
                            + loaders.size() + ' ' + left + "\nanswers " + answers);
        }
        System.exit(0);
    }

    /**
     * Returns the number of loaders that stay reachable. Waits some seconds, because the JIT compiler holds classes
     * while it compiles.
     */
    private static long left(List<WeakReference<ClassLoader>> loaders) {
        long left = Long.MAX_VALUE;
        for (int i = 0; i < 40 && left > 0; i++) {
            System.gc();
            left = loaders.stream().filter(l -> l.get() != null).count();
            LockSupport.parkNanos(left == 0 ? 0 : TimeUnit.MILLISECONDS.toNanos(500));
        }
        return left;
    }

    private static String round(Engine engine, String model) throws Exception {
        engine.load(model).toCompletableFuture().get(60, TimeUnit.SECONDS);
        ModelRef ref = ModelRef.latest(model);
        List<Tensor> inputs = new ArrayList<>();
        for (TensorSpec spec : engine.metadata(ref).inputs()) {
            if (!spec.optional()) {
                inputs.add(something(spec));
            }
        }
        CompletableFuture<String> answered = new CompletableFuture<>();
        engine.infer(new InferenceRequest(ref, "", inputs, List.of(), Map.of(), Long.MAX_VALUE, 0), new ResponseSink() {
            @Override
            public void next(InferenceResponse response, boolean last) {
                String outputs = response.outputs().toString();
                response.close();
                if (last) {
                    answered.complete(outputs);
                }
            }

            @Override
            public void fail(ServingException e) {
                answered.completeExceptionally(e);
            }
        });
        String outputs = answered.get(60, TimeUnit.SECONDS);
        engine.unload(model).toCompletableFuture().get(60, TimeUnit.SECONDS);
        return outputs;
    }

    /** Creates a tensor with size 2 for each variable dimension, filled with zeros or the letter a. */
    private static Tensor something(TensorSpec spec) {
        long[] dims = new long[spec.shape().rank()];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = spec.shape().dim(i) < 0 ? 2 : spec.shape().dim(i);
        }
        Shape shape = Shape.of(dims);
        if (spec.dataType() == DataType.BYTES) {
            byte[] texts = new byte[Math.toIntExact(shape.elementCount() * 5)];
            for (int i = 0; i < texts.length; i += 5) {
                texts[i] = 1;
                texts[i + 4] = 'a';
            }
            return Tensor.over(
                    spec.name(), DataType.BYTES, shape, MemoryRegion.copyOf(texts, 0, texts.length), 0, texts.length);
        }
        Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), shape);
        tensor.region().setBytes(tensor.offset(), new byte[tensor.byteLength()], 0, tensor.byteLength());
        return tensor;
    }

    /** Returns resident memory and used heap in bytes, after a garbage collection. */
    private static long[] held() throws Exception {
        ReferenceQueue<Object> collected = new ReferenceQueue<>();
        for (int i = 0; i < SWEEPS; i++) {
            WeakReference<Object> marker = new WeakReference<>(new Object(), collected);
            System.gc();
            if (collected.remove(2_000) != marker) {
                throw new IllegalStateException("the garbage collector does not collect");
            }
        }
        long resident = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmRSS:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * 1024)
                .sum();
        return new long[] {
            resident, ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
        };
    }
}
