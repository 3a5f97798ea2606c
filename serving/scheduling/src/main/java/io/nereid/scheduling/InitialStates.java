// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;

/** Where the sequence batcher finds the files that states begin with. Called while the batcher is made. */
@FunctionalInterface
public interface InitialStates {
    /** For models without such files. */
    InitialStates NONE = file -> {
        throw ServingException.of(
                ErrorCode.NOT_FOUND, "initial state file '" + file + "' cannot be read: the model has no directory");
    };

    /**
     * The bytes of a file of the model's directory {@code initial_state}.
     *
     * @throws ServingException when there is no such file
     */
    byte[] read(String file);
}
