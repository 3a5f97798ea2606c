// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import java.util.List;

/**
 * Lists the objects below a URI of a store. Implementations are made for one fetch. {@link #list} runs on one thread;
 * the requests of the listed objects may be made on any thread.
 */
public interface ObjectSource {
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

    /** Requests the listing from the store. */
    Listing list();
}
