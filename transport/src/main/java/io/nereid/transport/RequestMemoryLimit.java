// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.util.internal.PlatformDependent;

/**
 * The memory that requests in flight may take unless the operator sets a limit. Bodies lie outside the heap; their text is copied to the heap while it is
 * decoded, and tensors and responses need memory of their own. So requests get a third of the heap's and of the direct
 * memory's limit, which the JVM derives from the container's unless it is given. Holds no state.
 */
public final class RequestMemoryLimit {
    private static final long MOST = 1L << 30;
    private static final long SHARE = 3;

    private RequestMemoryLimit() {}

    /** The limit for this process. */
    public static long ofProcess() {
        return of(Runtime.getRuntime().maxMemory(), PlatformDependent.maxDirectMemory());
    }

    /** The limit for a process with these limits, in bytes. */
    public static long of(long heap, long direct) {
        return Math.min(MOST, Math.min(heap, direct) / SHARE);
    }
}
