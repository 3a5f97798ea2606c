// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Classifiers made of those for two classes: each class against the rest, or against each other. Stateless. */
final class Duels {
    private Duels() {}

    /** Says how much a row is of the second of two classes. Immutable. */
    private static final class Duel {
        /** Null for one that always says the same. */
        private final @Nullable Estimator estimator;

        private final double always;

        Duel(Fields f, Object member, Assembly assembly) {
            if (member instanceof PyObject o && o.type().name().equals("_ConstantPredictor")) {
                estimator = null;
                always = new Fields(o).array("y_").doubles()[0];
                return;
            }
            always = 0;
            Estimator built = assembly.build(member);
            estimator = built;
            if (built.width(Method.PREDICT) != 0
                    || built.type(Method.PREDICT) == DataType.BYTES
                    || (hasDecision() ? built.width(Method.DECISION_FUNCTION) != 0 : !hasProba())) {
                throw Refusal.unsupported(
                        f.path() + " with a " + built.type() + ", which does not tell two classes apart");
            }
        }

        boolean hasDecision() {
            return estimator == null || estimator.can(Method.DECISION_FUNCTION);
        }

        boolean hasProba() {
            return estimator == null
                    || (estimator.can(Method.PREDICT_PROBA) && estimator.width(Method.PREDICT_PROBA) == 2);
        }

        double threshold() {
            return hasDecision() ? 0 : 0.5;
        }

        private static double[] same(int rows, double value) {
            double[] values = new double[rows];
            Arrays.fill(values, value);
            return values;
        }

        double[] scores(Table table) {
            if (estimator == null) {
                return same(table.rows(), always);
            }
            return hasDecision()
                    ? estimator.checked(Method.DECISION_FUNCTION, table).values()
                    : proba(table);
        }

        double[] proba(Table table) {
            return estimator == null
                    ? same(table.rows(), always)
                    : estimator
                            .checked(Method.PREDICT_PROBA, table)
                            .select(new int[] {1})
                            .values();
        }

        /** 0 or 1. */
        double[] said(Table table) {
            return estimator == null
                    ? same(table.rows(), always)
                    : estimator.checked(Method.PREDICT, table).values();
        }

        int features() {
            return estimator == null ? -1 : estimator.features();
        }
    }

    private static List<Duel> duels(Fields f, Assembly assembly) {
        List<Duel> duels = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            duels.add(new Duel(f, member, assembly));
        }
        if (duels.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no estimators");
        }
        return duels;
    }

    private static int features(Fields f, List<Duel> duels) {
        return f.knows("n_features_in_") ? f.features() : duels.get(0).features();
    }

    static Estimator oneAgainstRest(Fields f, Assembly assembly) {
        Fields binarizer = new Fields(f.object("label_binarizer_"));
        List<Duel> duels = duels(f, assembly);
        Labels labels = Labels.of(binarizer.array("classes_"));
        if (duels.size() != (labels.count() == 2 && !many(binarizer) ? 1 : labels.count())) {
            throw Refusal.corrupt(f.path() + " has " + duels.size() + " estimators for " + labels.count() + " classes");
        }
        return many(binarizer) ? new Tags(f, duels) : new Rest(f, duels, labels);
    }

    private static boolean many(Fields binarizer) {
        return binarizer.text("y_type_", "").startsWith("multilabel");
    }

    private static Table beside(List<Duel> duels, Table table, boolean proba) {
        Table all = Table.of(table.rows(), duels.size());
        for (int d = 0; d < duels.size(); d++) {
            double[] one = proba ? duels.get(d).proba(table) : duels.get(d).scores(table);
            for (int r = 0; r < one.length; r++) {
                all.values()[r * duels.size() + d] = one[r];
            }
        }
        return all;
    }

    /** One class of several. Immutable. */
    private static final class Rest extends Classifier {
        private final List<Duel> duels;

        Rest(Fields f, List<Duel> duels, Labels labels) {
            super(f.type(), Duels.features(f, duels), labels);
            this.duels = duels;
        }

        @Override
        boolean hasProba() {
            return duels.stream().allMatch(Duel::hasProba);
        }

        @Override
        boolean hasDecision() {
            return duels.stream().allMatch(Duel::hasDecision);
        }

        @Override
        Table decision(Table table) {
            return beside(duels, table, false);
        }

        @Override
        int[] classes(Table table) {
            Table scores = beside(duels, table, false);
            int[] classes = new int[table.rows()];
            for (int r = 0; r < classes.length; r++) {
                if (duels.size() == 1) {
                    classes[r] = scores.values()[r] > duels.get(0).threshold() ? 1 : 0;
                    continue;
                }
                // Of equals the last one wins.
                for (int c = 1; c < duels.size(); c++) {
                    classes[r] = scores.at(r, c) >= scores.at(r, classes[r]) ? c : classes[r];
                }
            }
            return classes;
        }

        @Override
        Table proba(Table table) {
            Table all = beside(duels, table, true);
            if (duels.size() == 1) {
                return twoColumns(all.values());
            }
            for (int r = 0; r < all.rows(); r++) {
                double sum = 0;
                for (int c = 0; c < all.columns(); c++) {
                    sum += all.at(r, c);
                }
                for (int c = 0; c < all.columns(); c++) {
                    all.values()[r * all.columns() + c] /= sum;
                }
            }
            return all;
        }
    }

    /** Any of several, each for itself. Immutable. */
    private static final class Tags extends Estimator {
        private final List<Duel> duels;

        Tags(Fields f, List<Duel> duels) {
            super(f.type(), Duels.features(f, duels));
            this.duels = duels;
        }

        @Override
        List<Method> methods() {
            List<Method> methods = new ArrayList<>(List.of(Method.PREDICT));
            if (duels.stream().allMatch(Duel::hasProba)) {
                methods.add(Method.PREDICT_PROBA);
            }
            if (duels.stream().allMatch(Duel::hasDecision)) {
                methods.add(Method.DECISION_FUNCTION);
            }
            return methods;
        }

        @Override
        int width(Method method) {
            return duels.size();
        }

        @Override
        DataType type(Method method) {
            return method == Method.PREDICT ? DataType.INT64 : DataType.FP64;
        }

        @Override
        Table apply(Method method, Table table) {
            Table all = beside(duels, table, method == Method.PREDICT_PROBA);
            double[] values = all.values();
            for (int i = 0; method == Method.PREDICT && i < values.length; i++) {
                values[i] = values[i] > duels.get(0).threshold() ? 1 : 0;
            }
            return all;
        }
    }

    static Estimator oneAgainstOne(Fields f, Assembly assembly) {
        if (f.has("pairwise_indices_")) {
            throw f.unsupported("pairwise_indices_");
        }
        List<Duel> duels = duels(f, assembly);
        Labels labels = Labels.of(f.array("classes_"));
        int classes = labels.count();
        if (duels.size() != (long) classes * (classes - 1) / 2) {
            throw Refusal.corrupt(f.path() + " has " + duels.size() + " estimators for " + classes + " classes");
        }
        return new Pairs(f, duels, labels);
    }

    /** Votes of pairs, and how sure they are. Immutable. */
    private static final class Pairs extends Classifier {
        private final List<Duel> duels;

        Pairs(Fields f, List<Duel> duels, Labels labels) {
            super(f.type(), Duels.features(f, duels), labels);
            this.duels = duels;
        }

        @Override
        boolean hasDecision() {
            return true;
        }

        @Override
        Table decision(Table table) {
            int classes = labels().count();
            Table votes = Table.of(table.rows(), classes);
            double[] sure = new double[votes.values().length];
            int d = 0;
            for (int i = 0; i < classes; i++) {
                for (int j = i + 1; j < classes; j++, d++) {
                    double[] scores = duels.get(d).scores(table);
                    double[] said = duels.get(d).said(table);
                    for (int r = 0; r < scores.length; r++) {
                        sure[r * classes + i] -= scores[r];
                        sure[r * classes + j] += scores[r];
                        votes.values()[r * classes + (said[r] == 0 ? i : j)]++;
                    }
                }
            }
            for (int i = 0; i < sure.length; i++) {
                votes.values()[i] += sure[i] / (3 * (Math.abs(sure[i]) + 1));
            }
            return classes == 2 ? votes.select(new int[] {1}) : votes;
        }

        @Override
        int[] classes(Table table) {
            Table scores = decision(table);
            if (labels().count() > 2) {
                return Labels.greatest(scores);
            }
            int[] classes = new int[table.rows()];
            for (int r = 0; r < classes.length; r++) {
                classes[r] = scores.values()[r] > duels.get(0).threshold() ? 1 : 0;
            }
            return classes;
        }
    }
}
