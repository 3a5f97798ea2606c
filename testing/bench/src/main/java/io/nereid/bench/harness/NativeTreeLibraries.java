// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import com.microsoft.ml.lightgbm.PredictionType;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_double;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_long_long;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import com.microsoft.ml.lightgbm.lightgbmlibConstants;
import io.github.metarank.lightgbm4j.LGBMBooster;
import io.github.metarank.lightgbm4j.LGBMBooster.FeatureImportanceType;
import io.github.metarank.lightgbm4j.LGBMDataset;
import io.github.metarank.lightgbm4j.LGBMException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import ml.dmlc.xgboost4j.java.Booster;
import ml.dmlc.xgboost4j.java.DMatrix;
import ml.dmlc.xgboost4j.java.XGBoost;
import ml.dmlc.xgboost4j.java.XGBoostError;

/**
 * The native libraries of XGBoost and LightGBM: they train the measured models, and predict with one thread. Confined
 * to one thread.
 */
public final class NativeTreeLibraries {
    private static final int TREES = 100;
    private static final int TRAINED = 20_000;

    private NativeTreeLibraries() {}

    /**
     * Loads the libraries.
     *
     * @return why they cannot be loaded on this machine, or empty
     */
    public static String load(Path scratch) throws IOException {
        // They are unpacked under fixed names: a private directory keeps other users from replacing them.
        String temporary = System.getProperty("java.io.tmpdir");
        System.setProperty(
                "java.io.tmpdir",
                Files.createDirectories(scratch.resolve("native")).toString());
        try {
            LGBMBooster.loadNative();
            lightgbmlib.delete_intp(lightgbmlib.new_intp());
            XGBoost.train(
                            new DMatrix(new float[] {0, 1}, 2, 1, Float.NaN),
                            Map.of("nthread", 1),
                            0,
                            Map.of(),
                            null,
                            null)
                    .dispose();
            return "";
        } catch (XGBoostError | LinkageError e) {
            return "the libraries of XGBoost and LightGBM do not run here (is libgomp installed?): " + e;
        } finally {
            System.setProperty("java.io.tmpdir", temporary);
        }
    }

    /** Creates rows without missing features. */
    public static float[] rows(int rows, int features, int seed) {
        Random random = new Random(seed);
        float[] x = new float[rows * features];
        for (int i = 0; i < x.length; i++) {
            x[i] = (float) random.nextGaussian();
        }
        return x;
    }

    private static float[] labels(float[] x, int features) {
        Random random = new Random(5);
        float[] labels = new float[x.length / features];
        for (int row = 0; row < labels.length; row++) {
            double score = random.nextGaussian();
            for (int f = 0; f < features; f++) {
                float v = x[row * features + f];
                score += f % 3 == 0 ? v : f % 3 == 1 ? Math.sin(2 * v) : v * x[row * features] / 2;
            }
            labels[row] = score > 0 ? 1 : 0;
        }
        return labels;
    }

    /** Trains a binary classifier of 100 trees of depth six. */
    public static Path xgboost(Path file, int features) throws IOException, XGBoostError {
        float[] x = rows(TRAINED, features, 3);
        DMatrix data = new DMatrix(x, TRAINED, features, Float.NaN);
        data.setLabel(labels(x, features));
        Booster booster = XGBoost.train(
                data,
                Map.of("objective", "binary:logistic", "max_depth", 6, "eta", 0.1, "nthread", 1),
                TREES,
                Map.of(),
                null,
                null);
        Files.write(file, booster.toByteArray("json"));
        booster.dispose();
        data.dispose();
        return file;
    }

    /** Trains a binary classifier of 100 trees of 31 leaves. */
    public static Path lightgbm(Path file, int features) throws IOException, LGBMException {
        float[] x = rows(TRAINED, features, 3);
        String parameters = "objective=binary num_leaves=31 learning_rate=0.1 num_threads=1 verbosity=-1";
        try (LGBMDataset data = LGBMDataset.createFromMat(x, TRAINED, features, true, parameters, null)) {
            data.setField("label", labels(x, features));
            try (LGBMBooster booster = LGBMBooster.create(data, parameters)) {
                for (int i = 0; i < TREES; i++) {
                    booster.updateOneIter();
                }
                return Files.writeString(file, booster.saveModelToString(0, -1, FeatureImportanceType.SPLIT));
            }
        }
    }

    /** A native model with its rows. */
    public interface Oracle extends AutoCloseable {
        /** Predicts all rows. */
        void run();

        /** Returns the last prediction for a row. */
        double answer(int row);

        @Override
        void close();
    }

    /** Uses XGBoost4J's {@code inplace_predict}, its only call that copies the rows just once and takes no lock. */
    public static Oracle xgboost(Path model, float[] x, int features) throws XGBoostError {
        Booster booster = XGBoost.loadModel(model.toString());
        booster.setParam("nthread", 1);
        int rows = x.length / features;
        return new Oracle() {
            private float[][] answers = new float[0][];

            @Override
            public void run() {
                try {
                    answers = booster.inplace_predict(x, rows, features, Float.NaN);
                } catch (XGBoostError e) {
                    throw new IllegalStateException(e);
                }
            }

            @Override
            public double answer(int row) {
                return answers[row][0];
            }

            @Override
            public void close() {
                booster.dispose();
            }
        };
    }

    /** Uses LightGBM's {@code LGBM_BoosterPredictForMat} with rows in native memory, so that nothing is copied. */
    public static Oracle lightgbm(Path model, float[] x, int features) throws IOException {
        SWIGTYPE_p_p_void handle = lightgbmlib.voidpp_handle();
        SWIGTYPE_p_int iterations = lightgbmlib.new_intp();
        checked(lightgbmlib.LGBM_BoosterLoadModelFromString(Files.readString(model), iterations, handle));
        SWIGTYPE_p_void booster = lightgbmlib.voidpp_value(handle);
        int rows = x.length / features;
        SWIGTYPE_p_double in = lightgbmlib.new_doubleArray(x.length);
        for (int i = 0; i < x.length; i++) {
            lightgbmlib.doubleArray_setitem(in, i, x[i]);
        }
        SWIGTYPE_p_double out = lightgbmlib.new_doubleArray(rows);
        SWIGTYPE_p_long_long length = lightgbmlib.new_int64_tp();
        return new Oracle() {
            @Override
            public void run() {
                checked(
                        rows == 1
                                ? lightgbmlib.LGBM_BoosterPredictForMatSingleRow(
                                        booster,
                                        lightgbmlib.double_to_voidp_ptr(in),
                                        lightgbmlibConstants.C_API_DTYPE_FLOAT64,
                                        features,
                                        1,
                                        PredictionType.C_API_PREDICT_NORMAL.getType(),
                                        0,
                                        -1,
                                        "num_threads=1",
                                        length,
                                        out)
                                : lightgbmlib.LGBM_BoosterPredictForMat(
                                        booster,
                                        lightgbmlib.double_to_voidp_ptr(in),
                                        lightgbmlibConstants.C_API_DTYPE_FLOAT64,
                                        rows,
                                        features,
                                        1,
                                        PredictionType.C_API_PREDICT_NORMAL.getType(),
                                        0,
                                        -1,
                                        "num_threads=1",
                                        length,
                                        out));
            }

            @Override
            public double answer(int row) {
                return lightgbmlib.doubleArray_getitem(out, row);
            }

            @Override
            public void close() {
                lightgbmlib.delete_doubleArray(in);
                lightgbmlib.delete_doubleArray(out);
                lightgbmlib.delete_int64_tp(length);
                checked(lightgbmlib.LGBM_BoosterFree(booster));
            }
        };
    }

    private static void checked(int code) {
        if (code != 0) {
            throw new IllegalStateException(lightgbmlib.LGBM_GetLastError());
        }
    }
}
