// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes what a model is fed from what its clients gave: a request alone passes its tensors themselves, several are laid
 * one after the other into one slab per input. Thread-safe: it keeps nothing.
 */
final class Gather {
    private final IoPlan plan;
    private final int alignment;
    private final @Nullable BatchInputs batchInputs;

    Gather(ModelConfig config, IoPlan plan, int alignment) {
        this.plan = plan;
        this.alignment = alignment;
        this.batchInputs = config.batchInputs().isEmpty() ? null : new BatchInputs(config.name(), config.batchInputs());
    }

    /**
     * What the model is fed for one job: the list of its request itself, which stays the job's, or else a list that is
     * the caller's with its tensors.
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
                batchInputs.addTo(fed, List.of(job));
            }
            return fed;
        } catch (RuntimeException e) {
            Tensor.closeAll(fed);
            throw e;
        }
    }

    /** A job's inputs as a model sees them that takes requests, as {@link #one}; ragged ones keep their shape. */
    List<Tensor> request(InferenceJob job) {
        List<Tensor> inputs = job.request().inputs();
        if (plan.plainInputs()) {
            return inputs;
        }
        List<Tensor> fed = new ArrayList<>(inputs.size());
        for (int i = 0; i < inputs.size(); i++) {
            Tensor t = inputs.get(i);
            IoPlan.Input input = plan.input(t.name(), i);
            fed.add(t.retainAs(
                    t.name(), input != null && input.ragged() ? t.shape() : plan.modelShape(input, t.shape())));
        }
        return fed;
    }

    /** One slab per input: the jobs' bytes one after the other. The caller owns the tensors. */
    List<Tensor> many(List<InferenceJob> jobs, int rows) {
        List<Tensor> first = jobs.get(0).request().inputs();
        List<Tensor> slabs = new ArrayList<>(first.size());
        try {
            for (int i = 0; i < first.size(); i++) {
                slabs.add(slab(jobs, rows, i));
            }
            if (batchInputs != null) {
                batchInputs.addTo(slabs, jobs);
            }
            return slabs;
        } catch (RuntimeException e) {
            Tensor.closeAll(slabs);
            throw e;
        }
    }

    private Tensor slab(List<InferenceJob> jobs, int rows, int i) {
        Tensor first = jobs.get(0).request().inputs().get(i);
        long bytes = 0;
        for (InferenceJob job : jobs) {
            bytes += job.request().inputs().get(i).byteLength();
        }
        if (bytes > Integer.MAX_VALUE - MemoryRegion.ALIGNMENT) {
            throw ServingException.of(
                    Code.INTERNAL,
                    "input '" + first.name() + "' of a batch of " + rows + " rows takes " + bytes
                            + " bytes (expected: < 2 GiB)",
                    "lower max_batch_size");
        }
        IoPlan.Input input = plan.input(first.name(), i);
        Shape shape = input != null && input.ragged()
                ? flat(jobs, i)
                : plan.modelShape(input, first.shape()).withFirst(rows);
        MemoryRegion slab = MemoryRegion.allocate((int) bytes);
        int at = 0;
        for (InferenceJob job : jobs) {
            Tensor t = job.request().inputs().get(i);
            slab.setBytes(at, t.region(), t.offset(), t.byteLength());
            at += t.byteLength();
        }
        return Tensor.over(first.name(), first.dataType(), shape, slab, 0, (int) bytes);
    }

    private static Shape flat(List<InferenceJob> jobs, int i) {
        long elements = 0;
        for (InferenceJob job : jobs) {
            elements += job.request().inputs().get(i).shape().elementCount();
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
