// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The rate limiter (Triton: {@code --rate-limit=execution_count}): a run may start only when all resources of its
 * instance are free. Resources are shared by all models.
 *
 * <p>Among waiting instances, the one with the lowest product of executions and priority is next. An instance does not
 * wait for one before it if they have no resource in common.
 *
 * <pre>{@code
 * RateLimiter limiter = new RateLimiter(List.of(RateLimiter.Total.parse("R1:4")));
 * SchedulerOptions options = SchedulerOptions.DEFAULT.withLimiter(limiter);
 * }</pre>
 *
 * <p><b>Life of an instance.</b> IDLE; WAITING after its model has requested a run and did not get it; GRANTED when
 * its resources are taken for it and its model has been called back; RUNNING; then IDLE again. Resources are taken when
 * an instance is granted, and given back when its run ends or the grant is not used.
 *
 * <p>Thread-safe: one short lock. No thread waits here: when a model gets no instance, the limiter calls it back when
 * an instance may run. Lock order: a model's lock, then this one; callbacks are therefore made without it.
 */
public final class RateLimiter {
    @GuardedBy("this") private final RateLimiterResources resources;

    @GuardedBy("this") private final List<Member> members = new ArrayList<>();

    @GuardedBy("this") private final List<Ticket> waiting = new ArrayList<>();

    @GuardedBy("this") private long stagings;

    /**
     * Creates a limiter with explicit totals. The total of every other resource is the largest amount that one instance
     * requires.
     */
    public RateLimiter(List<Total> totals) {
        this.resources = new RateLimiterResources(totals);
    }

    /**
     * Registers a model.
     *
     * @param onGrant called without a lock, on any thread, when an instance that the model waits for may run
     * @throws ServingException INVALID_ARGUMENT when an instance requires more than the total and could never run
     */
    public Member join(ModelConfig config, Runnable onGrant) {
        Member member = new Member(config, onGrant);
        member.resize(Math.max(1, config.instances()));
        member.settle();
        return member;
    }

    /** Returns how much is in use of a resource on a device, or of a global resource. */
    public synchronized int used(String resource, int device) {
        return resources.used(new RateLimiterResources.Key(resource, device));
    }

    @GuardedBy("this") private void countDemands() {
        resources.forgetDemands();
        for (Member member : members) {
            for (Ticket t : member.tickets.subList(0, member.desired)) {
                resources.demand(t.needs);
            }
        }
    }

    /** Queues an instance. The counter orders instances of equal score by the time of their request. */
    @GuardedBy("this") private void stage(Ticket t) {
        t.state = State.WAITING;
        t.staged = ++stagings;
        waiting.add(t);
    }

    @GuardedBy("this") private void grant(Ticket t) {
        waiting.remove(t);
        t.state = State.GRANTED;
        // Counted when granted; returnUnused() takes it back.
        t.executions++;
        resources.take(t.needs);
    }

    @GuardedBy("this") private void free(Ticket t) {
        t.state = State.IDLE;
        resources.giveBack(t.needs);
    }

    /**
     * Grants resources to waiting instances in order of their score, and returns the members to call after the lock is
     * released. An instance that cannot get its resources reserves them against all later ones ({@code contested});
     * otherwise instances with small needs could starve one with large needs.
     */
    @GuardedBy("this") private Set<Member> grantAll() {
        if (waiting.isEmpty()) {
            return Set.of();
        }
        waiting.sort(Ticket.ORDER);
        Set<Member> granted = new LinkedHashSet<>();
        // Resources that an earlier instance waits for.
        Set<RateLimiterResources.Key> contested = new HashSet<>();
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
     * The total amount of a resource. Immutable.
     *
     * @param name the resource
     * @param count the amount
     * @param device the device; {@link #EVERY_DEVICE} for every device separately; ignored for a global resource
     */
    public record Total(String name, int count, int device) {
        /** The total applies to every device separately. */
        public static final int EVERY_DEVICE = -1;

        /**
         * Parses {@code NAME:COUNT} or {@code NAME:COUNT:DEVICE}.
         *
         * @throws ServingException INVALID_ARGUMENT for any other form
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
                // Reported below.
            }
            throw ServingException.invalidArgument("rate limit resource '" + text
                    + "' is not of the form NAME:COUNT or NAME:COUNT:DEVICE with whole numbers (expected for instance"
                    + " R1:4 or R1:4:0)");
        }
    }

    /** The state of an instance: IDLE → WAITING → GRANTED → RUNNING → IDLE. */
    private enum State {
        IDLE,
        WAITING,
        GRANTED,
        RUNNING
    }

    /** The limiter's record of an instance. Guarded by the limiter. */
    private static final class Ticket {
        static final Comparator<Ticket> ORDER =
                Comparator.comparingLong(Ticket::score).thenComparingLong(t -> t.staged);

        final Member member;
        final int instance;
        final Map<RateLimiterResources.Key, Integer> needs;
        final int priority;
        State state = State.IDLE;
        long executions;
        long staged;
        /** Requested again before its run has ended. */
        boolean again;

        Ticket(Member member, int instance, Map<RateLimiterResources.Key, Integer> needs, int priority) {
            this.member = member;
            this.instance = instance;
            this.needs = needs;
            this.priority = Math.max(1, priority);
        }

        long score() {
            return executions * priority;
        }
    }

    /**
     * The instances of one model. Thread-safe by the limiter's lock.
     *
     * <p>Lock order: the model's queue calls {@link #acquire} while it holds its own lock, so the limiter's lock is
     * taken after the queue's. The limiter therefore calls {@code onGrant}, which takes the queue's lock, only after it
     * has released its own.
     */
    public final class Member {
        private final ModelConfig config;
        private final Runnable onGrant;

        private final List<Ticket> tickets = new ArrayList<>();

        private int desired;

        private Member(ModelConfig config, Runnable onGrant) {
            this.config = config;
            this.onGrant = onGrant;
        }

        /**
         * Returns an instance that may run now and is not busy. Otherwise returns -1, queues the idle instances, and
         * {@code onGrant} is called when one of them may run. Makes no calls, so the caller may hold the queue's lock.
         */
        public int acquire(BitSet busy, int below) {
            synchronized (RateLimiter.this) {
                List<Ticket> idle = new ArrayList<>();
                for (int i = busy.nextClearBit(0); i < Math.min(below, desired); i = busy.nextClearBit(i + 1)) {
                    Ticket t = tickets.get(i);
                    switch (t.state) {
                        case GRANTED -> {
                            t.state = State.RUNNING;
                            return i;
                        }
                        // The runs of one instance never overlap: remember the request for release().
                        case RUNNING -> t.again = true;
                        case IDLE -> idle.add(t);
                        case WAITING -> {}
                    }
                }
                // If none can begin, all of them are queued: the first that gets its resources runs the batch. Grants
                // without a batch are given back with returnUnused().
                idle.sort(Ticket.ORDER);
                for (Ticket t : idle) {
                    if (begins(t)) {
                        return t.instance;
                    }
                }
                return -1;
            }
        }

        /**
         * Queues an idle instance and grants it at once if its resources are free and no instance before it in the
         * order waits for one of them. Otherwise it stays queued.
         */
        @GuardedBy("RateLimiter.this") private boolean begins(Ticket t) {
            stage(t);
            boolean free = resources.free(t.needs);
            // As in grantAll(): an instance may only pass earlier ones with which it shares no resource.
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

        /**
         * Frees the resources of an instance whose run has ended, and queues it again when it has more to run. Calls
         * {@code onGrant} of other models, so the caller must not hold its queue's lock.
         */
        public void release(int instance, boolean again) {
            Set<Member> granted;
            synchronized (RateLimiter.this) {
                Ticket t = tickets.get(instance);
                free(t);
                if ((again || t.again) && instance < desired) {
                    stage(t);
                }
                t.again = false;
                granted = grantAll();
            }
            call(granted);
        }

        /**
         * Returns granted instances for which the queue has nothing to run. They do not count as executions. The caller
         * must not hold its queue's lock.
         */
        public void returnUnused() {
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
         * Changes the number of instances. The caller must call {@link #settle} afterwards, without its queue's lock.
         *
         * @throws ServingException INVALID_ARGUMENT when a new instance could never run; nothing is changed then
         */
        void resize(int count) {
            synchronized (RateLimiter.this) {
                List<Ticket> more = new ArrayList<>();
                for (int i = tickets.size(); i < count; i++) {
                    more.add(ticket(i));
                }
                resources.check(more.stream().map(t -> t.needs).toList());
                tickets.addAll(more);
                desired = count;
                if (!members.contains(this)) {
                    members.add(this);
                }
                drop(count);
                countDemands();
            }
        }

        /** Grants resources that a change has freed. The caller must not hold its queue's lock. */
        public void settle() {
            Set<Member> granted;
            synchronized (RateLimiter.this) {
                granted = grantAll();
            }
            call(granted);
        }

        /** Removes the model after its last run. The caller must not hold its queue's lock. */
        public void leave() {
            synchronized (RateLimiter.this) {
                drop(0);
                desired = 0;
                members.remove(this);
                countDemands();
            }
            settle();
        }

        @GuardedBy("RateLimiter.this") private void drop(int from) {
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
                    device = g.device(within);
                    first += g.instances();
                    if (instance < first) {
                        break;
                    }
                }
            }
            Map<RateLimiterResources.Key, Integer> needs =
                    group == null ? Map.of() : RateLimiterResources.needs(group.resources(), device);
            return new Ticket(this, instance, needs, group == null ? 1 : group.priority());
        }
    }
}
