// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Converts examples to the inputs of a signature. The signatures of a SavedModel, and of other models those for
 * classification or regression with a single BYTES input, get the serialized examples, which TensorFlow's graphs parse
 * themselves. Every other signature gets, for each
 * input, the feature of the same name. When it has one numeric input of two dimensions and the model names its columns
 * ({@code feature_names}), the features of these names become the columns of that input. Stateless.
 */
public final class ExampleTensors {
    /** The model property that names the columns, separated by commas. */
    public static final String COLUMNS = "feature_names";

    private ExampleTensors() {}

    private static boolean takesMessages(ModelMetadata metadata, Signature signature) {
        return signature.inputs().size() == 1
                && signature.inputs().get(0).dataType() == DataType.BYTES
                && (ExampleSignatures.ofSavedModel(metadata)
                        || signature.method().equals(Signature.CLASSIFY)
                        || signature.method().equals(Signature.REGRESS));
    }

    /**
     * Creates the inputs, which the caller owns. Their first dimension is the number of examples.
     *
     * @param metadata the model
     * @param signature the signature to call
     * @throws ServingException INVALID_ARGUMENT without examples, or for an example that lacks a feature or has an
     *     unsuitable one; the message names the example and the feature
     */
    public static List<Tensor> of(ModelMetadata metadata, Signature signature, ExampleList examples) {
        if (examples.size() == 0) {
            throw ServingException.invalidArgument("Input is empty.");
        }
        if (takesMessages(metadata, signature)) {
            return List.of(messages(signature.inputs().get(0).name(), examples));
        }
        List<Example> all = examples.all();
        String columns = metadata.properties().getOrDefault(COLUMNS, "");
        List<Tensor> tensors = new ArrayList<>();
        boolean done = false;
        try {
            for (TensorSpec spec : signature.inputs()) {
                if (signature.inputs().size() == 1
                        && !columns.isEmpty()
                        && isMatrix(spec)
                        && !anyHas(all, spec.name())) {
                    tensors.add(matrix(spec, all, columns.split(",", -1)));
                } else if (!spec.optional() || anyHas(all, spec.name())) {
                    tensors.add(tensor(spec, all));
                }
            }
            done = true;
            return tensors;
        } finally {
            if (!done) {
                Tensor.closeAll(tensors);
            }
        }
    }

    private static boolean isMatrix(TensorSpec spec) {
        return spec.shape().rank() == 2 && spec.dataType() != DataType.BYTES;
    }

    private static boolean anyHas(List<Example> all, String name) {
        for (Example example : all) {
            if (example.features().containsKey(name)) {
                return true;
            }
        }
        return false;
    }

    private static Tensor messages(String name, ExampleList examples) {
        byte[][] values = new byte[examples.size()][];
        for (int i = 0; i < values.length; i++) {
            values[i] = examples.message(i);
        }
        return strings(name, Shape.of(values.length), values);
    }

    private static Tensor strings(String name, Shape shape, byte[][] values) {
        long bytes = 0;
        for (byte[] value : values) {
            bytes += 4L + value.length;
        }
        if (bytes > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' takes " + bytes + " bytes (expected: less than 2 GiB)");
        }
        return Tensor.ofBytes(name, shape, values);
    }

    private static Feature feature(List<Example> all, int i, String name, boolean column) {
        Feature feature = all.get(i).features().get(name);
        if (feature == null || feature.kind() == Feature.Kind.NONE) {
            throw ServingException.invalidArgument("example " + i + " has no feature '" + name + "' (expected: one for "
                    + (column ? "every column" : "every input") + " of the model; given: "
                    + all.get(i).features().keySet() + ")");
        }
        return feature;
    }

    private static Tensor matrix(TensorSpec spec, List<Example> all, String[] columns) {
        long width = spec.shape().dim(1);
        if (width >= 0 && width != columns.length) {
            throw ServingException.invalidArgument("input '" + spec.name() + "' has " + width + " columns, but "
                    + columns.length + " are named: examples need a feature named '" + spec.name() + "'");
        }
        Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), Shape.of(all.size(), columns.length));
        boolean done = false;
        try {
            FeatureTensorBuilder numbers = new FeatureTensorBuilder(tensor);
            for (int i = 0; i < all.size(); i++) {
                for (String column : columns) {
                    Feature feature = feature(all, i, column, true);
                    if (feature.size() != 1) {
                        throw wrongSize(i, column, feature.size(), "1");
                    }
                    numbers.add(feature, i, column);
                }
            }
            done = true;
            return tensor;
        } finally {
            if (!done) {
                tensor.close();
            }
        }
    }

    private static Tensor tensor(TensorSpec spec, List<Example> all) {
        String name = spec.name();
        int size = feature(all, 0, name, false).size();
        Shape shape = shape(spec, all.size(), size);
        for (int i = 1; i < all.size(); i++) {
            int other = feature(all, i, name, false).size();
            if (other != size) {
                throw wrongSize(i, name, other, size + ", as in example 0");
            }
        }
        if (spec.dataType() == DataType.BYTES) {
            return strings(name, shape, texts(all, name, size));
        }
        Tensor tensor = Tensor.allocate(name, spec.dataType(), shape);
        boolean done = false;
        try {
            FeatureTensorBuilder numbers = new FeatureTensorBuilder(tensor);
            for (int i = 0; i < all.size(); i++) {
                numbers.add(feature(all, i, name, false), i, name);
            }
            done = true;
            return tensor;
        } finally {
            if (!done) {
                tensor.close();
            }
        }
    }

    private static byte[][] texts(List<Example> all, String name, int size) {
        byte[][] values = new byte[Math.multiplyExact(all.size(), size)][];
        for (int i = 0; i < all.size(); i++) {
            Feature feature = feature(all, i, name, false);
            if (feature.kind() != Feature.Kind.BYTES && size > 0) {
                throw FeatureTensorBuilder.wrongKind(feature, i, name, DataType.BYTES);
            }
            for (int j = 0; j < size; j++) {
                values[i * size + j] = feature.bytesAt(j);
            }
        }
        return values;
    }

    private static ServingException wrongSize(int example, String feature, int size, String expected) {
        return ServingException.invalidArgument("feature '" + feature + "' of example " + example + " has " + size
                + " values (expected: " + expected + ")");
    }

    /** The shape of {@code n} examples with {@code size} values each, according to the model's specification. */
    private static Shape shape(TensorSpec spec, int n, int size) {
        int rank = spec.shape().rank();
        if (rank == 0) {
            return !spec.unchecked() && n == 1 && size == 1
                    ? Shape.SCALAR
                    : size == 1 ? Shape.of(n) : Shape.of(n, size);
        }
        long[] dims = spec.shape().dims();
        dims[0] = n;
        int open = -1;
        long known = 1;
        for (int i = 1; i < rank; i++) {
            if (dims[i] < 0 && open < 0) {
                open = i;
            } else if (dims[i] < 0) {
                throw ServingException.invalidArgument("input '" + spec.name() + "' of shape " + spec.shape()
                        + " has more than one dimension of unknown size, which a feature's list of values cannot fill");
            } else {
                known *= dims[i];
            }
        }
        if (open >= 0) {
            dims[open] = known == 0 ? 0 : size / known;
            known *= dims[open];
        }
        if (known != size) {
            long[] one = Arrays.copyOfRange(spec.shape().dims(), 1, rank);
            throw wrongSize(0, spec.name(), size, "as many as shape " + Arrays.toString(one) + " takes");
        }
        return Shape.of(dims);
    }
}
