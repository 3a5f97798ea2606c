// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

/** Memory that reading one file may take, by estimate. Confined to one thread. */
final class MemoryLimit {
    private final long limit;
    private long used;

    MemoryLimit(long limit) {
        this.limit = limit;
    }

    /** Half of what the machine gives this process. */
    static MemoryLimit ofHeap() {
        return new MemoryLimit(Math.max(64L << 20, Runtime.getRuntime().maxMemory() / 2));
    }

    /** @throws io.nereid.base.ServingException INVALID_ARGUMENT when the limit is passed */
    void charge(long bytes) {
        if (bytes < 0 || bytes > limit - used) {
            throw Refusal.unsupported("its contents take more than " + (limit >> 20) + " MiB of memory");
        }
        used += bytes;
    }

    long used() {
        return used;
    }
}
