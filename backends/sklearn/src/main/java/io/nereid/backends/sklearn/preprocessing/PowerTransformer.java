// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Invertible;
import io.nereid.backends.sklearn.estimator.Transformer;

/** {@code PowerTransformer}: Yeo-Johnson or Box-Cox, optionally followed by standardisation. Immutable. */
public final class PowerTransformer extends Transformer implements Invertible {
    private final double[] lambdas;
    private final boolean boxCox;

    private PowerTransformer(EstimatorAttributes f, double[] lambdas, boolean boxCox) {
        super(f.type(), lambdas.length, lambdas.length);
        this.lambdas = lambdas;
        this.boxCox = boxCox;
    }

    public static Estimator of(EstimatorAttributes f) {
        String method = f.text("method", "yeo-johnson");
        if (!method.equals("yeo-johnson") && !method.equals("box-cox")) {
            throw f.unsupported("method");
        }
        Transformer power = new PowerTransformer(f, f.doubles("lambdas_"), method.equals("box-cox"));
        return f.flag("standardize", true)
                ? Pipeline.of(
                        f.type(),
                        java.util.List.of(power, FeatureScaler.standard(new EstimatorAttributes(f.object("_scaler")))))
                : power;
    }

    /** At the lambdas where the power's formula divides by zero, its limit is a logarithm. */
    private double power(double v, double l) {
        if (boxCox) {
            return Math.abs(l) < 1e-19 ? Math.log(v) : (Math.pow(v, l) - 1) / l;
        }
        if (v >= 0) {
            return Math.abs(l) < 2.220446049250313e-16 ? Math.log1p(v) : (Math.pow(v + 1, l) - 1) / l;
        }
        return Math.abs(l - 2) > 2.220446049250313e-16 ? -(Math.pow(1 - v, 2 - l) - 1) / (2 - l) : -Math.log1p(-v);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < x.length; i++) {
            result.values()[i] = Double.isNaN(x[i]) ? x[i] : power(x[i], lambdas[i % lambdas.length]);
        }
        return result;
    }

    private double root(double v, double l) {
        if (boxCox) {
            return l == 0 ? Math.exp(v) : Math.pow(v * l + 1, 1 / l);
        }
        if (v >= 0) {
            return Math.abs(l) < 2.220446049250313e-16 ? Math.expm1(v) : Math.pow(v * l + 1, 1 / l) - 1;
        }
        return Math.abs(l - 2) > 2.220446049250313e-16 ? 1 - Math.pow(-(2 - l) * v + 1, 1 / (2 - l)) : -Math.expm1(-v);
    }

    @Override
    public DataTable inverse(DataTable table) {
        double[] y = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < y.length; i++) {
            result.values()[i] = Double.isNaN(y[i]) ? y[i] : root(y[i], lambdas[i % lambdas.length]);
        }
        return result;
    }
}
