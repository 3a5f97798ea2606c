// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.Trees;
import org.junit.jupiter.api.Test;

/** Plans own cases from creation to readiness and through changes, on a simulated cluster. */
class StandardPlannerTest {
    private static final String IRIS = """
            apiVersion: serving.kserve.io/v1beta1
            kind: InferenceService
            metadata: {name: iris}
            spec:
              predictor:
                minReplicas: 4
                model: {modelFormat: {name: sklearn}, storageUri: gs://zoo/iris}
            """;

    private static ObjectNode play(String objects, String steps) {
        return play(objects, steps, "{deploy: {defaultDeploymentMode: Standard}}");
    }

    private static ObjectNode play(String objects, String steps, String config) {
        ObjectNode input = Trees.object();
        ManifestReader.parse(objects, "objects").forEach(Trees.list(input, "objects")::add);
        ManifestReader.parse(steps, "steps").forEach(Trees.list(input, "steps")::add);
        ObjectNode profile =
                ManifestReader.parse("config: " + config, "profile").get(0);
        return new GoldenCase("team", profile).play(input);
    }

    private static JsonNode object(ObjectNode played, int stage, String key) {
        for (JsonNode one : played.path("stages").path(stage).path("changed")) {
            if (Trees.key(one).equals(key)) {
                return one;
            }
        }
        return Trees.object();
    }

    private static JsonNode condition(ObjectNode played, int stage, String type) {
        JsonNode conditions = played.path("stages").path(stage).at("/status/InferenceService~1iris/conditions");
        ObjectNode found = Trees.find(conditions, "type", type);
        return found == null ? Trees.object() : found;
    }

    @Test
    void aServiceGetsADeploymentAServiceAndAnAutoscalerAndIsRoutedWhenItIsReady() {
        ObjectNode played = play(IRIS, "");
        JsonNode deployment = object(played, 0, "Deployment/iris-predictor");
        assertThat(deployment.at("/spec/selector/matchLabels/app").asText()).isEqualTo("isvc.iris-predictor");
        assertThat(deployment.at("/spec/template/spec/containers/0/args").toString())
                .isEqualTo("[\"--model_name=iris\",\"--model_dir=/mnt/models\",\"--http_port=8080\"]");
        assertThat(deployment.at("/spec/template/spec").has("initContainers")).isFalse();
        assertThat(object(played, 0, "HorizontalPodAutoscaler/iris-predictor")
                        .at("/spec/minReplicas")
                        .asInt())
                .isEqualTo(4);
        assertThat(object(played, 0, "Service/iris-predictor")
                        .at("/spec/ports/0/targetPort")
                        .asInt())
                .isEqualTo(8080);
        assertThat(condition(played, 0, "Ready").path("status").asText()).isEqualTo("False");
        assertThat(object(played, 1, "Ingress/iris").at("/spec/rules/0/host").asText())
                .isEqualTo("iris-team.example.com");
        assertThat(condition(played, 1, "Ready").path("status").asText()).isEqualTo("True");
        assertThat(played.at("/stages/1/events/0/reason").asText()).isEqualTo("InferenceServiceReady");
        JsonNode pod = played.at("/pods/0/pod/spec");
        assertThat(pod.at("/initContainers/0/args").toString()).isEqualTo("[\"gs://zoo/iris\",\"/mnt/models\"]");
        assertThat(pod.at("/containers/0/volumeMounts/0/mountPath").asText()).isEqualTo("/mnt/models");
    }

    @Test
    void aCanaryGetsItsShareOfTheRequestsAndOfTheReplicas() {
        ObjectNode played =
                play(IRIS, """
                name: canary
                merge:
                - kind: InferenceService
                  name: iris
                  patch:
                    spec:
                      canary:
                      - trafficPercent: 25
                        predictor: {name: next, model: {modelFormat: {name: sklearn}, storageUri: gs://zoo/next}}
                """, "{deploy: {defaultDeploymentMode: Standard}, ingress: {enableGatewayApi: true}}");
        JsonNode backends = object(played, 2, "HTTPRoute/iris").at("/spec/rules/0/backendRefs");
        assertThat(backends).hasSize(2);
        assertThat(backends.at("/0/weight").asInt()).isEqualTo(75);
        assertThat(backends.at("/1/name").asText()).isEqualTo("iris-next-predictor");
        assertThat(backends.at("/1/weight").asInt()).isEqualTo(25);
        assertThat(object(played, 2, "HorizontalPodAutoscaler/iris-predictor")
                        .at("/spec/minReplicas")
                        .asInt())
                .isEqualTo(3);
        assertThat(condition(played, 2, "CanaryPredictorReady").path("status").asText())
                .isEqualTo("True");
    }

    @Test
    void whatAPodNeedsAndTheClusterLacksIsSaidAndWhatRanKeepsRunning() {
        ObjectNode played = play(IRIS, """
                name: a secret that is missing
                merge:
                - kind: InferenceService
                  name: iris
                  patch:
                    metadata: {annotations: {serving.kserve.io/storageSecretName: nowhere}}
                """);
        assertThat(played.at("/stages/2/changed")).isEmpty();
        assertThat(played.at("/stages/2/removed")).isEmpty();
        assertThat(played.at("/stages/2/events/0/message").asText()).contains("secrets \"nowhere\" not found");
    }

    @Test
    void aServiceThatChoseARuntimeStaysWithItUntilItChanges() {
        String runtime = """
                ---
                apiVersion: serving.kserve.io/v1alpha1
                kind: ServingRuntime
                metadata: {name: own}
                spec:
                  supportedModelFormats: [{name: sklearn, autoSelect: true}]
                  containers: [{name: kserve-container, image: acme/own}]
                """;
        ObjectNode played = play(
                IRIS,
                "name: a runtime of the namespace\ncreate:\n- "
                        + runtime.replace("---\n", "").strip().replace("\n", "\n  ")
                        + "\n---\nname: the service changes\nmerge:\n- {kind: InferenceService, name: iris, patch: {spec:"
                        + " {predictor: {model: {storageUri: gs://zoo/other}}}}}\n");
        assertThat(played.at("/stages/2/changed")).isEmpty();
        assertThat(object(played, 3, "Deployment/iris-predictor")
                        .at("/spec/template/spec/containers/0/image")
                        .asText())
                .isEqualTo("acme/own");
    }

    @Test
    void anotherDefaultOfTheSettingsDoesNotRestartWhatRuns() {
        String own = """
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec: {predictor: {containers: [{name: kserve-container, image: acme/own}]}}
                """;
        ObjectNode played = play(own, """
                name: other defaults
                config: {inferenceService: {resource: {cpuLimit: "4", memoryLimit: 8Gi, cpuRequest: "3", memoryRequest: 7Gi}}}
                ---
                name: the service changes
                merge:
                - {kind: InferenceService, name: iris, patch: {spec: {predictor: {terminationGracePeriodSeconds: 9}}}}
                """);
        assertThat(played.at("/stages/2/changed")).isEmpty();
        assertThat(object(played, 3, "Deployment/iris-predictor")
                        .at("/spec/template/spec/containers/0/resources/limits/cpu")
                        .asText())
                .isEqualTo("4");
    }

    @Test
    void aStoppedServiceHasNothing() {
        ObjectNode played = play(IRIS, """
                name: stop
                merge:
                - kind: InferenceService
                  name: iris
                  patch: {metadata: {annotations: {serving.kserve.io/stop: "true"}}}
                """);
        assertThat(played.at("/stages/2/removed")).hasSize(4);
        assertThat(condition(played, 2, "Ready").path("reason").asText()).isEqualTo("Stopped");
    }

    @Test
    void metricsOfPodsGetACollectorForTheScalerOfKeda() {
        ObjectNode played =
                play(IRIS.replace("metadata: {name: iris}", """
                    metadata: {name: iris, annotations: {serving.kserve.io/autoscalerClass: keda}}\
                    """).replace("    minReplicas:" + " 4\n", """
                    minReplicas: 1
                    autoScaling:
                      metrics:
                      - type: PodMetric
                        podmetric:
                          metric: {backend: opentelemetry, metricNames: [queue, tokens], query: tokens}
                          target: {type: Value, value: "4"}
                """), "");
        ObjectNode collector = (ObjectNode) object(played, 0, "OpenTelemetryCollector/iris-predictor");
        assertThat(collector.at("/metadata").has("labels")).isFalse();
        JsonNode spec = collector.path("spec");
        assertThat(spec.path("mode").asText()).isEqualTo("sidecar");
        assertThat(spec.at("/resources/limits/cpu").asText()).isEqualTo("1");
        JsonNode config = spec.path("config");
        assertThat(config.at("/receivers/prometheus/config/scrape_configs").toString())
                .isEqualTo(
                        "[{\"job_name\":\"otel-collector\",\"scrape_interval\":\"5s\",\"static_configs\":[{\"targets\":"
                                + "[\"localhost:8080\"]}]}]");
        assertThat(config.at("/exporters/otlp/endpoint").asText()).isEqualTo("keda-otel-scaler.keda.svc:4317");
        assertThat(config.at("/processors/filter~1metrics/metrics/include/metric_names")
                        .toString())
                .isEqualTo("[\"queue\",\"tokens\"]");
        assertThat(config.at("/processors/transform/metric_statements/0/statements/1")
                        .asText())
                .isEqualTo("set(attributes[\"deployment\"], resource.attributes[\"k8s.deployment.name\"])");
        assertThat(config.at("/service/pipelines/metrics/processors")).hasSize(3);
        assertThat(object(played, 0, "ScaledObject/iris-predictor")
                        .at("/spec/triggers/0/metadata/metricQuery")
                        .asText())
                .isEqualTo("sum(tokens{namespace=\"team\", deployment=\"iris-predictor\"})");
    }

    @Test
    void theCatalogueHasKservesRuntimes() {
        assertThat(KserveCatalog.runtimes())
                .extracting(one -> one.name())
                .contains("kserve-sklearnserver", "kserve-tritonserver", "kserve-huggingfaceserver-multinode");
        assertThat(KserveCatalog.storageContainers()).hasSize(1);
    }
}
