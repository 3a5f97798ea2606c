// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import ml.dmlc.xgboost4j.java.Booster;
import ml.dmlc.xgboost4j.java.DMatrix;
import ml.dmlc.xgboost4j.java.XGBoost;
import ml.dmlc.xgboost4j.java.XGBoostError;

/** A model in XGBoost's native library. Confined to the thread of a test. */
final class NativeXgboost implements AutoCloseable {
    private static final Pattern JSON = Pattern.compile("\"base_score\":\"\\[([^,\\]]*)[^\\]]*]\"");
    private static final Pattern UBJ = Pattern.compile("base_scoreSL.{8}\\[([^,\\]]*)[^\\]]*]", Pattern.DOTALL);

    private final Booster booster;
    private final boolean linear;

    /**
     * The model as XGBoost 3.0 would have written it. Since 3.1 a model has a list of base scores, one for each output,
     * which 3.0 silently ignores; here it has the first of them for all. The same file when it is old enough.
     */
    static Path written(Path model, Path directory) throws IOException {
        String name = model.getFileName().toString();
        String text = new String(References.bytes(model), StandardCharsets.ISO_8859_1);
        Matcher list = (name.endsWith(".ubj") ? UBJ : JSON).matcher(text);
        if (!list.find()) {
            return model;
        }
        String score = list.group(1);
        String field = name.endsWith(".ubj")
                ? "base_scoreSL\0\0\0\0\0\0\0" + (char) score.length() + score
                : "\"base_score\":\"" + score + "\"";
        String whole = text.substring(0, list.start()) + field + text.substring(list.end());
        return Files.write(directory.resolve(name), whole.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** @throws XGBoostError when the library rejects the file */
    NativeXgboost(Path model) throws XGBoostError {
        booster = XGBoost.loadModel(model.toString());
        booster.setParam("nthread", 1);
        linear = model.toString().contains("gblinear");
    }

    /** The predictions of rows of {@code features} values; missing values are NaN. */
    double[][] answers(double[] x, int rows, int features) throws XGBoostError {
        // The library has no in-place prediction for linear models.
        return linear
                ? matrix(x, rows, features, false)
                : doubles(booster.inplace_predict(floats(x), rows, features, Float.NaN));
    }

    /** The margins. */
    double[][] margins(double[] x, int rows, int features) throws XGBoostError {
        return matrix(x, rows, features, true);
    }

    private double[][] matrix(double[] x, int rows, int features, boolean margin) throws XGBoostError {
        DMatrix matrix = new DMatrix(floats(x), rows, features, Float.NaN);
        try {
            return doubles(booster.predict(matrix, margin));
        } finally {
            matrix.dispose();
        }
    }

    private static float[] floats(double[] x) {
        float[] floats = new float[x.length];
        for (int i = 0; i < x.length; i++) {
            floats[i] = (float) x[i];
        }
        return floats;
    }

    private static double[][] doubles(float[][] matrix) {
        double[][] doubles = new double[matrix.length][];
        for (int row = 0; row < matrix.length; row++) {
            doubles[row] = new double[matrix[row].length];
            for (int i = 0; i < matrix[row].length; i++) {
                doubles[row][i] = matrix[row][i];
            }
        }
        return doubles;
    }

    @Override
    public void close() {
        booster.dispose();
    }
}
