// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.operator.certificate.CertificateKeeper;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterEventRecorder;
import io.nereid.control.operator.cluster.ClusterStore;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.operator.health.HealthServer;
import io.nereid.control.operator.install.BuiltInResources;
import io.nereid.control.operator.leader.LeaderElection;
import io.nereid.control.operator.localmodel.LocalModels;
import io.nereid.control.operator.objects.ClusterReader;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ObjectTrimmer;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.pool.PoolController;
import io.nereid.control.operator.revision.ClusterInfrastructure;
import io.nereid.control.operator.revision.ClusterRevisions;
import io.nereid.control.operator.revision.GatewayLoads;
import io.nereid.control.operator.revision.LoadSource;
import io.nereid.control.operator.revision.RevisionAutoscalers;
import io.nereid.control.operator.revision.SharedModels;
import io.nereid.control.operator.trainedmodel.ConfigMapServers;
import io.nereid.control.operator.trainedmodel.PooledModelServers;
import io.nereid.control.operator.upgrade.KserveTemplates;
import io.nereid.control.operator.upgrade.TemplateRollout;
import io.nereid.control.operator.webhook.Webhook;
import io.nereid.control.operator.webhook.WebhookOptions;
import io.nereid.control.plane.ServiceController;
import io.nereid.control.plane.languagemodel.LanguageModelController;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache;
import io.nereid.control.plane.trainedmodel.TrainedModelController;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The operator: one replica of it, the leader, carries out the InferenceServices and InferenceGraphs of a cluster. The
 * other replicas wait and hold nothing in memory. What the operator has made goes on without it.
 *
 * <pre>{@code
 * try (Operator operator = new Operator(options, client, leases, () -> System.exit(1))) {
 *     operator.start();
 *     ended.await();
 * }
 * }</pre>
 *
 * <p>Thread-safe.
 */
public final class Operator implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Operator.class);

    /** How long the caches of a large cluster may take to fill. */
    private static final Duration SYNC = Duration.ofMinutes(2);

    private static final String LEASE = "nereid-operator";

    /** The Service of the gateways. */
    private static final String GATEWAY = "nereid-gateway";

    /** How long a revision stays after the route has left it: gateways follow a route within milliseconds. */
    private static final Duration RETIREMENT = Duration.ofSeconds(20);

    private final OperatorOptions options;
    private final Clock clock = Clock.system();
    private final ClusterClient client;
    private final Supplier<LoadSource> loads;
    private final Runnable lost;
    private final OperatorMetrics metrics;
    private final HealthServer health;
    private final LeaderElection election;

    /** What the leader has opened; closed in the opposite order. Guarded by itself. */
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();

    private boolean closed;

    /**
     * Creates the operator, which answers probes from now on.
     *
     * @param client closed by the caller
     * @param leases a client for the leader election alone, with short time limits; closed by the caller
     * @param lost called when this replica must not act any more; ends the process
     */
    public Operator(OperatorOptions options, KubernetesClient client, KubernetesClient leases, Runnable lost) {
        this(options, client, leases, lost, null);
    }

    /** @param loads makes what tells the load of revisions; null for the gateways */
    Operator(
            OperatorOptions options,
            KubernetesClient client,
            KubernetesClient leases,
            Runnable lost,
            @Nullable Supplier<LoadSource> loads) {
        this.options = options;
        this.client = new ClusterClient(client);
        this.loads = loads != null ? loads : () -> new GatewayLoads(this.client, options.namespace(), GATEWAY, clock);
        this.lost = lost;
        this.election = new LeaderElection(leases, options.namespace(), LEASE, options.identity(), this::lead, lost);
        this.metrics = new OperatorMetrics(this.client, election::isLeader, clock);
        this.health = new HealthServer(options.healthPort(), () -> true, () -> true, metrics::page);
    }

    /** Takes part in the election of the leader. Does not block. */
    public void start() {
        LOG.info(
                "operator in namespace {}, for {}; probes and metrics on port {}",
                options.namespace(),
                options.watchNamespaces().isEmpty()
                        ? "all namespaces"
                        : "the namespaces " + String.join(", ", options.watchNamespaces()),
                health.port());
        WebhookOptions webhook = options.webhook();
        if (webhook != null) {
            opened(new Webhook(client, options.namespace(), webhook)).start();
        }
        election.start();
    }

    /** The port of probes and metrics. */
    public int healthPort() {
        return health.port();
    }

    public boolean isLeader() {
        return election.isLeader();
    }

    /** Carries out all services from now on. On the thread of the election. */
    private void lead() {
        try {
            ClusterStore store = opened(store());
            ServiceObjects objects = opened(new ServiceObjects(client, options.watchNamespaces()));
            ClusterEventRecorder events = opened(new ClusterEventRecorder(client, clock));
            ClusterRevisions revisions = opened(new ClusterRevisions(client, options.watchNamespaces()));
            RuntimeCatalogCache catalogs = RuntimeCatalogCache.ofCluster(options.namespace());
            ObjectApplier applier = new ObjectApplier(client, objects);
            LoadSource load = opened(loads.get());
            RevisionAutoscalers autoscalers = opened(new RevisionAutoscalers(objects, applier, load, clock));
            BuiltInResources builtIn = options.builtInResources() == null
                    ? null
                    : new BuiltInResources(client, options.builtInResources(), options.watchNamespaces());
            TemplateRollout rollout = new TemplateRollout(
                    objects,
                    options.upgrades(),
                    builtIn == null ? "" : builtIn.text(),
                    clock,
                    // An installation with a webhook has the one for pods, too.
                    KserveTemplates.of(client, options.webhook() != null));
            PoolController pools =
                    opened(new PoolController(client, options.watchNamespaces(), options.namespace(), load, clock));
            ClusterInfrastructure infrastructure = opened(new ClusterInfrastructure(
                    store,
                    objects,
                    applier,
                    autoscalers,
                    load,
                    pools,
                    new ClusterInfrastructure.Gateways(options.namespace(), GATEWAY),
                    rollout,
                    RETIREMENT,
                    clock));
            ClusterReader reader = new ClusterReader(client, store, objects, options.namespace());
            LocalModels models = opened(new LocalModels(client, store, options.namespace(), EventLoop.threads(clock)));
            ServiceController controller = opened(new ServiceController(
                    store,
                    metrics.counting(new ModeReconciler(
                            new StandardReconciler(store, objects, applier, reader, rollout),
                            // An installation with a webhook has the one for pods, too.
                            new KnativeReconciler(client, objects, applier, reader, options.webhook() != null),
                            reader,
                            applier,
                            infrastructure,
                            revisions,
                            objects,
                            rollout,
                            models)),
                    catalogs,
                    events,
                    Retries.ofReconciliation(),
                    EventLoop.threads(clock)));
            // Most of a start is waiting for the API server: the objects are listed while the runtimes are looked at.
            CompletableFuture<Void> listed = CompletableFuture.runAsync(
                    () -> objects.start(SYNC),
                    task -> Threads.named("nereid-objects").newThread(task).start());
            if (builtIn != null) {
                builtIn.apply();
            }
            WebhookOptions webhook = options.webhook();
            if (webhook != null) {
                opened(new CertificateKeeper(
                                client, clock, options.namespace(), webhook.configuration(), hosts(webhook)))
                        .start();
            }
            store.start(SYNC);
            join(listed);
            revisions.start(SYNC);
            load.start(SYNC, (namespace, revision) -> {
                autoscalers.wake(namespace, revision);
                pools.wake(namespace, revision);
            });
            if (options.watchNamespaces().isEmpty()) {
                // Before the first plans, which would have the services download their models.
                models.load(SYNC);
            }
            pools.start(SYNC);
            controller.start();
            models.start();
            autoscalers.start();
            LOG.info("all services are watched");
            languageModels(events);
            trainedModels(store, objects, pools);
        } catch (RuntimeException e) {
            // Without its caches a leader does nothing: another replica, or this one after a restart, may do better.
            LOG.error("the operator cannot act: {}", ServingException.from(e).describe(), e);
            lost.run();
        }
    }

    /** Follows what is not carried out, beside the services: without its definitions or rights they are served all the same. */
    private void languageModels(ClusterEventRecorder events) {
        Set<String> all = options.watchNamespaces();
        ClusterStore store = opened(new ClusterStore(
                client,
                List.of(
                        cache(ResourceKinds.LLM_INFERENCE_SERVICE, all),
                        cache(ResourceKinds.LLM_INFERENCE_SERVICE_CONFIG, all.isEmpty() ? all : withOwn(all))),
                Set.of()));
        LanguageModelController controller = opened(new LanguageModelController(
                store, options.namespace(), Site.KUBERNETES, events, EventLoop.threads(clock)));
        Threads.named("nereid-language-models")
                .newThread(() -> {
                    try {
                        store.start(SYNC);
                        controller.start();
                    } catch (RuntimeException e) {
                        synchronized (opened) {
                            if (closed) {
                                return;
                            }
                        }
                        LOG.warn(
                                "LLMInferenceServices are not watched, their statuses stay as they are: {}; install the"
                                        + " definitions and rights of this version, and restart the operator",
                                ServingException.from(e).describe());
                    }
                })
                .start();
    }

    /** Gives services with many models theirs; without its definition or rights the services are served all the same. */
    private void trainedModels(ClusterStore services, ServiceObjects objects, SharedModels pools) {
        if (!client.has(ResourceKinds.TRAINED_MODEL)) {
            LOG.warn("there is no definition of trainedmodels: TrainedModels are not carried out; install the"
                    + " definitions of this version, and restart the operator");
            return;
        }
        ClusterStore models = opened(new ClusterStore(
                client, List.of(cache(ResourceKinds.TRAINED_MODEL, options.watchNamespaces())), Set.of()));
        TrainedModelController controller = opened(new TrainedModelController(
                models,
                services,
                new PooledModelServers(client, objects, pools, new ConfigMapServers(client)),
                EventLoop.threads(clock)));
        try {
            models.start(SYNC);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED) {
                throw e;
            }
            LOG.warn(
                    "TrainedModels are not carried out: {}; install the rights of this version, and restart the"
                            + " operator",
                    e.describe());
            return;
        }
        controller.start();
    }

    private List<String> hosts(WebhookOptions webhook) {
        List<String> hosts = new ArrayList<>(CertificateKeeper.hosts(WebhookOptions.SERVICE, options.namespace()));
        hosts.addAll(webhook.hosts());
        return hosts;
    }

    private static void join(CompletableFuture<Void> done) {
        try {
            done.join();
        } catch (CompletionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        }
    }

    private ClusterStore store() {
        Set<String> all = options.watchNamespaces();
        List<ObjectCache> caches = new ArrayList<>();
        caches.add(cache(ResourceKinds.INFERENCE_SERVICE, all));
        caches.add(cache(ResourceKinds.INFERENCE_GRAPH, all));
        caches.add(shipped(ResourceKinds.SERVING_RUNTIME, all));
        caches.add(cache(ResourceKinds.SERVICE_ACCOUNT, all));
        caches.add(new ObjectCache(
                client,
                ResourceKinds.CONFIG_MAP,
                all.isEmpty() ? Set.of() : withOwn(all),
                "",
                InferenceServiceConfig.CONFIG_MAP,
                ObjectTrimmer::resource));
        Set<ResourceKind> ofCluster = Set.of(
                ResourceKinds.CLUSTER_SERVING_RUNTIME,
                ResourceKinds.CLUSTER_STORAGE_CONTAINER,
                ResourceKinds.NAMESPACE);
        if (!all.isEmpty()) {
            // An operator of some namespaces has no rights on the cluster.
            return new ClusterStore(client, caches, ofCluster);
        }
        ofCluster.forEach(kind -> caches.add(shipped(kind, Set.of())));
        return new ClusterStore(client, caches, Set.of());
    }

    private ObjectCache cache(ResourceKind kind, Set<String> namespaces) {
        return new ObjectCache(client, kind, namespaces, "", ObjectTrimmer::resource);
    }

    private ObjectCache shipped(ResourceKind kind, Set<String> namespaces) {
        return new ObjectCache(client, kind, namespaces, "", ObjectTrimmer::shipped);
    }

    private Set<String> withOwn(Set<String> namespaces) {
        Set<String> all = new TreeSet<>(namespaces);
        all.add(options.namespace());
        return all;
    }

    private <T extends AutoCloseable> T opened(T part) {
        synchronized (opened) {
            if (closed) {
                throw new IllegalStateException("the operator is closed");
            }
            opened.push(part);
        }
        return part;
    }

    /** Stops acting, and releases the lease. What runs in the cluster keeps running. */
    @Override
    public void close() {
        synchronized (opened) {
            closed = true;
            while (!opened.isEmpty()) {
                try {
                    opened.pop().close();
                } catch (Exception e) {
                    LOG.warn("a part of the operator did not end well", e);
                }
            }
        }
        election.close();
        health.close();
    }
}
