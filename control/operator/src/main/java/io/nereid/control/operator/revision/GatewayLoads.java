// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import io.nereid.base.Clock;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.gateway.GatewayDiscovery;
import io.nereid.control.operator.gateway.GatewayStatistics;
import io.nereid.control.operator.gateway.RevisionLoad;
import java.time.Duration;

/** The load at the gateways of an installation, which are found by their Service. Thread-safe. */
public final class GatewayLoads implements LoadSource {
    private final GatewayStatistics statistics;
    private final GatewayDiscovery discovery;
    private volatile WakeListener listener = (namespace, revision) -> {};

    /**
     * @param namespace the namespace of the gateways
     * @param service the name of their Service
     */
    public GatewayLoads(ClusterClient client, String namespace, String service, Clock clock) {
        this.statistics = new GatewayStatistics(clock, (of, revision) -> listener.wake(of, revision));
        this.discovery = new GatewayDiscovery(client, namespace, service, statistics);
    }

    @Override
    public void start(Duration limit, WakeListener listener) {
        this.listener = listener;
        discovery.start(limit);
    }

    @Override
    public boolean isComplete() {
        return statistics.isComplete();
    }

    @Override
    public boolean isServing() {
        return discovery.isServing();
    }

    @Override
    public void onServing(Runnable listener) {
        discovery.onServing(listener);
    }

    @Override
    public RevisionLoad load(String namespace, String revision) {
        return statistics.load(namespace, revision);
    }

    @Override
    public boolean awaitRoute(String namespace, String name, String text, Duration limit) throws InterruptedException {
        return statistics.awaitRoute(namespace, name, text, limit);
    }

    @Override
    public void close() {
        discovery.close();
        statistics.close();
    }
}
