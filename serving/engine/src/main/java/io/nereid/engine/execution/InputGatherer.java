// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Gathers the model's inputs from the requests of a batch. A single request passes its tensors unchanged; several
 * requests are concatenated into one slab per input. Thread-safe: stateless.
 */
final class InputGatherer {
    private final IoMapping plan;
    private final int alignment;
    private final @Nullable BatchInputs batchInputs;

    InputGatherer(ModelConfig config, IoMapping plan, int alignment) {
        this.plan = plan;
        this.alignment = alignment;
        this.batchInputs = config.batchInputs().isEmpty() ? null : new BatchInputs(config.name(), config.batchInputs());
    }

    /**
     * The inputs for a single job: either the list of its request, which remains the job's, or a new list that the
     * caller owns with its tensors.
     */
    List<Tensor> one(InferenceJob job) {
        List<Tensor> inputs = job.request().inputs();
        if (plan.plainInputs() && aligned(inputs)) {
            return inputs;
        }
        List<Tensor> fed = new ArrayList<>(inputs.size());
        try {
            for (int i = 0; i < inputs.size(); i++) {
                Tensor t = inputs.get(i);
                Shape shape = plan.modelShape(plan.input(t.name(), i), t.shape());
                fed.add(aligned(t) ? t.retainAs(t.name(), shape) : copy(t, shape));
            }
            if (batchInputs != null) {
                batchInputs.addTo(fed, List.of(job), 0);
            }
            return fed;
        } catch (RuntimeException e) {
            Tensor.closeAll(fed);
            throw e;
        }
    }

    /**
     * The inputs of one job for a model that takes requests; ownership as for {@link #one}. Ragged inputs keep their
     * shapes.
     */
    List<Tensor> request(InferenceJob job) {
        List<Tensor> inputs = job.request().inputs();
        if (plan.plainInputs()) {
            return inputs;
        }
        List<Tensor> fed = new ArrayList<>(inputs.size());
        for (int i = 0; i < inputs.size(); i++) {
            Tensor t = inputs.get(i);
            IoMapping.Input input = plan.input(t.name(), i);
            fed.add(t.retainAs(
                    t.name(), input != null && input.ragged() ? t.shape() : plan.modelShape(input, t.shape())));
        }
        return fed;
    }

    /**
     * One slab per input with the bytes of all jobs, each padded where shapes may differ. The caller owns the tensors.
     *
     * @param rows rows of all jobs
     * @param extra padding rows to add, as copies of the first row of the last job that has a row
     * @param length the length to which {@link LengthPadding} pads; {@link LengthPadding#NONE} if it does not
     */
    List<Tensor> many(List<InferenceJob> jobs, int rows, int extra, int length) {
        List<Tensor> first = jobs.get(0).request().inputs();
        List<Tensor> slabs = new ArrayList<>(first.size());
        try {
            for (int i = 0; i < first.size(); i++) {
                slabs.add(extra == 0 ? slab(jobs, rows, null, 0, length, i) : filled(jobs, rows, extra, length, i));
            }
            if (batchInputs != null) {
                batchInputs.addTo(slabs, jobs, extra);
            }
            return slabs;
        } catch (RuntimeException e) {
            Tensor.closeAll(slabs);
            throw e;
        }
    }

    private Tensor filled(List<InferenceJob> jobs, int rows, int extra, int length, int i) {
        int last = jobs.size() - 1;
        while (last > 0 && jobs.get(last).batchSize() == 0) {
            last--;
        }
        try (Tensor filler = firstRow(input(jobs.get(last), i), jobs.get(last).batchSize())) {
            return slab(jobs, rows, filler, extra, length, i);
        }
    }

    private static Tensor firstRow(Tensor t, int rows) {
        int length = t.byteLength() / rows;
        if (t.dataType() == DataType.BYTES) {
            length = 0;
            for (long n = t.shape().elementCount() / rows; n > 0; n--) {
                length += 4 + t.region().getInt(t.offset() + length);
            }
        }
        return t.retainSlice(t.shape().withFirst(1), 0, length);
    }

    private Tensor slab(List<InferenceJob> jobs, int rows, @Nullable Tensor filler, int extra, int length, int i) {
        Tensor first = input(jobs.get(0), i);
        IoMapping.Input input = plan.input(first.name(), i);
        boolean ragged = input != null && input.ragged();
        LengthPadding.Input stretched = length < 0 ? null : plan.stretched(first.name());
        byte[] element = stretched == null ? null : stretched.element();
        Shape padded = stretched != null
                ? stretched.shape(first.shape(), length)
                : plan.pads() && !ragged ? padded(jobs, i) : null;
        long bytes = 0;
        for (InferenceJob job : jobs) {
            bytes += length(input(job, i), padded);
        }
        if (filler != null) {
            bytes += (long) extra * length(filler, padded);
        }
        if (bytes > Integer.MAX_VALUE - MemoryRegion.ALIGNMENT) {
            throw tooMuch(first, rows + extra, bytes, padded != null);
        }
        Shape shape = ragged
                ? flat(jobs, filler, extra, i)
                : plan.modelShape(input, padded == null ? first.shape() : padded)
                        .withFirst(rows + extra);
        MemoryRegion slab = MemoryRegion.allocate((int) bytes);
        int at = 0;
        for (InferenceJob job : jobs) {
            at = write(input(job, i), padded, element, slab, at);
        }
        if (filler != null) {
            int end = write(filler, padded, element, slab, at);
            if (end > at) {
                VariableLengthPadding.repeat(slab, at, end - at, (int) bytes - at);
            }
        }
        return Tensor.over(first.name(), first.dataType(), shape, slab, 0, (int) bytes);
    }

    private static Tensor input(InferenceJob job, int i) {
        return job.request().inputs().get(i);
    }

    private static long length(Tensor t, @Nullable Shape padded) {
        return padded == null ? t.byteLength() : VariableLengthPadding.bytes(t, padded);
    }

    private static int write(Tensor t, @Nullable Shape padded, byte @Nullable [] element, MemoryRegion slab, int at) {
        if (padded != null) {
            return VariableLengthPadding.write(t, padded, element, slab, at);
        }
        slab.setBytes(at, t.region(), t.offset(), t.byteLength());
        return at + t.byteLength();
    }

    /** The smallest shape, apart from the first dimension, that contains all inputs; null when they are equal. */
    private static @Nullable Shape padded(List<InferenceJob> jobs, int i) {
        Shape first = input(jobs.get(0), i).shape();
        long[] most = null;
        for (InferenceJob job : jobs) {
            Shape shape = input(job, i).shape();
            if (most == null && shape.sameBeyondFirst(first)) {
                continue;
            }
            most = most == null ? first.dims() : most;
            for (int d = 1; d < most.length; d++) {
                most[d] = Math.max(most[d], shape.dim(d));
            }
        }
        return most == null ? null : Shape.of(most);
    }

    /** With padding each request may still run alone, so INVALID_ARGUMENT makes the caller retry them one by one. */
    static ServingException tooMuch(Tensor first, int rows, long bytes, boolean padded) {
        return ServingException.of(
                padded ? ErrorCode.INVALID_ARGUMENT : ErrorCode.INTERNAL,
                "input '" + first.name() + "' of a batch of " + rows + " rows takes " + bytes
                        + " bytes (expected: < 2 GiB)",
                "lower max_batch_size");
    }

    private static Shape flat(List<InferenceJob> jobs, @Nullable Tensor filler, int extra, int i) {
        long elements = 0;
        for (InferenceJob job : jobs) {
            elements += input(job, i).shape().elementCount();
        }
        if (filler != null) {
            elements += extra * filler.shape().elementCount();
        }
        return Shape.of(elements);
    }

    private boolean aligned(List<Tensor> inputs) {
        if (alignment > 1) {
            for (int i = 0; i < inputs.size(); i++) {
                if (!aligned(inputs.get(i))) {
                    return false;
                }
            }
        }
        return true;
    }

    private boolean aligned(Tensor t) {
        return alignment <= 1 || t.byteLength() == 0 || t.address() % alignment == 0;
    }

    private static Tensor copy(Tensor t, Shape shape) {
        MemoryRegion region = MemoryRegion.allocate(t.byteLength());
        region.setBytes(0, t.region(), t.offset(), t.byteLength());
        return Tensor.over(t.name(), t.dataType(), shape, region, 0, t.byteLength());
    }
}
