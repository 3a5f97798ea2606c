// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.autoscaling.ConcurrencyMeter;
import io.nereid.control.core.Observed.Traffic;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.Destination.Processes;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamClient.Terms;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * One revision's way in: counts its requests, limits how many run at once, and holds them while nothing can answer.
 *
 * <p>Requests are held while there are no replicas ({@link #capacity} of 0, or no child processes): the first one wakes the
 * revision. With replicas and a limit, those beyond it wait in line; a {@linkplain #serving direct} revision has a short line,
 * another one as long a line as it may hold.
 *
 * <p>Thread-safe; no method waits. Requests that need not wait pass without a lock.
 */
public final class RevisionGate {
    /**
     * Limits of a revision. Immutable.
     *
     * @param service the service's name, for metrics and headers
     * @param containerConcurrency most requests at once in one replica; 0 for no limit
     * @param queued most requests that wait in line, for each replica; 0 for ten times {@code containerConcurrency}
     * @param timeout most time for one request, waiting included; zero for no limit
     * @param held most requests that are held while there are no replicas
     * @param mirrored most copies of requests under way
     */
    public record Settings(
            String service, int containerConcurrency, int queued, Duration timeout, int held, int mirrored) {
        /** No limit on running requests, five minutes, 10,000 held, 100 mirrored. */
        public static Settings of(String service) {
            return new Settings(service, 0, 0, Duration.ofMinutes(5), 10_000, 100);
        }

        /** As a workload says. */
        public static Settings of(Workload workload) {
            Settings s = of(workload.service());
            return new Settings(
                    s.service, workload.containerConcurrency(), s.queued, workload.timeout(), s.held, s.mirrored);
        }
    }

    /**
     * What has gone on since the last look.
     *
     * @param concurrency mean number of requests under way, those that wait included
     * @param requestsPerSecond requests that came
     * @param waiting requests that are held or in line now
     * @param active requests under way now, those that wait included
     */
    public record Load(double concurrency, double requestsPerSecond, int waiting, int active) {}

    private static final int NEVER_STARTED_SECONDS = 5;

    private final GatewayContext context;
    private final String namespace;
    private final String revision;
    private final Settings settings;
    private final GateSite site;
    private final Terms terms;
    private final ConcurrencyMeter meter;
    private final TrafficWindow window = new TrafficWindow();
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    /** Requests between arrival and end. */
    private final AtomicInteger active = new AtomicInteger();

    /** Requests that hold a place; counted only where places are limited. */
    private final AtomicInteger running = new AtomicInteger();

    /** Requests in the line that still want to be. Written before {@code running} is read, and the other way round. */
    private final AtomicInteger waiting = new AtomicInteger();

    private final ArrayDeque<Passage> line = new ArrayDeque<>();
    /** Whether there may be something in the line, be it only requests that have given up. */
    private volatile boolean lined;

    private final AtomicBoolean woken = new AtomicBoolean();

    private final LongAdder[] codes = {
        new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder()
    };
    final LongAdder refused = new LongAdder();
    final LongAdder held = new LongAdder();
    final LongAdder mirrored = new LongAdder();
    final LongAdder unmirrored = new LongAdder();
    final LongAdder retried = new LongAdder();

    private volatile int capacity;
    private volatile boolean direct = true;
    private volatile boolean served;
    private volatile boolean closed;
    private volatile @Nullable String refusal;
    private volatile @Nullable PayloadTap tap;
    private volatile List<Mirror> mirrors = List.of();
    private volatile Replicas replicas = Replicas.NONE;
    private volatile Destination destination;
    private volatile long wokenAt;
    private volatile long startNanos;

    /** Whether requests pass without being looked at: derived from all else. */
    private volatile boolean open;

    RevisionGate(
            GatewayContext context, String namespace, String revision, Settings settings, Destination destination) {
        this.context = context;
        this.namespace = namespace;
        this.revision = revision;
        this.settings = settings;
        this.destination = destination;
        this.meter = new ConcurrencyMeter(context.clock.nanos());
        this.terms = new Terms(
                settings.timeout,
                Terms.DEFAULT.mostBytes(),
                List.of(
                        new Header("KServe-Isvc-Name", settings.service),
                        new Header("KServe-Isvc-Namespace", namespace)));
        this.site = new GateSite(context, this);
        if (destination instanceof Processes processes) {
            replicas = Replicas.NONE.with(processes.replicas());
        }
    }

    /** The namespace. */
    public String namespace() {
        return namespace;
    }

    /** The revision's name. */
    public String revision() {
        return revision;
    }

    CompletionStage<Void> drained() {
        return drained;
    }

    Settings settings() {
        return settings;
    }

    /** How requests are sent on to child processes. */
    Terms terms() {
        return terms;
    }

    GateSite site() {
        return site;
    }

    Destination destination() {
        return destination;
    }

    Replicas replicas() {
        return replicas;
    }

    @Nullable
    PayloadTap tap() {
        return tap;
    }

    List<Mirror> mirrors() {
        return mirrors;
    }

    void mirrors(List<Mirror> wanted) {
        mirrors = wanted;
    }

    GatewayContext context() {
        return context;
    }

    /** Sends requests there from now on. */
    public void destination(Destination next) {
        synchronized (line) {
            if (next instanceof Processes processes) {
                replicas = replicas.with(processes.replicas());
            } else {
                replicas = Replicas.NONE;
            }
            boolean another =
                    !(next instanceof Processes && destination instanceof Processes) && !next.equals(destination);
            destination = next;
            if (another) {
                site.rebuild();
            }
            settle();
        }
        drain();
    }

    /** How many replicas answer; with 0 requests are held. With child processes no more than there are of them count. */
    public void capacity(int count) {
        synchronized (line) {
            capacity = count;
            settle();
        }
        drain();
        if (closed) {
            giveUpWhenClosed();
        }
    }

    /** Whether requests beyond the limit wait in the revision's own short line, or in the long one of those that are held. */
    public void serving(boolean directly) {
        direct = directly;
    }

    /** Refuses requests, those that wait too, with 503 and this text; null to take them again. */
    public void refuse(@Nullable String why) {
        synchronized (line) {
            refusal = why;
            woken.set(false);
            settle();
        }
        if (why != null) {
            refuseAll(unavailable(why));
        }
    }

    /** Has somebody listen to requests and answers; null for nobody. */
    public void tap(@Nullable PayloadTap listener) {
        tap = listener;
    }

    /**
     * What has gone on since the last call. For one thread at a time.
     *
     * @param now of the gateway's clock, in nanoseconds
     */
    public Load sample(long now) {
        ConcurrencyMeter.Report report = meter.report(now);
        return new Load(report.concurrency(), report.requestsPerSecond(), waiting.get(), active.get());
    }

    /** What the requests of the last minute were like; waiting for a replica is no part of their time. */
    public Traffic traffic(long now) {
        return window.read(now);
    }

    /** Takes no request any more; completes when the last one has ended, on the thread that ended it. */
    public CompletionStage<Void> close() {
        synchronized (line) {
            closed = true;
            settle();
        }
        giveUpWhenClosed();
        if (active.get() == 0) {
            drained.complete(null);
        }
        return drained;
    }

    /** Whether a request can be answered without waiting for a replica. */
    boolean flowing() {
        return open || (places() > 0 && refusal == null && !closed);
    }

    boolean usable() {
        return refusal == null && !closed;
    }

    /** Whether it has answered before and only sleeps. */
    boolean standby() {
        return served && usable() && places() == 0;
    }

    /** Why requests are refused, or null. */
    @Nullable
    String refusal() {
        return closed ? "revision " + revision + " is ending" : refusal;
    }

    int activeNow() {
        return active.get();
    }

    int waitingNow() {
        return waiting.get();
    }

    /** Requests that ended with a status of so many hundreds; 0 for those whose client went away. */
    long ended(int hundreds) {
        return codes[hundreds].sum();
    }

    // ---- the way of a request ----

    /** A request has come: it runs now, or waits, or is refused. Throws what its handler throws. */
    void enter(Passage passage) {
        active.incrementAndGet();
        meter.begin(passage.arrived);
        if (open) {
            passage.runAtOnce();
            passage.go();
        } else {
            enterByTheSide(passage);
        }
    }

    private void enterByTheSide(Passage passage) {
        String why = refusal();
        if (why != null) {
            refuse(passage, unavailable(why));
            return;
        }
        if (waiting.get() == 0 && takePlace(passage)) {
            passage.runAtOnce();
            passage.go();
            return;
        }
        boolean asleep;
        ServingException full = null;
        synchronized (line) {
            asleep = places() == 0;
            int bound = !direct || asleep ? settings.held : queueBound();
            if (waiting.get() >= bound) {
                full = ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "pending request queue full",
                        waiting.get() + " requests wait for revision " + revision + "; try again in "
                                + retryAfterSeconds() + " s");
            } else if (!context.budget.tryReserve(passage.bytes())) {
                full = ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "pending request queue full",
                        "requests that wait take " + context.budget.used() + " bytes; try again in "
                                + retryAfterSeconds() + " s");
            } else {
                long mine = settings.timeout.isZero() ? Long.MAX_VALUE : passage.arrived + settings.timeout.toNanos();
                passage.waitUntil = earlier(mine, passage.deadline());
                passage.waitInLine();
                line.add(passage);
                if (!lined) {
                    lined = true;
                    context.lined.add(this);
                }
                waiting.incrementAndGet();
            }
        }
        if (full != null) {
            refuse(passage, full);
            return;
        }
        if (asleep) {
            held.increment();
            wake();
        }
        // a place may have become free, or the gate closed, between the look and the line
        why = refusal();
        if (why != null && (!closed || places() == 0)) {
            refuseAll(unavailable(why));
        }
        drain();
    }

    /** {@link Long#MAX_VALUE} is never; other times compare by subtraction. */
    private static long earlier(long a, long b) {
        if (a == Long.MAX_VALUE || b == Long.MAX_VALUE) {
            return a == Long.MAX_VALUE ? b : a;
        }
        return a - b < 0 ? a : b;
    }

    private int queueBound() {
        long each = settings.queued > 0 ? settings.queued : 10L * settings.containerConcurrency;
        return (int) Math.min(Integer.MAX_VALUE, each * Math.max(1, places()));
    }

    /** Has somebody bring a replica, once until there is one. */
    void wake() {
        if (!woken.get() && woken.compareAndSet(false, true)) {
            wokenAt = context.clock.nanos();
            context.listener.wake(namespace, revision);
        }
    }

    /** How many replicas answer. */
    private int places() {
        return destination instanceof Processes ? Math.min(capacity, replicas.size()) : capacity;
    }

    private boolean takePlace(Passage passage) {
        int count = places();
        if (count == 0) {
            return false;
        }
        if (settings.containerConcurrency == 0) {
            return true;
        }
        long limit = (long) count * settings.containerConcurrency;
        while (true) {
            int now = running.get();
            if (now >= limit) {
                return false;
            }
            if (running.compareAndSet(now, now + 1)) {
                passage.permit = true;
                return true;
            }
        }
    }

    /** Lets those on that have waited longest, as many as there are places. */
    private void drain() {
        while (waiting.get() > 0) {
            Passage next;
            synchronized (line) {
                next = firstWaiting();
                if (next == null || refusal != null || !takePlace(next)) {
                    return;
                }
                line.poll();
                if (!next.leaveLine()) {
                    giveBack(next);
                    continue;
                }
            }
            left(next);
            next.admitted = context.clock.nanos();
            try {
                context.executor.execute(next::resume);
            } catch (RejectedExecutionException e) {
                refuse(next, unavailable("the server is shutting down"));
            }
        }
    }

    /** The line's first that still waits; drops those before it. */
    private @Nullable Passage firstWaiting() {
        while (true) {
            Passage first = line.peek();
            if (first == null || first.isWaiting()) {
                return first;
            }
            line.poll();
        }
    }

    private void giveBack(Passage passage) {
        if (passage.permit) {
            passage.permit = false;
            running.decrementAndGet();
        }
    }

    private void left(Passage passage) {
        waiting.decrementAndGet();
        context.budget.release(passage.bytes());
    }

    /** Called once for each request that has entered. */
    void ended(Passage passage, int status, boolean waited) {
        long now = context.clock.nanos();
        meter.end(now);
        if (waited) {
            left(passage);
        }
        giveBack(passage);
        boolean gone = status == 499;
        codes[gone ? 0 : Math.max(1, Math.min(5, status / 100))].increment();
        if (!gone) {
            window.record(now, now - passage.admitted, status >= 500);
        }
        if (waiting.get() > 0) {
            drain();
        }
        if (active.decrementAndGet() == 0 && closed) {
            drained.complete(null);
        }
    }

    private void refuse(Passage passage, ServingException e) {
        refused.increment();
        passage.admitted = context.clock.nanos();
        passage.refused(e);
    }

    private void refuseAll(ServingException e) {
        for (Passage passage : takeAll()) {
            refuse(passage, e);
        }
    }

    private List<Passage> takeAll() {
        List<Passage> all = new ArrayList<>();
        synchronized (line) {
            for (Passage passage : line) {
                if (passage.leaveLine()) {
                    all.add(passage);
                }
            }
            line.clear();
        }
        all.forEach(this::left);
        return all;
    }

    private void giveUpWhenClosed() {
        if (places() == 0) {
            refuseAll(unavailable("revision " + revision + " is ending"));
        }
    }

    /** Refuses those that have waited too long; forgets those whose clients have gone. */
    void sweep(long now) {
        if (!lined) {
            return;
        }
        List<Passage> late = new ArrayList<>();
        synchronized (line) {
            line.removeIf(p -> {
                if (!p.isWaiting()) {
                    return true;
                }
                if (p.waitUntil == Long.MAX_VALUE || p.waitUntil - now > 0 || !p.leaveLine()) {
                    return false;
                }
                late.add(p);
                return true;
            });
            lined = !line.isEmpty();
            if (!lined) {
                context.lined.remove(this);
            }
        }
        boolean asleep = places() == 0;
        for (Passage passage : late) {
            left(passage);
            String what = asleep ? "no replica of revision " : "no place at revision ";
            refuse(
                    passage,
                    ServingException.of(
                            ErrorCode.UNAVAILABLE,
                            what + revision + (asleep ? " was ready in time" : " became free in time"),
                            "try again in " + retryAfterSeconds() + " s"));
        }
        if (asleep && waiting.get() == 0) {
            // whoever comes next may try again
            woken.set(false);
        }
    }

    /** After how many seconds another try is worthwhile: as long as the last start took, or one where replicas answer. */
    int retryAfterSeconds() {
        if (places() > 0) {
            return 1;
        }
        long start = startNanos;
        return start == 0 ? NEVER_STARTED_SECONDS : (int) Math.max(1, (start + 999_999_999) / 1_000_000_000);
    }

    private ServingException unavailable(String why) {
        return ServingException.of(ErrorCode.UNAVAILABLE, why);
    }

    /** Under the lock of the line: what follows from the rest. */
    private void settle() {
        boolean awake = places() > 0;
        if (awake) {
            served = true;
            if (woken.compareAndSet(true, false)) {
                startNanos = Math.max(1, context.clock.nanos() - wokenAt);
            }
        }
        open = awake && settings.containerConcurrency == 0 && refusal == null && !closed;
    }
}
