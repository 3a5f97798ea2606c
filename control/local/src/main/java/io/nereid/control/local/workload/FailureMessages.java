// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/** Formats exceptions for statuses and logs. Stateless. */
public final class FailureMessages {
    private FailureMessages() {}

    /** Returns the message of a failure, with its remedy; empty for null. */
    public static String text(@Nullable Throwable e) {
        if (e instanceof ServingException s) {
            return s.describe();
        }
        return e == null ? "" : String.valueOf(e.getMessage());
    }
}
