// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.List;
import java.util.Map;

/**
 * A label for each text. The outputs are {@code label}, {@code score}, {@code scores} of all labels and {@code logits}; in KServe's
 * style one, with the number of the label.
 */
public final class SequenceAnswers implements TaskAnswers {
    private static final String LABEL = "label";
    private static final String SCORE = "score";
    private static final String SCORES = "scores";

    /** From logits to scores. */
    public enum Function {
        SOFTMAX,
        SIGMOID,
        NONE
    }

    private final List<String> labels;
    private final Function function;
    private final AnswerStyle style;

    /** @param labels the labels in the order of their numbers */
    public SequenceAnswers(List<String> labels, Function function, AnswerStyle style) {
        this.labels = List.copyOf(labels);
        this.function = function;
        this.style = style;
    }

    @Override
    public List<TensorSpec> outputs() {
        return switch (style) {
            case PIPELINE ->
                List.of(
                        new TensorSpec(LABEL, DataType.BYTES, Shape.SCALAR),
                        new TensorSpec(SCORE, DataType.FP32, Shape.SCALAR),
                        new TensorSpec(SCORES, DataType.FP32, Shape.of(labels.size())),
                        new TensorSpec("logits", DataType.FP32, Shape.of(labels.size())));
            case KSERVE -> List.of(new TensorSpec(ModelMetadata.KSERVE_OUTPUT, DataType.INT64, Shape.SCALAR));
            default -> List.of(new TensorSpec(ModelMetadata.KSERVE_OUTPUT, DataType.BYTES, Shape.SCALAR));
        };
    }

    @Override
    public List<String> documents() {
        return style == AnswerStyle.KSERVE_PROBABILITIES || style == AnswerStyle.KSERVE_LOGITS
                ? List.of(ModelMetadata.KSERVE_OUTPUT)
                : List.of();
    }

    @Override
    public List<Tensor> answer(List<String> names, List<TextRow> rows, Map<String, Object> parameters) {
        try (TensorScope results = new TensorScope()) {
            for (String name : names) {
                results.add(one(name, rows));
            }
            return results.release();
        }
    }

    private Tensor one(String name, List<TextRow> rows) {
        int n = rows.size();
        int width = labels.size();
        switch (name) {
            case LABEL -> {
                byte[][] elements = new byte[n][];
                for (int i = 0; i < n; i++) {
                    elements[i] =
                            Numbers.utf8(labels.get(Numbers.argmax(rows.get(i).result(), 0, width)));
                }
                return Tensor.ofBytes(name, Shape.of(n), elements);
            }
            case SCORE -> {
                double[] values = new double[n];
                for (int i = 0; i < n; i++) {
                    double[] scores = scores(rows.get(i).result());
                    values[i] = scores[Numbers.argmax(scores)];
                }
                return Tensor.ofDoubles(name, DataType.FP32, Shape.of(n), values);
            }
            case SCORES, "logits" -> {
                double[] values = new double[n * width];
                for (int i = 0; i < n; i++) {
                    float[] logits = rows.get(i).result();
                    double[] scores = scores(logits);
                    for (int j = 0; j < width; j++) {
                        values[i * width + j] = name.equals(SCORES) ? scores[j] : logits[j];
                    }
                }
                return Tensor.ofDoubles(name, DataType.FP32, Shape.of(n, width), values);
            }
            default -> {
                if (style == AnswerStyle.KSERVE) {
                    double[] values = new double[n];
                    for (int i = 0; i < n; i++) {
                        values[i] = Numbers.argmax(rows.get(i).result(), 0, width);
                    }
                    return Tensor.ofDoubles(name, DataType.INT64, Shape.of(n), values);
                }
                byte[][] elements = new byte[n][];
                for (int i = 0; i < n; i++) {
                    elements[i] = Numbers.utf8(literal(rows.get(i).result(), 0, width, style));
                }
                return Tensor.ofBytes(name, Shape.of(n), elements);
            }
        }
    }

    private double[] scores(float[] logits) {
        if (function == Function.SOFTMAX) {
            return Numbers.softmax(logits, 0, labels.size());
        }
        double[] scores = new double[labels.size()];
        for (int i = 0; i < scores.length; i++) {
            scores[i] = function == Function.SIGMOID ? Numbers.sigmoid(logits[i]) : logits[i];
        }
        return scores;
    }

    /** The probabilities or logits as a Python literal, as KServe's server has them: <code>{0: 0.0095, 1: 0.9905}</code>. */
    static String literal(float[] logits, int from, int count, AnswerStyle style) {
        double[] probabilities = style == AnswerStyle.KSERVE_LOGITS ? null : Numbers.softmax(logits, from, count);
        StringBuilder out = new StringBuilder("{");
        for (int i = 0; i < count; i++) {
            out.append(i == 0 ? "" : ", ").append(i).append(": ");
            out.append(probabilities == null ? Numbers.python(logits[from + i]) : Numbers.fourPlaces(probabilities[i]));
        }
        return out.append('}').toString();
    }
}
