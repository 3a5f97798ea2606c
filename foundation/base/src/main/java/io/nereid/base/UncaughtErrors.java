// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts and logs exceptions that nothing expected: bugs of the server, of a plugin or of a model in Java. {@link
 * ServingException#from} reports them when it turns them into an answer, which says nothing about the place. Thread-safe.
 */
public final class UncaughtErrors {
    private static final Logger LOG = System.getLogger(UncaughtErrors.class.getName());
    private static final LongAdder COUNT = new LongAdder();
    /** When an exception of a place was last logged; clients must not be able to fill a disk with the same stack. */
    private static final Map<String, Long> LOGGED = new ConcurrentHashMap<>();

    private static final int MOST_PLACES = 1000;
    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private UncaughtErrors() {}

    /** The number of exceptions since the start of the process. */
    public static long count() {
        return COUNT.sum();
    }

    static void report(Throwable t) {
        COUNT.increment();
        StackTraceElement[] stack = t.getStackTrace();
        String place = t.getClass().getName() + (stack.length == 0 ? "" : " at " + stack[0]);
        long now = Clock.system().nanos();
        if (LOGGED.size() >= MOST_PLACES) {
            LOGGED.clear();
        }
        Long before = LOGGED.put(place, now);
        if (before == null || now - before >= PAUSE_NANOS) {
            LOG.log(Level.ERROR, "an exception that nothing expected; this is a bug", t);
        } else {
            // The stack of this place has just been logged.
            LOGGED.put(place, before);
            LOG.log(Level.DEBUG, "again: {0}", place);
        }
    }
}
