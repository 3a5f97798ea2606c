// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Truth values on command lines. Thread-safe. */
public final class TruthValue {
    private TruthValue() {}

    /** Reads a truth value in the forms that {@code tritonserver} takes; null for anything else. */
    public static @Nullable Boolean of(String text) {
        return switch (text.toLowerCase(Locale.ROOT)) {
            case "true", "on", "1" -> Boolean.TRUE;
            case "false", "off", "0" -> Boolean.FALSE;
            default -> null;
        };
    }
}
