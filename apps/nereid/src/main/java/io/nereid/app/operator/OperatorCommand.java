// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.process.Logging;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code nereid operator}: carries out InferenceServices in a Kubernetes cluster. */
@Command(
        name = "operator",
        mixinStandardHelpOptions = true,
        subcommands = OperatorManifestsCommand.class,
        description = {
            "Runs the Kubernetes operator: it carries out the InferenceServices and InferenceGraphs of a cluster.",
            "",
            "Of several replicas one acts, elected by a Lease in the operator's namespace. In a pod the operator uses "
                    + "the service account of the pod, elsewhere the current context of the kubeconfig file."
        },
        footer = {
            "",
            "Try it:",
            "  nereid operator manifests --image IMAGE | kubectl apply --server-side -f -",
            "  nereid operator --namespace nereid"
        })
public final class OperatorCommand implements Callable<Integer> {
    private static final Pattern NAMESPACE = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");

    @Option(
            names = "--namespace",
            paramLabel = "NAME",
            description = "The operator's own namespace, which has its lease and the ConfigMap inferenceservice-config "
                    + "(default: the namespace of the pod or of the kubeconfig's context).")
    @Nullable String namespace;

    @Option(
            names = "--watch-namespaces",
            paramLabel = "NAME",
            split = ",",
            description = "The namespaces whose services are carried out (default: all).")
    List<String> watchNamespaces = new ArrayList<>();

    @Option(
            names = "--health-port",
            paramLabel = "PORT",
            defaultValue = "8081",
            description = "Port of /healthz, /readyz and /metrics (default: ${DEFAULT-VALUE}).")
    int healthPort;

    @Option(
            names = "--identity",
            paramLabel = "NAME",
            description = "The name of this replica in the election of the leader (default: the host's name).")
    @Nullable String identity;

    @Option(
            names = "--built-in-resources",
            paramLabel = "DIR",
            description = "A directory with the runtimes that the operator creates and keeps up to date.")
    @Nullable Path builtInResources;

    @Option(
            names = "--webhook-port",
            paramLabel = "PORT",
            defaultValue = "0",
            description = "Port of the validating webhook, over TLS with a certificate of the operator's own (default:"
                    + " no webhook).")
    int webhookPort;

    @Option(
            names = "--webhook-configuration",
            paramLabel = "NAME",
            defaultValue = "nereid",
            description = "The ValidatingWebhookConfiguration into which the leader writes the authorities of the"
                    + " certificate (default: ${DEFAULT-VALUE}).")
    String webhookConfiguration = "nereid";

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

    @Override
    public Integer call() throws Exception {
        if (healthPort < 0 || healthPort > 65_535) {
            throw ServingException.invalidArgument("--health-port must be a port from 0 to 65535, not " + healthPort);
        }
        if (webhookPort < 0 || webhookPort > 65_535) {
            throw ServingException.invalidArgument("--webhook-port must be a port from 0 to 65535, not " + webhookPort);
        }
        Set<String> watched = new TreeSet<>();
        for (String name : watchNamespaces) {
            watched.add(namespace("--watch-namespaces", name.strip()));
        }
        Logging.configure(logFormat, Level.INFO);
        return OperatorProcess.run(
                kubeconfig,
                namespace == null ? null : namespace("--namespace", namespace),
                watched,
                identity == null ? hostname() : identity,
                healthPort,
                builtInResources,
                webhookPort,
                webhookConfiguration);
    }

    /** Checks the name of a namespace. */
    static String namespace(String option, String name) {
        if (!NAMESPACE.matcher(name).matches()) {
            throw ServingException.invalidArgument(option + ": \"" + name
                    + "\" is not the name of a namespace (expected: up to 63 lower-case letters, digits and '-')");
        }
        return name;
    }

    private static String hostname() {
        Map<String, String> environment = System.getenv();
        String name = environment.getOrDefault("HOSTNAME", "");
        return (name.isEmpty() ? "nereid-operator" : name) + "-"
                + ProcessHandle.current().pid();
    }
}
