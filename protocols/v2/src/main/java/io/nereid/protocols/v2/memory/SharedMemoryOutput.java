// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceResponse;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The range of a client's shared memory that an output is to be written to. Retains the region until {@link #close}.
 * Immutable.
 *
 * @param output the output's name
 * @param region the region
 * @param offset where the range begins in the region
 * @param byteSize the size of the range
 */
public record SharedMemoryOutput(String output, SharedRegion region, long offset, long byteSize)
        implements AutoCloseable {
    @Override
    public void close() {
        region.release();
    }

    /** The range for an output, or null when it is sent in the response. */
    public static @Nullable SharedMemoryOutput find(List<SharedMemoryOutput> all, String output) {
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).output.equals(output)) {
                return all.get(i);
            }
        }
        return null;
    }

    /** The thread on which {@link #writeAll} is to be called, as it blocks; null for any thread. */
    public static @Nullable Executor thread(List<SharedMemoryOutput> all) {
        for (int i = 0; i < all.size(); i++) {
            Executor thread = all.get(i).region.thread();
            if (thread != null) {
                return thread;
            }
        }
        return null;
    }

    /** Writes outputs to shared memory, after a check that all of them fit: either all are written or none. */
    public static void writeAll(List<SharedMemoryOutput> all, InferenceResponse response) {
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
            if (place != null && output.byteLength() > 0) {
                place.region.write(place.offset, output);
            }
        }
    }

    public static void closeAll(List<SharedMemoryOutput> all) {
        for (SharedMemoryOutput place : all) {
            place.close();
        }
    }
}
