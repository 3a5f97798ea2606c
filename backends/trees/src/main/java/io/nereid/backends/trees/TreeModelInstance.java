// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.ModelInstance;
import io.nereid.backends.trees.TreeConfig.Output;
import io.nereid.backends.trees.TreeModel.Port;
import io.nereid.backends.trees.forest.FeatureKeys;
import io.nereid.backends.trees.forest.Forest;
import io.nereid.backends.trees.forest.LinkFunction;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.forest.RowReader;
import io.nereid.backends.trees.forest.ScoreAccumulator;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An instance of a tree model. Rows are scored in blocks, which stay in the processor's caches while all trees pass
 * over them. Confined to one run at a time, except {@link #cancel}.
 */
final class TreeModelInstance implements ModelInstance {
    private static final int BLOCK = 64;
    /** The maximum number of codes per block, so that a block stays in the L1 cache. */
    private static final int BLOCK_NUMBERS = 4096;

    private final TreeModel model;
    private final List<Port> ports;
    private final ParsedModel facts;
    private final @Nullable Forest forest;
    private final int block;
    private final int[] numbers;
    private final ScoreAccumulator sums;
    private final double[] row;
    private final double[] answers;
    private volatile boolean cancelled;

    TreeModelInstance(TreeModel model, List<Port> ports) {
        this.model = model;
        this.ports = ports;
        this.facts = model.facts();
        this.forest = model.forest();
        int stride = forest == null ? 1 : forest.slots().size();
        int size = Math.max(stride, facts.outputs());
        this.block = Math.max(Forest.LANES, Math.min(BLOCK, BLOCK_NUMBERS / size & -Forest.LANES));
        this.numbers = new int[Math.multiplyExact(block, stride)];
        this.sums = new ScoreAccumulator(facts.format().equals(ParsedModel.XGBOOST), block * facts.outputs());
        this.row = new double[facts.outputs()];
        this.answers = new double[Math.max(2, facts.outputs())];
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        cancelled = false;
        Tensor input = inputs.get(0);
        int rows = rows(input, model);
        try (TensorScope results = new TensorScope()) {
            Writer[] writers = new Writer[outputs.size()];
            for (int i = 0; i < writers.length; i++) {
                writers[i] = writer(outputs.get(i), rows, results);
            }
            score(new RowReader(input, facts.features()), rows, writers);
            return results.release();
        }
    }

    /** Validates the input's shape against the model, and returns the number of rows. */
    static int rows(Tensor input, TreeModel model) {
        Shape shape = input.shape();
        int rank = shape.rank();
        int features = model.facts().features();
        boolean rowVector = model.settings().rowVector();
        if (rank != (rowVector ? 1 : 2) || shape.dim(rank - 1) != features) {
            throw ServingException.invalidArgument(
                    "input '" + input.name() + "' is of shape " + shape + " (expected: " + (rowVector ? "[" : "[-1,")
                            + features + "])",
                    "give a value for each feature, NaN for what is missing");
        }
        return rowVector ? 1 : (int) shape.dim(0);
    }

    private Port port(String name) {
        for (int i = 0; i < ports.size(); i++) {
            if (ports.get(i).name().equals(name)) {
                return ports.get(i);
            }
        }
        throw ServingException.invalidArgument(
                "unexpected output '" + name + "' for model '" + model.config().name() + "'");
    }

    private Writer writer(String name, int rows, TensorScope results) {
        Port port = port(name);
        int width = port.width();
        Shape shape;
        if (model.settings().rowVector()) {
            shape = port.wide() ? Shape.of(width) : Shape.SCALAR;
        } else {
            shape = port.wide() ? Shape.of(rows, width) : Shape.of(rows);
        }
        ByteBuffer to = results.allocate(name, port.type(), shape).buffer();
        return new Writer(port.output(), port.type(), to, width);
    }

    /** Writes the values of an output to its tensor. Confined to one run. */
    private record Writer(Output output, DataType type, ByteBuffer to, int width) {
        void put(double[] values) {
            for (int i = 0; i < width; i++) {
                switch (type) {
                    case FP32:
                        to.putFloat((float) values[i]);
                        break;
                    case FP64:
                        to.putDouble(values[i]);
                        break;
                    case INT64:
                        to.putLong((long) values[i]);
                        break;
                    default:
                        to.putInt((int) values[i]);
                }
            }
        }
    }

    private void score(RowReader rows, int count, Writer[] writers) {
        for (int first = 0; first < count; first += block) {
            if (cancelled) {
                throw ServingException.of(ErrorCode.CANCELLED, "the run was stopped");
            }
            int n = Math.min(block, count - first);
            sum(rows, first, n);
            for (int r = 0; r < n; r++) {
                int at = r * facts.outputs();
                for (int o = 0; o < row.length; o++) {
                    row[o] = sums.get(at + o) / facts.divisor();
                }
                for (Writer writer : writers) {
                    answer(writer, at);
                }
            }
        }
    }

    private void sum(RowReader rows, int first, int n) {
        int outputs = facts.outputs();
        double[] base = facts.base();
        for (int r = 0; r < n; r++) {
            for (int o = 0; o < outputs; o++) {
                sums.set(r * outputs + o, base[o]);
            }
        }
        if (forest == null) {
            for (int r = 0; r < n; r++) {
                addLinear(rows, first + r, r * outputs);
            }
            return;
        }
        FeatureKeys slots = forest.slots();
        for (int r = 0; r < n; r++) {
            slots.encode(rows, first + r, numbers, r * slots.size());
        }
        forest.add(numbers, n, sums, outputs, rows, first);
    }

    private void addLinear(RowReader rows, int row, int at) {
        float[] weights = facts.weights();
        if (weights == null) {
            return;
        }
        int outputs = facts.outputs();
        int features = facts.features();
        for (int o = 0; o < outputs; o++) {
            float sum = (float) sums.get(at + o) + weights[features * outputs + o];
            for (int f = 0; f < features; f++) {
                float x = (float) rows.value(row, f);
                if (!Float.isNaN(x)) {
                    sum += x * weights[f * outputs + o];
                }
            }
            sums.set(at + o, sum);
        }
    }

    private void answer(Writer writer, int at) {
        int outputs = facts.outputs();
        switch (writer.output()) {
            case MARGIN:
                margins(at, outputs);
                break;
            case PREDICT:
                System.arraycopy(row, 0, answers, 0, outputs);
                facts.link().apply(answers, outputs);
                break;
            case PREDICT_PROBA:
                System.arraycopy(row, 0, answers, 0, outputs);
                if (facts.link().kind() == LinkFunction.Kind.GREATEST) {
                    LinkFunction.softmax(answers, outputs);
                } else {
                    facts.link().apply(answers, outputs);
                }
                if (outputs == 1) {
                    answers[1] = answers[0];
                    answers[0] = 1 - answers[1];
                }
                break;
            default:
                answers[0] = outputs == 1 ? (row[0] > 0 ? 1 : 0) : LinkFunction.greatest(row, outputs);
        }
        writer.put(answers);
    }

    /** The margins: raw scores before they are divided for an average. */
    private void margins(int at, int outputs) {
        for (int o = 0; o < outputs; o++) {
            answers[o] = sums.get(at + o);
        }
    }

    @Override
    public void cancel() {
        cancelled = true;
    }

    @Override
    public void close() {}
}
