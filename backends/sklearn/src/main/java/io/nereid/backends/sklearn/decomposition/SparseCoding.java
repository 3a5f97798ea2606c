// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.decomposition;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;

/**
 * {@code DictionaryLearning}, {@code MiniBatchDictionaryLearning} and {@code SparseCoder}: a row as few atoms of a
 * dictionary, by orthogonal matching pursuit (Mallat and Zhang, 1993, with the residual orthogonal to all chosen atoms) or
 * by a threshold. Immutable.
 */
public final class SparseCoding extends Transformer {
    private static final int MOST_ATOMS = 1 << 13;

    private final DenseMatrix atoms;
    /** The products of all atoms; empty where they are not needed. */
    private final double[] gram;

    private final boolean pursues;
    private final int most;
    private final double alpha;
    private final boolean splits;

    private SparseCoding(EstimatorAttributes f, DenseMatrix atoms, int width, boolean splits) {
        super(f.type(), atoms.columns(), width);
        this.atoms = atoms;
        this.splits = splits;
        String algorithm = f.text("transform_algorithm", "omp");
        if (!algorithm.equals("omp") && !algorithm.equals("threshold")) {
            throw f.unsupported("transform_algorithm");
        }
        pursues = algorithm.equals("omp");
        if (pursues && f.has("transform_alpha")) {
            // A tolerance of the residual in the place of a number of atoms.
            throw f.unsupported("transform_alpha");
        }
        if (!pursues && f.flag("positive_code", false)) {
            throw f.unsupported("positive_code");
        }
        int usual = Math.min(Math.max(atoms.columns() / 10, 1), atoms.rows());
        most = f.integer("transform_n_nonzero_coefs", usual);
        if (pursues && (most < 1 || most > atoms.rows())) {
            throw UnsupportedModel.corrupt(
                    f.path() + " wants " + most + " atoms (expected: 1 to " + atoms.rows() + ")");
        }
        if (atoms.rows() > MOST_ATOMS) {
            throw UnsupportedModel.unsupported(
                    f.path() + " has " + atoms.rows() + " atoms (expected: at most " + MOST_ATOMS + ")");
        }
        gram = new double[pursues ? atoms.rows() * atoms.rows() : 0];
        for (int i = 0; pursues && i < atoms.rows(); i++) {
            atoms.product(atoms.values(), i * atoms.columns(), gram, i * atoms.rows());
        }
        alpha = f.number("transform_alpha", f.type().equals("SparseCoder") ? 1 : f.number("alpha", 1));
    }

    /** The coder of its attributes; a code that is split has a column for each sign. */
    public static SparseCoding of(EstimatorAttributes f) {
        DenseMatrix atoms = DenseMatrix.of(f, -1, -1, "components_", "dictionary");
        boolean splits = f.flag("split_sign", false);
        return new SparseCoding(f, atoms, splits ? 2 * atoms.rows() : atoms.rows(), splits);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int n = atoms.rows();
        DataTable result = DataTable.of(table.rows(), splits ? 2 * n : n);
        double[] code = new double[n];
        Pursuit pursuit = new Pursuit(gram, atoms.rows(), most);
        for (int r = 0; r < table.rows(); r++) {
            atoms.product(x, r * table.columns(), code, 0);
            if (pursues) {
                pursuit.run(code);
            }
            for (int i = 0; i < n; i++) {
                double v = pursues ? code[i] : Math.signum(code[i]) * Math.max(Math.abs(code[i]) - alpha, 0);
                if (splits) {
                    result.values()[r * 2 * n + i] = Math.max(v, 0);
                    result.values()[r * 2 * n + n + i] = -Math.min(v, 0);
                } else {
                    result.values()[r * n + i] = v;
                }
            }
        }
        return result;
    }

    /** Orthogonal matching pursuit over products of atoms alone. Confined to one run. */
    private static final class Pursuit {
        private final double[] gram;
        private final int n;
        private final int[] chosen;
        /** The lower Cholesky factor of the products of the chosen atoms. */
        private final double[] factor;

        private final double[] solution;
        private final double[] residual;

        Pursuit(double[] gram, int atoms, int most) {
            this.gram = gram;
            n = atoms;
            chosen = new int[Math.max(0, most)];
            factor = new double[chosen.length * chosen.length];
            solution = new double[chosen.length];
            residual = new double[n];
        }

        /** Replaces the products of the atoms with a row by its code. */
        void run(double[] products) {
            System.arraycopy(products, 0, residual, 0, n);
            int count = 0;
            while (count < chosen.length) {
                int best = 0;
                for (int i = 1; i < n; i++) {
                    best = Math.abs(residual[i]) > Math.abs(residual[best]) ? i : best;
                }
                if (taken(best, count) || residual[best] * residual[best] < Math.ulp(1.0) || !add(best, count)) {
                    break;
                }
                chosen[count++] = best;
                solve(products, count);
                for (int i = 0; i < n; i++) {
                    double sum = products[i];
                    for (int j = 0; j < count; j++) {
                        sum -= gram[i * n + chosen[j]] * solution[j];
                    }
                    residual[i] = sum;
                }
            }
            Arrays.fill(products, 0);
            for (int j = 0; j < count; j++) {
                products[chosen[j]] = solution[j];
            }
        }

        private boolean taken(int atom, int count) {
            for (int j = 0; j < count; j++) {
                if (chosen[j] == atom) {
                    return true;
                }
            }
            return false;
        }

        private boolean add(int atom, int count) {
            int width = chosen.length;
            double rest = gram[atom * n + atom];
            for (int j = 0; j < count; j++) {
                double v = gram[atom * n + chosen[j]];
                for (int i = 0; i < j; i++) {
                    v -= factor[count * width + i] * factor[j * width + i];
                }
                v /= factor[j * width + j];
                factor[count * width + j] = v;
                rest -= v * v;
            }
            factor[count * width + count] = Math.sqrt(rest);
            return rest > Math.ulp(1.0);
        }

        private void solve(double[] products, int count) {
            int width = chosen.length;
            for (int i = 0; i < count; i++) {
                double v = products[chosen[i]];
                for (int j = 0; j < i; j++) {
                    v -= factor[i * width + j] * solution[j];
                }
                solution[i] = v / factor[i * width + i];
            }
            for (int i = count - 1; i >= 0; i--) {
                double v = solution[i];
                for (int j = i + 1; j < count; j++) {
                    v -= factor[j * width + i] * solution[j];
                }
                solution[i] = v / factor[i * width + i];
            }
        }
    }
}
