// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

/**
 * The inverse link function: converts raw scores (margins) to predictions. Immutable.
 *
 * @param kind the function
 * @param scale the factor of the scores, for {@link Kind#LOGISTIC}
 */
public record LinkFunction(Kind kind, double scale) {
    public static final LinkFunction IDENTITY = new LinkFunction(Kind.IDENTITY, 1);

    /** The supported functions. */
    public enum Kind {
        IDENTITY,
        LOGISTIC,
        EXP,
        /** 1 for a score above zero, else 0. */
        STEP,
        /** The index of the greatest score: one prediction for all scores. */
        GREATEST,
        SOFTMAX,
        /** The square, with the sign of the score. */
        SQUARE,
        /** log(1 + exp(score)). */
        SOFTPLUS
    }

    public static LinkFunction of(Kind kind) {
        return new LinkFunction(kind, 1);
    }

    /** The number of predictions per row. */
    public int width(int outputs) {
        return kind == Kind.GREATEST ? 1 : outputs;
    }

    /** Converts a row's scores to its predictions, in place. */
    public void apply(double[] row, int outputs) {
        switch (kind) {
            case IDENTITY:
                return;
            case GREATEST:
                row[0] = greatest(row, outputs);
                return;
            case SOFTMAX:
                softmax(row, outputs);
                return;
            default:
                for (int i = 0; i < outputs; i++) {
                    row[i] = one(row[i]);
                }
        }
    }

    private double one(double x) {
        switch (kind) {
            case LOGISTIC:
                return 1 / (1 + Math.exp(-scale * x));
            case EXP:
                return Math.exp(x);
            case STEP:
                return x > 0 ? 1 : 0;
            case SQUARE:
                return Math.copySign(x * x, x);
            case SOFTPLUS:
                return Math.log1p(Math.exp(x));
            default:
                return x;
        }
    }

    public static int greatest(double[] row, int outputs) {
        int best = 0;
        for (int i = 1; i < outputs; i++) {
            best = row[i] > row[best] ? i : best;
        }
        return best;
    }

    public static void softmax(double[] row, int outputs) {
        double max = row[greatest(row, outputs)];
        double sum = 0;
        for (int i = 0; i < outputs; i++) {
            row[i] = Math.exp(row[i] - max);
            sum += row[i];
        }
        for (int i = 0; i < outputs; i++) {
            row[i] /= sum;
        }
    }
}
