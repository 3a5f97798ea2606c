// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.process.Logging;
import io.nereid.app.text.OutputOption;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nereid operator adopt}: the take-over of a cluster from KServe's controller. */
@Command(
        name = "adopt",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Takes a cluster over from KServe's controller.",
            "",
            "With --dry-run it prints for each InferenceService what the operator would change, and whether its pods keep"
                    + " running; nothing is written. Without it, it says what of KServe stands in the way, and with"
                    + " --switch-off-kserve takes it away: before the installation of the operator, and once more after it."
        },
        footer = {
            "",
            "The exit status is 0 when nothing is to be done by hand and no pod restarts, else 1.",
            "",
            "Try it:",
            "  nereid operator adopt --dry-run",
            "  nereid operator adopt --dry-run -n team-a -o yaml"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class OperatorAdoptCommand implements Callable<Integer> {
    @Option(names = "--dry-run", description = "Print what would change, service by service, and write nothing.")
    boolean dryRun;

    @Option(
            names = "--switch-off-kserve",
            description =
                    "Scale KServe's controller to 0 and delete its webhooks. The one for pods stays, and refuses them,"
                            + " until the operator's answers.")
    boolean switchOff;

    @Option(
            names = {"-n", "--namespaces"},
            paramLabel = "NAME",
            split = ",",
            description = "The namespaces whose services are looked at (default: all).")
    List<String> namespaces = new ArrayList<>();

    @Option(
            names = "--kserve-namespace",
            paramLabel = "NAME",
            defaultValue = "kserve",
            description = "The namespace of KServe's controller (default: ${DEFAULT-VALUE}).")
    String kserveNamespace;

    @Option(
            names = "--settings-namespace",
            paramLabel = "NAME",
            description =
                    "The namespace of the ConfigMap inferenceservice-config to plan with: KServe's, or the operator's"
                            + " once it has one (default: KServe's).")
    @Nullable String settingsNamespace;

    @Option(
            names = "--webhook-configuration",
            paramLabel = "NAME",
            defaultValue = "nereid",
            description = "The operator's MutatingWebhookConfiguration (default: ${DEFAULT-VALUE}).")
    String webhookConfiguration;

    @Option(
            names = "--without-webhook",
            description =
                    "Plan for an installation without webhooks, such as one for named namespaces: no template stays.")
    boolean withoutWebhook;

    @Option(
            names = "--kubeconfig",
            paramLabel = "FILE",
            description = "The file with the cluster's address and credentials (default: KUBECONFIG, then the service "
                    + "account of the pod, then ~/.kube/config).")
    @Nullable String kubeconfig;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        Logging.configure(Logging.Format.TEXT, Level.WARNING);
        if (dryRun && switchOff) {
            throw ServingException.invalidArgument(
                    "--dry-run writes nothing, and --switch-off-kserve does; give one of them");
        }
        Set<String> scope = new TreeSet<>();
        namespaces.forEach(name -> scope.add(ClusterOptions.namespace("-n", name.strip())));
        return OperatorAdoption.run(
                new OperatorAdoption.Request(
                        kubeconfig,
                        dryRun,
                        switchOff,
                        scope,
                        ClusterOptions.namespace("--kserve-namespace", kserveNamespace),
                        settingsNamespace == null
                                ? kserveNamespace
                                : ClusterOptions.namespace("--settings-namespace", settingsNamespace),
                        webhookConfiguration,
                        !withoutWebhook),
                output.format(),
                spec.commandLine().getOut());
    }
}
