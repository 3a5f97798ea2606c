// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

/** A memory limit for one input: the server's own is half of the heap, too much for a measure. Stateless. */
public final class PickleMemory {
    private PickleMemory() {}

    /** A new limit of this many bytes. */
    public static MemoryLimit of(long bytes) {
        return new MemoryLimit(bytes);
    }
}
