// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The range of a client's shared memory that an output is to be written to. Retains the memory until {@link #close}.
 * Immutable.
 *
 * @param output the output's name
 * @param region the name under which the client registered the memory
 * @param offset where the range begins in the region
 * @param byteSize the size of the range
 * @param memory the region
 */
record SharedMemoryOutput(String output, String region, int offset, int byteSize, MemoryRegion memory)
        implements AutoCloseable {
    @Override
    public void close() {
        memory.release();
    }

    /** The range for an output, or null when it is sent in the response. */
    static @Nullable SharedMemoryOutput find(List<SharedMemoryOutput> all, String output) {
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).output.equals(output)) {
                return all.get(i);
            }
        }
        return null;
    }

    /** Writes outputs to shared memory, after a check that all of them fit: either all are written or none. */
    static void writeAll(List<SharedMemoryOutput> all, InferenceResponse response) {
        for (Tensor output : response.outputs()) {
            SharedMemoryOutput place = find(all, output.name());
            if (place != null && place.byteSize < output.byteLength()) {
                throw ServingException.invalidArgument("shared memory size specified with the request for output '"
                        + output.name() + "' (" + place.byteSize + " bytes) should be at least "
                        + output.byteLength() + " bytes to hold the results");
            }
        }
        for (Tensor output : response.outputs()) {
            SharedMemoryOutput place = find(all, output.name());
            if (place != null) {
                place.memory.setBytes(place.offset, output.region(), output.offset(), output.byteLength());
            }
        }
    }

    static void closeAll(List<SharedMemoryOutput> all) {
        for (SharedMemoryOutput place : all) {
            place.close();
        }
    }
}
