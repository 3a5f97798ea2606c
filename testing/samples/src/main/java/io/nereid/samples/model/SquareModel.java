// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backend.ModelRequest;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * A decoupled model: for {@code IN} INT32 [1] with value {@code n}, returns {@code n} responses {@code OUT} INT32 [1]
 * with value {@code n}, and no response if {@code n} is 0 or less. Thread-safe: has no state.
 */
public final class SquareModel extends SampleRequestModel {
    public SquareModel(ModelConfig config) {
        super(config);
    }

    public static ModelConfig complete(ModelConfig config) {
        return exactly(config, List.of(spec("IN", DataType.INT32, 1)), List.of(spec("OUT", DataType.INT32, 1)));
    }

    @Override
    public void execute(List<ModelRequest> requests) {
        for (ModelRequest request : requests) {
            int n = named(request.request().inputs(), "IN").buffer().getInt();
            for (int i = 0; i < n && !request.cancelled(); i++) {
                Tensor answer = one(outputs().get(0), n);
                request.respond(List.of(answer), Map.of());
            }
            request.finish();
        }
    }
}
