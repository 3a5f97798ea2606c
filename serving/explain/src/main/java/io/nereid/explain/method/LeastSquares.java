// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

/** Weighted linear least squares with several right sides, solved by the normal equations. Confined to one thread. */
final class LeastSquares {
    private final int size;
    private final int outputs;
    private final double[][] matrix;
    private final double[][] right;

    LeastSquares(int size, int outputs) {
        this.size = size;
        this.outputs = outputs;
        this.matrix = new double[size][size];
        this.right = new double[size][outputs];
    }

    /** Adds a row with its weight and its desired values by output. */
    void add(double[] row, double weight, double[] expected) {
        for (int i = 0; i < size; i++) {
            double x = weight * row[i];
            if (x != 0) {
                double[] line = matrix[i];
                for (int j = 0; j <= i; j++) {
                    line[j] += x * row[j];
                }
                for (int o = 0; o < outputs; o++) {
                    right[i][o] += x * expected[o];
                }
            }
        }
    }

    /** Adds a ridge penalty to an unknown, which draws it towards zero. */
    void penalise(int unknown, double strength) {
        matrix[unknown][unknown] += strength;
    }

    /**
     * Solves by a Cholesky decomposition; returns the unknowns by output. An unknown that the rows do not determine has
     * a pivot of (nearly) zero and becomes zero.
     */
    double[][] solve() {
        double greatest = 0;
        for (int i = 0; i < size; i++) {
            greatest = Math.max(greatest, matrix[i][i]);
        }
        double least = greatest * 1e-13;
        double[][] l = new double[size][size];
        for (int i = 0; i < size; i++) {
            for (int j = 0; j <= i; j++) {
                double sum = matrix[i][j];
                for (int k = 0; k < j; k++) {
                    sum -= l[i][k] * l[j][k];
                }
                if (i == j) {
                    l[i][i] = sum > least ? Math.sqrt(sum) : 0;
                } else {
                    l[i][j] = l[j][j] == 0 ? 0 : sum / l[j][j];
                }
            }
        }
        double[][] found = new double[outputs][size];
        for (int o = 0; o < outputs; o++) {
            double[] x = found[o];
            for (int i = 0; i < size; i++) {
                double sum = right[i][o];
                for (int k = 0; k < i; k++) {
                    sum -= l[i][k] * x[k];
                }
                x[i] = l[i][i] == 0 ? 0 : sum / l[i][i];
            }
            for (int i = size - 1; i >= 0; i--) {
                double sum = x[i];
                for (int k = i + 1; k < size; k++) {
                    sum -= l[k][i] * x[k];
                }
                x[i] = l[i][i] == 0 ? 0 : sum / l[i][i];
            }
        }
        return found;
    }
}
