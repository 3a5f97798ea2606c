// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import java.util.List;

/** A place in a store. Implementations are made for one fetch; {@link #list} runs on one thread, what it gives on any. */
interface Source {
    /** What the objects are. */
    enum Shape {
        /** Files; a single archive is unpacked. */
        FILES,
        /** Files, also if they are archives. */
        PLAIN,
        /** Layers of an image, lowest first, of which what is below /models counts. */
        LAYERS
    }

    /**
     * What is there now. Immutable.
     *
     * @param place the store and the place in it, without secrets: equal places with equal items have equal content
     * @param items the objects
     * @param shape what they are
     */
    record Listing(String place, List<Item> items, Shape shape) {
        public Listing {
            items = List.copyOf(items);
        }

        /** Whether the store says of each object when it changes. */
        boolean versioned() {
            return items.stream().noneMatch(item -> item.version().isEmpty());
        }

        /** Bytes of all, or -1 if the store does not say. */
        long bytes() {
            long bytes = 0;
            for (Item item : items) {
                if (item.size() < 0) {
                    return -1;
                }
                bytes += item.size();
            }
            return bytes;
        }
    }

    /** Asks the store. */
    Listing list();
}
