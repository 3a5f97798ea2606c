// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where in a client's shared memory one output is to be written. Holds a count of the memory until {@link #close}.
 *
 * @param output the output's name
 * @param region the name under which the client registered the memory
 * @param offset where in the region
 * @param byteSize room there
 * @param memory the region
 */
record SharedOutput(String output, String region, int offset, int byteSize, MemoryRegion memory)
        implements AutoCloseable {
    @Override
    public void close() {
        memory.release();
    }

    /** The place for an output, or null when it goes into the answer. */
    static @Nullable SharedOutput find(List<SharedOutput> all, String output) {
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).output.equals(output)) {
                return all.get(i);
            }
        }
        return null;
    }

    /** Writes what a response has for shared memory, once all of it is known to have room. */
    static void writeAll(List<SharedOutput> all, InferenceResponse response) {
        for (Tensor output : response.outputs()) {
            SharedOutput place = find(all, output.name());
            if (place != null && place.byteSize < output.byteLength()) {
                throw ServingException.invalidArgument("shared memory size specified with the request for output '"
                        + output.name() + "' (" + place.byteSize + " bytes) should be at least "
                        + output.byteLength() + " bytes to hold the results");
            }
        }
        for (Tensor output : response.outputs()) {
            SharedOutput place = find(all, output.name());
            if (place != null) {
                place.memory.setBytes(place.offset, output.region(), output.offset(), output.byteLength());
            }
        }
    }

    static void closeAll(List<SharedOutput> all) {
        for (SharedOutput place : all) {
            place.close();
        }
    }
}
