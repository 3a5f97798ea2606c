// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes;

import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.NodeStatus;
import io.fabric8.kubernetes.api.model.NodeStatusBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.coordination.v1.LeaseBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.nereid.base.Threads;
import java.time.ZonedDateTime;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A node of a cluster: registers itself, renews its lease, and hands the pods that the scheduler gives it to a {@link
 * PodRunner}, whose statuses it writes. It does what a kubelet does towards the API server, without containers.
 *
 * <p>Thread-safe.
 */
public final class FakeNode implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(FakeNode.class);
    private static final String LEASES = "kube-node-lease";
    private static final int LEASE_SECONDS = 40;

    private final KubernetesClient client;
    private final String name;
    private final String prefix;
    private final AtomicReference<PodRunner> runner;
    private final ScheduledExecutorService thread = Threads.timer("node");
    /** Renews the lease; a call to an API server that is away may block for long. */
    private final ScheduledExecutorService renewal = Threads.timer("node-lease");
    /** The pods that were started, by uid, with the runner that has them. */
    private final Map<String, Started> started = new HashMap<>();

    private final SharedIndexInformer<Pod> pods;
    private int addresses;

    /** @param latest the status that the runner has reported last */
    private record Started(PodRunner by, String address, AtomicReference<PodStatus> latest, boolean stopping) {}

    /**
     * Registers a node that takes pods from now on; blocks until it is there.
     *
     * @param prefix the first three bytes of its pods' addresses, such as {@code 10.244.0}
     */
    public FakeNode(KubernetesClient client, String name, String prefix, PodRunner runner) {
        this.client = client;
        this.name = name;
        this.prefix = prefix;
        this.runner = new AtomicReference<>(runner);
        register();
        Future<?> unused = renewal.scheduleAtFixedRate(this::renew, 0, LEASE_SECONDS / 4, TimeUnit.SECONDS);
        this.pods = client.pods()
                .inAnyNamespace()
                .withField("spec.nodeName", name)
                .inform(new ResourceEventHandler<>() {
                    @Override
                    public void onAdd(Pod pod) {
                        later(() -> look(pod));
                    }

                    @Override
                    public void onUpdate(Pod before, Pod pod) {
                        later(() -> look(pod));
                    }

                    @Override
                    public void onDelete(Pod pod, boolean unknown) {
                        later(() -> gone(pod));
                    }
                });
    }

    /** Lets another runner start the pods that come from now on. */
    public void use(PodRunner next) {
        runner.set(next);
    }

    /** Runs work on the node's thread; again after a second if the API server does not take it. */
    private void later(Runnable work) {
        if (!thread.isShutdown()) {
            thread.execute(() -> {
                try {
                    work.run();
                } catch (KubernetesClientException e) {
                    LOG.warn("node {}", name, e);
                    if (!thread.isShutdown()) {
                        Future<?> unused = thread.schedule(() -> later(work), 1, TimeUnit.SECONDS);
                    }
                } catch (RuntimeException e) {
                    LOG.warn("node {}", name, e);
                }
            });
        }
    }

    private void register() {
        Map<String, Quantity> capacity = Map.of(
                "cpu", new Quantity("64"),
                "memory", new Quantity("256Gi"),
                "pods", new Quantity("2000"),
                "ephemeral-storage", new Quantity("100Gi"),
                "nvidia.com/gpu", new Quantity("64"));
        client.resource(new NodeBuilder()
                        .withNewMetadata()
                        .withName(name)
                        .addToLabels("kubernetes.io/hostname", name)
                        .addToLabels("kubernetes.io/os", "linux")
                        .addToLabels("kubernetes.io/arch", "amd64")
                        .addToLabels("topology.kubernetes.io/zone", "zone-a")
                        .endMetadata()
                        .withNewSpec()
                        .endSpec()
                        .build())
                .serverSideApply();
        NodeStatus status = new NodeStatusBuilder()
                .withCapacity(capacity)
                .withAllocatable(capacity)
                .addNewCondition()
                .withType("Ready")
                .withStatus("True")
                .withReason("KubeletReady")
                .withMessage("the node takes pods")
                .withLastHeartbeatTime(PodStatuses.now())
                .withLastTransitionTime(PodStatuses.now())
                .endCondition()
                .withNewNodeInfo()
                .withKubeletVersion("v1.35.4")
                .withOperatingSystem("linux")
                .withArchitecture("amd64")
                .endNodeInfo()
                .build();
        // a patch without a version: the controllers of the cluster write to the node at the same time
        client.nodes()
                .withName(name)
                .subresource("status")
                .patch(PatchContext.of(PatchType.JSON_MERGE), Serialization.asJson(Map.of("status", status)));
    }

    private void renew() {
        try {
            client.resource(new LeaseBuilder()
                            .withNewMetadata()
                            .withName(name)
                            .withNamespace(LEASES)
                            .endMetadata()
                            .withNewSpec()
                            .withHolderIdentity(name)
                            .withLeaseDurationSeconds(LEASE_SECONDS)
                            .withRenewTime(ZonedDateTime.parse(PodStatuses.now()))
                            .endSpec()
                            .build())
                    .forceConflicts()
                    .serverSideApply();
        } catch (RuntimeException e) {
            // the API server is away: the next attempt comes soon
            LOG.debug("lease of node {}", name, e);
        }
    }

    private void look(Pod pod) {
        String uid = pod.getMetadata().getUid();
        Started known = started.get(uid);
        boolean deleting = pod.getMetadata().getDeletionTimestamp() != null;
        if (known == null && !deleting) {
            PodRunner by = runner.get();
            String address = prefix + "." + (addresses++ % 253 + 2);
            AtomicReference<PodStatus> latest = new AtomicReference<>();
            started.put(uid, new Started(by, address, latest, false));
            by.start(pod, address, status -> {
                latest.set(status);
                later(() -> write(pod, status));
            });
        } else if (known == null) {
            remove(pod);
        } else if (deleting && !known.stopping) {
            started.put(uid, new Started(known.by, known.address, known.latest, true));
            known.by.stop(pod, () -> later(() -> remove(pod)));
        }
    }

    /** A pod that was removed without a grace period. */
    private void gone(Pod pod) {
        Started known = started.remove(pod.getMetadata().getUid());
        if (known != null && !known.stopping) {
            known.by.stop(pod, () -> {});
        }
    }

    private void write(Pod pod, PodStatus status) {
        Started known = started.get(pod.getMetadata().getUid());
        if (known == null || known.latest.get() != status) {
            return;
        }
        try {
            // the uid is a precondition: another pod may have the name by now
            String body = Serialization.asJson(
                    Map.of("metadata", Map.of("uid", pod.getMetadata().getUid()), "status", status));
            client.pods()
                    .inNamespace(pod.getMetadata().getNamespace())
                    .withName(pod.getMetadata().getName())
                    .subresource("status")
                    .patch(PatchContext.of(PatchType.JSON_MERGE), body);
        } catch (KubernetesClientException e) {
            if (e.getCode() != 404 && e.getCode() != 409) {
                throw e;
            }
        }
    }

    private void remove(Pod pod) {
        client.resource(pod).withGracePeriod(0).delete();
        started.remove(pod.getMetadata().getUid());
    }

    /** Ends the node's work without a word to the API server, as a machine that has failed. */
    @Override
    public void close() {
        pods.stop();
        renewal.shutdownNow();
        thread.shutdownNow();
    }
}
