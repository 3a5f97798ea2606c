// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

/**
 * From sums to answers. Immutable.
 *
 * @param kind the function
 * @param scale of the sums, for {@link Kind#LOGISTIC}
 */
record Link(Kind kind, double scale) {
    static final Link IDENTITY = new Link(Kind.IDENTITY, 1);

    /** The functions. */
    enum Kind {
        IDENTITY,
        LOGISTIC,
        EXP,
        /** 1 above zero, else 0. */
        STEP,
        /** The place of the greatest: one answer for all sums. */
        GREATEST,
        SOFTMAX,
        /** The square, with its sign. */
        SQUARE,
        /** The logarithm of one more than the exponential. */
        SOFTPLUS
    }

    static Link of(Kind kind) {
        return new Link(kind, 1);
    }

    /** Answers for so many sums. */
    int width(int outputs) {
        return kind == Kind.GREATEST ? 1 : outputs;
    }

    /** Turns a row's sums into its answers, in place. */
    void apply(double[] row, int outputs) {
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

    static int greatest(double[] row, int outputs) {
        int best = 0;
        for (int i = 1; i < outputs; i++) {
            best = row[i] > row[best] ? i : best;
        }
        return best;
    }

    static void softmax(double[] row, int outputs) {
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
