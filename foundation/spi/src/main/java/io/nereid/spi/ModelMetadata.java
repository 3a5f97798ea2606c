// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;
import java.util.Map;

/**
 * What clients may know about one servable. Immutable.
 *
 * @param id the version described
 * @param platform {@code <project>_<format>}, such as {@code onnxruntime_onnx}
 * @param inputs in the model's order; shapes as on the wire, the batch dimension (-1) included
 * @param outputs likewise
 * @param maxBatchSize 0 when the first dimension is not a batch dimension
 * @param properties free-form
 */
public record ModelMetadata(
        ServableId id,
        String platform,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs,
        int maxBatchSize,
        Map<String, String> properties) {}
