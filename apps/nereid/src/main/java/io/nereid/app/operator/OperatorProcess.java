// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.graph.GjsonPath;
import io.nereid.control.operator.Operator;
import io.nereid.control.operator.OperatorOptions;
import io.nereid.control.operator.webhook.WebhookOptions;
import java.io.File;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/**
 * The operator as a process. Apart from the command, whose class is loaded whenever the program shows its help: the
 * Kubernetes client is on the class path of the operator alone.
 */
final class OperatorProcess {
    private static final int REQUEST_TIMEOUT_MILLIS = 30_000;

    /** A request about the lease must end, and be tried again, before the lease does. */
    private static final int LEASE_TIMEOUT_MILLIS = 4_000;

    /** The client warns of each kind whose version is not stable, as KServe's are. Kept, for loggers are weakly held. */
    private static final Logger VERSIONS =
            Logger.getLogger("io.fabric8.kubernetes.client.dsl.internal.VersionUsageUtils");

    private OperatorProcess() {}

    /** Runs until the process receives a signal to end or loses its lease; returns the exit code. */
    static int run(
            @Nullable String kubeconfig,
            @Nullable String namespace,
            Set<String> watched,
            String identity,
            int healthPort,
            @Nullable Path builtInResources,
            int webhookPort,
            String webhookConfiguration)
            throws InterruptedException {
        VERSIONS.setLevel(Level.SEVERE);
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        AtomicBoolean lost = new AtomicBoolean();
        // The process ends when the lease is released, so that another replica can act at once.
        Runtime.getRuntime().addShutdownHook(Threads.named("shutdown").newThread(() -> {
            end.countDown();
            try {
                closed.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        try (KubernetesClient client = client(kubeconfig, REQUEST_TIMEOUT_MILLIS);
                KubernetesClient leases = client(kubeconfig, LEASE_TIMEOUT_MILLIS);
                Operator operator = new Operator(
                        new OperatorOptions(
                                namespace == null ? own(client) : namespace,
                                watched,
                                identity,
                                healthPort,
                                builtInResources,
                                webhookPort == 0 ? null : webhook(webhookPort, webhookConfiguration)),
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

    /** The namespace of the pod or of the kubeconfig. */
    static String own(KubernetesClient client) {
        String namespace = client.getNamespace();
        return namespace == null ? "default" : namespace;
    }

    /** A client for a kubeconfig file; null for the one of the surroundings. */
    static KubernetesClient client(@Nullable String kubeconfig, int timeoutMillis) {
        Config config;
        if (kubeconfig == null) {
            config = Config.autoConfigure(null);
        } else {
            File file = new File(kubeconfig);
            if (!file.isFile()) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND, "--kubeconfig: the file " + kubeconfig + " does not exist");
            }
            config = Config.fromKubeconfig(file);
        }
        config.setRequestTimeout(timeoutMillis);
        config.setConnectionTimeout(timeoutMillis);
        return new KubernetesClientBuilder().withConfig(config).build();
    }
}
