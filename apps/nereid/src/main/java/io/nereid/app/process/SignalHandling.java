// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Handlers of the process's signals. Java has no public API for signals; the module {@code jdk.unsupported} has one that
 * every JVM provides, called by its names here, as the compiler warns of it. Stateless.
 */
final class SignalHandling {
    private static final Logger LOG = LoggerFactory.getLogger(SignalHandling.class);

    private SignalHandling() {}

    /**
     * Runs an action on each signal of a name, such as {@code HUP}, on a thread of the JVM.
     *
     * @return false where the system does not have the signal or the JVM keeps it for itself
     */
    static boolean handle(String name, Runnable action) {
        return replace(name, action) != null;
    }

    /**
     * Runs an action on each signal of a name until the returned object runs, which restores what was done before.
     *
     * @return null where the system does not have the signal or the JVM keeps it for itself
     */
    static @Nullable Runnable replace(String name, Runnable action) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Object run = Proxy.newProxyInstance(
                    SignalHandling.class.getClassLoader(), new Class<?>[] {handler}, (proxy, method, arguments) -> {
                        switch (method.getName()) {
                            case "handle" -> action.run();
                            case "hashCode" -> {
                                return System.identityHashCode(proxy);
                            }
                            case "equals" -> {
                                return proxy == arguments[0];
                            }
                            default -> {
                                return "SIG" + name;
                            }
                        }
                        return null;
                    });
            Method handle = signal.getMethod("handle", signal, handler);
            Object one = signal.getConstructor(String.class).newInstance(name);
            Object before = handle.invoke(null, one, run);
            return () -> {
                try {
                    Object unused = handle.invoke(null, one, before);
                } catch (ReflectiveOperationException e) {
                    LOG.debug("SIG{} could not be restored", name, e);
                }
            };
        } catch (ReflectiveOperationException e) {
            LOG.debug("SIG{} is not handled here", name, e);
            return null;
        }
    }
}
