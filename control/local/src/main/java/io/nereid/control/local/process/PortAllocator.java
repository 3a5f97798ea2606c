// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Assigns ports to child processes. A child opens its port only some time after the port was assigned; until then other
 * servers on this machine see the port as free. So the allocator holds a reservation for each port: a datagram socket
 * with the same number on the loopback address, which a second server cannot bind, and which the system closes when
 * this process dies. Thread-safe: guarded by its own lock.
 */
public final class PortAllocator {
    private final int first;
    private final int last;

    /** The reservation of each port that is assigned. */
    @GuardedBy("this") private final Map<Integer, DatagramSocket> reservations = new HashMap<>();

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

    /** Takes a given port; false when it is taken or another program has it. */
    synchronized boolean take(int port) {
        if (reservations.containsKey(port) || !isFree(port)) {
            return false;
        }
        DatagramSocket reservation = reserve(port);
        if (reservation == null) {
            return false;
        }
        reservations.put(port, reservation);
        return true;
    }

    synchronized void release(int port) {
        DatagramSocket reservation = reservations.remove(port);
        if (reservation != null) {
            reservation.close();
        }
    }

    private static @Nullable DatagramSocket reserve(int port) {
        try {
            return new DatagramSocket(port, InetAddress.getLoopbackAddress());
        } catch (SocketException e) {
            return null;
        }
    }

    private static boolean isFree(int port) {
        return canBind(null, port) && canBind(InetAddress.getLoopbackAddress(), port);
    }

    private static boolean canBind(@Nullable InetAddress address, int port) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(true);
            socket.bind(address == null ? new InetSocketAddress(port) : new InetSocketAddress(address, port));
            return true;
        } catch (IOException e) {
            return false;
        }
    }
}
