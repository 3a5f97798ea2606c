// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import io.nereid.base.ServingException;
import java.util.List;

/**
 * Lists the objects below a URI of a store. Implementations are made for one fetch. {@link #list} runs on one thread;
 * the listed objects may be read on any thread until the source is closed.
 */
public interface ObjectSource extends AutoCloseable {
    /** How the objects of a listing are stored. */
    enum Shape {
        /** Files; a single archive is unpacked. */
        FILES,
        /** Files; archives are not unpacked. */
        PLAIN,
        /** Layers of an image, lowest first; only entries below /models are extracted. */
        LAYERS
    }

    /**
     * The current objects below the URI. Immutable.
     *
     * @param place the store and the path in it, without secrets: equal places with equal items have equal content
     * @param items the objects
     * @param shape how they are stored
     */
    record Listing(String place, List<ObjectEntry> items, Shape shape) {
        /** Copies the list. */
        public Listing {
            items = List.copyOf(items);
        }

        /** Whether the store gives a version for every object. */
        public boolean versioned() {
            return items.stream().noneMatch(item -> item.version().isEmpty());
        }

        /** Total bytes, or -1 if the size of an object is unknown. */
        public long bytes() {
            long bytes = 0;
            for (ObjectEntry item : items) {
                if (item.size() < 0) {
                    return -1;
                }
                bytes += item.size();
            }
            return bytes;
        }
    }

    /**
     * Requests the listing from the store, with retries. It is empty when there is nothing below the URI.
     *
     * @throws ServingException NOT_FOUND, UNAUTHENTICATED, PERMISSION_DENIED and others as the store answers
     *     ({@link StorageFailures#ofStatus}); UNAVAILABLE when it cannot be reached; CANCELLED
     */
    Listing list();

    /** How many ranges may be read at once; the server has a limit of its own. */
    default int maxReads() {
        return Integer.MAX_VALUE;
    }

    /** Releases connections. No object is being read. */
    @Override
    default void close() {}
}
