// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.backends.sklearn.pickle.DType;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PyList;
import io.nereid.backends.sklearn.pickle.PyNone;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.PyTuple;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The attributes of an estimator in a model file, by name: constructor parameters and fitted attributes. Accessors
 * convert to Java types, and their errors name the class and the attribute. An immutable view of a {@link PyObject},
 * confined to the thread that reads the file.
 */
public final class EstimatorAttributes {
    /** Of a sparse matrix that is converted to a dense one. */
    private static final int MOST_CELLS = 1 << 24;

    private final PyObject object;

    public EstimatorAttributes(PyObject object) {
        this.object = object;
    }

    /** The class name, such as {@code RandomForestClassifier}. */
    public String type() {
        return object.type().name();
    }

    public String path() {
        return object.type().path();
    }

    public PyObject object() {
        return object;
    }

    /** Whether the attribute is present and not None. */
    public boolean has(String name) {
        Object value = object.attributes().get(name);
        return value != null && value != PyNone.NONE;
    }

    /** Whether the attribute is present, possibly as None. */
    public boolean contains(String name) {
        return object.attributes().containsKey(name);
    }

    public @Nullable Object any(String name) {
        Object value = object.attributes().get(name);
        return value == PyNone.NONE ? null : value;
    }

    public Object required(String... names) {
        for (String name : names) {
            Object value = any(name);
            if (value != null) {
                return value;
            }
        }
        throw UnsupportedModel.unsupported(path() + " has no '" + names[0]
                + "': it is not fitted, or of an unsupported version of scikit-learn" + version());
    }

    private String version() {
        return object.attributes().get("_sklearn_version") instanceof String v && v.length() < 20 ? " (" + v + ")" : "";
    }

    public RuntimeException unsupported(String name) {
        Object value = any(name);
        String shown = value instanceof String s && s.length() < 60
                ? "'" + s + "'"
                : value instanceof Number n ? n.toString() : value == null ? "None" : PythonValues.kind(value);
        return UnsupportedModel.unsupported(path() + " with " + name + "=" + shown + " is not supported");
    }

    public String text(String name, String otherwise) {
        return any(name) instanceof String s ? s : otherwise;
    }

    public boolean flag(String name, boolean otherwise) {
        return any(name) instanceof Boolean b ? b : otherwise;
    }

    public double number(String name) {
        return PythonValues.number(required(name));
    }

    public double number(String name, double otherwise) {
        Object value = any(name);
        return value instanceof Number n
                ? n.doubleValue()
                : value instanceof NdArray a && a.count() == 1 ? a.doubles()[0] : otherwise;
    }

    public int integer(String name, int otherwise) {
        return (int) number(name, otherwise);
    }

    public NdArray array(String... names) {
        Object value = required(names);
        if (value instanceof NdArray a) {
            return a;
        }
        if (value instanceof PyObject o && o.type().isOf("scipy.sparse")) {
            return dense(o);
        }
        throw UnsupportedModel.unsupported(
                path() + " has " + PythonValues.kind(required(names)) + " for '" + names[0] + "' (expected: an array)");
    }

    /** Converts a {@code scipy.sparse} matrix of compressed rows (CSR) to a dense array. */
    private NdArray dense(PyObject matrix) {
        EstimatorAttributes f = new EstimatorAttributes(matrix);
        if (!f.type().startsWith("csr")) {
            throw UnsupportedModel.unsupported(
                    path() + " with a " + f.path() + " (expected: a csr_matrix or an array)");
        }
        List<Object> shape = f.list("_shape", "shape");
        double rows = shape.size() == 2 ? PythonValues.number(shape.get(0)) : -1;
        double columns = shape.size() == 2 ? PythonValues.number(shape.get(1)) : -1;
        double[] data = f.doubles("data");
        int[] places = f.array("indices").ints();
        int[] ends = f.array("indptr").ints();
        if (!(rows >= 0 && columns >= 0 && rows * columns <= MOST_CELLS)
                || ends.length != rows + 1
                || places.length != data.length) {
            throw UnsupportedModel.corrupt(path() + " has a sparse matrix of " + rows + " x " + columns
                    + " (expected: at most " + MOST_CELLS + " cells, and consistent arrays)");
        }
        ByteBuffer cells =
                ByteBuffer.allocate(((int) (rows * columns)) * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int r = 0; r < rows; r++) {
            for (int i = ends[r]; i < ends[r + 1]; i++) {
                if (i < 0 || i >= data.length || places[i] < 0 || places[i] >= columns) {
                    throw UnsupportedModel.corrupt(path() + " has a sparse matrix with an index out of range");
                }
                int at = ((int) (r * columns + places[i])) * Double.BYTES;
                cells.putDouble(at, cells.getDouble(at) + data[i]);
            }
        }
        return new NdArray(new int[] {(int) rows, (int) columns}, DType.parse("f8"), false, cells.array());
    }

    public double[] doubles(String... names) {
        Object value = required(names);
        return value instanceof Number n
                ? new double[] {n.doubleValue()}
                : array(names).doubles();
    }

    /** An array of exactly this length. */
    public double[] doubles(int length, String... names) {
        return sized(doubles(names), length, names[0]);
    }

    /** An array of exactly this length, or null when the attribute is absent or None. */
    public double @Nullable [] optional(int length, String name) {
        return has(name) ? sized(doubles(name), length, name) : null;
    }

    private double[] sized(double[] values, int length, String name) {
        if (values.length != length) {
            throw UnsupportedModel.corrupt(
                    path() + " has " + values.length + " values in '" + name + "' (expected: " + length + ")");
        }
        return values;
    }

    public List<Object> list(String... names) {
        return asList(required(names));
    }

    public static List<Object> asList(Object value) {
        if (value instanceof PyList l) {
            return l.items();
        }
        if (value instanceof PyTuple t) {
            return t.items();
        }
        if (value instanceof NdArray a) {
            return List.of(a.values());
        }
        if (value instanceof PyObject o) {
            return o.elements().items();
        }
        throw UnsupportedModel.unsupported("it has " + PythonValues.kind(value) + " (expected: a list)");
    }

    public PyObject object(String... names) {
        if (required(names) instanceof PyObject o) {
            return o;
        }
        throw UnsupportedModel.unsupported(
                path() + " has " + PythonValues.kind(required(names)) + " for '" + names[0] + "'");
    }

    public static PyObject asObject(Object value) {
        if (value instanceof PyObject o) {
            return o;
        }
        throw UnsupportedModel.unsupported("it has " + PythonValues.kind(value) + " (expected: an estimator)");
    }

    /**
     * The number of features that it was fitted to; -1 when the file does not store it. It is a claim of the file, by
     * which rows are allocated, and therefore limited.
     */
    public int features() {
        int count = contains("n_features_in_") ? integer("n_features_in_", -1) : integer("n_features_", -1);
        if (count > MOST_CELLS) {
            throw UnsupportedModel.unsupported(
                    path() + " has " + count + " features (expected: at most " + MOST_CELLS + ")");
        }
        return count;
    }

    /** The names of the columns that it was fitted to; empty when it was fitted to an array. */
    public List<String> names() {
        List<String> names = new ArrayList<>();
        Object value = any("feature_names_in_");
        value = value == null ? any("_feature_names_in") : value;
        if (value instanceof NdArray a) {
            for (Object name : a.values()) {
                names.add(String.valueOf(name));
            }
        }
        if (names.isEmpty()
                && any("_df_columns") instanceof PyObject index
                && index.arguments().size() > 1
                && index.arguments().get(1) instanceof PyDict d
                && d.items().get("data") instanceof NdArray a) {
            // scikit-learn 0.24 stores the index of the data frame instead.
            for (Object name : a.values()) {
                names.add(String.valueOf(name));
            }
        }
        return names;
    }
}
