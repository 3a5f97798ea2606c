// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.compose.Passthrough;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Invertible;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PyGlobal;
import io.nereid.backends.sklearn.pickle.PyObject;
import java.util.function.DoubleUnaryOperator;

/** Applies a function to each value: {@code FunctionTransformer} and {@code Binarizer}. Immutable. */
public final class FunctionTransformer extends Transformer implements Invertible {
    private final DoubleUnaryOperator map;
    private final DoubleUnaryOperator back;

    private FunctionTransformer(String type, int features, DoubleUnaryOperator map, DoubleUnaryOperator back) {
        super(type, features, features);
        this.map = map;
        this.back = back;
    }

    @Override
    public boolean keepsWidth() {
        return true;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        return mapped(table, map);
    }

    @Override
    public DataTable inverse(DataTable table) {
        return mapped(table, back);
    }

    private DataTable mapped(DataTable table, DoubleUnaryOperator function) {
        double[] x = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < x.length; i++) {
            result.values()[i] = function.applyAsDouble(x[i]);
        }
        return result;
    }

    /**
     * {@code FunctionTransformer} with a function of numpy: recognised by name, because no code of the file may run.
     */
    public static Estimator of(EstimatorAttributes f) {
        if (!f.has("func") && !f.has("inverse_func")) {
            return new Passthrough(f.type(), f.features());
        }
        return new FunctionTransformer(f.type(), f.features(), function(f, "func"), function(f, "inverse_func"));
    }

    private static DoubleUnaryOperator function(EstimatorAttributes f, String attribute) {
        Object function = f.any(attribute);
        if (function == null) {
            return DoubleUnaryOperator.identity();
        }
        if (f.has("kw_args")
                && f.any("kw_args") instanceof PyDict d
                && !d.items().isEmpty()) {
            throw f.unsupported("kw_args");
        }
        String name = function instanceof PyGlobal g
                ? g.name()
                : function instanceof PyObject o
                                && o.arguments().size() == 2
                                && o.arguments().get(1) instanceof String s
                        ? s
                        : function instanceof PyObject p
                                        && p.type().name().equals("partial")
                                        && !p.arguments().isEmpty()
                                        && p.arguments().get(0) instanceof PyGlobal of
                                ? of.name()
                                : "";
        return switch (name) {
            case "log1p" -> Math::log1p;
            case "log" -> Math::log;
            case "log2" -> v -> Math.log(v) / Math.log(2);
            case "log10" -> Math::log10;
            case "exp" -> Math::exp;
            case "expm1" -> Math::expm1;
            case "sqrt" -> Math::sqrt;
            case "square" -> v -> v * v;
            case "abs", "absolute", "fabs" -> Math::abs;
            case "sin" -> Math::sin;
            case "cos" -> Math::cos;
            case "tanh" -> Math::tanh;
            case "negative" -> v -> -v;
            case "reciprocal" -> v -> 1 / v;
            case "sign" -> Math::signum;
            case "check_array" -> DoubleUnaryOperator.identity();
            default -> throw f.unsupported(attribute);
        };
    }

    /** {@code Binarizer}: 1 for a value above the threshold, else 0. */
    public static Estimator binarizer(EstimatorAttributes f) {
        double threshold = f.number("threshold", 0);
        return new FunctionTransformer(
                f.type(), f.features(), v -> v > threshold ? 1 : 0, DoubleUnaryOperator.identity());
    }
}
