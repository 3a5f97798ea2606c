// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.access.AccessFlags;
import io.nereid.app.access.TlsFlags;
import io.nereid.app.process.Logging;
import io.nereid.app.serve.RequestLogs;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.SizeConverter;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.tls.TlsOptions;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nereid gateway}: sends the requests for InferenceServices of a cluster to their pods. */
@Command(
        name = "gateway",
        mixinStandardHelpOptions = true,
        description = {
            "Runs a gateway of a Kubernetes cluster: it sends requests to the pods of InferenceServices whose "
                    + "deployment mode is Knative.",
            "",
            "It routes by host and path, splits traffic among revisions, holds requests while a revision has no pod, "
                    + "and runs InferenceGraphs. Any number of gateways may run; they have no state. After SIGTERM a "
                    + "gateway is not ready, serves for the grace period, and ends when its requests are done."
        },
        footer = {"", "Try it:", "  nereid gateway --namespace nereid"})
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class GatewayCommand implements Callable<Integer> {
    @Option(
            names = "--http-port",
            paramLabel = "PORT",
            defaultValue = "8080",
            description = "Port of requests: HTTP/1.1, HTTP/2 and gRPC (default: ${DEFAULT-VALUE}).")
    int httpPort;

    @Option(
            names = "--https-port",
            paramLabel = "PORT",
            defaultValue = "8443",
            description = "Port of requests over TLS, with --tls-cert; the other one stays, for clients in the cluster"
                    + " (default: ${DEFAULT-VALUE}).")
    int httpsPort;

    @Option(
            names = "--stats-port",
            paramLabel = "PORT",
            defaultValue = "8082",
            description = "Port of /stats, where the operator reads the load (default: ${DEFAULT-VALUE}).")
    int statsPort;

    @Option(
            converter = DurationConverter.class,
            names = "--grace-period",
            paramLabel = "TIME",
            defaultValue = "15s",
            description = "How long it serves as before after SIGTERM, while load balancers take it out of service "
                    + "(default: ${DEFAULT-VALUE}).")
    String gracePeriod;

    @Option(
            converter = DurationConverter.class,
            names = "--drain-timeout",
            paramLabel = "TIME",
            defaultValue = "5m",
            description = "The longest time from SIGTERM to the end; the pod's terminationGracePeriodSeconds should be "
                    + "longer (default: ${DEFAULT-VALUE}).")
    String drainTimeout;

    @Option(
            converter = SizeConverter.class,
            names = "--max-request-bytes",
            paramLabel = "SIZE",
            defaultValue = "64MiB",
            description = "Largest body of a request or gRPC message (default: ${DEFAULT-VALUE}).")
    String maxRequestBytes;

    @Option(
            names = "--zone",
            paramLabel = "NAME",
            defaultValue = "${env:NEREID_ZONE:-}",
            description = "The zone of the gateway, whose pods are preferred (default: NEREID_ZONE, else none).")
    String zone;

    @Option(names = "--access-log", description = "Log every finished request.")
    boolean accessLog;

    @Mixin
    AccessFlags accessFlags;

    @Mixin
    TlsFlags tls;

    @Mixin
    KubernetesAuthOptions kubernetesAuth;

    @Mixin
    ClusterOptions cluster;

    @Override
    public Integer call() throws Exception {
        Duration grace = Units.duration(gracePeriod);
        Duration limit = Units.duration(drainTimeout);
        if (grace.compareTo(limit) >= 0) {
            throw ServingException.invalidArgument(
                    "--grace-period " + gracePeriod + " leaves no time for requests in progress (expected: less than "
                            + "--drain-timeout, " + drainTimeout + ")");
        }
        int most = (int) Math.min(Integer.MAX_VALUE - 1024, Units.bytes(maxRequestBytes));
        TlsOptions encrypted = tls.everywhere();
        Logging logging = Logging.configure(cluster.logFormat, Level.INFO);
        AccessOptions options = accessFlags.options(Set.of(), List.of(), List.of(), Clock.system());
        AccessControl access = new AccessControl(options);
        ServerOptions.Builder listen = ServerOptions.builder()
                .listen("0.0.0.0", ClusterOptions.port("--http-port", httpPort))
                .corsOrigins(accessFlags.corsOrigins)
                .maxBodyBytes(most)
                .maxMessageBytes(most);
        if (encrypted != null) {
            listen.listen(
                    "0.0.0.0", ClusterOptions.port("--https-port", httpsPort), ServerOptions.Purpose.ALL, encrypted);
        }
        if (accessLog || access.audit() != null) {
            listen.accessLog(new RequestLogs(accessLog, logging, access.audit(), Clock.system()));
        }
        return GatewayProcess.run(
                cluster,
                ClusterOptions.port("--stats-port", statsPort),
                zone.strip(),
                listen,
                access,
                kubernetesAuth,
                logging,
                new GatewayProcess.Ending(grace, limit));
    }
}
