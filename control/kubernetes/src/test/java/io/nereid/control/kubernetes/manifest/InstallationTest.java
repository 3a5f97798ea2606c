// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.manifest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.kubernetes.localmodel.NodeCacheCluster;
import io.nereid.control.kubernetes.localmodel.NodeCacheObjects;
import io.nereid.control.kubernetes.localmodel.NodeCachePlan;
import io.nereid.control.kubernetes.manifest.ManifestOptions.Part;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The objects of installations on a real API server. */
class InstallationTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    static Path directory;

    private static TestCluster cluster;

    @BeforeAll
    static void start() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory.resolve("cluster"));
    }

    @AfterAll
    static void stop() {
        if (cluster != null) {
            cluster.close();
        }
    }

    private static ManifestOptions options(String namespace, Set<Part> parts, String... watched) {
        return options(namespace, parts, ManifestOptions.Gateways.DEFAULT, watched);
    }

    private static ManifestOptions options(
            String namespace, Set<Part> parts, ManifestOptions.Gateways gateways, String... watched) {
        return new ManifestOptions(
                namespace,
                "registry.example.com/nereid:1.0",
                List.of(watched),
                2,
                1,
                gateways,
                "",
                "example.com",
                "",
                parts);
    }

    private static Path file(ManifestOptions options) throws IOException {
        Path file = Files.createTempFile(directory, "manifests", ".json");
        Files.writeString(
                file,
                OperatorManifests.of(options, JsonNode::toPrettyString).stream()
                        .map(ObjectNode::toString)
                        .collect(Collectors.joining("\n")));
        return file;
    }

    private static String can(String account, String verb, String resource, String... more) throws IOException {
        String[] line = new String[5 + more.length];
        System.arraycopy(
                new String[] {"auth", "can-i", verb, resource, "--as=system:serviceaccount:" + account}, 0, line, 0, 5);
        System.arraycopy(more, 0, line, 5, more.length);
        try {
            return cluster.kubectl(line).strip();
        } catch (IOException e) {
            // kubectl ends with 1 after it has printed no
            return "no";
        }
    }

    @Test
    void oneApplyInstallsEverythingServerSideAndClientSide() throws Exception {
        Path file = file(options("nereid", ManifestOptions.DEFAULT_PARTS));
        assertThat(cluster.kubectl("apply", "--server-side", "-f", file.toString()))
                .contains("deployment.apps/nereid-operator serverside-applied")
                .contains("validatingwebhookconfiguration.admissionregistration.k8s.io/nereid serverside-applied");
        assertThat(cluster.kubectl("diff", "--server-side", "-f", file.toString()))
                .isEmpty();
        assertThat(cluster.kubectl("apply", "-f", file.toString())).contains("deployment.apps/nereid-operator");
        assertThat(cluster.kubectl("get", "pods", "-n", "nereid", "--ignore-not-found", "-o", "name"))
                .isNotNull();
        String operator = "nereid:nereid-operator";
        assertThat(can(operator, "create", "deployments.apps", "-n", "team")).isEqualTo("yes");
        assertThat(can(operator, "update", "inferenceservices.serving.kserve.io", "--subresource=status", "-n", "team"))
                .isEqualTo("yes");
        assertThat(can(operator, "get", "secrets", "-n", "team")).isEqualTo("yes");
        assertThat(can(operator, "list", "secrets", "-n", "team")).isEqualTo("no");
        assertThat(can(operator, "update", "secrets/nereid-webhook-certificate", "-n", "nereid"))
                .isEqualTo("yes");
        assertThat(can(operator, "update", "secrets/other", "-n", "nereid")).isEqualTo("no");
        assertThat(can(operator, "delete", "inferenceservices.serving.kserve.io", "-n", "team"))
                .isEqualTo("no");
        assertThat(can(operator, "patch", "validatingwebhookconfigurations/nereid"))
                .isEqualTo("yes");
        assertThat(can(operator, "patch", "mutatingwebhookconfigurations/nereid"))
                .isEqualTo("yes");
        assertThat(can(operator, "patch", "validatingwebhookconfigurations/other"))
                .isEqualTo("no");
        assertThat(can("nereid:nereid-gateway", "create", "tokenreviews.authentication.k8s.io"))
                .isEqualTo("yes");
        assertThat(can("nereid:nereid-gateway", "get", "secrets", "-n", "team")).isEqualTo("no");
    }

    @Test
    void podsPassTheRestrictedPodSecurityStandard() throws Exception {
        ManifestOptions options = options("secured", ManifestOptions.DEFAULT_PARTS);
        cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                file(options).toString());
        for (ObjectNode object : OperatorManifests.of(options, JsonNode::toPrettyString)) {
            if (!object.path("kind").asText().equals("Deployment")) {
                continue;
            }
            // The API server admits the pod only if it keeps to the standard that the namespace enforces.
            ObjectNode pod = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "Pod");
            pod.putObject("metadata")
                    .put("name", object.path("metadata").path("name").asText())
                    .put("namespace", "secured");
            pod.set("spec", object.path("spec").path("template").path("spec"));
            Path file = Files.createTempFile(directory, "pod", ".json");
            Files.writeString(file, pod.toString());
            assertThat(cluster.kubectl("create", "-f", file.toString())).contains("created");
        }
    }

    @Test
    void anInstallationForNamespacesHasNoRightsOnTheCluster() throws Exception {
        cluster.kubectl("create", "namespace", "team-a");
        cluster.kubectl("create", "namespace", "team-b");
        ManifestOptions options = options("small", ManifestOptions.DEFAULT_PARTS, "team-b", "team-a");
        List<ObjectNode> objects = OperatorManifests.of(options, JsonNode::toPrettyString);
        assertThat(objects)
                .extracting(object -> object.path("kind").asText())
                .doesNotContain(
                        "ClusterRole",
                        "ClusterRoleBinding",
                        "PriorityClass",
                        "ValidatingWebhookConfiguration",
                        "MutatingWebhookConfiguration");
        cluster.kubectl("apply", "-f", file(options).toString());
        String operator = "small:nereid-operator";
        assertThat(can(operator, "create", "deployments.apps", "-n", "team-a")).isEqualTo("yes");
        assertThat(can(operator, "create", "deployments.apps", "-n", "team-b")).isEqualTo("yes");
        assertThat(can(operator, "create", "deployments.apps", "-n", "default")).isEqualTo("no");
        assertThat(can(operator, "list", "inferenceservices.serving.kserve.io", "-A"))
                .isEqualTo("no");
        assertThat(cluster.kubectl(
                        "get", "deployment", "nereid-operator", "-n", "small", "-o", "jsonpath={..containers[0].args}"))
                .contains("--watch-namespaces=team-a,team-b")
                .doesNotContain("webhook-port");
        String gateway = "small:nereid-gateway";
        assertThat(can(gateway, "watch", "endpointslices.discovery.k8s.io", "-n", "team-a"))
                .isEqualTo("yes");
        assertThat(can(gateway, "watch", "services", "-n", "default")).isEqualTo("no");
        assertThat(can(gateway, "get", "configmaps/inferenceservice-config", "-n", "small"))
                .isEqualTo("yes");
    }

    @Test
    void agentsOfNodesReadTheirListAndOnlyTheSecretsThatAreGranted() throws Exception {
        ManifestOptions options = options("cached", ManifestOptions.DEFAULT_PARTS);
        cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                file(options).toString());
        String agent = "cached:nereid-node-agent";
        assertThat(can(agent, "watch", "localmodelnodes.serving.kserve.io")).isEqualTo("yes");
        assertThat(can(agent, "get", "localmodelnodegroups.serving.kserve.io")).isEqualTo("yes");
        assertThat(can(agent, "update", "localmodelnodes.serving.kserve.io", "--subresource=status"))
                .isEqualTo("yes");
        assertThat(can(agent, "update", "localmodelnodes.serving.kserve.io")).isEqualTo("no");
        assertThat(can(agent, "get", "configmaps/inferenceservice-config", "-n", "cached"))
                .isEqualTo("yes");
        assertThat(can(agent, "get", "secrets", "-n", "cached")).isEqualTo("no");
        cluster.kubectl("create", "namespace", "granted");
        cluster.kubectl(
                "create",
                "rolebinding",
                "nereid-node-agent",
                "-n",
                "granted",
                "--clusterrole=nereid-cached-node-agent-credentials",
                "--serviceaccount=" + agent);
        assertThat(can(agent, "get", "secrets/storage-config", "-n", "granted")).isEqualTo("yes");
        assertThat(can(agent, "list", "secrets", "-n", "granted")).isEqualTo("no");
        assertThat(can(agent, "get", "secrets", "-n", "default")).isEqualTo("no");
        String operator = "cached:nereid-operator";
        assertThat(can(operator, "create", "daemonsets.apps", "-n", "cached")).isEqualTo("yes");
        assertThat(can(operator, "create", "daemonsets.apps", "-n", "default")).isEqualTo("no");
        assertThat(can(operator, "create", "persistentvolumes")).isEqualTo("yes");
        assertThat(can(operator, "delete", "localmodelcaches.serving.kserve.io"))
                .isEqualTo("no");
        assertThat(can(operator, "patch", "nodes")).isEqualTo("no");
    }

    @Test
    void podsOfAgentsPassTheRestrictedPodSecurityStandard() throws Exception {
        ManifestOptions options = options("agents", ManifestOptions.DEFAULT_PARTS);
        cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                file(options).toString());
        ObjectNode group = (ObjectNode) JSON.readTree("""
                {"metadata":{"name":"fast","uid":"1"},"spec":{"storageLimit":"1Gi","persistentVolumeSpec":{"hostPath":{"path":"/models"},
                "nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}]}}},
                "persistentVolumeClaimSpec":{}}}
                """);
        ObjectNode map = JSON.createObjectNode().put("kind", "ConfigMap");
        map.putObject("data").put("nereid", "{\"image\":\"nereid:1\"}");
        ObjectNode set = new NodeCacheObjects(
                        NodeCachePlan.of(List.of(group), List.of(), List.of()),
                        new NodeCacheCluster(List.of(group), List.of(), List.of()),
                        ClusterSettings.of(InferenceServiceConfig.read(map)),
                        "agents")
                .agents()
                .get("fast")
                .get(2);
        ObjectNode pod = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "Pod");
        pod.putObject("metadata").put("name", "agent").put("namespace", "agents");
        pod.set("spec", set.at("/spec/template/spec"));
        Path file = Files.createTempFile(directory, "agent", ".json");
        Files.writeString(file, pod.toString());
        assertThat(cluster.kubectl("create", "-f", file.toString())).contains("created");
    }

    private static ManifestOptions.Gateways gateways(String zone, boolean fromPodLabel, String reviews) {
        return new ManifestOptions.Gateways(
                2,
                10,
                new ManifestOptions.Zone(zone, fromPodLabel),
                new ManifestOptions.CallerReviews(reviews, List.of("models", "https://models.example"), "1m"));
    }

    @Test
    void callersAreReviewedOnlyWithTheRightsForIt() throws Exception {
        List<String> reviews =
                List.of("tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io");
        cluster.kubectl("create", "namespace", "reviewed-team");
        ManifestOptions named =
                options("reviewed", ManifestOptions.DEFAULT_PARTS, gateways("", false, "all"), "reviewed-team");
        cluster.kubectl("apply", "-f", file(named).toString());
        cluster.kubectl(
                "apply",
                "--server-side",
                "-f",
                file(options("bare", ManifestOptions.DEFAULT_PARTS, "reviewed-team"))
                        .toString());
        cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                file(options("closed", ManifestOptions.DEFAULT_PARTS, gateways("", false, "off")))
                        .toString());
        for (String review : reviews) {
            assertThat(can("reviewed:nereid-gateway", "create", review)).isEqualTo("yes");
            assertThat(can("reviewed:nereid-operator", "create", review)).isEqualTo("no");
            assertThat(can("bare:nereid-gateway", "create", review)).isEqualTo("no");
            assertThat(can("closed:nereid-gateway", "create", review)).isEqualTo("no");
        }
        assertThat(can("reviewed:nereid-gateway", "watch", "services", "-n", "default"))
                .isEqualTo("no");
        String arguments = "jsonpath={..containers[0].args}";
        assertThat(cluster.kubectl("get", "deployment", "nereid-gateway", "-n", "reviewed", "-o", arguments))
                .contains(
                        "--kubernetes-auth=all",
                        "--kubernetes-audiences=models,https://models.example",
                        "--kubernetes-auth-cache=1m");
        assertThat(cluster.kubectl("get", "deployment", "nereid-gateway", "-n", "bare", "-o", arguments))
                .contains("--kubernetes-auth=off");
    }

    @Test
    void podsOfGatewaysHaveTheZoneOfTheirNodeAsALabel() throws Exception {
        ManifestOptions options = options("zoned", ManifestOptions.DEFAULT_PARTS, gateways("", true, ""));
        cluster.kubectl(
                "apply",
                "--server-side",
                "--force-conflicts",
                "-f",
                file(options).toString());
        Path node = directory.resolve("node.json");
        Files.writeString(
                node,
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"zoned-node\","
                        + "\"labels\":{\"topology.kubernetes.io/zone\":\"zone-b\"}}}");
        cluster.kubectl("apply", "-f", node.toString());
        ObjectNode pod = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "Pod");
        pod.putObject("metadata").put("name", "zoned").put("namespace", "zoned");
        for (ObjectNode object : OperatorManifests.of(options, JsonNode::toPrettyString)) {
            if (object.path("kind").asText().equals("Deployment")
                    && object.path("metadata").path("name").asText().equals("nereid-gateway")) {
                pod.set("spec", object.path("spec").path("template").path("spec"));
            }
        }
        // A kubelet fills in the variable from this label.
        assertThat(pod.at("/spec/containers/0/env").toString())
                .contains("NEREID_ZONE", "metadata.labels['topology.kubernetes.io/zone']");
        ((ObjectNode) pod.path("spec")).put("nodeName", "zoned-node");
        Path file = directory.resolve("zoned.json");
        Files.writeString(file, pod.toString());
        cluster.kubectl("create", "-f", file.toString());
        assertThat(cluster.kubectl(
                        "get",
                        "pod",
                        "zoned",
                        "-n",
                        "zoned",
                        "-o",
                        "jsonpath={.metadata.labels.topology\\.kubernetes\\.io/zone}"))
                .isEqualTo("zone-b");
    }

    @Test
    void theBuiltInResourcesAreValid() throws Exception {
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        Path file = directory.resolve("built-in.json");
        Files.writeString(
                file,
                OperatorManifests.resources(options("nereid", EnumSet.noneOf(Part.class))).stream()
                        .map(ObjectNode::toString)
                        .collect(Collectors.joining("\n")));
        assertThat(cluster.kubectl("apply", "-f", file.toString()))
                .contains(
                        "clusterservingruntime.serving.kserve.io/kserve-sklearnserver created",
                        "clusterstoragecontainer.serving.kserve.io/default created");
        assertThatThrownBy(() -> cluster.kubectl("get", "servingruntime", "kserve-sklearnserver"))
                .isInstanceOf(IOException.class);
    }
}
