// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.protocols.v2.memory.SharedMemoryOutput;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * How the outputs of one request are to be encoded: as JSON or typed contents, as binary data, or into shared memory.
 * Immutable, but for the memory that {@code shared} retains until {@link #close}.
 *
 * @param listed whether the request lists its outputs
 * @param binaryNames the listed outputs to send as binary data
 * @param binary whether to send outputs as binary data when the request lists none
 * @param emptyFinalResponse whether a stream marks the end of the request by an empty response
 * @param shared the listed outputs to write to the client's shared memory
 */
public record OutputEncoding(
        boolean listed,
        List<String> binaryNames,
        boolean binary,
        boolean emptyFinalResponse,
        List<SharedMemoryOutput> shared) {
    public static final OutputEncoding JSON = new OutputEncoding(false, List.of(), false, false);
    public static final OutputEncoding BINARY = new OutputEncoding(false, List.of(), true, false);

    /** An encoding without shared memory. */
    OutputEncoding(boolean listed, List<String> binaryNames, boolean binary, boolean emptyFinalResponse) {
        this(listed, binaryNames, binary, emptyFinalResponse, List.of());
    }

    boolean isBinary(String output) {
        return listed ? binaryNames.contains(output) : binary;
    }

    /** The shared memory for an output, or null. */
    @Nullable SharedMemoryOutput place(String output) {
        return shared.isEmpty() ? null : SharedMemoryOutput.find(shared, output);
    }

    /** The thread on which the response is to be encoded, as it is copied to a GPU; null for any thread. */
    public @Nullable Executor thread() {
        return shared.isEmpty() ? null : SharedMemoryOutput.thread(shared);
    }

    /** Releases the shared memory; called once, when the response has been written or the request has failed. */
    public void close() {
        if (!shared.isEmpty()) {
            SharedMemoryOutput.closeAll(shared);
        }
    }
}
