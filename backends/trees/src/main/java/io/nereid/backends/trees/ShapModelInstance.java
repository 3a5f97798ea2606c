// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.ModelInstance;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.forest.RowReader;
import io.nereid.backends.trees.forest.TreeShap;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An instance of the signature that returns SHAP values. Confined to one run at a time, except {@link #cancel}. */
final class ShapModelInstance implements ModelInstance {
    private final TreeModel model;
    private final ShapExplainer explanations;
    private final double[] row;
    private double[] contributions = {};
    private TreeShap.@Nullable Path path;
    private volatile boolean cancelled;

    ShapModelInstance(TreeModel model, ShapExplainer explanations) {
        this.model = model;
        this.explanations = explanations;
        this.row = new double[model.facts().features()];
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        cancelled = false;
        ParsedModel facts = model.facts();
        int rows = TreeModelInstance.rows(inputs.get(0), model);
        TreeShap shap = explanations.shap();
        TreeShap.Path scratch = path;
        if (scratch == null) {
            scratch = shap.newPath();
            path = scratch;
            contributions = new double[shap.width()];
        }
        DataType type = TreeConfig.type(facts);
        Shape shape = ShapExplainer.row(facts);
        long bytes = (long) rows * shap.width() * type.size();
        if (bytes > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the contributions of " + rows + " rows are " + bytes + " bytes (expected: < 2 GiB)",
                    "ask for fewer rows at once");
        }
        try (TensorScope results = new TensorScope()) {
            Tensor tensor = results.allocate(
                    ShapExplainer.OUTPUT, type, model.settings().rowVector() ? shape : shape.prepend(rows));
            explain(new RowReader(inputs.get(0), facts.features()), rows, tensor.buffer(), type, shap, scratch);
            for (int i = 1; i < outputs.size(); i++) {
                results.add(tensor.retain());
            }
            return results.release();
        }
    }

    private void explain(
            RowReader rows, int count, ByteBuffer to, DataType type, TreeShap shap, TreeShap.Path scratch) {
        for (int r = 0; r < count; r++) {
            for (int f = 0; f < row.length; f++) {
                row[f] = rows.value(r, f);
            }
            shap.explain(row, contributions, scratch, () -> cancelled);
            if (cancelled) {
                throw ServingException.of(ErrorCode.CANCELLED, "the run was stopped");
            }
            for (double value : contributions) {
                if (type == DataType.FP32) {
                    to.putFloat((float) value);
                } else {
                    to.putDouble(value);
                }
            }
        }
    }

    @Override
    public void cancel() {
        cancelled = true;
    }

    @Override
    public void close() {}
}
