// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import org.jspecify.annotations.Nullable;

/** Parses the model names and versions of requests into {@link ModelRef}s. Holds no state. */
public final class ModelReferences {
    private ModelReferences() {}

    /**
     * A reference to a model. Without a version it refers to the default version; a version that begins with a letter
     * is a label, which refers to the version, or one of the versions, with that label.
     */
    public static ModelRef reference(String model, @Nullable String version) {
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

    /** Rejects names that no model of a repository can have. */
    public static void checkLoadable(String model) {
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

    /** Whether a version number marks a model without versions. */
    public static boolean unversioned(long version) {
        return version == 0;
    }
}
