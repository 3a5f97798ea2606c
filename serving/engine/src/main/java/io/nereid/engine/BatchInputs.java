// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig.BatchInput;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.List;

/** Makes the tensors that tell a model how its batch is put together. Immutable. */
final class BatchInputs {
    private final String model;
    private final List<BatchInput> specs;

    BatchInputs(String model, List<BatchInput> specs) {
        this.model = model;
        this.specs = specs;
    }

    /** Adds a tensor for each target to {@code fed}, which owns it. */
    void addTo(List<Tensor> fed, List<InferenceJob> jobs) {
        for (BatchInput spec : specs) {
            try (Tensor made = make(spec, jobs)) {
                for (String target : spec.targets()) {
                    fed.add(made.retainAs(target, made.shape()));
                }
            }
        }
    }

    private Tensor make(BatchInput spec, List<InferenceJob> jobs) {
        return switch (spec.kind()) {
            case ELEMENT_COUNT -> counts(spec, jobs, 0, false);
            case ACCUMULATED_ELEMENT_COUNT -> counts(spec, jobs, 0, true);
            case ACCUMULATED_ELEMENT_COUNT_WITH_ZERO -> counts(spec, jobs, 1, true);
            case MAX_ELEMENT_COUNT_AS_SHAPE -> {
                long greatest = 0;
                for (InferenceJob job : jobs) {
                    greatest = Math.max(greatest, source(spec, job).elementCount());
                }
                Tensor t = allocate(spec, Shape.of(greatest));
                t.region().zero();
                yield t;
            }
            case ITEM_SHAPE -> shapes(spec, jobs, false);
            case ITEM_SHAPE_FLATTEN -> shapes(spec, jobs, true);
        };
    }

    private Tensor counts(BatchInput spec, List<InferenceJob> jobs, int zeros, boolean running) {
        Tensor t = allocate(spec, Shape.of(jobs.size() + zeros));
        ByteBuffer to = t.buffer();
        for (int i = 0; i < zeros; i++) {
            put(spec, to, 0);
        }
        long sum = 0;
        for (InferenceJob job : jobs) {
            long n = source(spec, job).elementCount();
            sum = running ? sum + n : n;
            put(spec, to, sum);
        }
        return t;
    }

    private Tensor shapes(BatchInput spec, List<InferenceJob> jobs, boolean flat) {
        int rows = 0;
        for (InferenceJob job : jobs) {
            rows += job.batchSize();
        }
        int rank = source(spec, jobs.get(0)).rank() - 1;
        Tensor t = allocate(spec, flat ? Shape.of((long) rows * rank) : Shape.of(rows, rank));
        ByteBuffer to = t.buffer();
        for (InferenceJob job : jobs) {
            Shape shape = source(spec, job);
            for (int row = 0; row < job.batchSize(); row++) {
                for (int d = 1; d <= rank; d++) {
                    put(spec, to, shape.dim(d));
                }
            }
        }
        return t;
    }

    private static Tensor allocate(BatchInput spec, Shape shape) {
        return Tensor.allocate("", spec.dataType(), shape);
    }

    private static void put(BatchInput spec, ByteBuffer to, long value) {
        if (spec.dataType() == DataType.FP32) {
            to.putFloat((float) value);
        } else {
            to.putInt(Math.toIntExact(value));
        }
    }

    private Shape source(BatchInput spec, InferenceJob job) {
        for (Tensor t : job.request().inputs()) {
            if (t.name().equals(spec.source())) {
                return t.shape();
            }
        }
        throw ServingException.invalidArgument("input '" + spec.source() + "' is missing in a request for model '"
                + model + "', which counts its elements (expected: it to be given)");
    }
}
