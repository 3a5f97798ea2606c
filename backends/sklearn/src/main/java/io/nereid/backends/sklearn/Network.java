// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.List;

/** The neural networks {@code MLPClassifier} and {@code MLPRegressor}. Stateless. */
final class Network {
    private Network() {}

    /** The layers: weights transposed to [output][input], so that each output is a dot product. Immutable. */
    private static final class Layers {
        private final String type;
        private final double[][][] weights;
        private final double[][] biases;
        private final String hidden;
        private final String last;

        Layers(Fields f) {
            type = f.type();
            List<Object> w = f.list("coefs_");
            List<Object> b = f.list("intercepts_");
            hidden = f.text("activation", "relu");
            last = f.text("out_activation_", "identity");
            known(f, "activation", hidden);
            known(f, "out_activation_", last);
            if (w.isEmpty() || w.size() != b.size()) {
                throw Refusal.corrupt(f.path() + " has no layers");
            }
            weights = new double[w.size()][][];
            biases = new double[w.size()][];
            for (int l = 0; l < weights.length; l++) {
                if (!(w.get(l) instanceof NdArray wa) || !(b.get(l) instanceof NdArray ba) || wa.rank() != 2) {
                    throw Refusal.corrupt(f.path() + " has a layer without weights");
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
                    throw Refusal.corrupt(f.path() + " has layers of inconsistent sizes");
                }
            }
        }

        private static void known(Fields f, String field, String name) {
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

        Table run(Table table) {
            double[] x = table.finite(type);
            Table result = Table.of(table.rows(), outputs());
            for (int r = 0; r < table.rows(); r++) {
                double[] now = x;
                int from = r * table.columns();
                for (int l = 0; l < weights.length; l++) {
                    double[] next = new double[biases[l].length];
                    for (int i = 0; i < next.length; i++) {
                        next[i] = Steps.dot(now, from, weights[l][i]) + biases[l][i];
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

    static Estimator regressor(Fields f) {
        Layers layers = new Layers(f);
        return new Regressor(f.type(), layers.features(), layers.outputs() == 1 ? 0 : layers.outputs()) {
            @Override
            boolean quick() {
                return layers.quick();
            }

            @Override
            Table predict(Table table) {
                return layers.run(table);
            }
        };
    }

    static Estimator classifier(Fields f) {
        Layers layers = new Layers(f);
        Labels labels = Labels.of(f.array("classes_"));
        boolean binary = layers.outputs() == 1;
        if (labels.count() != (binary ? 2 : layers.outputs()) || (!binary && !layers.last.equals("softmax"))) {
            throw Refusal.unsupported(f.path() + " for multilabel targets is not supported");
        }
        return new Classifier(f.type(), layers.features(), labels) {
            @Override
            boolean quick() {
                return layers.quick();
            }

            @Override
            boolean hasProba() {
                return true;
            }

            @Override
            Table proba(Table table) {
                Table result = layers.run(table);
                return binary ? twoColumns(result.values()) : result;
            }
        };
    }
}
