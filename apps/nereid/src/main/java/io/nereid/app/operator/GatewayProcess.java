// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.access.AccessControl;
import io.nereid.access.audit.AuditLog;
import io.nereid.app.process.HangupSignal;
import io.nereid.app.process.Logging;
import io.nereid.app.process.Termination;
import io.nereid.base.ServingException;
import io.nereid.control.operator.access.AccessReviewOptions;
import io.nereid.control.operator.gateway.GatewayOptions;
import io.nereid.transport.ServerOptions;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The gateway as a process. Apart from the command, whose class is loaded whenever the program shows its help: the
 * Kubernetes client is on the class path of operator and gateway alone.
 */
final class GatewayProcess {
    private static final Logger LOG = LoggerFactory.getLogger(GatewayProcess.class);
    private static final int REQUEST_TIMEOUT_MILLIS = 30_000;

    /** Requests of clients wait for the answer. */
    private static final int REVIEW_TIMEOUT_MILLIS = 5_000;

    private GatewayProcess() {}

    /**
     * How it ends after SIGTERM. Immutable.
     *
     * @param grace how long it serves as before
     * @param limit the longest time until it ends
     */
    record Ending(Duration grace, Duration limit) {}

    private static AccessReviewOptions reviews(KubernetesAuthOptions options) {
        AccessReviewOptions.Mode mode = switch (options.mode()) {
            case "off" -> AccessReviewOptions.Mode.OFF;
            case "annotated" -> AccessReviewOptions.Mode.ANNOTATED;
            case "all" -> AccessReviewOptions.Mode.ALL;
            default ->
                throw ServingException.invalidArgument(
                        "--kubernetes-auth: \"" + options.mode() + "\" is not known (expected: off, annotated or all)");
        };
        return new AccessReviewOptions(mode, options.audiences(), options.cache());
    }

    /** Runs until the process receives a signal to end; returns the exit code. */
    static int run(
            ClusterOptions cluster,
            int statisticsPort,
            String zone,
            ServerOptions.Builder listen,
            AccessControl access,
            KubernetesAuthOptions kubernetesAuth,
            Logging logging,
            Ending ending)
            throws InterruptedException {
        String namespace = cluster.namespace();
        AccessReviewOptions reviews = reviews(kubernetesAuth);
        try (KubernetesClient client = KubernetesClients.create(cluster.kubeconfig, REQUEST_TIMEOUT_MILLIS);
                KubernetesClient reviewing = KubernetesClients.once(cluster.kubeconfig, REVIEW_TIMEOUT_MILLIS)) {
            GatewayOptions options = new GatewayOptions(
                    namespace == null ? KubernetesClients.namespace(client) : namespace,
                    cluster.watched(),
                    cluster.healthPort(),
                    statisticsPort,
                    zone);
            GatewayServer server = new GatewayServer(options, listen, client, reviewing, reviews, access);
            HangupSignal.handle(() -> {
                logging.reopen();
                AuditLog audit = access.audit();
                if (audit != null) {
                    audit.reopen();
                }
                access.reload();
            });
            LOG.info("requests are served on port {}", server.start());
            Termination termination = Termination.install(() -> {
                // A shutdown hook closes the log, perhaps before this one: hence standard error.
                System.err.println("nereid: draining (not ready; serving for "
                        + ending.grace().toSeconds() + " s, then up to "
                        + ending.limit().toSeconds() + " s in all for requests in progress)");
                boolean drained = server.stop(ending.grace(), ending.limit());
                System.err.println(
                        drained ? "nereid: stopped" : "nereid: stopped; some requests were aborted at the time limit");
                System.err.flush();
                return drained;
            });
            return termination.await();
        }
    }
}
