// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.autoscaling.ConcurrencyMeter;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.upstream.ReplicaBalancer;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.scheduling.admission.AdmissionPolicy;
import io.nereid.scheduling.admission.QueueAdmission;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Header;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Admits the requests of one revision, like Knative's activator and queue-proxy: counts them, limits how many run at
 * once, and holds them while no replica can answer.
 *
 * <p>Requests are held while there are no replicas ({@link #capacity} of 0, or no child processes); the first one wakes
 * the revision. With replicas and a concurrency limit, the requests beyond it wait in the queue. A
 * {@linkplain #direct direct} revision has a short queue (Knative's queue-proxy); otherwise the queue is as long as
 * that of held requests (Knative's activator).
 *
 * <p>With a concurrency limit and an {@linkplain ActivatorContext#admission admission}, requests are also refused while
 * the queue is overloaded; not while there is no replica, since held requests cannot be served yet.
 *
 * <p>Thread-safe; no method blocks. Without a concurrency limit, requests pass without a lock.
 *
 * <pre>{@code
 * RevisionActivator activator = gateway.openActivator(
 *         "default", "iris-predictor-00001", RevisionActivator.Settings.of("iris"), destination);
 * activator.capacity(1);   // from now on requests run
 * ...
 * activator.close().thenRun(this::unload);
 * }</pre>
 */
public final class RevisionActivator {
    /**
     * Limits of a revision. Immutable.
     *
     * @param service the service's name, for metrics and headers
     * @param containerConcurrency most requests at once in one replica; 0 for no limit
     * @param queued most requests that wait in the queue, for each replica; 0 for ten times
     *     {@code containerConcurrency}
     * @param timeout the longest time for one request, including waiting; zero for no limit
     * @param held most requests that are held while there are no replicas
     * @param mirrored most mirrored requests in flight
     */
    public record Settings(
            String service, int containerConcurrency, int queued, Duration timeout, int held, int mirrored) {
        /** The defaults: no concurrency limit, five minutes, 10,000 held and 100 mirrored requests. */
        public static Settings of(String service) {
            return new Settings(service, 0, 0, Duration.ofMinutes(5), 10_000, 100);
        }

        /** The limits of a workload. */
        public static Settings of(Workload workload) {
            Settings s = of(workload.service());
            return new Settings(
                    s.service, workload.containerConcurrency(), s.queued, workload.timeout(), s.held, s.mirrored);
        }
    }

    /**
     * The load since the last sample.
     *
     * @param concurrency mean number of requests in flight, including waiting ones
     * @param requestsPerSecond the rate of arriving requests
     * @param waiting requests that are held or queued now
     * @param active requests in flight now, including waiting ones
     */
    public record Load(double concurrency, double requestsPerSecond, int waiting, int active) {}

    private static final Logger LOG = LoggerFactory.getLogger(RevisionActivator.class);
    private static final int NEVER_STARTED_SECONDS = 5;
    private static final long UNREACHABLE_NANOS = Duration.ofSeconds(5).toNanos();

    /** A replica to which no connection could be made, and until when it is passed over. */
    private record Unreachable(ReplicaBalancer.Endpoint endpoint, long until) {}

    private final ActivatorContext context;
    private final String namespace;
    private final String revision;
    private final Settings settings;
    private final RevisionRoutes routes;
    private final ForwardOptions forwardOptions;
    private final ConcurrencyMeter meter;
    private final RequestWindow window = new RequestWindow();
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    /** Requests between arrival and end. */
    private final AtomicInteger active = new AtomicInteger();

    /** Requests that hold a permit; counted only with a concurrency limit. */
    private final AtomicInteger running = new AtomicInteger();

    /**
     * Requests in the queue that have not been cancelled. A request that enters increments {@code waiting} and then
     * reads {@code running}; a request that ends decrements {@code running} and then reads {@code waiting}. So one of
     * them sees the other, and no request stays in the queue while a permit is free.
     */
    private final AtomicInteger waiting = new AtomicInteger();

    @GuardedBy("queue") private final ArrayDeque<RevisionRequest> queue = new ArrayDeque<>();

    /** Its methods are called under the lock of the queue. */
    private final @Nullable QueueAdmission admission;
    /** Whether the queue may contain entries, including cancelled ones. */
    private volatile boolean mayHaveQueue;

    private final AtomicBoolean woken = new AtomicBoolean();

    private final LongAdder[] codes = {
        new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder()
    };
    public final LongAdder rejected = new LongAdder();
    public final LongAdder held = new LongAdder();
    public final LongAdder mirrored = new LongAdder();
    public final LongAdder unmirrored = new LongAdder();
    public final LongAdder retried = new LongAdder();

    private volatile int capacity;
    private volatile boolean direct = true;
    private volatile boolean served;
    private volatile boolean closed;
    private volatile @Nullable String rejection;
    private volatile @Nullable PayloadListener listener;
    private volatile List<MirrorTarget> mirrors = List.of();
    private volatile ReplicaBalancer replicas = ReplicaBalancer.NONE;
    private volatile List<Unreachable> unreachable = List.of();
    private volatile RevisionTarget destination;
    private volatile long wokenAt;
    private volatile long startNanos;

    /** Whether requests pass without a check: derived from the other fields by {@link #updateOpen}. */
    private volatile boolean open;

    public RevisionActivator(
            ActivatorContext context,
            String namespace,
            String revision,
            Settings settings,
            RevisionTarget destination) {
        this.context = context;
        this.namespace = namespace;
        this.revision = revision;
        this.settings = settings;
        this.destination = destination;
        this.meter = new ConcurrencyMeter(context.clock.nanos());
        this.admission = settings.containerConcurrency == 0 ? null : context.openAdmission();
        this.forwardOptions = new ForwardOptions(
                settings.timeout,
                ForwardOptions.DEFAULT.maxBytes(),
                List.of(
                        new Header("KServe-Isvc-Name", settings.service),
                        new Header("KServe-Isvc-Namespace", namespace)));
        this.routes = new RevisionRoutes(context, this);
        if (destination instanceof Processes processes) {
            replicas = ReplicaBalancer.NONE.with(processes.replicas());
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

    public CompletionStage<Void> drained() {
        return drained;
    }

    public Settings settings() {
        return settings;
    }

    /** The options with which requests are forwarded to child processes. */
    ForwardOptions forwardOptions() {
        return forwardOptions;
    }

    public RevisionRoutes routes() {
        return routes;
    }

    public RevisionTarget destination() {
        return destination;
    }

    /** The activator for a path: that of the model which the path names, for a service whose models have their own. */
    public RevisionActivator ofPath(String path) {
        if (destination instanceof RevisionTarget.Handler handler
                && !handler.codecs().isEmpty()
                && handler.codecs().get(0) instanceof NamedModels models) {
            RevisionActivator found = models.find(path);
            return found == null ? this : found;
        }
        return this;
    }

    public ReplicaBalancer replicas() {
        return replicas;
    }

    /**
     * Picks a replica for a request and counts the request at it. Replicas to which no connection could be made in the last
     * five seconds are passed over while there are others: of a lost node, the cluster learns only after a while.
     *
     * @param tried replicas that must not be picked
     * @return null when no replica is left
     */
    ReplicaBalancer.@Nullable Endpoint take(List<ReplicaBalancer.Endpoint> tried) {
        ReplicaBalancer now = replicas;
        List<ReplicaBalancer.Endpoint> passedOver = tried;
        if (!unreachable.isEmpty()) {
            List<ReplicaBalancer.Endpoint> all = new ArrayList<>(tried);
            long time = context.clock.nanos();
            for (Unreachable each : unreachable) {
                if (each.until - time > 0) {
                    all.add(each.endpoint);
                }
            }
            if (now.hasOther(all)) {
                passedOver = all;
            }
        }
        return now.take(settings.containerConcurrency, passedOver, context.chance);
    }

    /**
     * Picks a replica for an admitted request as {@link #take}, also one that was tried when all others have gone; holds the
     * request again when there is none at all.
     *
     * @return null when the request is held, or has ended; it is resumed once there is a replica
     * @throws ServingException UNAVAILABLE when there is no replica and the request cannot be held
     */
    ReplicaBalancer.@Nullable Endpoint takeOrHold(RevisionRequest request, List<ReplicaBalancer.Endpoint> tried) {
        while (true) {
            ReplicaBalancer.Endpoint chosen = take(tried);
            if (chosen == null && !tried.isEmpty()) {
                chosen = take(List.of());
            }
            if (chosen != null) {
                return chosen;
            }
            switch (hold(request)) {
                case HELD -> {
                    return null;
                }
                case REFUSED ->
                    throw ServingException.of(
                            ErrorCode.UNAVAILABLE, "no replica of revision " + revision + " answers", "try again");
                case HAS_REPLICA -> {
                    // One has come since the first step; it may have gone again before the next.
                }
            }
        }
    }

    /** Records that no connection to a replica could be made. */
    void unreachable(ReplicaBalancer.Endpoint endpoint) {
        long time = context.clock.nanos();
        synchronized (queue) {
            List<Unreachable> next = new ArrayList<>(unreachable);
            next.removeIf(each -> each.until - time <= 0 || each.endpoint.replica.isSame(endpoint.replica));
            next.add(new Unreachable(endpoint, time + UNREACHABLE_NANOS));
            unreachable = List.copyOf(next);
        }
    }

    @Nullable PayloadListener listener() {
        return listener;
    }

    List<MirrorTarget> mirrors() {
        return mirrors;
    }

    void mirrors(List<MirrorTarget> targets) {
        mirrors = targets;
    }

    ActivatorContext context() {
        return context;
    }

    /** Changes where requests are sent. Requests in flight continue at the former destination. */
    public void destination(RevisionTarget next) {
        synchronized (queue) {
            if (next instanceof Processes processes) {
                replicas = replicas.with(processes.replicas());
            } else {
                replicas = ReplicaBalancer.NONE;
            }
            boolean another =
                    !(next instanceof Processes && destination instanceof Processes) && !next.equals(destination);
            destination = next;
            if (another) {
                routes.rebuild();
            }
            updateOpen();
        }
        drain();
    }

    /**
     * Sets the number of ready replicas; with 0 requests are held. At most as many count as there are child processes.
     */
    public void capacity(int count) {
        synchronized (queue) {
            capacity = count;
            updateOpen();
        }
        drain();
        if (closed) {
            rejectWhenClosed();
        }
    }

    /**
     * Sets whether requests beyond the limit wait in the revision's own short queue, or in the long one of held
     * requests.
     */
    public void direct(boolean directly) {
        direct = directly;
    }

    /** Rejects requests, including waiting ones, with 503 and this message; null to accept them again. */
    public void reject(@Nullable String why) {
        synchronized (queue) {
            rejection = why;
            woken.set(false);
            updateOpen();
        }
        if (why != null) {
            rejectAll(unavailable(why));
        }
    }

    /** Sets the listener for requests and responses; null for none. */
    public void listener(@Nullable PayloadListener listener) {
        this.listener = listener;
    }

    /**
     * The load since the last call. For one thread at a time.
     *
     * @param now of the gateway's clock, in nanoseconds
     */
    public Load sample(long now) {
        ConcurrencyMeter.Report report = meter.report(now);
        return new Load(report.concurrency(), report.requestsPerSecond(), waiting.get(), active.get());
    }

    /** Statistics of the requests of the last minute. The time that a request waited for a replica does not count. */
    public Traffic traffic(long now) {
        return window.read(now);
    }

    /** Stops accepting requests. Completes when the last one has ended, on the thread that ended it. */
    public CompletionStage<Void> close() {
        synchronized (queue) {
            closed = true;
            updateOpen();
        }
        if (admission != null) {
            synchronized (queue) {
                admission.close();
            }
        }
        rejectWhenClosed();
        if (active.get() == 0) {
            drained.complete(null);
        }
        return drained;
    }

    /** Whether a request can be answered without waiting for a replica. */
    public boolean hasReplica() {
        return open || (readyReplicas() > 0 && rejection == null && !closed);
    }

    public boolean accepts() {
        return rejection == null && !closed;
    }

    /** Whether it has had replicas before and is scaled to zero now. */
    boolean standby() {
        return served && accepts() && readyReplicas() == 0;
    }

    /** Why requests are rejected, or null. */
    @Nullable String rejection() {
        return closed ? "revision " + revision + " is shutting down" : rejection;
    }

    public int activeNow() {
        return active.get();
    }

    public int waitingNow() {
        return waiting.get();
    }

    /** The number of requests by class of status: 2 for 2xx; 0 for those whose client disconnected. */
    public long ended(int hundreds) {
        return codes[hundreds].sum();
    }

    // ---- the path of a request ----

    /** Admits a request: it runs now, waits or is rejected. Throws what its handler throws. */
    public void enter(RevisionRequest request) {
        active.incrementAndGet();
        meter.begin(request.arrived);
        if (open) {
            request.setRunning();
            request.dispatch();
        } else {
            enterSlowly(request);
        }
    }

    private void enterSlowly(RevisionRequest request) {
        String why = rejection();
        if (why != null) {
            reject(request, unavailable(why));
            return;
        }
        if (waiting.get() == 0 && tryAcquire(request)) {
            request.setRunning();
            request.dispatch();
            return;
        }
        boolean asleep;
        ServingException full = null;
        String news = null;
        long now = context.clock.nanos();
        synchronized (queue) {
            asleep = readyReplicas() == 0;
            // Without a limit it waits only until drain(), when replicas have become ready since the check above.
            boolean unlimited = settings.containerConcurrency == 0;
            int bound = !direct || asleep || unlimited ? settings.held : queueBound();
            if (waiting.get() >= bound) {
                full = ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "pending request queue full",
                        waiting.get() + " requests wait for revision " + revision + "; try again in "
                                + retryAfterSeconds() + " s");
            } else if (!asleep && admission != null && !admission.admits(now, waiting.get(), request.deadline())) {
                full = QueueAdmission.refusal(
                        "", name(), waiting.get(), admission.policy().retryNanos());
                news = admission.changed(now, name());
            } else if (!context.budget.tryReserve(request.bytes())) {
                full = ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "pending request queue full",
                        "waiting requests take " + context.budget.used() + " bytes; try again in " + retryAfterSeconds()
                                + " s");
            } else {
                long mine = settings.timeout.isZero() ? Long.MAX_VALUE : request.arrived + settings.timeout.toNanos();
                request.waitUntil = earlier(mine, request.deadline());
                if (!asleep && admission != null) {
                    limitWait(admission, request, now);
                    news = admission.changed(now, name());
                }
                request.enqueue();
                queue.add(request);
                if (!mayHaveQueue) {
                    mayHaveQueue = true;
                    context.withQueue.add(this);
                }
                waiting.incrementAndGet();
            }
        }
        if (news != null) {
            LOG.info("{}", news);
        }
        if (full != null) {
            reject(request, full);
            return;
        }
        if (asleep) {
            held.increment();
            wake();
        }
        // Between the check and the enqueue a permit may have become free, or the activator may have been closed. Both
        // are checked again, because the thread that did it may not have seen this request in the queue.
        why = rejection();
        if (why != null && (!closed || readyReplicas() == 0)) {
            rejectAll(unavailable(why));
        }
        drain();
    }

    private enum Hold {
        HELD,
        HAS_REPLICA,
        REFUSED
    }

    /**
     * Holds a request again that was admitted but has not been sent, because the last replica went away at that moment.
     * Without an effect when there are replicas or it cannot be held.
     */
    private Hold hold(RevisionRequest request) {
        synchronized (queue) {
            if (destination instanceof Processes && readyReplicas() > 0) {
                return Hold.HAS_REPLICA;
            }
            if (!(destination instanceof Processes)
                    || rejection() != null
                    || waiting.get() >= settings.held
                    || !context.budget.tryReserve(request.bytes())) {
                return Hold.REFUSED;
            }
            if (!request.requeue()) {
                context.budget.release(request.bytes());
                return Hold.HELD;
            }
            releasePermit(request);
            long mine = settings.timeout.isZero() ? Long.MAX_VALUE : request.arrived + settings.timeout.toNanos();
            request.waitUntil = earlier(mine, request.deadline());
            queue.addFirst(request);
            if (!mayHaveQueue) {
                mayHaveQueue = true;
                context.withQueue.add(this);
            }
            waiting.incrementAndGet();
        }
        held.increment();
        wake();
        String why = rejection();
        if (why != null && (!closed || readyReplicas() == 0)) {
            rejectAll(unavailable(why));
        }
        drain();
        return Hold.HELD;
    }

    private String name() {
        return "revision '" + revision + "'";
    }

    /** Limits how long a request may wait, if the admission has a limit now. */
    private static void limitWait(QueueAdmission admits, RevisionRequest request, long since) {
        long limit = admits.policy().waitLimit();
        if (limit != AdmissionPolicy.NEVER) {
            request.waitUntil = earlier(request.waitUntil, since + limit);
        }
    }

    /**
     * Reports to the admission that a request leaves the queue to run; the admission may find that the queue is
     * overloaded. Returns the requests that would then take too long and were removed.
     */
    @GuardedBy("queue") private List<RevisionRequest> taken(QueueAdmission admits, RevisionRequest request, long now) {
        AdmissionPolicy policy = admits.policy();
        int left = waiting.get() - 1;
        if (!policy.taken(now, 1, now - request.arrived, left)) {
            return List.of();
        }
        int excess = left - policy.keep();
        List<RevisionRequest> refused = new ArrayList<>();
        for (RevisionRequest other : queue) {
            if (refused.size() < excess && other.dequeue()) {
                refused.add(other);
            } else {
                limitWait(admits, other, other.arrived);
            }
        }
        queue.removeAll(new HashSet<>(refused));
        policy.removed(refused.size());
        admits.refused(refused.size());
        return refused;
    }

    /** The earlier of two times. {@link Long#MAX_VALUE} is never; other times are compared by subtraction. */
    private static long earlier(long a, long b) {
        if (a == Long.MAX_VALUE || b == Long.MAX_VALUE) {
            return a == Long.MAX_VALUE ? b : a;
        }
        return a - b < 0 ? a : b;
    }

    private int queueBound() {
        long each = settings.queued > 0 ? settings.queued : 10L * settings.containerConcurrency;
        return (int) Math.min(Integer.MAX_VALUE, each * Math.max(1, readyReplicas()));
    }

    /** Asks for a replica, once until there is one. */
    void wake() {
        if (!woken.get() && woken.compareAndSet(false, true)) {
            wokenAt = context.clock.nanos();
            context.listener.wake(namespace, revision);
        }
    }

    /** The number of replicas that can answer. */
    private int readyReplicas() {
        return destination instanceof Processes ? Math.min(capacity, replicas.size()) : capacity;
    }

    private boolean tryAcquire(RevisionRequest request) {
        int count = readyReplicas();
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
                request.permit = true;
                return true;
            }
        }
    }

    /** Admits the requests that have waited longest, as many as there are permits. */
    private void drain() {
        while (waiting.get() > 0) {
            RevisionRequest next;
            List<RevisionRequest> refused = List.of();
            String news = null;
            long now = context.clock.nanos();
            synchronized (queue) {
                next = firstWaiting();
                if (next == null || rejection != null || !tryAcquire(next)) {
                    return;
                }
                queue.poll();
                if (!next.dequeue()) {
                    releasePermit(next);
                    continue;
                }
                if (admission != null) {
                    refused = taken(admission, next, now);
                    news = admission.changed(now, name());
                }
            }
            left(next);
            if (news != null) {
                LOG.info("{}", news);
            }
            if (!refused.isEmpty()) {
                refused.forEach(this::left);
                int retry = retryAfterSeconds();
                for (RevisionRequest other : refused) {
                    reject(other, QueueAdmission.refusal("", name(), waiting.get(), retry * 1_000_000_000L));
                }
            }
            next.admitted = now;
            try {
                context.executor.execute(next::resume);
            } catch (RejectedExecutionException e) {
                reject(next, unavailable("the server is shutting down"));
            }
        }
    }

    /** The first request in the queue that still waits. Removes cancelled ones before it. */
    @GuardedBy("queue") private @Nullable RevisionRequest firstWaiting() {
        while (true) {
            RevisionRequest first = queue.peek();
            if (first == null || first.isWaiting()) {
                return first;
            }
            queue.poll();
        }
    }

    private void releasePermit(RevisionRequest request) {
        if (request.permit) {
            request.permit = false;
            running.decrementAndGet();
        }
    }

    private void left(RevisionRequest request) {
        waiting.decrementAndGet();
        context.budget.release(request.bytes());
    }

    /** Called once for each request that has entered. */
    void ended(RevisionRequest request, int status, boolean waited) {
        long now = context.clock.nanos();
        meter.end(now);
        noteEnd(request, now, waited);
        if (waited) {
            // A thread in drain() may have taken a permit for it at this moment; that thread releases it.
            left(request);
        } else {
            releasePermit(request);
        }
        boolean gone = status == 499;
        codes[gone ? 0 : Math.max(1, Math.min(5, status / 100))].increment();
        if (!gone) {
            window.record(now, now - request.admitted, status >= 500);
        }
        if (waiting.get() > 0) {
            drain();
        }
        if (active.decrementAndGet() == 0 && closed) {
            drained.complete(null);
        }
    }

    /** Reports the end of a request to the admission, while others wait. */
    private void noteEnd(RevisionRequest request, long now, boolean waited) {
        if (admission == null || waiting.get() == 0) {
            return;
        }
        synchronized (queue) {
            if (waited) {
                admission.policy().removed(1);
            } else if (request.permit) {
                admission.policy().ran(now - request.admitted);
            }
        }
    }

    private void reject(RevisionRequest request, ServingException e) {
        rejected.increment();
        request.admitted = context.clock.nanos();
        request.rejected(e);
    }

    private void rejectAll(ServingException e) {
        for (RevisionRequest request : drainQueue()) {
            reject(request, e);
        }
    }

    private List<RevisionRequest> drainQueue() {
        List<RevisionRequest> all = new ArrayList<>();
        synchronized (queue) {
            for (RevisionRequest request : queue) {
                if (request.dequeue()) {
                    all.add(request);
                }
            }
            queue.clear();
        }
        all.forEach(this::left);
        return all;
    }

    private void rejectWhenClosed() {
        if (readyReplicas() == 0) {
            rejectAll(unavailable("revision " + revision + " is shutting down"));
        }
    }

    /** Rejects requests that have waited too long, and removes cancelled ones. */
    public void sweep(long now) {
        if (!mayHaveQueue) {
            return;
        }
        List<RevisionRequest> late = new ArrayList<>();
        synchronized (queue) {
            queue.removeIf(p -> {
                if (!p.isWaiting()) {
                    return true;
                }
                if (p.waitUntil == Long.MAX_VALUE || p.waitUntil - now > 0 || !p.dequeue()) {
                    return false;
                }
                late.add(p);
                return true;
            });
            if (admission != null) {
                admission.policy().removed(late.size());
            }
            mayHaveQueue = !queue.isEmpty();
            if (!mayHaveQueue) {
                context.withQueue.remove(this);
            }
        }
        boolean asleep = readyReplicas() == 0;
        for (RevisionRequest request : late) {
            left(request);
            String what = asleep ? "no replica of revision " : "no place at revision ";
            reject(
                    request,
                    ServingException.of(
                            ErrorCode.UNAVAILABLE,
                            what + revision + (asleep ? " was ready in time" : " became free in time"),
                            "try again in " + retryAfterSeconds() + " s"));
        }
        if (asleep && waiting.get() == 0) {
            // The start failed or took too long: the next request wakes the revision again.
            woken.set(false);
        }
    }

    /**
     * The seconds after which a retry is worthwhile: the duration of the last start; while replicas are ready 1, or what
     * the admission says while the queue is overloaded.
     */
    int retryAfterSeconds() {
        if (readyReplicas() > 0) {
            if (admission == null || waiting.get() == 0) {
                return 1;
            }
            synchronized (queue) {
                AdmissionPolicy policy = admission.policy();
                return policy.refuses() ? (int) Math.max(1, (policy.retryNanos() + 999_999_999) / 1_000_000_000) : 1;
            }
        }
        long start = startNanos;
        return start == 0 ? NEVER_STARTED_SECONDS : (int) Math.max(1, (start + 999_999_999) / 1_000_000_000);
    }

    private ServingException unavailable(String why) {
        return ServingException.of(ErrorCode.UNAVAILABLE, why);
    }

    /** Updates the derived state. Call with the lock of the queue held. */
    private void updateOpen() {
        boolean awake = readyReplicas() > 0;
        if (awake) {
            served = true;
            if (woken.compareAndSet(true, false)) {
                startNanos = Math.max(1, context.clock.nanos() - wokenAt);
            }
        }
        open = awake && settings.containerConcurrency == 0 && rejection == null && !closed;
    }
}
