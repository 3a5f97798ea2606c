// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import java.lang.reflect.Proxy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * SIGHUP, which daemons take as the order to open their log files and read their settings again, and which would end a
 * Java program that does nothing about it. Java has no public API for signals; the module {@code jdk.unsupported} has one
 * that every JVM provides, called by its names here, as the compiler warns of it. Stateless.
 */
public final class HangupSignal {
    private static final Logger LOG = LoggerFactory.getLogger(HangupSignal.class);

    private HangupSignal() {}

    /** Runs an action on each SIGHUP, on a thread of the JVM. Does nothing on systems without the signal. */
    public static void handle(Runnable action) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Object run = Proxy.newProxyInstance(
                    HangupSignal.class.getClassLoader(), new Class<?>[] {handler}, (proxy, method, arguments) -> {
                        switch (method.getName()) {
                            case "handle" -> run(action);
                            case "hashCode" -> {
                                return System.identityHashCode(proxy);
                            }
                            case "equals" -> {
                                return proxy == arguments[0];
                            }
                            default -> {
                                return "SIGHUP";
                            }
                        }
                        return null;
                    });
            Object unused = signal.getMethod("handle", signal, handler)
                    .invoke(null, signal.getConstructor(String.class).newInstance("HUP"), run);
        } catch (ReflectiveOperationException e) {
            LOG.debug("SIGHUP is not handled here", e);
        }
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
