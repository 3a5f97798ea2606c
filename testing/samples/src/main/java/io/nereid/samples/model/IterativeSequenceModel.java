// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backend.ModelRequest;
import io.nereid.backends.java.BuiltInModel;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A decoupled model for iterative sequences: for {@code INPUT} INT32 [1] with value {@code n}, returns {@code OUTPUT}
 * INT32 [1] with the values {@code n - 1} down to 0, one in each run; after each response but the last the request is
 * rescheduled. Confined to one instance.
 */
public final class IterativeSequenceModel extends SampleRequestModel {
    /** The last value, by sequence id. */
    private final Map<Object, Integer> left = new HashMap<>();

    public IterativeSequenceModel(ModelConfig config) {
        super(config);
    }

    public static ModelConfig complete(ModelConfig config) {
        return exactly(config, List.of(spec("INPUT", DataType.INT32, 1)), List.of(spec("OUTPUT", DataType.INT32, 1)));
    }

    @Override
    public BuiltInModel forInstance() {
        return new IterativeSequenceModel(config());
    }

    @Override
    public void execute(List<ModelRequest> requests) {
        for (ModelRequest request : requests) {
            InferenceRequest.SequenceFlags sequence =
                    request.request().options().sequence();
            Object key = sequence == null ? request.request() : sequence.id();
            Integer before = left.remove(key);
            if (request.cancelled()) {
                request.finish();
                continue;
            }
            int now = (before == null
                            ? named(request.request().inputs(), "INPUT")
                                    .buffer()
                                    .getInt()
                            : before)
                    - 1;
            List<Tensor> answer = List.of(one(outputs().get(0), now));
            if (now <= 0) {
                request.complete(answer, Map.of());
            } else {
                left.put(key, now);
                request.respond(answer, Map.of());
                request.reschedule();
            }
        }
    }
}
