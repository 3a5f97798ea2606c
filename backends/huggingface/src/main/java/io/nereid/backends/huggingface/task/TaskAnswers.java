// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/** Makes the outputs of one task. Immutable and thread-safe. */
public interface TaskAnswers {
    /** The outputs, without the batch dimension. */
    List<TensorSpec> outputs();

    /** Outputs of BYTES whose elements are JSON documents or, for KServe's clients, Python literals. */
    default List<String> documents() {
        return List.of();
    }

    /** Whether the results of padding are needed, which KServe's clients get. */
    default boolean keepsPadding() {
        return false;
    }

    /**
     * Makes the named outputs of one request.
     *
     * @param names names of {@link #outputs}
     * @param rows the rows of the request, with their results
     * @param parameters the parameters of the request
     * @return the outputs with the batch dimension, owned by the caller
     */
    List<Tensor> answer(List<String> names, List<TextRow> rows, Map<String, Object> parameters);
}
