// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchInput;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Creates Triton's batch inputs: tensors that describe the composition of a batch to the model. Immutable. */
final class BatchInputs {
    /** The source of a batch input in one request. */
    private record Item(Shape shape, int rows) {}

    private final String model;
    private final List<BatchInput> specs;

    BatchInputs(String model, List<BatchInput> specs) {
        this.model = model;
        this.specs = specs;
    }

    /**
     * Adds a tensor for each target to {@code fed}, which owns it.
     *
     * @param extra number of padding rows, which are copies of a row of the last job and count as one more request; 0
     *     for none
     */
    void addTo(List<Tensor> fed, List<InferenceJob> jobs, int extra) {
        for (BatchInput spec : specs) {
            List<Item> items = new ArrayList<>(jobs.size() + 1);
            for (InferenceJob job : jobs) {
                items.add(new Item(source(spec, job), job.batchSize()));
            }
            if (extra > 0) {
                items.add(new Item(items.get(jobs.size() - 1).shape().withFirst(extra), extra));
            }
            try (Tensor made = make(spec, items)) {
                for (String target : spec.targets()) {
                    fed.add(made.retainAs(target, made.shape()));
                }
            }
        }
    }

    private static Tensor make(BatchInput spec, List<Item> items) {
        return switch (spec.kind()) {
            case ELEMENT_COUNT -> counts(spec, items, 0, false);
            case ACCUMULATED_ELEMENT_COUNT -> counts(spec, items, 0, true);
            case ACCUMULATED_ELEMENT_COUNT_WITH_ZERO -> counts(spec, items, 1, true);
            case MAX_ELEMENT_COUNT_AS_SHAPE -> {
                long greatest = 0;
                for (Item item : items) {
                    greatest = Math.max(greatest, item.shape().elementCount());
                }
                Tensor t = allocate(spec, Shape.of(greatest));
                t.region().zero();
                yield t;
            }
            case ITEM_SHAPE -> shapes(spec, items, false);
            case ITEM_SHAPE_FLATTEN -> shapes(spec, items, true);
        };
    }

    private static Tensor counts(BatchInput spec, List<Item> items, int zeros, boolean running) {
        Tensor t = allocate(spec, Shape.of(items.size() + zeros));
        ByteBuffer to = t.buffer();
        for (int i = 0; i < zeros; i++) {
            put(spec, to, 0);
        }
        long sum = 0;
        for (Item item : items) {
            long n = item.shape().elementCount();
            sum = running ? sum + n : n;
            put(spec, to, sum);
        }
        return t;
    }

    private static Tensor shapes(BatchInput spec, List<Item> items, boolean flat) {
        int rows = 0;
        for (Item item : items) {
            rows += item.rows();
        }
        int rank = items.get(0).shape().rank() - 1;
        Tensor t = allocate(spec, flat ? Shape.of((long) rows * rank) : Shape.of(rows, rank));
        ByteBuffer to = t.buffer();
        for (Item item : items) {
            for (int row = 0; row < item.rows(); row++) {
                for (int d = 1; d <= rank; d++) {
                    put(spec, to, item.shape().dim(d));
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
                + model + "', whose batch inputs describe it (expected: the input to be present)");
    }
}
