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
        public final AtomicInteger inFlight;

        Endpoint(Replica replica) {
            this(replica, new AtomicInteger());
        }

        Endpoint(Replica replica, AtomicInteger inFlight) {
            this.inFlight = inFlight;
            this.replica = replica;
            this.http = new Address(replica.host(), replica.httpPort());
            this.grpc = new Address(replica.host(), replica.grpcPort());
        }

        /** Ends a request at this process. */
        public void release() {
            inFlight.decrementAndGet();
        }
    }

    /** Those that are preferred, or all when none is. */
    private final List<Endpoint> first;

    /** The others. */
    private final List<Endpoint> second;

    private final int size;
    private final AtomicInteger turn = new AtomicInteger();

    private ReplicaBalancer(List<Endpoint> members) {
        List<Endpoint> preferred =
                members.stream().filter(m -> m.replica.preferred()).toList();
        this.size = members.size();
        this.first = preferred.isEmpty() ? List.copyOf(members) : preferred;
        this.second = preferred.isEmpty()
                ? List.of()
                : members.stream().filter(m -> !m.replica.preferred()).toList();
    }

    /** Returns a balancer of these replicas; known ones keep their counts. */
    public ReplicaBalancer with(List<Replica> replicas) {
        List<Endpoint> next = new ArrayList<>();
        for (Replica replica : replicas) {
            Endpoint found = find(replica);
            if (found == null) {
                next.add(new Endpoint(replica));
            } else {
                next.add(found.replica.equals(replica) ? found : new Endpoint(replica, found.inFlight));
            }
        }
        return new ReplicaBalancer(List.copyOf(next));
    }

    private @Nullable Endpoint find(Replica replica) {
        for (List<Endpoint> part : List.of(first, second)) {
            for (Endpoint member : part) {
                if (member.replica.isSame(replica)) {
                    return member;
                }
            }
        }
        return null;
    }

    public int size() {
        return size;
    }

    /** Whether there is a replica that is none of these. */
    public boolean hasOther(List<Endpoint> than) {
        return !without(first, than).isEmpty() || !without(second, than).isEmpty();
    }

    /**
     * Picks a replica and counts a request at it. Without a limit: the less busy of two random ones (power of two
     * choices). With a limit of up to three: the first one below its limit. With a higher limit: the next one below its
     * limit, round-robin. When all are at their limit: the least busy one. This is Knative's choice of load balancers.
     * Preferred replicas come first: without a limit as long as there is one, with a limit as long as one is below it.
     *
     * @param limit most requests at once in one replica; 0 for no limit
     * @param tried replicas that must not be picked
     * @param chance returns a random number below its argument
     * @return null when no replica is left
     */
    public @Nullable Endpoint take(int limit, List<Endpoint> tried, IntUnaryOperator chance) {
        List<Endpoint> near = without(first, tried);
        List<Endpoint> far = without(second, tried);
        if (near.isEmpty()) {
            near = far;
            far = List.of();
        }
        if (near.isEmpty()) {
            return null;
        }
        if (limit == 0) {
            return counted(twoChoices(near, chance));
        }
        Endpoint below = below(near, limit);
        below = below != null || far.isEmpty() ? below : below(far, limit);
        if (below != null) {
            return below;
        }
        Endpoint least = near.get(0);
        for (List<Endpoint> part : List.of(near, far)) {
            for (Endpoint member : part) {
                if (member.inFlight.get() < least.inFlight.get()) {
                    least = member;
                }
            }
        }
        return counted(least);
    }

    private static List<Endpoint> without(List<Endpoint> members, List<Endpoint> tried) {
        if (tried.isEmpty() || members.isEmpty()) {
            return members;
        }
        List<Endpoint> rest = new ArrayList<>(members);
        rest.removeIf(member -> tried.stream().anyMatch(one -> one.replica.isSame(member.replica)));
        return rest;
    }

    /** Takes a replica below its limit; null when there is none. */
    private @Nullable Endpoint below(List<Endpoint> from, int limit) {
        int n = from.size();
        int start = limit <= 3 ? 0 : Math.floorMod(turn.getAndIncrement(), n);
        for (int i = 0; i < n; i++) {
            Endpoint member = from.get((start + i) % n);
            if (tryTake(member, limit)) {
                return member;
            }
        }
        return null;
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
