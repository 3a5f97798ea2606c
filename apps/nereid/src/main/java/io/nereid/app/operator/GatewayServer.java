// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.access.AccessControl;
import io.nereid.app.controlplane.GraphEndpoints;
import io.nereid.app.controlplane.V2ProtocolTranscoder;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.operator.access.AccessReviewOptions;
import io.nereid.control.operator.access.ProtectedServices;
import io.nereid.control.operator.access.ServiceAccess;
import io.nereid.control.operator.gateway.ClusterGateway;
import io.nereid.control.operator.gateway.GatewayOptions;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;

/**
 * Composes the gateway of a cluster: what it watches, the transport, and the client to the pods, without a dependency
 * injection framework. Confined to the thread that starts it; {@link #stop} is called once, by any thread.
 */
final class GatewayServer {
    private final Clock clock = Clock.system();
    private final AccessControl access;
    private final ServiceAccess reviewed;
    private final EventLoops loops;
    private final PooledUpstreamClient upstream;
    private final ExecutorService pool =
            Threads.pool("codec", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
    private final ClusterGateway cluster;
    private final Gateway gateway;
    private final Server transport;

    /**
     * Creates a gateway that answers probes, as not ready.
     *
     * @param listen the addresses for requests, and the limits
     * @param client closed by the caller
     * @param reviewing asks the API server about callers; closed by the caller
     * @param access closed with the gateway
     */
    GatewayServer(
            GatewayOptions options,
            ServerOptions.Builder listen,
            KubernetesClient client,
            KubernetesClient reviewing,
            AccessReviewOptions reviews,
            AccessControl access) {
        this.access = access;
        this.loops = new EventLoops(listen.build().eventLoops(), true);
        this.upstream = new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT.withLoops(loops));
        this.gateway = new Gateway(upstream, new V2ProtocolTranscoder(pool), clock, this::wake);
        ProtectedServices services = new ProtectedServices(reviews.mode());
        this.cluster = new ClusterGateway(options, client, clock, services, this::writeMetrics);
        this.reviewed = new ServiceAccess(
                services, reviews, reviewing, gateway::routeOf, access, GatewayAudit.of(access.audit(), clock), clock);
        this.transport = new Server(
                listen.clock(clock)
                        .virtualHosts(gateway)
                        .loops(loops)
                        .access(reviewed)
                        .codecExecutor(pool)
                        .build(),
                List.of());
        gateway.hostFactory(transport);
    }

    private void wake(String namespace, String revision) {
        cluster.wake(namespace, revision);
    }

    private void writeMetrics(MetricsWriter page) {
        gateway.writeMetrics(page);
        access.writeMetrics(page);
        reviewed.writeMetrics(page);
    }

    /** Starts to serve: first it learns what there is, then it opens its port, then it is ready. Returns the port. */
    int start() {
        cluster.start(
                gateway, (route, config) -> List.of(GraphEndpoints.of(route, config, gateway, upstream, clock, true)));
        int port = transport.start().get(0).getPort();
        cluster.ready(true);
        return port;
    }

    /** The port of probes and metrics. */
    int healthPort() {
        return cluster.healthPort();
    }

    /** The port at which it reports its load. */
    int statisticsPort() {
        return cluster.statisticsPort();
    }

    /**
     * Ends without losing a request. It is not ready at once, and serves everything as before for the grace period, in
     * which load balancers take it out of service; then it accepts no more connections, and ends when the requests that
     * it has are done. Until then requests that it holds wake their revisions, and it follows the cluster.
     *
     * @param limit the longest time for all of that
     * @return whether all requests were done within the limit
     */
    boolean stop(Duration grace, Duration limit) {
        cluster.ready(false);
        boolean drained = transport.drain(grace, () -> true, limit);
        close();
        return drained;
    }

    /** Ends at once. */
    void close() {
        cluster.close();
        transport.close();
        gateway.close();
        upstream.close();
        pool.shutdown();
        reviewed.close();
        access.close();
        loops.close();
    }
}
