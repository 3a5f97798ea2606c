// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.gateway.activator.WakeListener;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The load of all gateways of a cluster, for the autoscaler: it watches each gateway, and adds up what they say. A
 * gateway that says nothing for three seconds does not count, and is connected to again.
 *
 * <p>Thread-safe; only {@link #awaitRoute} blocks. The listener is called on a thread of this object, at once when requests begin to
 * wait at a revision without pods, and every second while they do.
 *
 * <pre>{@code
 * try (GatewayStatistics statistics = new GatewayStatistics(Clock.system(), autoscalers::wake)) {
 *     statistics.gateways(Set.of(new GatewayStatistics.Address("10.0.0.7", 8082)));
 *     ...
 *     RevisionLoad load = statistics.load("default", "iris-predictor-00001");
 * }
 * }</pre>
 */
public final class GatewayStatistics implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GatewayStatistics.class);
    private static final long FRESH_NANOS = 3_000_000_000L;
    private static final long CHECK_MILLIS = 500;
    private static final Duration CONNECT = Duration.ofSeconds(2);

    private final Clock clock;
    private final WakeListener listener;
    private final ThreadPoolExecutor threads = Threads.pool("gateway-watch", 2);
    private final ScheduledThreadPoolExecutor timer = Threads.timer("gateway-watch-check");
    private final HttpClient client =
            HttpClient.newBuilder().executor(threads).connectTimeout(CONNECT).build();

    @GuardedBy("this") private final Map<Address, Source> sources = new HashMap<>();

    @GuardedBy("this") private boolean closed;

    /** Where a gateway tells its load. Immutable. */
    public record Address(String host, int port) {
        private URI uri() {
            String name = host.indexOf(':') < 0 ? host : "[" + host + "]";
            return URI.create("http://" + name + ":" + port + "/stats?watch=1");
        }
    }

    /** A gateway. Guarded by the statistics. */
    private static final class Source {
        final Address address;

        @Nullable CompletableFuture<?> request;

        long heard;
        boolean reported;
        boolean failing;
        Map<String, RevisionLoad> loads = Map.of();

        /** Digests of the routes that it follows, by namespace and name; null until it has said so. */
        @Nullable Map<String, String> routes;

        Source(Address address) {
            this.address = address;
        }
    }

    /** Starts without gateways. */
    public GatewayStatistics(Clock clock, WakeListener listener) {
        this.clock = clock;
        this.listener = listener;
        Object unused = timer.scheduleWithFixedDelay(this::connect, CHECK_MILLIS, CHECK_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** Sets the gateways that there are. Connections to others end. */
    public void gateways(Set<Address> addresses) {
        synchronized (this) {
            for (Address address : List.copyOf(sources.keySet())) {
                if (!addresses.contains(address)) {
                    Source gone = sources.remove(address);
                    if (gone != null && gone.request != null) {
                        gone.request.cancel(true);
                    }
                }
            }
            addresses.forEach(address -> sources.computeIfAbsent(address, Source::new));
        }
        connect();
    }

    /** The number of gateways that there are. */
    public synchronized int gateways() {
        return sources.size();
    }

    /**
     * Whether there are gateways and every one of them has reported its load within the last three seconds. Without that, a
     * load of zero does not mean that there are no requests.
     */
    public synchronized boolean isComplete() {
        long now = clock.nanos();
        return !sources.isEmpty() && sources.values().stream().allMatch(source -> isFresh(source, now));
    }

    /** The load of a revision at all gateways together; zeros for one that none of them knows. */
    public synchronized RevisionLoad load(String namespace, String revision) {
        long now = clock.nanos();
        RevisionLoad sum = new RevisionLoad(namespace, revision, 0, 0, 0, 0, 0);
        for (Source source : sources.values()) {
            RevisionLoad one = source.loads.get(namespace + "/" + revision);
            if (one != null && isFresh(source, now)) {
                sum = sum.plus(one);
            }
        }
        return sum;
    }

    /**
     * Waits until all gateways follow a route of a service. A gateway that has not reported its load within the last three
     * seconds, or that says nothing of routes, is not waited for.
     *
     * @param text the route as the gateways read it
     * @return false when the limit passed before
     */
    public boolean awaitRoute(String namespace, String name, String text, Duration limit) throws InterruptedException {
        FollowedRoute route = new FollowedRoute(namespace, name, FollowedRoute.digest(text));
        long end = clock.nanos() + limit.toNanos();
        synchronized (this) {
            while (!closed && !follow(route)) {
                long left = end - clock.nanos();
                if (left <= 0) {
                    return false;
                }
                TimeUnit.NANOSECONDS.timedWait(this, Math.max(left, 1_000_000));
            }
        }
        return true;
    }

    @GuardedBy("this") private boolean follow(FollowedRoute route) {
        long now = clock.nanos();
        for (Source source : sources.values()) {
            if (source.routes != null
                    && isFresh(source, now)
                    && !route.digest().equals(source.routes.get(route.key()))) {
                return false;
            }
        }
        return true;
    }

    private static boolean isFresh(Source source, long now) {
        return source.reported && now - source.heard < FRESH_NANOS;
    }

    /** Connects to the gateways without a connection, and ends connections that are silent. */
    private void connect() {
        List<Source> idle = new ArrayList<>();
        synchronized (this) {
            if (closed) {
                return;
            }
            long now = clock.nanos();
            for (Source source : sources.values()) {
                if (source.request != null && now - source.heard >= FRESH_NANOS) {
                    source.request.cancel(true);
                    source.request = null;
                }
                if (source.request == null) {
                    source.heard = now;
                    source.reported = false;
                    source.routes = null;
                    idle.add(source);
                }
            }
        }
        idle.forEach(this::watch);
    }

    private void watch(Source source) {
        HttpRequest request = HttpRequest.newBuilder(source.address.uri()).GET().build();
        CompletableFuture<HttpResponse<Void>> answer =
                client.sendAsync(request, HttpResponse.BodyHandlers.fromLineSubscriber(new Lines(source)));
        synchronized (this) {
            source.request = answer;
        }
        Object unused = answer.whenComplete((response, failure) -> {
            synchronized (this) {
                if (source.request != answer) {
                    return;
                }
                source.request = null;
                if (!closed && !source.failing && sources.get(source.address) == source) {
                    source.failing = true;
                    LOG.info(
                            "the gateway at {}:{} does not tell its load: {}",
                            source.address.host(),
                            source.address.port(),
                            failure == null ? "its answer has ended" : failure.toString());
                }
            }
        });
    }

    private void received(Source source, String line) {
        LoadReport report;
        try {
            report = LoadReport.read(line);
        } catch (ServingException e) {
            LOG.warn("{}:{}: {}", source.address.host(), source.address.port(), e.describe());
            return;
        }
        synchronized (this) {
            if (closed || sources.get(source.address) != source) {
                return;
            }
            source.heard = clock.nanos();
            source.failing = false;
            if (report.routes() != null) {
                Map<String, String> routes = source.routes == null ? new HashMap<>() : source.routes;
                report.routes().forEach(route -> routes.put(route.key(), route.digest()));
                routes.values().removeIf(FollowedRoute.NONE::equals);
                source.routes = routes;
                notifyAll();
            }
            if (!report.wake()) {
                Map<String, RevisionLoad> loads = new HashMap<>();
                report.revisions().forEach(load -> loads.put(load.namespace() + "/" + load.revision(), load));
                source.loads = loads;
                source.reported = true;
            }
        }
        for (RevisionLoad load : report.revisions()) {
            if (load.asleep()) {
                listener.wake(load.namespace(), load.revision());
            }
        }
    }

    /** The lines of one answer. Called by one thread at a time. */
    private final class Lines implements Flow.Subscriber<String> {
        private final Source source;

        Lines(Source source) {
            this.source = source;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(String line) {
            if (!line.isEmpty()) {
                received(source, line);
            }
        }

        @Override
        public void onError(Throwable failure) {
            // The answer's future says so as well.
        }

        @Override
        public void onComplete() {
            // The answer's future says so as well.
        }
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
            sources.values().forEach(source -> {
                if (source.request != null) {
                    source.request.cancel(true);
                }
            });
            sources.clear();
        }
        timer.shutdownNow();
        threads.shutdown();
    }
}
