// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

/**
 * A budget of heap memory for reading one file. Readers charge an estimate for each object that they make, so that a
 * small file which describes huge objects fails instead of exhausting the heap. Confined to one thread.
 */
public final class MemoryLimit {
    private final long limit;
    private long used;

    MemoryLimit(long limit) {
        this.limit = limit;
    }

    /** Half of the maximum heap, at least 64 MiB. */
    public static MemoryLimit ofHeap() {
        return new MemoryLimit(Math.max(64L << 20, Runtime.getRuntime().maxMemory() / 2));
    }

    /** @throws io.nereid.base.ServingException INVALID_ARGUMENT when the limit is exceeded */
    void charge(long bytes) {
        if (bytes < 0 || bytes > limit - used) {
            throw UnsupportedModel.unsupported("its contents take more than " + (limit >> 20) + " MiB of memory");
        }
        used += bytes;
    }

    long used() {
        return used;
    }
}
