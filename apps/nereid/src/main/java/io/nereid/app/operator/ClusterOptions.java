// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.process.Logging;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of the programs that run in a cluster. The methods check the values. */
final class ClusterOptions {
    private static final Pattern NAMESPACE = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");

    @Option(
            names = "--namespace",
            paramLabel = "NAME",
            description = "The program's own namespace, which has the ConfigMap inferenceservice-config and the leases "
                    + "(default: the namespace of the pod or of the kubeconfig's context).")
    private @Nullable String namespace;

    @Option(
            names = "--watch-namespaces",
            paramLabel = "NAME",
            split = ",",
            description = "The namespaces whose services count (default: all).")
    private List<String> watchNamespaces = new ArrayList<>();

    @Option(
            names = "--health-port",
            paramLabel = "PORT",
            defaultValue = "8081",
            description = "Port of /healthz, /readyz and /metrics (default: ${DEFAULT-VALUE}).")
    private int healthPort;

    @Option(
            names = "--kubeconfig",
            paramLabel = "FILE",
            description = "The file with the cluster's address and credentials (default: KUBECONFIG, then the service "
                    + "account of the pod, then ~/.kube/config).")
    @Nullable String kubeconfig;

    @Option(
            names = "--log-format",
            paramLabel = "FORMAT",
            defaultValue = "TEXT",
            description = "Format of the log: text or json (default: ${DEFAULT-VALUE}).")
    Logging.Format logFormat = Logging.Format.TEXT;

    /** The own namespace; null for the one of the pod or of the kubeconfig. */
    @Nullable String namespace() {
        return namespace == null ? null : namespace("--namespace", namespace);
    }

    /** The namespaces to watch; empty for all. */
    Set<String> watched() {
        Set<String> watched = new TreeSet<>();
        for (String name : watchNamespaces) {
            watched.add(namespace("--watch-namespaces", name.strip()));
        }
        return watched;
    }

    int healthPort() {
        return port("--health-port", healthPort);
    }

    /** Checks the number of a port. */
    static int port(String option, int port) {
        if (port < 0 || port > 65_535) {
            throw ServingException.invalidArgument(option + " must be a port from 0 to 65535, not " + port);
        }
        return port;
    }

    static String namespace(String option, String name) {
        if (!NAMESPACE.matcher(name).matches()) {
            throw ServingException.invalidArgument(option + ": \"" + name
                    + "\" is not the name of a namespace (expected: up to 63 lower-case letters, digits and '-')");
        }
        return name;
    }
}
