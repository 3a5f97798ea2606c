// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.compose;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/** {@code Pipeline}: transformers in sequence, then a final estimator, whose methods are the pipeline's. Immutable. */
public final class Pipeline extends Estimator {
    private final List<Estimator> first;
    private final Estimator last;

    private Pipeline(String type, List<Estimator> first, Estimator last) {
        super(type, -1);
        this.first = first;
        this.last = last;
    }

    /** The pipeline of its attributes; steps that pass their input through are left out. */
    public static Estimator of(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> steps = new ArrayList<>();
        for (Object step : f.list("steps")) {
            Object estimator = EstimatorAttributes.asList(step).get(1);
            if (!Passthrough.is(estimator)) {
                steps.add(factory.build(estimator));
            }
        }
        return steps.isEmpty() ? new Passthrough(f.type(), -1) : of(f.type(), steps);
    }

    public static Estimator of(String type, List<? extends Estimator> steps) {
        if (steps.isEmpty()) {
            throw UnsupportedModel.unsupported("a Pipeline has no steps");
        }
        for (Estimator step : steps.subList(0, steps.size() - 1)) {
            if (!step.can(PredictMethod.TRANSFORM)) {
                throw UnsupportedModel.unsupported(
                        step.type() + " before the last step of a Pipeline is not a transformer");
            }
        }
        return steps.size() == 1
                ? steps.get(0)
                : new Pipeline(type, List.copyOf(steps.subList(0, steps.size() - 1)), steps.get(steps.size() - 1));
    }

    public List<Estimator> first() {
        return first;
    }

    public Estimator last() {
        return last;
    }

    @Override
    public int features() {
        return first.get(0).features();
    }

    @Override
    public List<PredictMethod> methods() {
        return last.methods();
    }

    @Override
    public int width(PredictMethod method) {
        int width = last.width(method);
        if (width < 0 && method == PredictMethod.TRANSFORM) {
            for (int i = first.size() - 1; i >= 0 && width < 0; i--) {
                width = first.get(i).width(PredictMethod.TRANSFORM);
            }
            return last.keepsWidth() ? width : -1;
        }
        return width;
    }

    @Override
    public DataType type(PredictMethod method) {
        return last.type(method);
    }

    @Override
    public boolean quick() {
        for (Estimator step : first) {
            if (!step.quick()) {
                return false;
            }
        }
        return last.quick();
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        DataTable now = table;
        for (Estimator step : first) {
            now = step.checked(PredictMethod.TRANSFORM, now);
        }
        return last.checked(method, now);
    }
}
