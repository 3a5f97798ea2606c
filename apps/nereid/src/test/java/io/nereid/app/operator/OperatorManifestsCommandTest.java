// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.YamlWriter;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class OperatorManifestsCommandTest {
    private static String run(int code, String... arguments) {
        StringWriter out = new StringWriter();
        CommandLine command = new CommandLine(new OperatorManifestsCommand());
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(out, true));
        assertThat(command.execute(arguments)).as(out.toString()).isEqualTo(code);
        return out.toString();
    }

    private static List<String> names(String yaml) {
        List<String> names = new ArrayList<>();
        for (ObjectNode object : ManifestReader.parse(yaml, "manifests")) {
            names.add(object.path("kind").asText() + "/"
                    + object.path("metadata").path("name").asText());
        }
        return names;
    }

    @Test
    void theWholeInstallationIsPrintedAndReadsBack() {
        String yaml = run(0, "--image", "registry.example.com/nereid:1.0");
        assertThat(names(yaml))
                .startsWith("Namespace/nereid", "CustomResourceDefinition/inferenceservices.serving.kserve.io")
                .contains(
                        "ClusterRole/nereid-operator",
                        "ConfigMap/inferenceservice-config",
                        "Deployment/nereid-operator",
                        "Deployment/nereid-gateway",
                        "Service/nereid-gateway",
                        "HorizontalPodAutoscaler/nereid-gateway",
                        "PodDisruptionBudget/nereid-gateway",
                        "NetworkPolicy/nereid-gateway",
                        "ClusterRole/nereid-gateway",
                        "PriorityClass/nereid",
                        "ValidatingWebhookConfiguration/nereid",
                        "MutatingWebhookConfiguration/nereid")
                .doesNotContain("PodMonitor/nereid-gateway");
        assertThat(ManifestReader.parse(yaml, "manifests"))
                .isEqualTo(OperatorManifests.of(ManifestOptions.of("registry.example.com/nereid:1.0"), YamlWriter::of));
        for (ObjectNode object : ManifestReader.parse(yaml, "manifests")) {
            if (object.path("metadata").path("name").asText().equals(OperatorManifests.BUILT_IN)) {
                object.path("data")
                        .properties()
                        .forEach(entry -> assertThat(
                                        ManifestReader.parse(entry.getValue().asText(), entry.getKey()))
                                .hasSize(1));
            }
        }
        assertThat(run(0, "--image", "registry.example.com/nereid:1.0")).isEqualTo(yaml);
    }

    @Test
    void partsAreLeftOut() {
        assertThat(names(run(
                        0,
                        "--image",
                        "nereid",
                        "--no-namespace",
                        "--no-crds",
                        "--no-webhook",
                        "--no-config",
                        "--no-runtimes",
                        "--no-network-policies",
                        "--no-gateway",
                        "--no-priority-class",
                        "--watch-namespaces",
                        "team-a,team-b")))
                .containsExactly(
                        "Role/nereid-operator",
                        "RoleBinding/nereid-operator",
                        "Role/nereid-operator",
                        "RoleBinding/nereid-operator",
                        "Role/nereid-operator-own",
                        "RoleBinding/nereid-operator-own",
                        "ServiceAccount/nereid-operator",
                        "Deployment/nereid-operator",
                        "PodDisruptionBudget/nereid-operator");
    }

    @Test
    void aFixedNumberOfGatewaysHasNoAutoscaler() {
        String yaml = run(
                0,
                "--image",
                "nereid",
                "--gateway-replicas=3",
                "--gateway-max-replicas=3",
                "--pod-monitors",
                "--no-crds");
        assertThat(names(yaml))
                .contains("PodMonitor/nereid-gateway", "PodMonitor/nereid-operator")
                .doesNotContain("HorizontalPodAutoscaler/nereid-gateway");
        assertThat(ManifestReader.parse(yaml, "manifests"))
                .filteredOn(
                        object -> object.path("metadata").path("name").asText().equals("nereid-gateway")
                                && object.path("kind").asText().equals("Deployment"))
                .singleElement()
                .satisfies(object ->
                        assertThat(object.path("spec").path("replicas").asInt()).isEqualTo(3));
        assertThat(run(1, "--image", "nereid", "--gateway-replicas=3", "--gateway-max-replicas=2"))
                .contains("the number of gateways is 3 to 2 (expected: at least 1");
    }

    @Test
    void wrongValuesAreRefusedWithWhatWasExpected() {
        assertThat(run(2)).contains("--image");
        assertThat(run(1, "--image", "nereid", "--namespace", "Nereid"))
                .contains("the namespace is 'Nereid' (expected: lower case letters, digits and '-'");
        assertThat(run(1, "--image", "a b")).contains("the image is 'a b'");
        assertThat(run(1, "--image", "nereid", "--deployment-mode", "Fast")).contains("'Fast'", "Standard or Knative");
        assertThat(run(1, "--image", "nereid", "--upgrade-budget=-1")).contains("the budget of upgrades is -1");
        assertThat(run(1, "--image", "nereid", "--gateway-zone=a b")).contains("the zone of the gateways is 'a b'");
        assertThat(run(1, "--image", "nereid", "--gateway-zone=a", "--gateway-zone-from-pod-label"))
                .contains("'a' and that of each pod's label (expected: one of them)");
        assertThat(run(1, "--image", "nereid", "--kubernetes-auth=some")).contains("'some'", "off, annotated or all");
        assertThat(run(1, "--image", "nereid", "--kubernetes-audiences=a b")).contains("'a b'");
        assertThat(run(1, "--image", "nereid", "--kubernetes-auth-cache=1h")).contains("'1h'", "from 1s to 10m");
    }
}
