// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;

/** The errors of a model file that cannot be loaded: damaged, or outside of what is supported. Stateless. */
final class Refusal {
    /** The remedy for everything that this backend does not compute. */
    static final String EXPORT = "export it to ONNX with skl2onnx and serve that file";

    private Refusal() {}

    /** The error of a file that is damaged or inconsistent. */
    static ServingException corrupt(String why) {
        return ServingException.invalidArgument(why, "save the fitted model again with joblib.dump or pickle.dump");
    }

    /** The error of a valid file that needs something this backend does not support. */
    static ServingException unsupported(String what) {
        return ServingException.invalidArgument(what, EXPORT);
    }
}
