// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.process.Logging;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nereid operator}: carries out InferenceServices in a Kubernetes cluster. */
@Command(
        name = "operator",
        mixinStandardHelpOptions = true,
        subcommands = {OperatorManifestsCommand.class, OperatorAdoptCommand.class, NodeAgentCommand.class},
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
            "  nereid operator adopt --dry-run",
            "  nereid operator --namespace nereid"
        })
public final class OperatorCommand implements Callable<Integer> {
    @Mixin
    private ClusterOptions cluster = new ClusterOptions();

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
            description =
                    "The ValidatingWebhookConfiguration, and the MutatingWebhookConfiguration, into which the leader"
                            + " writes the authorities of the certificate (default: ${DEFAULT-VALUE}).")
    String webhookConfiguration = "nereid";

    @Option(
            names = "--upgrade-budget",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "To how many services at a time a new version of the operator brings the pod templates that it"
                            + " plans in another way; 0 for none until they are changed (default: ${DEFAULT-VALUE}).")
    int upgradeBudget;

    @Override
    public Integer call() throws Exception {
        Logging.configure(cluster.logFormat, Level.INFO);
        return OperatorProcess.run(
                cluster,
                identity == null ? hostname() : identity,
                builtInResources,
                ClusterOptions.port("--webhook-port", webhookPort),
                webhookConfiguration,
                upgradeBudget);
    }

    private static String hostname() {
        Map<String, String> environment = System.getenv();
        String name = environment.getOrDefault("HOSTNAME", "");
        return (name.isEmpty() ? "nereid-operator" : name) + "-"
                + ProcessHandle.current().pid();
    }
}
