// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.HashSet;
import java.util.Set;

/** Assigns ports to child processes. Thread-safe: guarded by its own lock. */
public final class PortAllocator {
    private final int first;
    private final int last;

    @GuardedBy("this") private final Set<Integer> taken = new HashSet<>();

    @GuardedBy("this") private int next;

    public PortAllocator(int first, int last) {
        this.first = first;
        this.last = last;
        this.next = first;
    }

    /**
     * Takes a free port of the range.
     *
     * @throws ServingException RESOURCE_EXHAUSTED without a free port
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

    /** Takes a given port; false when it is taken or another program listens on it. */
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
