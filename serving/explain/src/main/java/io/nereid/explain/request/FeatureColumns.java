// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The features of a model: the columns of its only input, or one input for each feature. Immutable.
 *
 * @param specs the inputs
 * @param matrix whether there is one input with a column for each feature
 * @param single whether that input is a single row without a dimension for rows
 * @param names the names of the features
 */
public record FeatureColumns(List<TensorSpec> specs, boolean matrix, boolean single, List<String> names) {
    private static final String FEATURE_NAMES = "feature_names";

    /**
     * Derives the features from a model's metadata.
     *
     * @param given the width of the first row, for a model that does not declare it; -1 when unknown
     * @throws ServingException INVALID_ARGUMENT for a model that does not take rows of numbers
     */
    public static FeatureColumns of(ModelMetadata model, int given) {
        List<TensorSpec> specs =
                model.inputs().stream().filter(s -> !s.optional()).toList();
        if (specs.isEmpty()) {
            throw refused(model, "it has no inputs that must be given");
        }
        for (TensorSpec spec : specs) {
            if (spec.dataType() == DataType.BYTES) {
                throw refused(model, "its input '" + spec.name() + "' takes strings");
            }
            switch (spec.dataType()) {
                case FP64, FP32, INT64, INT32, INT16, INT8, UINT8, BOOL -> {}
                default -> throw refused(model, "its input '" + spec.name() + "' is of type " + spec.dataType());
            }
        }
        if (specs.size() > 1) {
            for (TensorSpec spec : specs) {
                Shape shape = spec.shape();
                if (shape.rank() == 0 || shape.rank() > 2 || (shape.rank() == 2 && shape.dim(1) != 1)) {
                    throw refused(
                            model,
                            "its input '" + spec.name() + "' is of shape " + shape
                                    + ", where several inputs must have one value a row each");
                }
            }
            return new FeatureColumns(
                    specs, false, false, specs.stream().map(TensorSpec::name).toList());
        }
        return matrix(model, specs, given);
    }

    private static FeatureColumns matrix(ModelMetadata model, List<TensorSpec> specs, int given) {
        Shape shape = specs.get(0).shape();
        int rank = shape.rank();
        boolean single = rank == 1 && shape.dim(0) > 0;
        long width = rank == 2 ? shape.dim(1) : rank == 1 ? (single ? shape.dim(0) : 1) : -2;
        if (width == -2 || (rank == 2 && shape.dim(0) > 1)) {
            throw refused(model, "its input '" + specs.get(0).name() + "' is of shape " + shape);
        }
        String known = model.properties().getOrDefault(FEATURE_NAMES, "");
        List<String> names = known.isEmpty() ? List.of() : List.of(known.split(",", -1));
        if (width < 0) {
            width = names.isEmpty() ? given : names.size();
            if (width <= 0) {
                throw ServingException.invalidArgument(
                        "model '" + model.id().model() + "' does not declare how many features it takes",
                        "send instances as rows of numbers, such as [[1, 2, 3]]");
            }
        }
        if (names.size() != width) {
            names = new ArrayList<>();
            for (int i = 0; i < width; i++) {
                names.add("f" + i);
            }
        }
        return new FeatureColumns(specs, true, single, List.copyOf(names));
    }

    private static ServingException refused(ModelMetadata model, String why) {
        return ServingException.invalidArgument(
                "model '" + model.id().model() + "' cannot be explained: " + why,
                "explanations are for models that take rows of numbers: one input [n, features], or one input for each"
                        + " feature");
    }

    public int count() {
        return names.size();
    }

    /** The largest number of rows in one request to the model. */
    public int most(int maxBatchSize, int preferred) {
        Shape shape = specs.get(0).shape();
        if (single || shape.dim(0) == 1) {
            return 1;
        }
        return maxBatchSize > 0 ? Math.min(maxBatchSize, preferred) : preferred;
    }

    /**
     * The model's inputs for some rows; the caller owns the tensors.
     *
     * @param values the rows, one after the other
     */
    public List<Tensor> tensors(double[] values, int rows) {
        int width = count();
        List<Tensor> made = new ArrayList<>();
        boolean whole = false;
        try {
            if (matrix) {
                TensorSpec spec = specs.get(0);
                Shape shape =
                        single ? Shape.of(width) : spec.shape().rank() == 1 ? Shape.of(rows) : Shape.of(rows, width);
                Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), shape);
                made.add(tensor);
                ByteBuffer to = tensor.buffer();
                for (int i = 0; i < rows * width; i++) {
                    put(to, spec.dataType(), values[i], i % width);
                }
            } else {
                for (int c = 0; c < width; c++) {
                    TensorSpec spec = specs.get(c);
                    Shape shape = spec.shape().rank() == 1 ? Shape.of(rows) : Shape.of(rows, 1);
                    Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), shape);
                    made.add(tensor);
                    ByteBuffer to = tensor.buffer();
                    for (int r = 0; r < rows; r++) {
                        put(to, spec.dataType(), values[r * width + c], c);
                    }
                }
            }
            whole = true;
            return made;
        } finally {
            if (!whole) {
                Tensor.closeAll(made);
            }
        }
    }

    private void put(ByteBuffer to, DataType type, double value, int column) {
        if (type == DataType.FP64) {
            to.putDouble(value);
            return;
        }
        if (type == DataType.FP32) {
            to.putFloat((float) value);
            return;
        }
        if (Double.isNaN(value)) {
            throw ServingException.invalidArgument(
                    "feature '" + names.get(column) + "' is missing, and the model takes whole numbers for it",
                    "give a value for it in every row");
        }
        long whole = Math.round(value);
        switch (type) {
            case INT64 -> to.putLong(whole);
            case INT32 -> to.putInt((int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, whole)));
            case INT16 -> to.putShort((short) Math.max(Short.MIN_VALUE, Math.min(Short.MAX_VALUE, whole)));
            case INT8 -> to.put((byte) Math.max(Byte.MIN_VALUE, Math.min(Byte.MAX_VALUE, whole)));
            case UINT8 -> to.put((byte) Math.max(0, Math.min(255, whole)));
            default -> to.put((byte) (whole != 0 ? 1 : 0));
        }
    }

    /** Whether a feature is an integer. */
    public boolean whole(int feature) {
        DataType type = specs.get(matrix ? 0 : feature).dataType();
        return type != DataType.FP64 && type != DataType.FP32;
    }

    /**
     * The index of a feature.
     *
     * @param what a name, or a number from 0
     * @throws ServingException INVALID_ARGUMENT when the feature does not exist
     */
    public int place(Object what, String parameter) {
        if (what instanceof Double number && number == Math.rint(number) && number >= 0 && number < count()) {
            return number.intValue();
        }
        if (what instanceof String name) {
            int at = names.indexOf(name);
            if (at >= 0) {
                return at;
            }
            ExplainOptions.require(name, names, "feature in parameter '" + parameter + "':");
        }
        throw ExplainOptions.wrong(parameter, what, "names of features, or numbers from 0 to " + (count() - 1));
    }
}
