// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.gateway.Destination.Replica;
import io.nereid.transport.api.UpstreamClient.Address;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The child processes of a revision and who of them is the least busy. The list is immutable; counts of requests are atomic
 * and go on where a replica stays.
 */
final class Replicas {
    static final Replicas NONE = new Replicas(List.of());

    /** One child process. Thread-safe. */
    static final class Member {
        final Replica replica;
        final Address http;
        final Address grpc;
        final AtomicInteger inFlight = new AtomicInteger();

        Member(Replica replica) {
            this.replica = replica;
            this.http = new Address(replica.host(), replica.httpPort());
            this.grpc = new Address(replica.host(), replica.grpcPort());
        }

        /** A request of it has ended. */
        void release() {
            inFlight.decrementAndGet();
        }
    }

    private final List<Member> members;
    private final AtomicInteger turn = new AtomicInteger();

    private Replicas(List<Member> members) {
        this.members = members;
    }

    /** These replicas, those that were here before with their requests. */
    Replicas with(List<Replica> replicas) {
        List<Member> next = new ArrayList<>();
        for (Replica replica : replicas) {
            Member found = null;
            for (Member member : members) {
                if (member.replica.equals(replica)) {
                    found = member;
                }
            }
            next.add(found == null ? new Member(replica) : found);
        }
        return new Replicas(List.copyOf(next));
    }

    int size() {
        return members.size();
    }

    /**
     * Takes a place at a replica: without a limit the less busy one of two picked by chance; with a limit of up to three the
     * first with a place; with more, the next with a place by turns. When no place is free, the least busy one.
     *
     * @param limit most requests at once in one replica; 0 for no limit
     * @param tried replicas that shall not be taken
     * @param chance gives a number below its argument
     * @return null when there is none
     */
    @Nullable
    Member take(int limit, List<Member> tried, IntUnaryOperator chance) {
        List<Member> from = members;
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
            Member member = from.get((start + i) % n);
            if (tryTake(member, limit)) {
                return member;
            }
        }
        Member least = from.get(0);
        for (Member member : from) {
            if (member.inFlight.get() < least.inFlight.get()) {
                least = member;
            }
        }
        return counted(least);
    }

    private static Member twoChoices(List<Member> from, IntUnaryOperator chance) {
        int n = from.size();
        if (n == 1) {
            return from.get(0);
        }
        int a = chance.applyAsInt(n);
        int b = chance.applyAsInt(n - 1);
        if (b >= a) {
            b++;
        }
        Member first = from.get(a);
        Member second = from.get(b);
        return second.inFlight.get() < first.inFlight.get() ? second : first;
    }

    private static boolean tryTake(Member member, int limit) {
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

    private static Member counted(Member member) {
        member.inFlight.incrementAndGet();
        return member;
    }
}
