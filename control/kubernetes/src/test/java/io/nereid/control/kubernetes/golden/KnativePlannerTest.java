// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodInjection;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Plans cases of Knative Serving that KServe's recordings do not have. */
class KnativePlannerTest {
    private static final String IRIS = """
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata: {name: iris}
        spec:
          predictor:
            model: {modelFormat: {name: sklearn}, storageUri: gs://zoo/iris}
          explainer:
            containers: [{name: kserve-container, image: acme/why}]
        """;

    private static ObjectNode play(String objects, String steps, String ingress) {
        ObjectNode input = Trees.object();
        ManifestReader.parse(objects, "objects").forEach(Trees.list(input, "objects")::add);
        ManifestReader.parse(steps, "steps").forEach(Trees.list(input, "steps")::add);
        ObjectNode profile = ManifestReader.parse(
                        "config: {deploy: {defaultDeploymentMode: Knative}, ingress: " + ingress + "}", "profile")
                .get(0);
        return new GoldenCase("team", profile).play(input);
    }

    private static JsonNode object(ObjectNode played, int stage, String key) {
        for (JsonNode one : played.path("stages").path(stage).path("changed")) {
            if (Trees.key(one).equals(key)) {
                return one;
            }
        }
        return MissingNode.getInstance();
    }

    @Test
    void aPathTemplateAndFurtherDomainsAreRulesAndHostsOfTheVirtualService() {
        ObjectNode played = play(IRIS, "", """
            {pathTemplate: "/serving/{{ .Namespace }}/{{ .Name }}", urlScheme: https,
             additionalIngressDomains: [models.example.org]}\
            """);
        JsonNode spec = object(played, 1, "VirtualService/iris").path("spec");
        assertThat(spec.path("hosts").toString())
                .isEqualTo("[\"iris.team.svc.cluster.local\",\"iris.team.example.com\",\"example.com\","
                        + "\"iris.team.models.example.org\"]");
        JsonNode rules = spec.path("http");
        assertThat(rules).hasSize(4);
        assertThat(rules.at("/0/match/2/authority/regex").asText())
                .isEqualTo("^iris\\.team\\.models\\.example\\.org(?::\\d{1,5})?$");
        assertThat(rules.at("/2/match/0/uri/regex").asText())
                .isEqualTo("/serving/team/iris(/v1/models/[\\w-]+:explain)$");
        assertThat(rules.at("/2/rewrite/uriRegexRewrite/rewrite").asText()).isEqualTo("\\1");
        assertThat(rules.at("/2/headers/request/set/Host").asText()).isEqualTo("iris-explainer.team.svc.cluster.local");
        assertThat(rules.at("/3/match/0/uri/prefix").asText()).isEqualTo("/serving/team/iris/");
        assertThat(rules.at("/3/match/1/uri/exact").asText()).isEqualTo("/serving/team/iris");
        assertThat(rules.at("/3/rewrite/uri").asText()).isEqualTo("/");
        JsonNode status = played.at("/stages/1/status/InferenceService~1iris");
        assertThat(status.path("url").asText()).isEqualTo("https://example.com/serving/team/iris");
        assertThat(status.at("/address/url").asText()).isEqualTo("http://iris.team.svc.cluster.local");
    }

    @Test
    void tagsRolloutDurationAndARollbackOfTheNewestRevision() {
        ObjectNode played = play(IRIS, """
            name: changed
            merge:
            - kind: InferenceService
              name: iris
              patch:
                metadata:
                  annotations:
                    serving.kserve.io/enable-tag-routing: "true"
                    serving.knative.dev/rollout-duration: 120s
                    nereid.io/mirror-percent: "5"
                spec: {predictor: {canaryTrafficPercent: 20, model: {storageUri: gs://zoo/other}}}
            ---
            name: taken back
            merge:
            - {kind: InferenceService, name: iris, patch: {spec: {predictor: {canaryTrafficPercent: 0}}}}
            """, "{}");
        JsonNode service = object(played, 2, "KnativeService/iris-predictor");
        assertThat(service.at("/metadata/annotations").toString())
                .isEqualTo("{\"serving.knative.dev/rollout-duration\":\"120s\"}");
        assertThat(service.at("/spec/template/metadata/annotations").has("serving.knative.dev/rollout-duration"))
                .isFalse();
        assertThat(service.at("/spec/traffic").toString())
                .isEqualTo("[{\"latestRevision\":true,\"percent\":20,\"tag\":\"latest\"},{\"latestRevision\":false,"
                        + "\"percent\":80,\"revisionName\":\"iris-predictor-00001\",\"tag\":\"prev\"}]");
        JsonNode conditions = played.at("/stages/2/status/InferenceService~1iris/conditions");
        assertThat(Trees.find(conditions, "type", "FieldsWithoutEffect")
                        .path("message")
                        .asText())
                .contains("nereid.io/mirror-percent");
        assertThat(object(played, 3, "KnativeService/iris-predictor")
                        .at("/spec/traffic/1/percent")
                        .asInt())
                .isEqualTo(100);
    }

    @Test
    void aServiceWhoseRuntimeIsMissingKeepsItsRevision() {
        ObjectNode played = play(IRIS, """
            name: a format of none
            merge:
            - kind: InferenceService
              name: iris
              patch: {spec: {predictor: {model: {modelFormat: {name: unheard}}}}}
            """, "{}");
        assertThat(object(played, 2, "KnativeService/iris-predictor").isMissingNode())
                .isTrue();
        assertThat(played.at("/stages/2/removed")).isEmpty();
        JsonNode status = played.at("/stages/2/status/InferenceService~1iris");
        assertThat(Trees.find(status.path("conditions"), "type", "PredictorReady")
                        .path("reason")
                        .asText())
                .isEqualTo("NoSupportingRuntime");
        assertThat(status.at("/modelStatus/transitionStatus").asText()).isEqualTo("InvalidSpec");
        assertThat(status.at("/components/predictor/latestReadyRevision").asText())
                .isEqualTo("iris-predictor-00001");
    }

    @Test
    void theQueueOfAPodLeadsToTheAgentAndJoinsTheMetrics() {
        ObjectNode pod = ManifestReader.parse("""
            metadata:
              labels: {component: predictor, serving.kserve.io/inferenceservice: iris}
              annotations:
                internal.serving.kserve.io/logger: "true"
                serving.kserve.io/enable-metric-aggregation: "true"
                serving.kserve.io/enable-prometheus-scraping: "true"
                prometheus.kserve.io/port: "9999"
            spec:
              containers:
              - {name: kserve-container, image: acme/own}
              - {name: queue-proxy, image: queue, env: [{name: USER_PORT, value: "8080"}]}
            """, "pod").get(0);
        ObjectNode service = ManifestReader.parse(IRIS, "service").get(0);
        new PodInjection(
                        InferenceService.read(service),
                        ClusterSettings.of(InferenceServiceConfig.defaults()),
                        new ObservedCluster(
                                Map.of(),
                                List.of(),
                                MissingNode.getInstance(),
                                secret -> null,
                                account -> Trees.object(),
                                map -> null),
                        KserveCatalog.storageContainers())
                .into(pod);
        JsonNode containers = pod.at("/spec/containers");
        JsonNode queue = Trees.named(containers, "queue-proxy");
        assertThat(queue.path("env").toString())
                .isEqualTo("[{\"name\":\"USER_PORT\",\"value\":\"9081\"},"
                        + "{\"name\":\"KSERVE_CONTAINER_PROMETHEUS_METRICS_PORT\",\"value\":\"9999\"},"
                        + "{\"name\":\"KSERVE_CONTAINER_PROMETHEUS_METRICS_PATH\",\"value\":\"/metrics\"},"
                        + "{\"name\":\"AGGREGATE_PROMETHEUS_METRICS_PORT\",\"value\":\"9088\"}]");
        assertThat(queue.at("/ports/0/containerPort").asInt()).isEqualTo(9088);
        assertThat(Trees.named(Trees.named(containers, "agent").path("env"), "USER_PORT")
                        .path("value")
                        .asText())
                .isEqualTo("8080");
        assertThat(pod.at("/metadata/annotations/prometheus.io~1port").asText()).isEqualTo("9088");
    }
}
