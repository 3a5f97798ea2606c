// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * SIGHUP, which daemons take as the order to open their log files and read their settings again, and which would end a
 * Java program that does nothing about it. Stateless.
 */
public final class HangupSignal {
    private static final Logger LOG = LoggerFactory.getLogger(HangupSignal.class);

    private HangupSignal() {}

    /** Runs an action on each SIGHUP, on a thread of the JVM. Does nothing on systems without the signal. */
    public static void handle(Runnable action) {
        boolean unused = SignalHandling.handle("HUP", () -> run(action));
    }

    private static void run(Runnable action) {
        try {
            action.run();
            LOG.info("SIGHUP: log files were opened again, the access rules read again");
        } catch (RuntimeException e) {
            LOG.error("SIGHUP could not be handled", e);
        }
    }
}
