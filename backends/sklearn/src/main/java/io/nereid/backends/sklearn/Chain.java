// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/** {@code Pipeline}: transformers in sequence, then a final estimator, whose methods are the pipeline's. Immutable. */
final class Chain extends Estimator {
    private final List<Estimator> first;
    private final Estimator last;

    private Chain(String type, List<Estimator> first, Estimator last) {
        super(type, -1);
        this.first = first;
        this.last = last;
    }

    /** The pipeline of its attributes; steps that pass their input through are left out. */
    static Estimator of(Fields f, Estimator.Factory factory) {
        List<Estimator> steps = new ArrayList<>();
        for (Object step : f.list("steps")) {
            Object estimator = Fields.asList(step).get(1);
            if (!Passthrough.is(estimator)) {
                steps.add(factory.build(estimator));
            }
        }
        return steps.isEmpty() ? new Passthrough(f.type(), -1) : of(f.type(), steps);
    }

    static Estimator of(String type, List<? extends Estimator> steps) {
        if (steps.isEmpty()) {
            throw Refusal.unsupported("a Pipeline has no steps");
        }
        for (Estimator step : steps.subList(0, steps.size() - 1)) {
            if (!step.can(Method.TRANSFORM)) {
                throw Refusal.unsupported(step.type() + " before the last step of a Pipeline is not a transformer");
            }
        }
        return steps.size() == 1
                ? steps.get(0)
                : new Chain(type, List.copyOf(steps.subList(0, steps.size() - 1)), steps.get(steps.size() - 1));
    }

    List<Estimator> first() {
        return first;
    }

    Estimator last() {
        return last;
    }

    @Override
    int features() {
        return first.get(0).features();
    }

    @Override
    List<Method> methods() {
        return last.methods();
    }

    @Override
    int width(Method method) {
        int width = last.width(method);
        if (width < 0 && method == Method.TRANSFORM) {
            for (int i = first.size() - 1; i >= 0 && width < 0; i--) {
                width = first.get(i).width(Method.TRANSFORM);
            }
            return last.keepsWidth() ? width : -1;
        }
        return width;
    }

    @Override
    DataType type(Method method) {
        return last.type(method);
    }

    @Override
    boolean quick() {
        for (Estimator step : first) {
            if (!step.quick()) {
                return false;
            }
        }
        return last.quick();
    }

    @Override
    Table apply(Method method, Table table) {
        Table now = table;
        for (Estimator step : first) {
            now = step.checked(Method.TRANSFORM, now);
        }
        return last.checked(method, now);
    }
}
