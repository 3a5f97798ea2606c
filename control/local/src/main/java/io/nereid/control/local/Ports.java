// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.HashSet;
import java.util.Set;

/** Which ports child processes have. Thread-safe: one lock. */
final class Ports {
    private final int first;
    private final int last;
    private final Set<Integer> taken = new HashSet<>();
    private int next;

    Ports(int first, int last) {
        this.first = first;
        this.last = last;
        this.next = first;
    }

    /**
     * A port that nothing listens on.
     *
     * @throws ServingException RESOURCE_EXHAUSTED when there is none
     */
    synchronized int any() {
        for (int i = first; i <= last; i++) {
            int port = next;
            next = next == last ? first : next + 1;
            if (take(port)) {
                return port;
            }
        }
        throw ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED,
                "no free port from " + first + " to " + last + " is left for child processes");
    }

    /** Takes a certain port; false when somebody has it. */
    synchronized boolean take(int port) {
        if (taken.contains(port) || !isFree(port)) {
            return false;
        }
        taken.add(port);
        return true;
    }

    synchronized void release(int port) {
        taken.remove(port);
    }

    private static boolean isFree(int port) {
        return canBind(null, port) && canBind(InetAddress.getLoopbackAddress(), port);
    }

    private static boolean canBind(@org.jspecify.annotations.Nullable InetAddress address, int port) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(true);
            socket.bind(address == null ? new InetSocketAddress(port) : new InetSocketAddress(address, port));
            return true;
        } catch (IOException e) {
            return false;
        }
    }
}
