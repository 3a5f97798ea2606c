// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;
import java.util.function.DoubleUnaryOperator;

/** Transformers that look at one value at a time, or pick columns. Stateless. */
final class Columns {
    private Columns() {}

    /** A value at a time. Immutable. */
    static final class Mapped extends Transformer {
        private final DoubleUnaryOperator map;

        Mapped(String type, int features, DoubleUnaryOperator map) {
            super(type, features, features);
            this.map = map;
        }

        @Override
        boolean quick() {
            return true;
        }

        @Override
        Table transform(Table table) {
            double[] x = table.numbers(type());
            Table result = Table.of(table.rows(), table.columns());
            for (int i = 0; i < x.length; i++) {
                result.values()[i] = map.applyAsDouble(x[i]);
            }
            return result;
        }
    }

    /** Everything as it is. Immutable. */
    static final class Same extends Transformer {
        Same(String type, int features) {
            super(type, features, features);
        }

        @Override
        boolean quick() {
            return true;
        }

        @Override
        Table transform(Table table) {
            return table;
        }
    }

    /** Some of the columns. Immutable. */
    static final class Selected extends Transformer {
        private final int[] kept;

        Selected(String type, int features, int[] kept) {
            super(type, features, kept.length);
            this.kept = kept;
        }

        @Override
        boolean quick() {
            return true;
        }

        @Override
        Table transform(Table table) {
            return table.select(kept);
        }
    }

    /** Numbers of labels. Immutable. */
    static final class LabelNumbers extends Transformer {
        private final Categories categories;

        LabelNumbers(Fields f) {
            super(f.type(), 1, 1);
            categories = new Categories(f.array("classes_"));
        }

        @Override
        int width(Method method) {
            return 0;
        }

        @Override
        io.nereid.tensor.DataType type(Method method) {
            return io.nereid.tensor.DataType.INT64;
        }

        boolean takesText() {
            return categories.hasTexts();
        }

        @Override
        Table transform(Table table) {
            double[] numbers = new double[table.rows()];
            for (int r = 0; r < numbers.length; r++) {
                int place = categories.find(table.at(r, 0), table.text(r, 0));
                if (place < 0) {
                    throw ServingException.invalidArgument("y contains a previously unseen label in row " + r);
                }
                numbers[r] = place;
            }
            return Table.column(numbers);
        }
    }

    static Estimator binarizer(Fields f) {
        double threshold = f.number("threshold", 0);
        return new Mapped(f.type(), f.features(), v -> v > threshold ? 1 : 0);
    }

    /** Variances above a threshold. */
    static Estimator varianceThreshold(Fields f) {
        double threshold = f.number("threshold", 0);
        double[] variances = f.doubles("variances_");
        java.util.List<Integer> kept = new java.util.ArrayList<>();
        for (int i = 0; i < variances.length; i++) {
            if (variances[i] > threshold) {
                kept.add(i);
            }
        }
        return new Selected(f.type(), variances.length, Steps.ints(kept));
    }

    /** The best columns by score; of equal scores the later ones, as a stable sort has it. */
    static Estimator selectKBest(Fields f) {
        double[] scores = f.doubles("scores_");
        int k = f.any("k") instanceof Number n ? n.intValue() : scores.length;
        Integer[] order = new Integer[scores.length];
        for (int i = 0; i < order.length; i++) {
            order[i] = i;
            scores[i] = Double.isNaN(scores[i]) ? -Double.MAX_VALUE : scores[i];
        }
        java.util.Arrays.sort(order, (a, b) -> Double.compare(scores[a], scores[b]));
        int[] kept = new int[Math.min(Math.max(k, 0), order.length)];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = order[order.length - kept.length + i];
        }
        java.util.Arrays.sort(kept);
        return new Selected(f.type(), scores.length, kept);
    }

    /** A function of numpy, applied to every value. */
    static Estimator function(Fields f) {
        Object function = f.any("func");
        if (function == null) {
            return new Same(f.type(), f.features());
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
        DoubleUnaryOperator map = switch (name) {
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
            default -> throw f.unsupported("func");
        };
        return new Mapped(f.type(), f.features(), map);
    }
}
