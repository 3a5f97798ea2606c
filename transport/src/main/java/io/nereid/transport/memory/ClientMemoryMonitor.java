// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.memory;

import io.netty.channel.EventLoop;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The clients of one event loop for which the server holds memory. While there are any, it samples their rates and lets
 * them check their time limits. When the budget is short it cuts slow ones: those of the address that holds the most
 * first, and of one address the slowest first. Clients that are not slow are not cut. The address decides this order
 * only, because behind an ingress all clients have one address.
 *
 * <p>Confined to the event loop, but for {@link #shortage(long)}.
 */
public final class ClientMemoryMonitor {
    private static final Logger LOG = LoggerFactory.getLogger(ClientMemoryMonitor.class);

    private final RequestMemory memory;
    private final EventLoop loop;
    private final AtomicBoolean relieving = new AtomicBoolean();

    /** The largest reservation that has failed since the search before. */
    private final AtomicLong wanted = new AtomicLong();

    private @Nullable ClientMemory first;
    private boolean ticking;

    ClientMemoryMonitor(RequestMemory memory, EventLoop loop) {
        this.memory = memory;
        this.loop = loop;
    }

    /** Begins to observe a client; does nothing when it is listed already. */
    public void add(ClientMemory client) {
        if (client.listed) {
            return;
        }
        client.listed = true;
        client.previous = null;
        client.next = first;
        if (first != null) {
            first.previous = client;
        }
        first = client;
        client.begin(memory.nanos());
        if (!ticking) {
            ticking = true;
            schedule();
        }
    }

    /** Ends the observation. */
    public void remove(ClientMemory client) {
        if (!client.listed) {
            return;
        }
        client.listed = false;
        if (client.previous == null) {
            first = client.next;
        } else {
            client.previous.next = client.next;
        }
        if (client.next != null) {
            client.next.previous = client.previous;
        }
        client.previous = null;
        client.next = null;
    }

    private void schedule() {
        if (!loop.isShuttingDown()) {
            loop.schedule(this::tick, memory.sampleMillis(), TimeUnit.MILLISECONDS);
        }
    }

    private void tick() {
        if (first == null) {
            ticking = false;
            return;
        }
        long now = memory.nanos();
        // a check may remove its client, or cut it: iterate over a copy
        for (ClientMemory client : clients()) {
            if (client.listed) {
                client.sample(now);
                client.check(now);
            }
        }
        relieve(0);
        schedule();
    }

    private List<ClientMemory> clients() {
        List<ClientMemory> all = new ArrayList<>();
        for (ClientMemory c = first; c != null; c = c.next) {
            all.add(c);
        }
        return all;
    }

    /** Plans a search for clients to cut, for a request that wants {@code bytes}. Any thread. */
    void shortage(long bytes) {
        wanted.accumulateAndGet(bytes, Math::max);
        if (!loop.isShuttingDown() && relieving.compareAndSet(false, true)) {
            loop.execute(() -> {
                relieving.set(false);
                relieve(wanted.getAndSet(0));
            });
        }
    }

    private void relieve(long bytes) {
        while (memory.isShort(bytes)) {
            ClientMemory worst = worst();
            if (worst == null) {
                return;
            }
            LOG.debug("cut {}, which holds {} bytes at {} bytes/s", worst.client(), worst.held(), worst.rate());
            remove(worst);
            worst.cut();
        }
    }

    /** The client to cut: of the address with the most bytes held by slow clients, the slowest. */
    private @Nullable ClientMemory worst() {
        Map<Object, Long> heldBy = new HashMap<>();
        List<ClientMemory> slow = new ArrayList<>();
        for (ClientMemory c = first; c != null; c = c.next) {
            if (c.isSlow() && c.held() > 0) {
                slow.add(c);
                heldBy.merge(host(c.client()), c.held(), Long::sum);
            }
        }
        return slow.stream()
                .max(Comparator.comparingLong((ClientMemory c) -> heldBy.getOrDefault(host(c.client()), 0L))
                        .thenComparing(
                                Comparator.comparingLong(ClientMemory::rate).reversed())
                        .thenComparingLong(ClientMemory::held))
                .orElse(null);
    }

    private static Object host(SocketAddress address) {
        return address instanceof InetSocketAddress inet && inet.getAddress() != null ? inet.getAddress() : "local";
    }
}
