// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.List;

/** {@code Pipeline}: one after another; the last says what can be done. Immutable. */
final class Chain extends Estimator {
    private final List<Estimator> first;
    private final Estimator last;

    private Chain(String type, List<Estimator> first, Estimator last) {
        super(type, -1);
        this.first = first;
        this.last = last;
    }

    static Estimator of(String type, List<? extends Estimator> steps) {
        if (steps.isEmpty()) {
            throw Refusal.unsupported("a Pipeline has no steps");
        }
        for (Estimator step : steps.subList(0, steps.size() - 1)) {
            if (!step.can(Method.TRANSFORM)) {
                throw Refusal.unsupported(step.type() + " in the middle of a Pipeline does not transform");
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
            return last instanceof Columns.Same || last instanceof Columns.Mapped || last instanceof RowScaling
                    ? width
                    : -1;
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
