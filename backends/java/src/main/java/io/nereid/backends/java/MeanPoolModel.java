// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Mean pooling of token vectors, for sentence embeddings: from vectors FP32 [tokens, n] and an attention mask INT64 or
 * INT32 [tokens] to the mean FP32 [n] of the vectors whose mask is not 0, or zeros if there is none. With the parameter
 * {@code normalize: true} the result is scaled to length 1. Thread-safe: has no state.
 */
public final class MeanPoolModel extends BuiltInModel {
    private static final String NORMALIZE = "normalize";
    private static final int ROWS = 64;

    private final boolean normalize;
    private final String vectors;
    private final String mask;

    private MeanPoolModel(ModelConfig config, boolean normalize) {
        super(config);
        this.normalize = normalize;
        boolean first = config.inputs().get(0).dataType() == DataType.FP32;
        this.vectors = config.inputs().get(first ? 0 : 1).name();
        this.mask = config.inputs().get(first ? 1 : 0).name();
    }

    /**
     * Creates a model and completes its configuration; by default {@code last_hidden_state} and {@code attention_mask}
     * to {@code embedding}, vectors of any length, batches of up to 64 rows.
     */
    public static MeanPoolModel of(ModelConfig config, Map<String, String> settings, boolean autoComplete) {
        String text = config.parameters().getOrDefault(NORMALIZE, "false").strip();
        if (!List.of("true", "false", "1", "0").contains(text)) {
            throw wrong(config, "has " + NORMALIZE + " '" + text + "'", "true or false");
        }
        List<TensorSpec> inputs = config.inputs();
        List<TensorSpec> outputs = config.outputs();
        int rows = config.maxBatchSize();
        if (inputs.isEmpty()) {
            inputs = List.of(
                    new TensorSpec("last_hidden_state", DataType.FP32, Shape.of(-1, -1)),
                    new TensorSpec("attention_mask", DataType.INT64, Shape.of(-1)));
            rows = rows < 0 && autoComplete ? defaultRows(config, settings) : rows;
        }
        if (outputs.isEmpty()) {
            outputs = List.of(new TensorSpec("embedding", DataType.FP32, Shape.of(-1)));
        }
        check(config, inputs, outputs);
        return new MeanPoolModel(
                config.completed(
                        config.platform(),
                        config.backend(),
                        rows,
                        inputs,
                        outputs,
                        config.batching(),
                        config.instances()),
                text.equals("true") || text.equals("1"));
    }

    private static int defaultRows(ModelConfig config, Map<String, String> settings) {
        String text = settings.getOrDefault("default-max-batch-size", String.valueOf(ROWS));
        try {
            return Integer.parseInt(text.strip());
        } catch (NumberFormatException e) {
            throw wrong(config, "has the setting default-max-batch-size '" + text + "'", "a whole number");
        }
    }

    private static void check(ModelConfig config, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        boolean fits = inputs.size() == 2 && outputs.size() == 1;
        if (fits) {
            TensorSpec a = inputs.get(0).dataType() == DataType.FP32 ? inputs.get(0) : inputs.get(1);
            TensorSpec b = a == inputs.get(0) ? inputs.get(1) : inputs.get(0);
            TensorSpec out = outputs.get(0);
            fits = a.dataType() == DataType.FP32
                    && a.modelShape().rank() == 2
                    && (b.dataType() == DataType.INT64 || b.dataType() == DataType.INT32)
                    && b.modelShape().rank() == 1
                    && out.dataType() == DataType.FP32
                    && out.modelShape().rank() == 1
                    && (out.modelShape().dim(0) < 0
                            || out.modelShape().dim(0) == a.modelShape().dim(1));
        }
        if (!fits) {
            throw wrong(
                    config,
                    "has inputs " + inputs + " and outputs " + outputs,
                    "FP32 [tokens,n] and INT64 or INT32 [tokens] to FP32 [n]");
        }
    }

    @Override
    public boolean inline() {
        return false;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        Tensor in = named(inputs, vectors);
        Tensor marks = named(inputs, mask);
        boolean batched = maxBatchSize() > 0;
        Shape shape = batched ? in.shape() : in.shape().prepend(1);
        Shape marked = batched ? marks.shape() : marks.shape().prepend(1);
        if (marked.rank() != 2 || shape.rank() != 3 || shape.dim(0) != marked.dim(0) || shape.dim(1) != marked.dim(1)) {
            throw ServingException.invalidArgument("inputs '" + vectors + "' " + in.shape() + " and '" + mask + "' "
                    + marks.shape() + " do not fit (expected: a mask value for each token)");
        }
        int rows = (int) shape.dim(0);
        int tokens = (int) shape.dim(1);
        int width = (int) shape.dim(2);
        Tensor out = Tensor.allocate(
                outputs().get(0).name(), DataType.FP32, batched ? Shape.of(rows, width) : Shape.of(width));
        FloatBuffer from = in.buffer().asFloatBuffer();
        FloatBuffer to = out.buffer().asFloatBuffer();
        ByteBuffer through = marks.buffer();
        float[] token = new float[width];
        float[] mean = new float[width];
        for (int row = 0; row < rows; row++) {
            java.util.Arrays.fill(mean, 0);
            int count = 0;
            for (int t = 0; t < tokens; t++) {
                int at = row * tokens + t;
                boolean counts =
                        marks.dataType() == DataType.INT64 ? through.getLong(8 * at) != 0 : through.getInt(4 * at) != 0;
                if (counts) {
                    from.get(at * width, token);
                    for (int i = 0; i < width; i++) {
                        mean[i] += token[i];
                    }
                    count++;
                }
            }
            scale(mean, count);
            to.put(row * width, mean);
        }
        List<Tensor> results = new ArrayList<>(outputs.size());
        for (int i = 1; i < outputs.size(); i++) {
            results.add(out.retain());
        }
        results.add(out);
        return results;
    }

    private void scale(float[] sum, int count) {
        double divisor = Math.max(1, count);
        if (normalize) {
            double squares = 0;
            for (float v : sum) {
                squares += (double) v * v;
            }
            // The sum and the mean have the same direction, so the sum can be normalized directly.
            divisor = squares == 0 ? 1 : Math.sqrt(squares);
        }
        for (int i = 0; i < sum.length; i++) {
            sum[i] = (float) (sum[i] / divisor);
        }
    }
}
