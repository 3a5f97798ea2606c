// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.app.controlplane.ServiceCredentials;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.process.Termination;
import io.nereid.base.Clock;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.nodeagent.CredentialObjects;
import io.nereid.control.operator.nodeagent.NodeAgent;
import io.nereid.control.operator.nodeagent.NodeAgentOptions;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/** The agent of a node as a process. Apart from the command, as {@link OperatorProcess} is. */
final class NodeAgentProcess {
    private static final int REQUEST_TIMEOUT_MILLIS = 30_000;
    private static final Duration SYNC = Duration.ofMinutes(2);

    private NodeAgentProcess() {}

    /** Runs until the process receives a signal to end; returns the exit code. */
    static int run(ClusterOptions cluster, NodeAgentOptions options) throws InterruptedException {
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        Termination unused = Termination.install(() -> {
            end.countDown();
            try {
                closed.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return true;
        });
        try (KubernetesClient client = KubernetesClients.create(cluster.kubeconfig, REQUEST_TIMEOUT_MILLIS)) {
            String namespace = cluster.namespace();
            CredentialObjects objects =
                    new CredentialObjects(client, namespace == null ? KubernetesClients.namespace(client) : namespace);
            StoreModelFetcher fetcher = new StoreModelFetcher(
                    new ServiceCredentials(
                            key -> objects.get(
                                    key.type().plural().equals(ResourceKinds.SECRET.plural())
                                            ? ResourceKinds.SECRET
                                            : ResourceKinds.SERVICE_ACCOUNT,
                                    key.namespace(),
                                    key.name()),
                            objects::settings),
                    InstalledPlugins.loadStorageProviders(),
                    Clock.system(),
                    !System.getenv().containsKey("KUBERNETES_SERVICE_HOST"));
            try (NodeAgent agent = new NodeAgent(options, client, fetcher, Clock.system())) {
                agent.start(SYNC);
                end.await();
            }
        } finally {
            closed.countDown();
        }
        return 0;
    }
}
