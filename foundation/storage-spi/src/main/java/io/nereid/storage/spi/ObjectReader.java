// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ServingException;
import java.io.IOException;

/** Reads one listed object. Thread-safe: ranges of an object are read in parallel. */
@FunctionalInterface
public interface ObjectReader {
    /**
     * Opens a range of the object; the caller closes the stream. The bytes must be those of the listed version.
     *
     * @param from the first byte; 0 for an object that cannot be read in ranges
     * @param to the end (exclusive), or -1 for the end of the object
     * @param cancel ends the call; the server closes the stream of a cancelled read
     * @throws IOException for a failure that may be temporary: the server reads the rest of the range again after a pause
     * @throws ObjectChangedException when the object is no longer what was listed
     * @throws RangesIgnoredException when the store sends the whole object instead of the range
     * @throws ServingException for every other failure
     */
    ObjectStream open(long from, long to, CancellationToken cancel) throws IOException;
}
