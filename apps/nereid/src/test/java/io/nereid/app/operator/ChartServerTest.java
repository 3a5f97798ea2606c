// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static io.nereid.app.operator.ChartFilesTest.CHART;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.Main;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The mode of the Helm chart with a server alone: with the real helm and a real API server. */
class ChartServerTest {
    private static final String CLAIM = "mode: server\nserver: {models: {claim: models}";

    @TempDir
    static Path directory;

    private static Helm helm;

    @BeforeAll
    static void isBuilt() throws Exception {
        helm = new Helm(directory);
        String why = helm.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
    }

    private static Path example(String name) {
        return CHART.resolveSibling("examples/" + name + ".yaml");
    }

    private static String template(String release, Path values) throws Exception {
        return helm.run("template", release, CHART.toString(), "--namespace=demo", "--values=" + values);
    }

    /** The objects by kind and name. */
    private static Map<String, JsonNode> rendered(Path values) throws Exception {
        Map<String, JsonNode> all = new TreeMap<>();
        for (ObjectNode object : ManifestReader.parse(template("iris", values), "chart")) {
            String key = object.path("kind").asText() + "/"
                    + object.path("metadata").path("name").asText();
            assertThat(all.put(key, object)).as(key + " is there once").isNull();
        }
        return all;
    }

    private static Map<String, JsonNode> rendered(String values) throws Exception {
        return rendered(helm.file(values));
    }

    private static JsonNode pod(Map<String, JsonNode> objects, String workload) {
        return objects.get(workload).path("spec").path("template").path("spec");
    }

    private static JsonNode options(Map<String, JsonNode> objects, String name) throws Exception {
        String text = objects.get("ConfigMap/" + name)
                .path("data")
                .path("nereid.yaml")
                .asText();
        return ManifestReader.parse(text, "nereid.yaml").get(0);
    }

    @Test
    void thereAreTheObjectsOfTheServerAlone() throws Exception {
        Map<String, JsonNode> objects = rendered(example("server"));
        assertThat(objects.keySet())
                .containsExactly(
                        "ConfigMap/nereid-iris",
                        "Deployment/nereid-iris",
                        "NetworkPolicy/nereid-iris",
                        "Pod/nereid-iris-test",
                        "PodDisruptionBudget/nereid-iris",
                        "Service/nereid-iris",
                        "ServiceAccount/nereid-iris");
        JsonNode pod = pod(objects, "Deployment/nereid-iris");
        assertThat(pod.path("automountServiceAccountToken").asBoolean(true)).isFalse();
        assertThat(pod.path("enableServiceLinks").asBoolean(true))
                .as("a Service called nereid must not set NEREID_PORT")
                .isFalse();
        assertThat(pod.path("terminationGracePeriodSeconds").asInt()).isEqualTo(10 + 30 + 15);
        assertThat(pod.path("containers").path(0).path("readinessProbe").path("httpGet"))
                .hasToString("{\"path\":\"/v2/health/ready\",\"port\":\"http\"}");
        JsonNode options = options(objects, "nereid-iris");
        assertThat(options.path("models")).hasToString("[\"/models\"]");
        assertThat(options.path("grace-period").asText()).isEqualTo("10s");
        assertThat(options.path("drain-timeout").asText()).isEqualTo("30s");
        assertThat(rendered(example("server-small")).keySet())
                .containsExactly(
                        "ConfigMap/nereid-iris",
                        "Deployment/nereid-iris",
                        "Service/nereid-iris",
                        "ServiceAccount/nereid-iris");
        assertThat(template("nereid", example("server")))
                .as("the release nereid")
                .contains("name: nereid-server\n")
                .doesNotContain("name: nereid\n");
    }

    @Test
    void aBucketFillsAVolumeOfEachPod() throws Exception {
        Map<String, JsonNode> objects = rendered(example("server-bucket"));
        JsonNode set = objects.get("StatefulSet/nereid-iris").path("spec");
        assertThat(set.has("replicas")).as("the number is the autoscaler's").isFalse();
        assertThat(objects)
                .containsKeys(
                        "HorizontalPodAutoscaler/nereid-iris",
                        "Service/" + set.path("serviceName").asText());
        assertThat(set.path("volumeClaimTemplates").toString()).contains("\"storage\":\"50Gi\"");
        JsonNode fetch =
                pod(objects, "StatefulSet/nereid-iris").path("initContainers").path(0);
        assertThat(fetch.path("args").toString())
                .isEqualTo("[\"fetch\",\"--storage-allow=s3://models/*,hf://*\",\"s3://models/production\",\"/models\","
                        + "\"hf://sentence-transformers/all-MiniLM-L6-v2\",\"/models/minilm\"]");
        assertThat(fetch.path("envFrom").toString()).contains("bucket");
        assertThat(options(objects, "nereid-iris").path("model-control-mode").asText())
                .isEqualTo("none");
    }

    @Test
    void theProbesSeeAServerWithTlsAndKeys() throws Exception {
        Map<String, JsonNode> objects = rendered(example("server-secured"));
        JsonNode container = pod(objects, "Deployment/fraud").path("containers").path(0);
        for (String probe : List.of("startupProbe", "livenessProbe", "readinessProbe")) {
            assertThat(container.path(probe).path("httpGet").path("scheme").asText())
                    .as(probe)
                    .isEqualTo("HTTPS");
        }
        JsonNode options = options(objects, "fraud");
        assertThat(options.path("tls-cert").asText()).isEqualTo("/etc/nereid/tls/tls.crt");
        assertThat(options.path("api-keys").asText()).isEqualTo("/etc/nereid/api-keys/api-keys");
        assertThat(options.has("ports-after-models")).isFalse();
        assertThat(objects.get("Service/fraud").path("spec").path("ports").path(0))
                .hasToString("{\"name\":\"https\",\"port\":443,\"targetPort\":\"http\",\"protocol\":\"TCP\"}");
        assertThat(objects.get("PrometheusRule/fraud")
                        .path("spec")
                        .path("groups")
                        .toString())
                .contains("NereidDown", "{{ $labels.instance }}");

        Map<String, JsonNode> mutual =
                rendered(CLAIM + ", tls: {secretName: server-tls, clientCaSecretName: client-ca}}");
        container = pod(mutual, "Deployment/nereid-iris").path("containers").path(0);
        for (String probe : List.of("startupProbe", "livenessProbe", "readinessProbe")) {
            assertThat(container.path(probe).path("tcpSocket"))
                    .as(probe + ": the kubelet has no certificate")
                    .hasToString("{\"port\":\"http\"}");
        }
        assertThat(options(mutual, "nereid-iris").path("ports-after-models").asBoolean())
                .isTrue();
        assertThat(mutual).doesNotContainKey("Pod/nereid-iris-test");
    }

    @ParameterizedTest
    @ValueSource(strings = {"server", "server-bucket", "server-secured", "server-small"})
    void theServerTakesTheFileOfOptions(String name) throws Exception {
        Map<String, JsonNode> objects = rendered(example(name));
        String map = objects.keySet().stream()
                .filter(key -> key.startsWith("ConfigMap/"))
                .findFirst()
                .orElseThrow();
        Path file = helm.file(objects.get(map).path("data").path("nereid.yaml").asText());
        StringWriter out = new StringWriter();
        CommandLine program = Main.commandLine();
        program.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(out, true));
        assertThat(program.execute("config", "show", "--config=" + file))
                .as(out.toString())
                .isZero();
        assertThat(out.toString()).contains("metrics-port", "8002");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "mode: servers",
                "mode: server\nserver: {model: {claim: models}}",
                CLAIM + ", config: {max-request-byte: 1MiB}}",
                CLAIM + ", config: {port: 9000}}",
                CLAIM + ", config: {max-connections: many}}",
                CLAIM + ", replicas: -1}",
                CLAIM + ", probes: {readiness: {period: 2}}}",
                CLAIM + ", ingress: {enabled: true}}",
                CLAIM + ", httpRoute: {enabled: true}}",
                CLAIM + ", networkPolicy: {egress: [{}]}}",
                "mode: server\nserver: {models: {fetch: {sources: [{uri: 's3://a', path: '../b'}]}}}"
            })
    void wrongValuesAreRefused(String values) {
        assertThatThrownBy(() -> rendered(values))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("values don't meet the specifications of the schema");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    {}                                                        | 0 sources of models are set (none)
                    {models: {claim: a, configMap: {name: b}}}                | 2 sources of models are set (claim, configMap)
                    {models: {claim: a, persistence: {enabled: true}}}        | server.models.persistence.enabled: the models come from claim
                    {models: {configMap: {name: b}, subPath: c}}              | server.models.subPath: the models come from configMap
                    {models: {claim: a}, tls: {clientCaSecretName: c}}        | server.tls.secretName is empty
                    {models: {claim: a}, tls: {secretName: a, clientVerify: required}}           | without authorities
                    {models: {claim: a}, serviceAccountName: a, serviceAccountAnnotations: {a: b}} | server.serviceAccountAnnotations
                    {models: {claim: a}, autoscaling: {enabled: true, targetCPUUtilizationPercentage: 0}} | has nothing to follow
                    {models: {claim: a}, service: {externalTrafficPolicy: Local}} | server.service.type is ClusterIP
                    {models: {claim: a}, service: {grpcPort: 80}}             | server.service.grpcPort is 80
                    """)
    void valuesThatContradictEachOtherAreRefusedWithWhatToChange(String server, String message) {
        assertThatThrownBy(() -> rendered("mode: server\nserver: " + server))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(message);
    }

    private static void until(String what, TestCluster cluster, String... kubectl) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(120).toNanos();
        while (cluster.kubectl(kubectl).isBlank()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            LockSupport.parkNanos(200_000_000);
        }
    }

    private static List<String> definitions() throws IOException {
        List<String> definitions = new ArrayList<>();
        try (var text = ChartServerTest.class.getResourceAsStream("chart-definitions.yaml")) {
            assertThat(text).isNotNull();
            for (ObjectNode definition : ManifestReader.parse(
                    new String(text.readAllBytes(), StandardCharsets.UTF_8), "chart-definitions.yaml")) {
                definitions.add(definition.toString());
            }
        }
        return definitions;
    }

    @Test
    void theExamplesAreInstalledOnARealApiServer() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        try (TestCluster cluster = TestCluster.start(directory.resolve("cluster"));
                FakeNode node = new FakeNode(cluster.client(), "node-1", "10.244.0", PodRunner.READY)) {
            cluster.define(definitions());
            cluster.kubectl("create", "priorityclass", "serving", "--value=1000");
            String at = "--kubeconfig=" + cluster.kubeconfig();
            for (String name : List.of("server", "server-bucket", "server-secured", "server-small")) {
                cluster.kubectl("create", "namespace", name);
                cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted");
                String namespace = "--namespace=" + name;
                // No field is unknown, which helm itself would not mind.
                String text = helm.run("template", "iris", CHART.toString(), namespace, "--values=" + example(name));
                cluster.kubectl(
                        "apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", helm.file(text) + "");
                assertThat(helm.run("install", "iris", CHART.toString(), at, namespace, "--values=" + example(name)))
                        .contains("serves models in the namespace " + name, "kubectl rollout status");
                // The pods comply with the standard of the namespace.
                until(
                        name + " has pods",
                        cluster,
                        "get",
                        "pods",
                        namespace,
                        "--selector=app.kubernetes.io/name=nereid-server",
                        "--output=name");
            }
            cluster.kubectl("create", "configmap", "iris", "--namespace=server-small", "--from-literal=model.onnx=x");
            cluster.kubectl(
                    "rollout", "status", "deployment/nereid-iris", "--namespace=server-small", "--timeout=100s");
            String before = checksum(cluster);
            helm.run(
                    "upgrade",
                    "iris",
                    CHART.toString(),
                    at,
                    "--namespace=server-small",
                    "--values=" + example("server-small"),
                    "--set=server.config.log-format=json");
            assertThat(checksum(cluster)).as("other options replace the pods").isNotEqualTo(before);
            for (String name : List.of("server", "server-bucket", "server-secured", "server-small")) {
                helm.run("uninstall", "iris", at, "--namespace=" + name, "--wait");
                assertThat(cluster.kubectl(
                                "get",
                                "deployments,statefulsets,services,configmaps,serviceaccounts,horizontalpodautoscalers,"
                                        + "poddisruptionbudgets,networkpolicies,ingresses,servicemonitors,prometheusrules,"
                                        + "httproutes",
                                "--namespace=" + name,
                                "--selector=app.kubernetes.io/instance=iris",
                                "--output=name"))
                        .isBlank();
            }
            assertThat(cluster.kubectl("get", "crd", "--output=name")).doesNotContain("kserve");
        }
    }

    private static String checksum(TestCluster cluster) throws IOException {
        return cluster.kubectl(
                "get",
                "deployment",
                "nereid-iris",
                "--namespace=server-small",
                "--output=jsonpath={.spec.template.metadata.annotations.nereid\\.io/config-checksum}");
    }
}
