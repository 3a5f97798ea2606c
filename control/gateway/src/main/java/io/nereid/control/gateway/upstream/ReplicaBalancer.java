// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.upstream;

import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.transport.api.UpstreamClient.Address;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Balances the requests of a revision over its replicas: child processes or pods. The list is immutable; the counts of requests are
 * atomic and continue in a new list for processes that stay.
 */
public final class ReplicaBalancer {
    public static final ReplicaBalancer NONE = new ReplicaBalancer(List.of());

    /** One replica with its requests in flight. Thread-safe. */
    public static final class Endpoint {
        public final Replica replica;
        public final Address http;
        public final Address grpc;
        public final AtomicInteger inFlight = new AtomicInteger();

        Endpoint(Replica replica) {
            this.replica = replica;
            this.http = new Address(replica.host(), replica.httpPort());
            this.grpc = new Address(replica.host(), replica.grpcPort());
        }

        /** Ends a request at this process. */
        public void release() {
            inFlight.decrementAndGet();
        }
    }

    private final List<Endpoint> members;
    private final AtomicInteger turn = new AtomicInteger();

    private ReplicaBalancer(List<Endpoint> members) {
        this.members = members;
    }

    /** Returns a balancer of these replicas; known ones keep their counts. */
    public ReplicaBalancer with(List<Replica> replicas) {
        List<Endpoint> next = new ArrayList<>();
        for (Replica replica : replicas) {
            Endpoint found = null;
            for (Endpoint member : members) {
                if (member.replica.equals(replica)) {
                    found = member;
                }
            }
            next.add(found == null ? new Endpoint(replica) : found);
        }
        return new ReplicaBalancer(List.copyOf(next));
    }

    public int size() {
        return members.size();
    }

    /**
     * Picks a replica and counts a request at it. Without a limit: the less busy of two random ones (power of two
     * choices). With a limit of up to three: the first one below its limit. With a higher limit: the next one below its
     * limit, round-robin. When all are at their limit: the least busy one. This is Knative's choice of load balancers.
     *
     * @param limit most requests at once in one replica; 0 for no limit
     * @param tried replicas that must not be picked
     * @param chance returns a random number below its argument
     * @return null when no replica is left
     */
    public @Nullable Endpoint take(int limit, List<Endpoint> tried, IntUnaryOperator chance) {
        List<Endpoint> from = members;
        if (!tried.isEmpty()) {
            from = new ArrayList<>(members);
            from.removeAll(tried);
        }
        if (from.isEmpty()) {
            return null;
        }
        if (limit == 0) {
            return counted(twoChoices(from, chance));
        }
        int n = from.size();
        int start = limit <= 3 ? 0 : Math.floorMod(turn.getAndIncrement(), n);
        for (int i = 0; i < n; i++) {
            Endpoint member = from.get((start + i) % n);
            if (tryTake(member, limit)) {
                return member;
            }
        }
        Endpoint least = from.get(0);
        for (Endpoint member : from) {
            if (member.inFlight.get() < least.inFlight.get()) {
                least = member;
            }
        }
        return counted(least);
    }

    private static Endpoint twoChoices(List<Endpoint> from, IntUnaryOperator chance) {
        int n = from.size();
        if (n == 1) {
            return from.get(0);
        }
        int a = chance.applyAsInt(n);
        int b = chance.applyAsInt(n - 1);
        if (b >= a) {
            b++;
        }
        Endpoint first = from.get(a);
        Endpoint second = from.get(b);
        return second.inFlight.get() < first.inFlight.get() ? second : first;
    }

    private static boolean tryTake(Endpoint member, int limit) {
        while (true) {
            int now = member.inFlight.get();
            if (now >= limit) {
                return false;
            }
            if (member.inFlight.compareAndSet(now, now + 1)) {
                return true;
            }
        }
    }

    private static Endpoint counted(Endpoint member) {
        member.inFlight.incrementAndGet();
        return member;
    }
}
