// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How the outputs of one request are to be written. Immutable, but for the memory that {@code shared} holds until
 * {@link #close}.
 *
 * @param listed whether the request lists its outputs
 * @param binaryNames of the listed ones, those wanted as bytes
 * @param binary whether outputs of a request that lists none are wanted as bytes
 * @param emptyFinalResponse whether a stream wants a message of its own at the end of the request
 * @param shared of the listed ones, those wanted in the client's shared memory
 */
record OutputForm(
        boolean listed,
        List<String> binaryNames,
        boolean binary,
        boolean emptyFinalResponse,
        List<SharedOutput> shared) {
    static final OutputForm JSON = new OutputForm(false, List.of(), false, false);
    static final OutputForm BINARY = new OutputForm(false, List.of(), true, false);

    /** Without shared memory. */
    OutputForm(boolean listed, List<String> binaryNames, boolean binary, boolean emptyFinalResponse) {
        this(listed, binaryNames, binary, emptyFinalResponse, List.of());
    }

    boolean isBinary(String output) {
        return listed ? binaryNames.contains(output) : binary;
    }

    /** Where in shared memory an output is wanted, or null. */
    @Nullable SharedOutput place(String output) {
        return shared.isEmpty() ? null : SharedOutput.find(shared, output);
    }

    /** Gives the shared memory up; once, when the answer has been written or there is none. */
    void close() {
        if (!shared.isEmpty()) {
            SharedOutput.closeAll(shared);
        }
    }
}
