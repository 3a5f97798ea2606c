// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import com.sun.management.UnixOperatingSystemMXBean;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The bound on the connections of a server. Derived from the limit on the file descriptors of the process when no other
 * one is set, so that clients cannot take the descriptors that models, files and connections to other servers need.
 * Thread-safe.
 */
final class ConnectionLimit {
    /** The descriptors that are kept for everything else: an eighth of the limit, within these bounds. */
    private static final long LEAST_SPARE = 32;

    private static final long MOST_SPARE = 1024;
    private static final int LEAST = 16;

    final int most;
    private final AtomicInteger open = new AtomicInteger();

    /**
     * Creates a limit.
     *
     * @param most the most connections; 0 to derive it
     * @throws ServingException INVALID_ARGUMENT for a negative number or one beyond the limit of the process
     */
    ConnectionLimit(int most) {
        if (most < 0) {
            throw ServingException.invalidArgument(
                    "the limit of " + most + " connections is negative (expected: a number, or 0 to derive it from the"
                            + " limit on file descriptors)");
        }
        long descriptors = descriptors();
        if (most > descriptors) {
            throw ServingException.of(
                    ErrorCode.INVALID_ARGUMENT,
                    "the limit of " + most + " connections is larger than the " + descriptors
                            + " file descriptors that the process may open",
                    "raise the limit with ulimit -n, or set a smaller one");
        }
        this.most = most > 0 ? most : derived(descriptors, used());
    }

    /** The bound for a process that may open {@code limit} descriptors and has {@code used} open. */
    static int derived(long limit, long used) {
        long spare = Math.min(MOST_SPARE, Math.max(LEAST_SPARE, limit / 8));
        return (int) Math.min(Integer.MAX_VALUE, Math.max(LEAST, limit - used - spare));
    }

    private static long descriptors() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean os
                        && os.getMaxFileDescriptorCount() > 0
                ? os.getMaxFileDescriptorCount()
                : Long.MAX_VALUE;
    }

    private static long used() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean os
                ? Math.max(0, os.getOpenFileDescriptorCount())
                : 0;
    }

    /** Counts a connection; false when there are as many as may be. */
    boolean tryOpen() {
        if (open.incrementAndGet() > most) {
            open.decrementAndGet();
            return false;
        }
        return true;
    }

    void closed() {
        open.decrementAndGet();
    }
}
