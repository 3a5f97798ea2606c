// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** A vector for each text: {@code embedding} FP32; in KServe's style FP64, as there. */
public final class VectorAnswers implements TaskAnswers {
    private final int width;
    private final AnswerStyle style;

    /** @param width the numbers of a vector */
    public VectorAnswers(int width, AnswerStyle style) {
        this.width = width;
        this.style = style;
    }

    @Override
    public List<TensorSpec> outputs() {
        return List.of(
                style == AnswerStyle.PIPELINE
                        ? new TensorSpec("embedding", DataType.FP32, Shape.of(width))
                        : new TensorSpec(ModelMetadata.KSERVE_OUTPUT, DataType.FP64, Shape.of(width)));
    }

    @Override
    public List<Tensor> answer(List<String> names, List<TextRow> rows, Map<String, Object> parameters) {
        try (TensorScope results = new TensorScope()) {
            for (String name : names) {
                DataType type = outputs().get(0).dataType();
                ByteBuffer to = results.allocate(name, type, Shape.of(rows.size(), width))
                        .buffer();
                for (TextRow row : rows) {
                    for (float v : row.result()) {
                        if (type == DataType.FP32) {
                            to.putFloat(v);
                        } else {
                            to.putDouble(v);
                        }
                    }
                }
            }
            return results.release();
        }
    }
}
