// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.warmup;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.request.RequestValidator;
import io.nereid.engine.servable.ModelServable;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.WarmupInput;
import io.nereid.spi.config.WarmupSample;
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
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Runs the warm-up samples of the configuration ({@code model_warmup}) on every instance of a model, one after the
 * other, without the queue and without statistics. A sample of several rows becomes that many requests of one row in
 * one batch. Confined to the loading thread.
 */
public final class ModelWarmup {
    private static final long SEED = 42;
    private static final long LIMIT_SECONDS = 600;

    private final Path modelDirectory;
    private final ModelServable servable;
    private final Clock clock;

    public ModelWarmup(Path modelDirectory, ModelServable servable, Clock clock) {
        this.modelDirectory = modelDirectory;
        this.servable = servable;
        this.clock = clock;
    }

    /**
     * Runs all samples.
     *
     * @throws ServingException INVALID_ARGUMENT when a sample is invalid or fails
     */
    public void run() {
        for (WarmupSample sample : servable.config().warmups()) {
            if (sample.batchSize() > 0) {
                run(sample);
            }
        }
    }

    private void run(WarmupSample sample) {
        ModelConfig config = servable.config();
        if (config.batched() && sample.batchSize() > config.maxBatchSize()) {
            throw failure(
                    sample,
                    "its batch size " + sample.batchSize() + " is larger than max_batch_size " + config.maxBatchSize());
        }
        List<Tensor> inputs = new ArrayList<>();
        try {
            sample.inputs().forEach((name, input) -> inputs.add(tensor(name, input)));
            List<Tensor> fed = complete(inputs, sample);
            for (int instance = 0; instance < Math.max(1, config.instances()); instance++) {
                for (int i = 0; i < Math.max(1, sample.count()); i++) {
                    run(sample, fed, instance);
                }
            }
        } finally {
            Tensor.closeAll(inputs);
        }
    }

    /**
     * Returns the inputs in the model's order. Inputs that the server adds to requests of a sequence (controls,
     * states) are zero unless the sample defines them.
     */
    private List<Tensor> complete(List<Tensor> inputs, WarmupSample sample) {
        ModelConfig config = servable.config();
        List<Tensor> given = new ArrayList<>();
        List<Tensor> added = new ArrayList<>();
        for (Tensor t : inputs) {
            boolean own = RequestValidator.find(config.inputs(), t.name()) != null
                    || RequestValidator.find(config.modelInputs(), t.name()) == null;
            (own ? given : added).add(t);
        }
        List<Tensor> fed;
        try {
            fed = new ArrayList<>(servable.validator().inputs(request(given)));
            servable.validator().batchSize(fed);
        } catch (ServingException e) {
            throw failure(sample, e.describe());
        }
        fed.addAll(added);
        if (config.sequence() != null) {
            for (TensorSpec feed : config.modelInputs()) {
                boolean batchInput =
                        config.batchInputs().stream().anyMatch(b -> b.targets().contains(feed.name()));
                if (!batchInput
                        && RequestValidator.find(config.inputs(), feed.name()) == null
                        && fed.stream().noneMatch(t -> t.name().equals(feed.name()))) {
                    WarmupInput zero = new WarmupInput(feed.dataType(), ones(feed.shape()), WarmupInput.Data.ZERO, "");
                    Tensor t = tensor(feed.name(), zero);
                    inputs.add(t);
                    fed.add(t);
                }
            }
        }
        return fed;
    }

    private static Shape ones(Shape shape) {
        long[] dims = shape.dims();
        for (int i = 0; i < dims.length; i++) {
            dims[i] = dims[i] < 0 ? 1 : dims[i];
        }
        return Shape.of(dims);
    }

    private InferenceRequest request(List<Tensor> inputs) {
        return new InferenceRequest(
                ModelRef.exact(
                        servable.metadata().id().model(),
                        servable.metadata().id().version()),
                "",
                inputs,
                List.of(),
                Map.of(),
                Long.MAX_VALUE,
                clock.nanos());
    }

    private void run(WarmupSample sample, List<Tensor> inputs, int instance) {
        List<InferenceJob> jobs = new ArrayList<>();
        List<WarmupJob> waiting = new ArrayList<>();
        for (int row = 0; row < (servable.config().batched() ? sample.batchSize() : 1); row++) {
            WarmupJob job =
                    new WarmupJob(request(inputs.stream().map(Tensor::retain).toList()));
            jobs.add(job);
            waiting.add(job);
        }
        servable.warm(instance, jobs);
        for (WarmupJob job : waiting) {
            try {
                job.done().get(LIMIT_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw failure(sample, e.toString());
            } catch (ExecutionException e) {
                throw failure(
                        sample,
                        e.getCause() instanceof ServingException s ? s.describe() : String.valueOf(e.getCause()));
            } catch (TimeoutException e) {
                throw failure(sample, "no response within " + LIMIT_SECONDS + " s");
            }
        }
    }

    private static ServingException failure(WarmupSample sample, String reason) {
        return ServingException.invalidArgument("failed to run warmup sample '" + sample.name() + "': " + reason);
    }

    /** Creates an input of one row. */
    private Tensor tensor(String name, WarmupInput input) {
        if (input.shape().isDynamic()) {
            throw ServingException.invalidArgument(
                    "warmup setting expects all variable-size dimensions are specified for input '" + name + "', got "
                            + input.shape());
        }
        byte[] row = row(name, input);
        Shape shape = servable.config().batched() ? input.shape().prepend(1) : input.shape();
        return Tensor.over(name, input.dataType(), shape, MemoryRegion.copyOf(row, 0, row.length), 0, row.length);
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
                    // small whole numbers in the lowest byte are valid for every type, and as indices into vocabularies
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
