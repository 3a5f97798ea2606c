// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import org.jspecify.annotations.Nullable;

/** Turns what clients write into references to models, and versions back into text. Immutable. */
final class Names {
    private Names() {}

    /**
     * A reference to a model; an absent or empty version stands for the one that answers by default, and what begins with a
     * letter for the version, or one of the versions, that bears the label.
     */
    static ModelRef reference(String model, @Nullable String version) {
        if (version == null || version.isEmpty()) {
            return ModelRef.latest(model);
        }
        char first = version.charAt(0);
        if (Character.isLetter(first) || first == '_') {
            return new ModelRef(model, ModelRef.ANY, version);
        }
        return ModelRef.exact(model, version(model, version));
    }

    private static long version(String model, String text) {
        long n = 0;
        boolean valid = text.length() <= 18;
        for (int i = 0; valid && i < text.length(); i++) {
            char c = text.charAt(i);
            valid = c >= '0' && c <= '9';
            n = n * 10 + (c - '0');
        }
        if (!valid) {
            throw ServingException.invalidArgument("failed to get model version from specified version string '" + text
                    + "' for model '" + model + "', version should be an integral value > 0");
        }
        return n;
    }

    /** Refuses what no model in a repository can be called. */
    static void checkLoadable(String model) {
        if (model.isEmpty()) {
            throw ServingException.invalidArgument("Model name cannot be empty. Please enter a valid name to deploy.");
        }
        if (model.equals(".")
                || model.equals("..")
                || model.indexOf('/') >= 0
                || model.indexOf('\\') >= 0
                || model.indexOf('\0') >= 0) {
            throw ServingException.invalidArgument(
                    "invalid model name '" + model + "', model name must not contain path traversal characters");
        }
    }

    /** Whether a version is the mark of a model that has none. */
    static boolean unversioned(long version) {
        return version == 0;
    }
}
