// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelConfig.Warmup;
import io.nereid.spi.ModelConfig.WarmupInput;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Runs a model's warm-up requests through its real scheduler, one after the other. Confined to the loading thread. */
final class WarmupRequests {
    private static final long SEED = 42;
    private static final long LIMIT_SECONDS = 600;

    private final Path modelDirectory;
    private final EngineServable servable;
    private final Clock clock;

    WarmupRequests(Path modelDirectory, EngineServable servable, Clock clock) {
        this.modelDirectory = modelDirectory;
        this.servable = servable;
        this.clock = clock;
    }

    void run() {
        for (Warmup sample : servable.config().warmups()) {
            for (int i = 0; sample.batchSize() > 0 && i < Math.max(1, sample.count()); i++) {
                run(sample);
            }
        }
    }

    private void run(Warmup sample) {
        List<Tensor> inputs = new ArrayList<>();
        try {
            sample.inputs().forEach((name, input) -> inputs.add(tensor(name, input, sample)));
        } catch (RuntimeException e) {
            Tensor.closeAll(inputs);
            throw e;
        }
        InferenceRequest request = new InferenceRequest(
                ModelRef.exact(
                        servable.metadata().id().model(),
                        servable.metadata().id().version()),
                "",
                inputs,
                List.of(),
                Map.of(),
                Long.MAX_VALUE,
                clock.nanos());
        CompletableFuture<Void> done = new CompletableFuture<>();
        Engine.submit(
                servable,
                () -> {},
                request,
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        response.close();
                        if (last) {
                            done.complete(null);
                        }
                    }

                    @Override
                    public void fail(ServingException e) {
                        done.completeExceptionally(e);
                    }
                },
                clock);
        try {
            done.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failure(sample, e.toString());
        } catch (ExecutionException e) {
            throw failure(
                    sample, e.getCause() instanceof ServingException s ? s.describe() : String.valueOf(e.getCause()));
        } catch (TimeoutException e) {
            throw failure(sample, "no answer within " + LIMIT_SECONDS + " s");
        }
    }

    private static ServingException failure(Warmup sample, String reason) {
        return ServingException.invalidArgument("failed to run warmup sample '" + sample.name() + "': " + reason);
    }

    private Tensor tensor(String name, WarmupInput input, Warmup sample) {
        if (input.shape().isDynamic()) {
            throw ServingException.invalidArgument(
                    "warmup setting expects all variable-size dimensions are specified for input '" + name + "', got "
                            + input.shape());
        }
        byte[] row = row(name, input);
        int rows = servable.config().batched() ? sample.batchSize() : 1;
        Shape shape = servable.config().batched() ? input.shape().prepend(rows) : input.shape();
        MemoryRegion region = MemoryRegion.allocate(Math.multiplyExact(row.length, rows));
        for (int i = 0; i < rows; i++) {
            region.setBytes(i * row.length, row, 0, row.length);
        }
        return Tensor.over(name, input.dataType(), shape, region, 0, region.size());
    }

    private byte[] row(String name, WarmupInput input) {
        DataType type = input.dataType();
        int expected = type.isFixedSize()
                ? Math.toIntExact(input.shape().byteSize(type))
                : Math.toIntExact(4 * input.shape().elementCount());
        return switch (input.data()) {
            case ZERO -> new byte[expected];
            case RANDOM -> {
                byte[] bytes = new byte[expected];
                if (type.isFixedSize()) {
                    // Small whole numbers are valid values of every type's lowest byte and of every vocabulary.
                    Random random = new Random(SEED);
                    for (int i = 0; i < expected; i += type.size()) {
                        bytes[i] = (byte) random.nextInt(type == DataType.BOOL ? 2 : 100);
                    }
                }
                yield bytes;
            }
            case FILE -> file(name, input, expected);
        };
    }

    private byte[] file(String name, WarmupInput input, int expected) {
        Path file = modelDirectory.resolve("warmup").resolve(input.file());
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (IOException e) {
            throw ServingException.invalidArgument(
                    "warmup input '" + name + "' cannot be read from " + file + ": " + e.getMessage());
        }
        if (input.dataType().isFixedSize() && bytes.length != expected) {
            throw ServingException.invalidArgument("warmup setting expects " + expected
                    + " bytes, but the data provided from " + input.file() + " has " + bytes.length + " bytes.");
        }
        return bytes;
    }
}
