// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import io.nereid.base.ServingException;

/** The errors of a model file that cannot be loaded: damaged, or outside of what is supported. Stateless. */
public final class UnsupportedModel {
    /** The remedy for everything that this backend does not compute. */
    public static final String EXPORT =
            "export it to ONNX with skl2onnx and serve that file, or serve it with the backend 'python', which runs its code:"
                    + " 'nereid convert FILE' writes the model.py that loads it";

    private UnsupportedModel() {}

    /** The error of a file that is damaged or inconsistent. */
    public static ServingException corrupt(String why) {
        return ServingException.invalidArgument(why, "save the fitted model again with joblib.dump or pickle.dump");
    }

    /** The error of a valid file that needs something this backend does not support. */
    public static ServingException unsupported(String what) {
        return ServingException.invalidArgument(what, EXPORT);
    }
}
