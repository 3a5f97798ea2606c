// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * Estimators of several targets: one member for each, or a chain in which each sees what those before it said. Stateless.
 */
final class Targets {
    private Targets() {}

    /** A classifier of several targets. Its probabilities lie side by side: the classes of each target in turn. Immutable. */
    abstract static class Classes extends Estimator {
        private final List<Labels> labels;
        private final DataType type;

        Classes(String type, int features, List<Labels> labels) {
            super(type, features);
            this.labels = labels;
            this.type = labels.get(0).type();
            for (Labels one : labels) {
                if (one.type() != this.type) {
                    throw Refusal.unsupported(type + " has targets of different types of labels");
                }
            }
        }

        /** Of a file's list of classes. */
        static List<Labels> labels(Fields f) {
            List<Labels> labels = new ArrayList<>();
            for (Object classes : f.list("classes_")) {
                if (!(classes instanceof NdArray a)) {
                    throw f.unsupported("classes_");
                }
                labels.add(Labels.of(a));
            }
            if (labels.isEmpty()) {
                throw Refusal.corrupt(f.path() + " has no targets");
            }
            return labels;
        }

        final List<Labels> labels() {
            return labels;
        }

        boolean hasProba() {
            return true;
        }

        abstract Table proba(Table table);

        /** The labels, a column a target. */
        Table predict(Table table) {
            Table all = proba(table);
            List<Table> columns = new ArrayList<>();
            int from = 0;
            for (Labels one : labels) {
                int[] places = new int[one.count()];
                for (int i = 0; i < places.length; i++) {
                    places[i] = from + i;
                }
                from += places.length;
                columns.add(one.pick(Labels.greatest(all.select(places))));
            }
            return Table.beside(table.rows(), columns);
        }

        @Override
        List<Method> methods() {
            return hasProba() ? List.of(Method.PREDICT, Method.PREDICT_PROBA) : List.of(Method.PREDICT);
        }

        @Override
        int width(Method method) {
            return method == Method.PREDICT
                    ? labels.size()
                    : labels.stream().mapToInt(Labels::count).sum();
        }

        @Override
        DataType type(Method method) {
            return method == Method.PREDICT ? type : DataType.FP64;
        }

        @Override
        Table apply(Method method, Table table) {
            return method == Method.PREDICT ? predict(table) : proba(table);
        }
    }

    private static List<Estimator> members(Fields f, Assembly assembly) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            Estimator one = assembly.build(member);
            if (!one.can(Method.PREDICT) || one.width(Method.PREDICT) != 0) {
                throw Refusal.unsupported(f.path() + " with a " + one.type() + ", which does not give one value a row");
            }
            members.add(one);
        }
        if (members.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    private static Table all(List<Estimator> members, Method method, Table table) {
        List<Table> parts = new ArrayList<>();
        for (Estimator member : members) {
            parts.add(member.checked(method, table));
        }
        return Table.beside(table.rows(), parts);
    }

    static Estimator regressor(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        return new Regressor(f.type(), members.get(0).features(), members.size()) {
            @Override
            Table predict(Table table) {
                return all(members, Method.PREDICT, table);
            }
        };
    }

    static Estimator classifier(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        List<Labels> labels = new ArrayList<>();
        boolean proba = true;
        for (Estimator member : members) {
            if (!f.has("classes_")) {
                if (!(member instanceof Classifier c)) {
                    throw Refusal.unsupported(f.path() + " with a " + member.type());
                }
                labels.add(c.labels());
            }
            proba &= member.can(Method.PREDICT_PROBA);
        }
        if (f.has("classes_")) {
            labels.addAll(Classes.labels(f));
        }
        for (int m = 0; m < members.size(); m++) {
            if (labels.size() != members.size()
                    || (proba
                            && members.get(m).width(Method.PREDICT_PROBA)
                                    != labels.get(m).count())) {
                throw Refusal.corrupt(f.path() + " has estimators that know other classes than it");
            }
        }
        boolean all = proba;
        return new Classes(f.type(), members.get(0).features(), labels) {
            @Override
            boolean hasProba() {
                return all;
            }

            @Override
            Table proba(Table table) {
                return all(members, Method.PREDICT_PROBA, table);
            }

            @Override
            Table predict(Table table) {
                return all(members, Method.PREDICT, table);
            }
        };
    }

    /** Each member sees what those before it said; the answers go to the places of {@code order_}. */
    static Estimator chain(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        int features = members.get(0).features();
        int[] order = f.has("order_") ? order(f.required("order_")) : new int[0];
        boolean[] seen = new boolean[members.size()];
        for (int place : order) {
            if (place < 0 || place >= seen.length || seen[place]) {
                throw Refusal.corrupt(f.path() + " has no order of its estimators");
            }
            seen[place] = true;
        }
        Method said = Method.of(f.text("chain_method_", "predict"));
        if (order.length != members.size() || said != Method.PREDICT) {
            throw f.unsupported("chain_method_");
        }
        for (Estimator member : members) {
            if (member.type(Method.PREDICT) == DataType.BYTES) {
                throw Refusal.unsupported(f.path() + " of texts");
            }
        }
        return new Chained(f.type(), features, members, order);
    }

    /** Immutable. */
    private static final class Chained extends Estimator {
        private final List<Estimator> members;
        private final int[] order;
        private final List<Method> methods = new ArrayList<>(List.of(Method.PREDICT));

        Chained(String type, int features, List<Estimator> members, int[] order) {
            super(type, features);
            this.members = members;
            this.order = order;
            if (members.stream().allMatch(m -> m.can(Method.PREDICT_PROBA) && m.width(Method.PREDICT_PROBA) == 2)) {
                methods.add(Method.PREDICT_PROBA);
            }
            if (members.stream()
                    .allMatch(m -> m.can(Method.DECISION_FUNCTION) && m.width(Method.DECISION_FUNCTION) == 0)) {
                methods.add(Method.DECISION_FUNCTION);
            }
        }

        @Override
        List<Method> methods() {
            return methods;
        }

        @Override
        int width(Method method) {
            return members.size();
        }

        @Override
        Table apply(Method method, Table table) {
            Table seen = table;
            double[][] answers = new double[members.size()][];
            for (int m = 0; m < answers.length; m++) {
                Table said = members.get(m).checked(Method.PREDICT, seen);
                Table answer = method == Method.PREDICT ? said : members.get(m).checked(method, seen);
                answers[order[m]] = (method == Method.PREDICT_PROBA ? answer.select(new int[] {1}) : answer).values();
                seen = Table.beside(table.rows(), List.of(seen, said));
            }
            Table result = Table.of(table.rows(), answers.length);
            for (int i = 0; i < result.values().length; i++) {
                result.values()[i] = answers[i % answers.length][i / answers.length];
            }
            return result;
        }
    }

    private static int[] order(Object value) {
        List<Object> places = Fields.asList(value);
        int[] order = new int[places.size()];
        for (int i = 0; i < order.length; i++) {
            order[i] = (int) Values.number(places.get(i));
        }
        return order;
    }
}
