// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.scheduling.BatchCut;
import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchRunner;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs batches on a backend model: gathers inputs, runs, splits outputs. A batch of one passes its tensors themselves; a
 * larger one is gathered into one slab per input and its outputs are handed on as slices of the run's output. Thread-safe
 * across instances: each has its own {@link Invocation}.
 */
final class BatchExecution implements BatchRunner, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BatchExecution.class);

    private final BackendModel model;
    private final ModelMetadata metadata;
    private final ModelStatistics statistics;
    private final Clock clock;
    private final List<String> allOutputs;
    private final @Nullable Invocation[] invocations;

    BatchExecution(BackendModel model, ModelMetadata metadata, ModelStatistics statistics, Clock clock) {
        this.model = model;
        this.metadata = metadata;
        this.statistics = statistics;
        this.clock = clock;
        this.allOutputs = metadata.outputs().stream().map(TensorSpec::name).toList();
        this.invocations = new Invocation[model.config().instances()];
    }

    @Override
    public boolean joinable(InferenceJob a, InferenceJob b) {
        List<Tensor> left = a.request().inputs();
        List<Tensor> right = b.request().inputs();
        if (left.size() != right.size()) {
            return false;
        }
        for (int i = 0; i < left.size(); i++) {
            Tensor l = left.get(i);
            Tensor r = right.get(i);
            if (!l.name().equals(r.name()) || !l.shape().sameBeyondFirst(r.shape())) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCut cut) {
        ServingException failure;
        try {
            Invocation invocation = invocations[instance];
            if (invocation == null) {
                invocation = model.newInvocation();
                invocations[instance] = invocation;
            }
            if (jobs.size() == 1) {
                runOne(invocation, jobs.get(0));
            } else {
                runMany(invocation, jobs);
            }
            return;
        } catch (ServingException e) {
            failure = e;
        } catch (Throwable t) {
            failure = ServingException.internal(
                    "model '" + metadata.id().model() + "' failed: "
                            + t.getClass().getSimpleName(),
                    t);
        }
        if (jobs.size() > 1 && failure.code() == Code.INVALID_ARGUMENT) {
            // One client's bad input must not spoil the answers of the others.
            for (InferenceJob job : jobs) {
                run(instance, List.of(job), cut);
            }
            return;
        }
        if (failure.code() == Code.INTERNAL) {
            LOG.error("{} failed on a batch of {}", metadata.id(), jobs.size(), failure);
        }
        for (InferenceJob job : jobs) {
            job.fail(failure);
        }
    }

    private void runOne(Invocation invocation, InferenceJob job) {
        List<Tensor> inputs = job.request().inputs();
        List<String> wanted = wanted(job);
        List<Tensor> aligned = align(inputs);
        List<Tensor> outputs;
        RunGuard guard = guard(invocation, List.of(job), 1);
        long from = clock.nanos();
        try {
            outputs = invocation.run(aligned, wanted);
        } finally {
            if (guard != null) {
                guard.end();
                job.onCancel(null);
            }
            if (aligned != inputs) {
                Tensor.closeAll(aligned);
            }
        }
        statistics.executed(job.batchSize());
        job.ran(from, clock.nanos(), job.batchSize());
        job.complete(outputs, Map.of());
    }

    private void runMany(Invocation invocation, List<InferenceJob> jobs) {
        int rows = 0;
        for (InferenceJob job : jobs) {
            rows += job.batchSize();
        }
        List<String> wanted = union(jobs);
        List<Tensor> inputs = gather(jobs, rows);
        List<Tensor> outputs;
        RunGuard guard = guard(invocation, jobs, jobs.size());
        long from = clock.nanos();
        try {
            outputs = invocation.run(inputs, wanted);
        } finally {
            if (guard != null) {
                guard.end();
                for (InferenceJob job : jobs) {
                    job.onCancel(null);
                }
            }
            Tensor.closeAll(inputs);
        }
        long to = clock.nanos();
        statistics.executed(rows);
        try {
            List<List<Tensor>> parts = split(jobs, outputs, rows);
            for (int i = 0; i < jobs.size(); i++) {
                jobs.get(i).ran(from, to, rows);
                jobs.get(i).complete(parts.get(i), Map.of());
            }
        } finally {
            Tensor.closeAll(outputs);
        }
    }

    private List<Tensor> align(List<Tensor> inputs) {
        int alignment = model.traits().alignment();
        boolean fine = true;
        if (alignment > 1) {
            for (Tensor t : inputs) {
                fine &= t.byteLength() == 0 || t.address() % alignment == 0;
            }
        }
        if (fine) {
            return inputs;
        }
        List<Tensor> copies = new ArrayList<>(inputs.size());
        for (Tensor t : inputs) {
            MemoryRegion region = MemoryRegion.allocate(t.byteLength());
            region.setBytes(0, t.region(), t.offset(), t.byteLength());
            copies.add(Tensor.over(t.name(), t.dataType(), t.shape(), region, 0, t.byteLength()));
        }
        return copies;
    }

    /** One slab per input: the jobs' bytes one after the other. */
    private static List<Tensor> gather(List<InferenceJob> jobs, int rows) {
        List<Tensor> first = jobs.get(0).request().inputs();
        List<Tensor> slabs = new ArrayList<>(first.size());
        try {
            for (int i = 0; i < first.size(); i++) {
                long bytes = 0;
                for (InferenceJob job : jobs) {
                    bytes += job.request().inputs().get(i).byteLength();
                }
                Tensor model = first.get(i);
                if (bytes > Integer.MAX_VALUE - MemoryRegion.ALIGNMENT) {
                    throw ServingException.of(
                            Code.INTERNAL,
                            "input '" + model.name() + "' of a batch of " + rows + " rows takes " + bytes
                                    + " bytes (expected: < 2 GiB)",
                            "lower max_batch_size");
                }
                MemoryRegion slab = MemoryRegion.allocate((int) bytes);
                slabs.add(Tensor.over(
                        model.name(), model.dataType(), model.shape().withFirst(rows), slab, 0, (int) bytes));
                int at = 0;
                for (InferenceJob job : jobs) {
                    Tensor t = job.request().inputs().get(i);
                    slab.setBytes(at, t.region(), t.offset(), t.byteLength());
                    at += t.byteLength();
                }
            }
            return slabs;
        } catch (RuntimeException e) {
            Tensor.closeAll(slabs);
            throw e;
        }
    }

    /** The part of each output that belongs to each job, in the order that job asked for. */
    private List<List<Tensor>> split(List<InferenceJob> jobs, List<Tensor> outputs, int rows) {
        for (Tensor t : outputs) {
            if (t.shape().rank() == 0 || t.shape().dim(0) != rows) {
                throw ServingException.of(
                        Code.INTERNAL,
                        "model '" + metadata.id().model() + "' gave output '" + t.name() + "' of shape " + t.shape()
                                + " for a batch of " + rows + " rows (expected first dimension " + rows + ")",
                        "set max_batch_size to 0 if the first dimension is not a batch dimension");
            }
        }
        int[] at = new int[outputs.size()];
        List<List<Tensor>> parts = new ArrayList<>(jobs.size());
        for (InferenceJob job : jobs) {
            List<String> wanted = wanted(job);
            Tensor[] part = new Tensor[wanted.size()];
            for (int o = 0; o < outputs.size(); o++) {
                Tensor whole = outputs.get(o);
                int length = bytesOf(whole, at[o], job.batchSize(), rows);
                int position = wanted.indexOf(whole.name());
                if (position >= 0) {
                    part[position] = whole.retainSlice(whole.shape().withFirst(job.batchSize()), at[o], length);
                }
                at[o] += length;
            }
            parts.add(List.of(part));
        }
        return parts;
    }

    private static int bytesOf(Tensor whole, int from, int jobRows, int rows) {
        if (whole.dataType() != DataType.BYTES) {
            return (int) ((long) whole.byteLength() / rows * jobRows);
        }
        long elements = whole.shape().elementCount() / rows * jobRows;
        int at = from;
        for (long i = 0; i < elements; i++) {
            at += 4 + whole.region().getInt(whole.offset() + at);
        }
        return at - from;
    }

    private List<String> wanted(InferenceJob job) {
        List<RequestedOutput> requested = job.request().outputs();
        if (requested.isEmpty()) {
            return allOutputs;
        }
        if (requested.size() == 1) {
            return List.of(requested.get(0).name());
        }
        return requested.stream().map(RequestedOutput::name).toList();
    }

    private List<String> union(List<InferenceJob> jobs) {
        List<String> first = wanted(jobs.get(0));
        for (InferenceJob job : jobs) {
            List<String> wanted = wanted(job);
            if (wanted != first && !wanted.equals(first)) {
                return allOutputs.stream()
                        .filter(name -> jobs.stream().anyMatch(j -> wanted(j).contains(name)))
                        .toList();
            }
        }
        return first;
    }

    private @Nullable RunGuard guard(Invocation invocation, List<InferenceJob> jobs, int count) {
        if (!model.traits().cancel()) {
            return null;
        }
        RunGuard guard = new RunGuard(invocation, count);
        for (InferenceJob job : jobs) {
            job.onCancel(guard);
        }
        return guard;
    }

    /** Ends the invocations; no run is under way and none follows. */
    @Override
    public void close() {
        for (int i = 0; i < invocations.length; i++) {
            Invocation invocation = invocations[i];
            if (invocation != null) {
                invocation.close();
                invocations[i] = null;
            }
        }
    }

    /** Stops a run when the last client that waits for it has gone, and never the run after it. */
    private static final class RunGuard implements Runnable {
        private final Invocation invocation;
        private int waiting;

        RunGuard(Invocation invocation, int waiting) {
            this.invocation = invocation;
            this.waiting = waiting;
        }

        @Override
        public synchronized void run() {
            if (waiting > 0 && --waiting == 0) {
                invocation.cancel();
            }
        }

        synchronized void end() {
            waiting = 0;
        }
    }
}
