// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.spi.ServableId;
import org.jspecify.annotations.Nullable;

/** Who takes how much memory, by estimate. Thread-safe by its lock. */
final class MemoryLedger {
    private final long limit;
    private long used;

    /** A ledger with a limit in bytes; 0 for none. */
    MemoryLedger(long limit) {
        this.limit = limit;
    }

    /** Whether {@code bytes} more would be booked now. */
    synchronized boolean fits(long bytes) {
        return limit <= 0 || bytes <= limit - used;
    }

    /** Books {@code bytes} for a version, or says why not. */
    synchronized @Nullable ServingException reserve(ServableId id, long bytes) {
        if (!fits(bytes)) {
            return ServingException.of(
                    Code.RESOURCE_EXHAUSTED,
                    "model '" + id.model() + "' version " + id.version() + " does not fit into memory: it needs "
                            + Units.formatBytes(bytes) + ", and " + Units.formatBytes(Math.max(0, limit - used))
                            + " of " + Units.formatBytes(limit) + " are free",
                    "unload another model, or raise the limit for models' memory");
        }
        used += bytes;
        return null;
    }

    /** Changes what is booked; never refuses, since the memory is taken already. */
    synchronized void correct(long booked, long bytes) {
        used += bytes - booked;
    }

    synchronized long used() {
        return used;
    }
}
