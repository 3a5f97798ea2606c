// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;

/**
 * Reads the files that hold initial values of implicit states. Called by the thread that creates the sequence batcher.
 */
@FunctionalInterface
public interface InitialStateFiles {
    /** For models without a directory; every read fails. */
    InitialStateFiles NONE = file -> {
        throw ServingException.of(
                ErrorCode.NOT_FOUND, "initial state file '" + file + "' cannot be read: the model has no directory");
    };

    /**
     * Returns the content of a file in the model's directory {@code initial_state}.
     *
     * @throws ServingException when the file does not exist
     */
    byte[] read(String file);
}
