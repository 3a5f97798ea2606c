// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;

/** Ways to say no to a model file. Stateless. */
final class Refusal {
    static final String EXPORT = "export it to ONNX with skl2onnx and serve that file";

    private Refusal() {}

    /** The file is damaged, or not what it should be. */
    static ServingException corrupt(String why) {
        return ServingException.invalidArgument(why, "save the fitted model again with joblib.dump or pickle.dump");
    }

    /** The file is in order, but asks for something that is not computed here. */
    static ServingException unsupported(String what) {
        return ServingException.invalidArgument(what, EXPORT);
    }
}
