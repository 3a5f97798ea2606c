// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static io.nereid.app.operator.ChartFilesTest.CHART;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The Helm chart, with the real helm and a real API server. */
class ChartTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    static Path directory;

    @BeforeAll
    static void isBuilt() throws Exception {
        String why = new Helm(directory).unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
    }

    private static String helm(String... arguments) throws IOException, InterruptedException {
        return new Helm(directory).run(arguments);
    }

    private static Path values(String text) throws IOException {
        return new Helm(directory).file(text);
    }

    private static Map<String, JsonNode> rendered(String values, String namespace) throws Exception {
        return byName(ManifestReader.parse(
                helm(
                        "template",
                        "any",
                        CHART.toString(),
                        "--namespace",
                        namespace,
                        "--values",
                        values(values).toString()),
                "chart"));
    }

    private static Map<String, JsonNode> printed(String... arguments) throws Exception {
        StringWriter out = new StringWriter();
        CommandLine command = new CommandLine(new OperatorManifestsCommand());
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(out, true));
        // Helm makes the namespace before it renders.
        List<String> all = new ArrayList<>(List.of("--no-namespace", "--image", "nereid:1"));
        all.addAll(List.of(arguments));
        assertThat(command.execute(all.toArray(String[]::new)))
                .as(out.toString())
                .isEqualTo(0);
        return byName(ManifestReader.parse(out.toString(), "manifests"));
    }

    /** The objects by kind, namespace and name, with the texts of ConfigMaps as trees. */
    private static Map<String, JsonNode> byName(List<ObjectNode> objects) throws IOException {
        Map<String, JsonNode> all = new TreeMap<>();
        for (ObjectNode object : objects) {
            ObjectNode metadata = (ObjectNode) object.path("metadata");
            String kind = object.path("kind").asText();
            if (kind.equals("CustomResourceDefinition") && metadata.path("annotations") instanceof ObjectNode notes) {
                // The one thing that only helm knows.
                notes.remove("helm.sh/resource-policy");
                if (notes.isEmpty()) {
                    metadata.remove("annotations");
                }
            }
            if (kind.equals("ConfigMap") && object.path("data") instanceof ObjectNode data) {
                for (Map.Entry<String, JsonNode> entry : List.copyOf(data.properties())) {
                    data.set(
                            entry.getKey(),
                            ManifestReader.parse(entry.getValue().asText(), entry.getKey())
                                    .get(0));
                }
            }
            String key = kind + " " + metadata.path("namespace").asText() + "/"
                    + metadata.path("name").asText();
            assertThat(all.put(key, object)).as(key + " is there once").isNull();
        }
        return all;
    }

    private static void compare(String path, JsonNode printed, JsonNode chart, List<String> differences) {
        if (printed.isObject() && chart.isObject()) {
            TreeSet<String> names = new TreeSet<>();
            printed.fieldNames().forEachRemaining(names::add);
            chart.fieldNames().forEachRemaining(names::add);
            names.forEach(name -> compare(path + "." + name, printed.path(name), chart.path(name), differences));
        } else if (printed instanceof ArrayNode list && chart.isArray() && list.size() == chart.size()) {
            for (int i = 0; i < list.size(); i++) {
                compare(path + "[" + i + "]", list.get(i), chart.get(i), differences);
            }
        } else if (printed.isNumber() && chart.isNumber()) {
            if (printed.decimalValue().compareTo(chart.decimalValue()) != 0) {
                differences.add(path + ": " + printed + " is " + chart + " in the chart");
            }
        } else if (!printed.equals(chart)) {
            differences.add(path + ": " + printed + " is " + chart + " in the chart");
        }
    }

    private static void assertSame(String values, String namespace, String... arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--namespace", namespace));
        Map<String, JsonNode> printed = printed(all.toArray(String[]::new));
        Map<String, JsonNode> chart = rendered("image: {tag: '1'}\n" + values, namespace);
        List<String> differences = new ArrayList<>();
        TreeSet<String> names = new TreeSet<>(printed.keySet());
        names.addAll(chart.keySet());
        for (String name : names) {
            JsonNode nothing = JSON.missingNode();
            compare(name, printed.getOrDefault(name, nothing), chart.getOrDefault(name, nothing), differences);
        }
        assertThat(differences).isEmpty();
    }

    @Test
    void defaultsAreTheObjectsThatTheCommandPrints() throws Exception {
        assertSame("", "nereid");
        assertThat(rendered("", "nereid")
                        .get("Deployment nereid/nereid-gateway")
                        .toString())
                .as("without a tag the image has the version of the chart")
                .contains("\"nereid:0.");
    }

    @Test
    void valuesAreTheOptionsOfTheCommand() throws Exception {
        assertSame(
                "watchNamespaces: [team-b, other, team-a, team-b]", "other", "--watch-namespaces=team-a,other,team-b");
        assertSame(
                "gateway: {enabled: false}\npodMonitor: {enabled: true}", "nereid", "--no-gateway", "--pod-monitors");
        assertSame(
                "webhook: {enabled: false}\nnetworkPolicies: {enabled: false}\npriorityClass: {create: false}\n"
                        + "podMonitor: {enabled: true}\nruntimes: {create: false}\ncrds: {install: false}",
                "models",
                "--no-webhook",
                "--no-network-policies",
                "--no-priority-class",
                "--pod-monitors",
                "--no-runtimes",
                "--no-crds");
        assertSame(
                "config: {deploymentMode: Standard, ingressDomain: models.example.org, ingressClassName: nginx}\n"
                        + "operator: {replicas: 3}\ngateway: {replicas: 4, autoscaling: {enabled: false}}",
                "nereid",
                "--deployment-mode=Standard",
                "--ingress-domain=models.example.org",
                "--ingress-class=nginx",
                "--replicas=3",
                "--gateway-replicas=4",
                "--gateway-max-replicas=4");
        assertSame("config: {create: false}", "nereid", "--no-config");
        assertSame(
                "operator: {upgradeBudget: 0}\ngateway: {zone: {name: eu-1a}, access: {kubernetesAuth: {mode: 'off'}}}",
                "nereid",
                "--upgrade-budget=0",
                "--gateway-zone=eu-1a",
                "--kubernetes-auth=off");
        assertSame(
                "watchNamespaces: [other, team]\noperator: {upgradeBudget: 5}\ngateway: {zone: {fromPodLabel: true}, "
                        + "access: {kubernetesAuth: {mode: annotated, audiences: [models, 'https://a.example'], cache: 1m}}}",
                "other",
                "--watch-namespaces=other,team",
                "--upgrade-budget=5",
                "--gateway-zone-from-pod-label",
                "--kubernetes-auth=annotated",
                "--kubernetes-audiences=models,https://a.example",
                "--kubernetes-auth-cache=1m");
        assertSame("gateway: {access: {kubernetesAuth: {mode: all}}}", "nereid", "--kubernetes-auth=all");
    }

    @Test
    void theExamplesAreLintedAndRendered() throws Exception {
        helm("check");
        Map<String, JsonNode> chart = byName(ManifestReader.parse(
                helm(
                        "template",
                        "any",
                        CHART.toString(),
                        "--namespace=nereid",
                        "--values=" + CHART.resolveSibling("examples/public.yaml")),
                "chart"));
        JsonNode gateway = chart.get("Deployment nereid/nereid-gateway")
                .path("spec")
                .path("template")
                .path("spec");
        assertThat(gateway.path("containers").path(0).path("args").toString())
                .contains(
                        "--https-port=8443",
                        "--tls-cert=/etc/nereid/tls/tls.crt",
                        "--api-keys=/etc/nereid/api-keys/api-keys");
        assertThat(gateway.path("volumes").toString())
                .contains("\"secretName\":\"gateway-tls\"", "\"secretName\":\"gateway-keys\"");
        JsonNode service = chart.get("Service nereid/nereid-gateway-public");
        assertThat(service.path("spec").path("ports")).hasSize(1);
        assertThat(service.toString()).doesNotContain("8082");
        assertThat(chart.get("ConfigMap nereid/inferenceservice-config")
                        .path("data")
                        .path("ingress")
                        .path("urlScheme")
                        .asText())
                .isEqualTo("https");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "gateways: {enabled: false}",
                "config: {deploymentMode: Fast}",
                "operator: {replicas: 0}",
                "image: {repository: 'a b'}",
                "watchNamespaces: [Team]",
                "operator: {upgradeBudget: -1}",
                "gateway: {zone: {name: eu-1a, fromPodLabel: true}}",
                "gateway: {access: {kubernetesAuth: {mode: some}}}",
                "gateway: {access: {kubernetesAuth: {audiences: ['a,b']}}}",
                "gateway: {publicService: {enabled: true, plainText: false}}"
            })
    void wrongValuesAreRefused(String values) {
        assertThatThrownBy(() -> rendered(values, "nereid"))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("values don't meet the specifications of the schema");
    }

    private static void until(String what, String expected, TestCluster cluster, String... kubectl) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(120).toNanos();
        String found;
        while (!(found = kubectl(cluster, kubectl)).equals(expected)) {
            assertThat(System.nanoTime()).as(what + ": " + found).isLessThan(end);
            LockSupport.parkNanos(200_000_000);
        }
    }

    private static String kubectl(TestCluster cluster, String... line) throws IOException {
        try {
            return cluster.kubectl(line).strip();
        } catch (IOException e) {
            // kubectl ends with 1 after it has printed no, or when there is nothing
            return String.valueOf(e.getMessage()).contains("NotFound") ? "nothing" : "no";
        }
    }

    @Test
    void aReleaseIsInstalledUpgradedAndUninstalled() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        try (TestCluster cluster = TestCluster.start(directory.resolve("cluster"));
                FakeNode node = new FakeNode(cluster.client(), "node-1", "10.244.0", PodRunner.READY)) {
            String at = "--kubeconfig=" + cluster.kubeconfig();
            cluster.kubectl("create", "namespace", "nereid");
            cluster.kubectl("label", "namespace", "nereid", "pod-security.kubernetes.io/enforce=restricted");
            assertThat(helm("install", "nereid", CHART.toString(), at, "--namespace=nereid"))
                    .contains(
                            "Nereid 0.",
                            "kubectl rollout status deployment/nereid-gateway -n nereid",
                            "in the Knative mode",
                            "minReplicas: 0 lets a service go to zero");
            String ready = "jsonpath={.status.readyReplicas}";
            until("operators run", "2", cluster, "get", "deployment", "nereid-operator", "-n", "nereid", "-o", ready);
            until("gateways run", "2", cluster, "get", "deployment", "nereid-gateway", "-n", "nereid", "-o", ready);
            String as = "--as=system:serviceaccount:nereid:nereid-";
            assertThat(kubectl(cluster, "auth", "can-i", "create", "deployments.apps", "-n=team", as + "operator"))
                    .isEqualTo("yes");
            assertThat(kubectl(cluster, "auth", "can-i", "list", "secrets", "-n=team", as + "operator"))
                    .isEqualTo("no");
            assertThat(kubectl(cluster, "auth", "can-i", "watch", "services", "-n=team", as + "gateway"))
                    .isEqualTo("yes");
            assertThat(kubectl(
                            cluster,
                            "auth",
                            "can-i",
                            "patch",
                            "validatingwebhookconfigurations/nereid",
                            as + "operator"))
                    .isEqualTo("yes");
            cluster.kubectl(
                    "apply",
                    "-f",
                    values(
                                    "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\n"
                                            + "metadata: {name: iris, namespace: default}\n"
                                            + "spec: {predictor: {model: {modelFormat: {name: sklearn}, storageUri: 'gs://a/b'}}}\n")
                            .toString());

            // What the operator and the autoscaler write must survive an upgrade.
            cluster.kubectl(
                    "patch",
                    "validatingwebhookconfiguration",
                    "nereid",
                    "--field-manager=nereid",
                    "--type=strategic",
                    "-p={\"webhooks\":[{\"name\":\"validation.nereid.io\",\"clientConfig\":{\"caBundle\":\""
                            + certificate(cluster) + "\"}}]}");
            cluster.kubectl("scale", "deployment", "nereid-gateway", "--replicas=3", "-n", "nereid");
            Path changed = values("operator: {replicas: 3, nodeSelector: {kubernetes.io/os: linux}}\n"
                    + "config: {deploymentMode: Standard}\ngateway: {maxReplicas: 5}\n");
            assertThatThrownBy(() -> helm(
                            "upgrade", "nereid", CHART.toString(), at, "--namespace=nereid", "--values=" + changed))
                    .hasMessageContaining("maxReplicas");
            Files.writeString(
                    changed, Files.readString(changed).replace("{maxReplicas: 5}", "{autoscaling: {minReplicas: 1}}"));
            helm("upgrade", "nereid", CHART.toString(), at, "--namespace=nereid", "--values=" + changed);
            until("operators run", "3", cluster, "get", "deployment", "nereid-operator", "-n", "nereid", "-o", ready);
            assertThat(kubectl(
                            cluster,
                            "get",
                            "configmap",
                            "inferenceservice-config",
                            "-n=nereid",
                            "-o=jsonpath={.data.deploy}"))
                    .contains("\"Standard\"");
            assertThat(kubectl(
                            cluster,
                            "get",
                            "validatingwebhookconfiguration",
                            "nereid",
                            "-o=jsonpath={.webhooks[0].clientConfig.caBundle}"))
                    .isNotEmpty();
            assertThat(kubectl(
                            cluster,
                            "get",
                            "deployment",
                            "nereid-gateway",
                            "-n=nereid",
                            "-o=jsonpath={.spec.replicas}"))
                    .as("the number of gateways is the autoscaler's")
                    .isEqualTo("3");
            assertThat(helm(
                            "upgrade",
                            "nereid",
                            CHART.toString(),
                            at,
                            "--namespace=nereid",
                            "--set=gateway.enabled=false"))
                    .contains("in the Standard mode", "To scale to zero, install the gateway");
            until("the gateway goes", "nothing", cluster, "get", "deployment", "nereid-gateway", "-n", "nereid");

            helm("uninstall", "nereid", at, "--namespace=nereid", "--wait");
            assertThat(left(cluster)).isEmpty();
            assertThat(kubectl(cluster, "get", "inferenceservice", "iris", "-o=jsonpath={.metadata.name}"))
                    .as("definitions and services stay")
                    .isEqualTo("iris");

            helm("install", "nereid", CHART.toString(), at, "--namespace=nereid");
            cluster.kubectl("create", "namespace", "team-a");
            cluster.kubectl("create", "namespace", "team-b");
            helm(
                    "install",
                    "small",
                    CHART.toString(),
                    at,
                    "--namespace=small",
                    "--create-namespace",
                    "--values=" + CHART.resolveSibling("examples/namespaces.yaml"));
            String small = "--as=system:serviceaccount:small:nereid-";
            assertThat(kubectl(cluster, "auth", "can-i", "create", "deployments.apps", "-n=team-a", small + "operator"))
                    .isEqualTo("yes");
            assertThat(kubectl(
                            cluster, "auth", "can-i", "create", "deployments.apps", "-n=default", small + "operator"))
                    .isEqualTo("no");
            assertThat(kubectl(cluster, "auth", "can-i", "watch", "services", "-n=team-b", small + "gateway"))
                    .isEqualTo("yes");
        }
    }

    /** The authority of the cluster, as a value that the API server takes. */
    private static String certificate(TestCluster cluster) throws IOException {
        return JSON.readTree(cluster.kubectl("config", "view", "--raw", "-o", "json"))
                .path("clusters")
                .path(0)
                .path("cluster")
                .path("certificate-authority-data")
                .asText();
    }

    /** What is left of a release; the definitions are meant to stay. */
    private static String left(TestCluster cluster) throws IOException {
        return cluster.kubectl(
                        "get",
                        "deployments,services,configmaps,serviceaccounts,roles,rolebindings,clusterroles,"
                                + "clusterrolebindings,horizontalpodautoscalers,poddisruptionbudgets,networkpolicies,"
                                + "priorityclasses,validatingwebhookconfigurations",
                        "--all-namespaces",
                        "-l",
                        "app.kubernetes.io/part-of=nereid",
                        "-o",
                        "name")
                .strip();
    }
}
