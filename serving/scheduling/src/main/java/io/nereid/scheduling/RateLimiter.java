// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.InstanceGroup;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Lets runs begin only when all the resources that their instances ask for are free, across models. Of those that wait,
 * the one whose instance has run least, times its priority, is next; one that asks for nothing that an earlier one waits
 * for need not wait for that one. Thread-safe by a short lock; no thread ever waits here: a model that gets nothing now
 * is called when its turn has come.
 */
public final class RateLimiter {
    private final Resources resources;
    private final List<Member> members = new ArrayList<>();
    private final List<Ticket> waiting = new ArrayList<>();
    private long stagings;

    /** With explicit totals; of any other resource there is as much as the most demanding instance asks for. */
    public RateLimiter(List<Total> totals) {
        this.resources = new Resources(totals);
    }

    /**
     * Takes a model in.
     *
     * @param onGrant called, without any lock and on any thread, when an instance for which the model waits may run
     * @throws ServingException INVALID_ARGUMENT when an instance could never run
     */
    Member join(ModelConfig config, Runnable onGrant) {
        Member member = new Member(config, onGrant);
        member.resize(Math.max(1, config.instances()));
        member.settle();
        return member;
    }

    /** What is in use of a resource on a device, or of a global one. */
    synchronized int used(String resource, int device) {
        return resources.used(new Resources.Key(resource, device));
    }

    private void countDemands() {
        resources.forgetDemands();
        for (Member member : members) {
            for (Ticket t : member.tickets.subList(0, member.wanted)) {
                resources.demand(t.needs);
            }
        }
    }

    private void stage(Ticket t) {
        t.state = State.WAITING;
        t.staged = ++stagings;
        waiting.add(t);
    }

    private void grant(Ticket t) {
        waiting.remove(t);
        t.state = State.GRANTED;
        t.executions++;
        resources.take(t.needs);
    }

    private void free(Ticket t) {
        t.state = State.IDLE;
        resources.giveBack(t.needs);
    }

    /** Grants what can be granted, the least run first; returns the members to call. */
    private Set<Member> grantAll() {
        if (waiting.isEmpty()) {
            return Set.of();
        }
        waiting.sort(Ticket.ORDER);
        Set<Member> granted = new LinkedHashSet<>();
        Set<Resources.Key> contested = new HashSet<>();
        for (Ticket t : List.copyOf(waiting)) {
            if (resources.free(t.needs) && t.needs.keySet().stream().noneMatch(contested::contains)) {
                grant(t);
                granted.add(t.member);
            } else {
                contested.addAll(t.needs.keySet());
            }
        }
        return granted;
    }

    private static void call(Set<Member> granted) {
        for (Member member : granted) {
            member.onGrant.run();
        }
    }

    /**
     * How much of a resource there is.
     *
     * @param name the resource
     * @param count how much
     * @param device on which device; {@link #EVERY_DEVICE} for each by itself; without meaning for a global resource
     */
    public record Total(String name, int count, int device) {
        /** The total holds for each device by itself. */
        public static final int EVERY_DEVICE = -1;

        /**
         * Reads {@code NAME:COUNT} or {@code NAME:COUNT:DEVICE}.
         *
         * @throws ServingException INVALID_ARGUMENT when it is neither
         */
        public static Total parse(String text) {
            String[] parts = text.split(":", -1);
            try {
                if ((parts.length == 2 || parts.length == 3) && !parts[0].isEmpty()) {
                    int count = Integer.parseInt(parts[1]);
                    int device = parts.length == 2 ? EVERY_DEVICE : Integer.parseInt(parts[2]);
                    if (count >= 0 && device >= EVERY_DEVICE) {
                        return new Total(parts[0], count, device);
                    }
                }
            } catch (NumberFormatException e) {
                // Told below.
            }
            throw ServingException.invalidArgument("rate limit resource '" + text
                    + "' is not of the form NAME:COUNT or NAME:COUNT:DEVICE with whole numbers (expected for instance R1:4"
                    + " or R1:4:0)");
        }
    }

    /** Where an instance stands. */
    private enum State {
        IDLE,
        WAITING,
        GRANTED,
        RUNNING
    }

    /** An instance, as the limiter sees it. Guarded by the limiter. */
    private static final class Ticket {
        static final Comparator<Ticket> ORDER =
                Comparator.comparingLong(Ticket::score).thenComparingLong(t -> t.staged);

        final Member member;
        final int instance;
        final Map<Resources.Key, Integer> needs;
        final int priority;
        State state = State.IDLE;
        long executions;
        long staged;
        /** Wanted again before its run was over. */
        boolean again;

        Ticket(Member member, int instance, Map<Resources.Key, Integer> needs, int priority) {
            this.member = member;
            this.instance = instance;
            this.needs = needs;
            this.priority = Math.max(1, priority);
        }

        long score() {
            return executions * priority;
        }
    }

    /** One model's instances. Thread-safe by the limiter's lock, which is taken within the queue's. */
    final class Member {
        private final ModelConfig config;
        private final Runnable onGrant;
        private final List<Ticket> tickets = new ArrayList<>();
        private int wanted;

        private Member(ModelConfig config, Runnable onGrant) {
            this.config = config;
            this.onGrant = onGrant;
        }

        /**
         * An instance that may run now and is not busy, or -1: then {@code onGrant} is called when one may. Calls nobody.
         */
        int acquire(BitSet busy, int below) {
            synchronized (RateLimiter.this) {
                List<Ticket> idle = new ArrayList<>();
                for (int i = busy.nextClearBit(0); i < Math.min(below, wanted); i = busy.nextClearBit(i + 1)) {
                    Ticket t = tickets.get(i);
                    switch (t.state) {
                        case GRANTED -> {
                            t.state = State.RUNNING;
                            return i;
                        }
                        case RUNNING -> t.again = true;
                        case IDLE -> idle.add(t);
                        case WAITING -> {}
                    }
                }
                idle.sort(Ticket.ORDER);
                for (Ticket t : idle) {
                    if (begins(t)) {
                        return t.instance;
                    }
                }
                return -1;
            }
        }

        private boolean begins(Ticket t) {
            stage(t);
            boolean free = resources.free(t.needs);
            for (Ticket w : waiting) {
                free &= w == t || Ticket.ORDER.compare(w, t) > 0 || !shares(w, t);
            }
            if (free) {
                grant(t);
                t.state = State.RUNNING;
            }
            return free;
        }

        private static boolean shares(Ticket a, Ticket b) {
            return a.needs.keySet().stream().anyMatch(b.needs::containsKey);
        }

        /** A run has ended; {@code again} when the instance has more to run. Outside the queue's lock: it calls. */
        void release(int instance, boolean again) {
            Set<Member> granted;
            synchronized (RateLimiter.this) {
                Ticket t = tickets.get(instance);
                free(t);
                if ((again || t.again) && instance < wanted) {
                    stage(t);
                }
                t.again = false;
                granted = grantAll();
            }
            call(granted);
        }

        /** Gives back what was granted and found nothing to run. Outside the queue's lock: it calls. */
        void returnUnused() {
            Set<Member> granted;
            synchronized (RateLimiter.this) {
                for (Ticket t : tickets) {
                    if (t.state == State.GRANTED) {
                        t.executions--;
                        free(t);
                    }
                }
                granted = grantAll();
            }
            call(granted);
        }

        /**
         * Changes the number of instances; {@link #settle} must follow.
         *
         * @throws ServingException INVALID_ARGUMENT when a new one could never run; nothing is changed
         */
        void resize(int count) {
            synchronized (RateLimiter.this) {
                List<Ticket> more = new ArrayList<>();
                for (int i = tickets.size(); i < count; i++) {
                    more.add(ticket(i));
                }
                resources.check(more.stream().map(t -> t.needs).toList());
                tickets.addAll(more);
                wanted = count;
                if (!members.contains(this)) {
                    members.add(this);
                }
                drop(count);
                countDemands();
            }
        }

        /** Lets others have what a change has freed. Outside the queue's lock: it calls. */
        void settle() {
            Set<Member> granted;
            synchronized (RateLimiter.this) {
                granted = grantAll();
            }
            call(granted);
        }

        /** The model has ended its last run. */
        void leave() {
            synchronized (RateLimiter.this) {
                drop(0);
                wanted = 0;
                members.remove(this);
                countDemands();
            }
            settle();
        }

        private void drop(int from) {
            for (Ticket t : tickets.subList(from, tickets.size())) {
                if (t.state == State.WAITING) {
                    waiting.remove(t);
                    t.state = State.IDLE;
                } else if (t.state == State.GRANTED) {
                    free(t);
                }
            }
        }

        private Ticket ticket(int instance) {
            int first = 0;
            InstanceGroup group = null;
            int device = 0;
            for (InstanceGroup g : config.instanceGroups()) {
                if (!g.passive()) {
                    group = g;
                    int within = Math.max(0, instance - first);
                    device = g.gpus().isEmpty()
                            ? 0
                            : g.gpus().get(within % g.gpus().size());
                    first += g.count();
                    if (instance < first) {
                        break;
                    }
                }
            }
            Map<Resources.Key, Integer> needs = group == null ? Map.of() : Resources.needs(group.resources(), device);
            return new Ticket(this, instance, needs, group == null ? 1 : group.priority());
        }
    }
}
