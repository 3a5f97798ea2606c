// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.YamlWriter;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.ManifestOptions.Part;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nereid operator manifests}: the objects of an installation as YAML. */
@Command(
        name = "manifests",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Print the objects that install operator and gateway, as YAML for kubectl apply, client-side or server-side.",
            "The same options print the same text."
        },
        footer = {
            "",
            "  nereid operator manifests --image registry.example.com/nereid:1.0 | kubectl apply --server-side -f -",
            "  nereid operator manifests --image IMAGE --watch-namespaces team-a,team-b | kubectl apply -f -"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class OperatorManifestsCommand implements Callable<Integer> {
    @Option(
            names = "--namespace",
            paramLabel = "NS",
            defaultValue = "nereid",
            description = "Namespace of operator and gateway (default: ${DEFAULT-VALUE}).")
    String namespace;

    @Option(
            names = "--image",
            paramLabel = "IMAGE",
            required = true,
            description = "Image with this program; for the operator, the gateway and the storage initializer.")
    String image;

    @Option(
            names = "--watch-namespaces",
            paramLabel = "NS",
            split = ",",
            description = "Serve these namespaces only, with Roles in them instead of rights on the cluster; without a"
                    + " webhook, cluster runtimes and storage containers.")
    List<String> watchNamespaces = new ArrayList<>();

    @Option(
            names = "--replicas",
            paramLabel = "N",
            defaultValue = "2",
            description = "Operators, of which one is the leader (default: ${DEFAULT-VALUE}).")
    int replicas;

    @Option(
            names = "--upgrade-budget",
            paramLabel = "N",
            defaultValue = "1",
            description = "To how many services at a time a new version of the operator brings its pod templates; 0 for"
                    + " none (default: ${DEFAULT-VALUE}).")
    int upgradeBudget;

    @Option(
            names = "--gateway-replicas",
            paramLabel = "N",
            defaultValue = "2",
            description = "The least number of gateways (default: ${DEFAULT-VALUE}).")
    int leastGateways;

    @Option(
            names = "--gateway-max-replicas",
            paramLabel = "N",
            defaultValue = "10",
            description = "The greatest number of gateways, which follows their CPU time; the same as the least for a"
                    + " fixed number (default: ${DEFAULT-VALUE}).")
    int mostGateways;

    @Option(
            names = "--gateway-zone",
            paramLabel = "NAME",
            defaultValue = "",
            description = "Zone of all gateways, whose pods they prefer (default: none).")
    String gatewayZone;

    @Option(
            names = "--gateway-zone-from-pod-label",
            description = "Each gateway has the zone of its pod's label topology.kubernetes.io/zone, which Kubernetes"
                    + " sets from 1.35 on; without the label it has none.")
    boolean gatewayZoneFromPodLabel;

    @Option(
            names = "--kubernetes-auth",
            paramLabel = "MODE",
            defaultValue = "",
            description = "Which services are called with tokens of the cluster: off, annotated or all. With"
                    + " --watch-namespaces, annotated and all add a ClusterRole for the reviews of tokens (default:"
                    + " annotated; off with --watch-namespaces).")
    String kubernetesAuth;

    @Option(
            names = "--kubernetes-audiences",
            paramLabel = "NAME",
            split = ",",
            description = "Audiences of these tokens, of which one is enough (default: the API server's own).")
    List<String> kubernetesAudiences = new ArrayList<>();

    @Option(
            names = "--kubernetes-auth-cache",
            paramLabel = "TIME",
            defaultValue = "",
            description = "How long an answer about a caller is used, 1s to 10m (default: 30s).")
    String kubernetesAuthCache;

    @Option(
            names = "--deployment-mode",
            paramLabel = "MODE",
            defaultValue = "",
            description =
                    "Mode of services that do not say theirs: Knative, which scales to zero, or Standard (default:"
                            + " Knative; Standard with --no-gateway).")
    String deploymentMode;

    @Option(
            names = "--ingress-domain",
            paramLabel = "DOMAIN",
            defaultValue = "example.com",
            description = "Domain of the services' hosts (default: ${DEFAULT-VALUE}).")
    String ingressDomain;

    @Option(
            names = "--ingress-class",
            paramLabel = "CLASS",
            defaultValue = "",
            description = "Class of the services' Ingresses (default: the cluster's).")
    String ingressClass;

    @Option(names = "--no-namespace", description = "Leave out the namespace, which exists.")
    boolean noNamespace;

    @Option(names = "--no-crds", description = "Leave out the CustomResourceDefinitions.")
    boolean noDefinitions;

    @Option(
            names = "--no-gateway",
            description = "Leave out the gateway. Services of the Knative mode and graphs are not ready then.")
    boolean noGateway;

    @Option(names = "--no-priority-class", description = "Leave out the PriorityClass.")
    boolean noPriorityClass;

    @Option(names = "--pod-monitors", description = "Add PodMonitors, for a cluster with the Prometheus operator.")
    boolean podMonitors;

    @Option(names = "--no-webhook", description = "Leave out the validating webhook.")
    boolean noWebhook;

    @Option(names = "--no-config", description = "Leave out the ConfigMap inferenceservice-config.")
    boolean noConfig;

    @Option(names = "--no-runtimes", description = "Leave out the built-in runtimes and the storage container.")
    boolean noRuntimes;

    @Option(names = "--no-network-policies", description = "Leave out the NetworkPolicies.")
    boolean noNetworkPolicies;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        Set<Part> parts = EnumSet.allOf(Part.class);
        remove(parts, Part.GATEWAY, noGateway);
        remove(parts, Part.PRIORITY_CLASS, noPriorityClass);
        remove(parts, Part.POD_MONITORS, !podMonitors);
        remove(parts, Part.NAMESPACE, noNamespace);
        remove(parts, Part.DEFINITIONS, noDefinitions);
        remove(parts, Part.WEBHOOK, noWebhook);
        remove(parts, Part.CONFIG, noConfig);
        remove(parts, Part.RUNTIMES, noRuntimes);
        remove(parts, Part.NETWORK_POLICIES, noNetworkPolicies);
        ManifestOptions options = new ManifestOptions(
                namespace,
                image,
                watchNamespaces,
                replicas,
                upgradeBudget,
                new ManifestOptions.Gateways(
                        leastGateways,
                        mostGateways,
                        new ManifestOptions.Zone(gatewayZone, gatewayZoneFromPodLabel),
                        new ManifestOptions.CallerReviews(kubernetesAuth, kubernetesAudiences, kubernetesAuthCache)),
                deploymentMode,
                ingressDomain,
                ingressClass,
                parts);
        StringBuilder text = new StringBuilder();
        for (ObjectNode object : OperatorManifests.of(options, YamlWriter::of)) {
            text.append("---\n").append(YamlWriter.of(object));
        }
        PrintWriter out = spec.commandLine().getOut();
        out.print(text);
        out.flush();
        return 0;
    }

    private static void remove(Set<Part> parts, Part part, boolean without) {
        if (without) {
            parts.remove(part);
        }
    }
}
