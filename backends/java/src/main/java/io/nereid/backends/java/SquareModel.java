// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.ModelRequest;
import io.nereid.spi.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * {@code IN} INT32 [1] to {@code OUT} INT32 [1]: {@code n} gives {@code n} answers of the value {@code n}, none for 0 or
 * less. Decoupled. Thread-safe: keeps nothing.
 */
final class SquareModel extends BuiltInRequestModel {
    SquareModel(ModelConfig config) {
        super(config);
    }

    static ModelConfig complete(ModelConfig config) {
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
