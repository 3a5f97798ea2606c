// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.activator.WakeListener;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Measures the load of the revisions every second, and reports it to listeners. A revision at zero that gets a request, and
 * a route that is followed from now on, are reported at once. Thread-safe; listeners are called on one thread and must not block.
 */
final class LoadSampler implements WakeListener, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LoadSampler.class);
    private static final long SECOND_MILLIS = 1000;

    private final ClusterRouting routing;
    private final Clock clock;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("gateway-load");
    private final Set<Consumer<LoadReport>> listeners = new CopyOnWriteArraySet<>();
    private volatile LoadReport last = new LoadReport(false, List.of());

    LoadSampler(ClusterRouting routing, Clock clock) {
        this.routing = routing;
        this.clock = clock;
        routing.onFollowed(route -> execute(() -> tell(new LoadReport(true, List.of(), List.of(route)))));
    }

    void start() {
        Object unused = timer.scheduleAtFixedRate(this::sample, SECOND_MILLIS, SECOND_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** The load of the last whole second. */
    LoadReport last() {
        return last;
    }

    /** Adds a listener; it receives the last second and all routes at once, before it learns of changes. */
    void add(Consumer<LoadReport> listener) {
        execute(() -> {
            listener.accept(new LoadReport(false, last.revisions(), routing.followed()));
            listeners.add(listener);
        });
    }

    void remove(Consumer<LoadReport> listener) {
        execute(() -> listeners.remove(listener));
    }

    private void execute(Runnable task) {
        try {
            timer.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("a report is not sent: the gateway ends");
        }
    }

    private void sample() {
        try {
            long now = clock.nanos();
            List<RevisionLoad> loads = new ArrayList<>();
            for (ClusterRouting.Loaded revision : routing.loaded()) {
                double concurrency = 0;
                double rate = 0;
                int waiting = 0;
                int active = 0;
                Traffic traffic = Traffic.NONE;
                for (RevisionActivator activator : revision.activators()) {
                    RevisionActivator.Load load = activator.sample(now);
                    concurrency += load.concurrency();
                    rate += load.requestsPerSecond();
                    waiting += load.waiting();
                    active += load.active();
                    // Former activators only finish what they have; the last one has the recent requests.
                    traffic = activator.traffic(now);
                }
                loads.add(new RevisionLoad(
                        revision.namespace(),
                        revision.revision(),
                        revision.replicas(),
                        concurrency,
                        rate,
                        waiting,
                        active,
                        traffic));
            }
            last = new LoadReport(false, loads);
            tell(last);
        } catch (RuntimeException e) {
            LOG.error("the load of this gateway could not be measured", e);
        }
    }

    @Override
    public void wake(String namespace, String revision) {
        execute(() -> {
            int replicas = routing.replicas(namespace, revision);
            tell(new LoadReport(true, List.of(new RevisionLoad(namespace, revision, replicas, 0, 0, 1, 1))));
        });
    }

    private void tell(LoadReport report) {
        listeners.forEach(listener -> listener.accept(report));
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }
}
