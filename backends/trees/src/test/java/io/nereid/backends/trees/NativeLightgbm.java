// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import com.microsoft.ml.lightgbm.PredictionType;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_double;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_long_long;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import com.microsoft.ml.lightgbm.lightgbmlibConstants;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * A model in LightGBM's native library. The binding's own class allocates too little memory for the predictions of
 * several classes, so that the library writes beyond it; this calls the library directly. Confined to the thread of a
 * test.
 */
final class NativeLightgbm implements AutoCloseable {
    private final SWIGTYPE_p_void booster;
    private final int outputs;

    NativeLightgbm(Path model) {
        SWIGTYPE_p_p_void handle = lightgbmlib.voidpp_handle();
        SWIGTYPE_p_int number = lightgbmlib.new_intp();
        checked(lightgbmlib.LGBM_BoosterLoadModelFromString(
                new String(References.bytes(model), StandardCharsets.UTF_8), number, handle));
        booster = lightgbmlib.voidpp_value(handle);
        checked(lightgbmlib.LGBM_BoosterGetNumClasses(booster, number));
        outputs = lightgbmlib.intp_value(number);
        lightgbmlib.delete_intp(number);
    }

    /** The predictions of rows of {@code features} values. */
    double[][] answers(double[] x, int rows, int features) {
        return run(x, rows, features, PredictionType.C_API_PREDICT_NORMAL);
    }

    /** The margins. */
    double[][] margins(double[] x, int rows, int features) {
        return run(x, rows, features, PredictionType.C_API_PREDICT_RAW_SCORE);
    }

    private double[][] run(double[] x, int rows, int features, PredictionType what) {
        SWIGTYPE_p_double in = lightgbmlib.new_doubleArray(x.length);
        SWIGTYPE_p_double out = lightgbmlib.new_doubleArray((long) rows * outputs);
        SWIGTYPE_p_long_long length = lightgbmlib.new_int64_tp();
        try {
            for (int i = 0; i < x.length; i++) {
                lightgbmlib.doubleArray_setitem(in, i, x[i]);
            }
            checked(lightgbmlib.LGBM_BoosterPredictForMat(
                    booster,
                    lightgbmlib.double_to_voidp_ptr(in),
                    lightgbmlibConstants.C_API_DTYPE_FLOAT64,
                    rows,
                    features,
                    1,
                    what.getType(),
                    0,
                    -1,
                    "num_threads=1",
                    length,
                    out));
            if (lightgbmlib.int64_tp_value(length) != (long) rows * outputs) {
                throw new IllegalStateException(lightgbmlib.int64_tp_value(length) + " answers");
            }
            double[][] answers = new double[rows][outputs];
            for (int i = 0; i < rows * outputs; i++) {
                answers[i / outputs][i % outputs] = lightgbmlib.doubleArray_getitem(out, i);
            }
            return answers;
        } finally {
            lightgbmlib.delete_doubleArray(in);
            lightgbmlib.delete_doubleArray(out);
            lightgbmlib.delete_int64_tp(length);
        }
    }

    private static void checked(int code) {
        if (code != 0) {
            throw new IllegalStateException(lightgbmlib.LGBM_GetLastError());
        }
    }

    @Override
    public void close() {
        checked(lightgbmlib.LGBM_BoosterFree(booster));
    }
}
