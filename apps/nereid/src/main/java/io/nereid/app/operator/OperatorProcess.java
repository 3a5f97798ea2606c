// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.app.process.ProgramVersion;
import io.nereid.app.process.Termination;
import io.nereid.control.graph.GjsonPath;
import io.nereid.control.operator.Operator;
import io.nereid.control.operator.OperatorOptions;
import io.nereid.control.operator.upgrade.UpgradeOptions;
import io.nereid.control.operator.webhook.WebhookOptions;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The operator as a process. Apart from the command, whose class is loaded whenever the program shows its help: the
 * Kubernetes client is on the class path of the operator alone.
 */
final class OperatorProcess {
    private static final int REQUEST_TIMEOUT_MILLIS = 30_000;

    /** A request about the lease must end, and be tried again, before the lease does. */
    private static final int LEASE_TIMEOUT_MILLIS = 4_000;

    private OperatorProcess() {}

    /** Runs until the process receives a signal to end or loses its lease; returns the exit code. */
    static int run(
            ClusterOptions cluster,
            String identity,
            @Nullable Path builtInResources,
            int webhookPort,
            String webhookConfiguration,
            int upgradeBudget)
            throws InterruptedException {
        String namespace = cluster.namespace();
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        AtomicBoolean lost = new AtomicBoolean();
        // The process ends when the lease is released, so that another replica can act at once.
        Termination unused = Termination.install(() -> {
            end.countDown();
            try {
                closed.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return !lost.get();
        });
        try (KubernetesClient client = KubernetesClients.create(cluster.kubeconfig, REQUEST_TIMEOUT_MILLIS);
                KubernetesClient leases = KubernetesClients.create(cluster.kubeconfig, LEASE_TIMEOUT_MILLIS);
                Operator operator = new Operator(
                        new OperatorOptions(
                                namespace == null ? KubernetesClients.namespace(client) : namespace,
                                cluster.watched(),
                                identity,
                                cluster.healthPort(),
                                builtInResources,
                                webhookPort == 0 ? null : webhook(webhookPort, webhookConfiguration),
                                new UpgradeOptions(ProgramVersion.number(), upgradeBudget)),
                        client,
                        leases,
                        () -> {
                            lost.set(true);
                            end.countDown();
                        })) {
            operator.start();
            end.await();
        } finally {
            closed.countDown();
        }
        return lost.get() ? 1 : 0;
    }

    private static WebhookOptions webhook(int port, String configuration) {
        return new WebhookOptions(port, configuration, condition -> {
            GjsonPath unused = GjsonPath.parse(condition);
        });
    }
}
