// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neural;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/** The neural networks {@code MLPClassifier} and {@code MLPRegressor}. Stateless. */
public final class MultiLayerPerceptron {
    private MultiLayerPerceptron() {}

    /** The layers: weights transposed to [output][input], so that each output is a dot product. Immutable. */
    private static final class Layers {
        private final String type;
        private final double[][][] weights;
        private final double[][] biases;
        private final String hidden;
        private final String last;

        Layers(EstimatorAttributes f) {
            type = f.type();
            List<Object> w = f.list("coefs_");
            List<Object> b = f.list("intercepts_");
            hidden = f.text("activation", "relu");
            last = f.text("out_activation_", "identity");
            known(f, "activation", hidden);
            known(f, "out_activation_", last);
            if (w.isEmpty() || w.size() != b.size()) {
                throw UnsupportedModel.corrupt(f.path() + " has no layers");
            }
            weights = new double[w.size()][][];
            biases = new double[w.size()][];
            for (int l = 0; l < weights.length; l++) {
                if (!(w.get(l) instanceof NdArray wa) || !(b.get(l) instanceof NdArray ba) || wa.rank() != 2) {
                    throw UnsupportedModel.corrupt(f.path() + " has a layer without weights");
                }
                double[] all = wa.doubles();
                biases[l] = ba.doubles();
                weights[l] = new double[wa.dim(1)][wa.dim(0)];
                for (int i = 0; i < all.length; i++) {
                    weights[l][i % wa.dim(1)][i / wa.dim(1)] = all[i];
                }
                if (biases[l].length != wa.dim(1)
                        || wa.dim(0) == 0
                        || wa.dim(1) == 0
                        || (l > 0 && wa.dim(0) != weights[l - 1].length)) {
                    throw UnsupportedModel.corrupt(f.path() + " has layers of inconsistent sizes");
                }
            }
        }

        private static void known(EstimatorAttributes f, String field, String name) {
            if (!List.of("identity", "logistic", "tanh", "relu", "softmax").contains(name)) {
                throw f.unsupported(field);
            }
        }

        int features() {
            return weights[0][0].length;
        }

        int outputs() {
            return biases[biases.length - 1].length;
        }

        boolean quick() {
            long sum = 0;
            for (double[][] layer : weights) {
                sum += (long) layer.length * layer[0].length;
            }
            return sum < 8192;
        }

        DataTable run(DataTable table) {
            double[] x = table.finite(type);
            DataTable result = DataTable.of(table.rows(), outputs());
            for (int r = 0; r < table.rows(); r++) {
                double[] now = x;
                int from = r * table.columns();
                for (int l = 0; l < weights.length; l++) {
                    double[] next = new double[biases[l].length];
                    for (int i = 0; i < next.length; i++) {
                        next[i] = MatrixOps.dot(now, from, weights[l][i]) + biases[l][i];
                    }
                    activate(l == weights.length - 1 ? last : hidden, next);
                    now = next;
                    from = 0;
                }
                System.arraycopy(now, 0, result.values(), r * outputs(), outputs());
            }
            return result;
        }

        private static void activate(String name, double[] v) {
            if (name.equals("softmax")) {
                Classifier.softmax(v, v.length);
                return;
            }
            for (int i = 0; i < v.length; i++) {
                v[i] = switch (name) {
                    case "relu" -> Math.max(0, v[i]);
                    case "tanh" -> Math.tanh(v[i]);
                    case "logistic" -> Classifier.sigmoid(v[i]);
                    default -> v[i];
                };
            }
        }
    }

    public static Estimator regressor(EstimatorAttributes f) {
        Layers layers = new Layers(f);
        return new Regressor(f.type(), layers.features(), layers.outputs() == 1 ? 0 : layers.outputs()) {
            @Override
            public boolean quick() {
                return layers.quick();
            }

            @Override
            public DataTable predict(DataTable table) {
                return layers.run(table);
            }
        };
    }

    public static Estimator classifier(EstimatorAttributes f) {
        Layers layers = new Layers(f);
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        boolean binary = layers.outputs() == 1;
        if (labels.count() != (binary ? 2 : layers.outputs()) || (!binary && !layers.last.equals("softmax"))) {
            throw UnsupportedModel.unsupported(f.path() + " for multilabel targets is not supported");
        }
        return new Classifier(f.type(), layers.features(), labels) {
            @Override
            public boolean quick() {
                return layers.quick();
            }

            @Override
            public boolean hasProba() {
                return true;
            }

            @Override
            public DataTable proba(DataTable table) {
                DataTable result = layers.run(table);
                return binary ? twoColumns(result.values()) : result;
            }
        };
    }
}
