// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.core.Route;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.access.ProtectedServices;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.operator.health.HealthServer;
import io.nereid.control.operator.objects.ObjectTrimmer;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.transport.api.ProtocolCodec;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the routes of a cluster with a {@link Gateway}: watches Services and EndpointSlices, answers probes, and tells
 * its load. It keeps no state of its own and never writes to the API server; while that is away, it goes on with what it
 * knows.
 *
 * <p>Thread-safe. The caller opens the ports for requests between {@link #start} and {@link #ready}, and closes the
 * gateway and the client.
 *
 * <pre>{@code
 * ClusterGateway cluster = new ClusterGateway(options, client, clock, protectedServices, page -> {});
 * Gateway gateway = new Gateway(upstream, transcoder, clock, cluster);
 * cluster.start(gateway, graphs);
 * server.start();
 * cluster.ready(true);
 * }</pre>
 */
public final class ClusterGateway implements WakeListener, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterGateway.class);

    /** How long the caches of a large cluster may take to fill. */
    private static final Duration SYNC = Duration.ofMinutes(2);

    private final GatewayOptions options;
    private final Clock clock;
    private final ProtectedServices access;
    private final HealthServer health;
    private final ObjectCache settings;
    private final ObjectCache slices;
    private final ObjectCache revisions;
    private final ObjectCache routes;
    private volatile boolean ready;
    private volatile @Nullable LoadSampler sampler;
    private volatile @Nullable StatisticsServer statistics;
    private volatile InferenceServiceConfig config = InferenceServiceConfig.defaults();

    /**
     * Creates a gateway that serves nothing yet and answers probes from now on.
     *
     * @param client closed by the caller
     * @param access receives the services whose callers Kubernetes must know
     * @param metrics writes the metrics that the health port shows
     */
    public ClusterGateway(
            GatewayOptions options,
            KubernetesClient client,
            Clock clock,
            ProtectedServices access,
            Consumer<MetricsWriter> metrics) {
        this.options = options;
        this.clock = clock;
        this.access = access;
        ClusterClient cluster = new ClusterClient(client);
        Set<String> all = options.watchNamespaces();
        this.settings = new ObjectCache(
                cluster,
                ResourceKinds.CONFIG_MAP,
                Set.of(options.namespace()),
                "",
                InferenceServiceConfig.CONFIG_MAP,
                ObjectTrimmer::resource);
        this.slices = new ObjectCache(
                cluster, ClusterKinds.ENDPOINT_SLICE, all, GatewayObjects.REVISION_LABEL, ObjectTrimmer::resource);
        this.revisions = new ObjectCache(
                cluster, ClusterKinds.SERVICE, all, GatewayObjects.REVISION_LABEL, ObjectTrimmer::resource);
        this.routes = new ObjectCache(
                cluster, ClusterKinds.SERVICE, all, GatewayObjects.ROUTE + "=true", ObjectTrimmer::resource);
        this.health = new HealthServer(
                options.healthPort(), () -> true, () -> ready, format -> MetricsWriter.page(format, metrics));
    }

    /**
     * Starts to follow the cluster. Blocks until everything that exists is known.
     *
     * @param graphs makes the endpoints of a route's graph with the settings of {@code inferenceservice-config}
     * @throws ServingException UNAVAILABLE when the API server does not answer, PERMISSION_DENIED
     */
    public void start(Gateway gateway, BiFunction<Route, InferenceServiceConfig, List<ProtocolCodec>> graphs) {
        ClusterRouting routing =
                new ClusterRouting(gateway, route -> graphs.apply(route, config), access, options.zone());
        LoadSampler measured = new LoadSampler(routing, clock);
        sampler = measured;
        statistics = new StatisticsServer(options.statisticsPort(), measured);
        follow(settings, (change, object) -> {
            configure(change, object);
            routing.renewGraphs();
        });
        // Pods before revisions before routes, so that no route leads to a revision that seems to have no pods.
        follow(slices, routing::slice);
        follow(revisions, routing::revision);
        follow(routes, routing::route);
        measured.start();
        LOG.info(
                "gateway in namespace {}, for {}; probes and metrics on port {}, load on port {}",
                options.namespace(),
                options.watchNamespaces().isEmpty()
                        ? "all namespaces"
                        : "the namespaces " + String.join(", ", options.watchNamespaces()),
                healthPort(),
                statisticsPort());
    }

    private static void follow(ObjectCache cache, ObjectCache.Listener listener) {
        // Ends with the cache.
        AutoCloseable unused = cache.listen(listener);
        cache.start(SYNC);
    }

    private void configure(Change.Kind change, ObjectNode object) {
        try {
            config = change == Change.Kind.DELETED
                    ? InferenceServiceConfig.defaults()
                    : InferenceServiceConfig.defaults().with(object);
        } catch (ServingException e) {
            LOG.error(
                    "ConfigMap {}/{} is skipped: {}",
                    options.namespace(),
                    InferenceServiceConfig.CONFIG_MAP,
                    e.describe());
        }
    }

    @Override
    public void wake(String namespace, String revision) {
        LoadSampler measured = sampler;
        if (measured != null) {
            measured.wake(namespace, revision);
        }
    }

    /** Sets what the readiness probe answers. */
    public void ready(boolean now) {
        ready = now;
    }

    /** The port of probes and metrics. */
    public int healthPort() {
        return health.port();
    }

    /** The port that serves the load; 0 before {@link #start}. */
    public int statisticsPort() {
        StatisticsServer server = statistics;
        return server == null ? 0 : server.port();
    }

    /** Ends the watches, the probes and the statistics. What the gateway serves it goes on serving. */
    @Override
    public void close() {
        for (ObjectCache cache : List.of(routes, revisions, slices, settings)) {
            cache.close();
        }
        StatisticsServer server = statistics;
        if (server != null) {
            server.close();
        }
        LoadSampler measured = sampler;
        if (measured != null) {
            measured.close();
        }
        health.close();
    }
}
