// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.cluster.Trees;
import org.junit.jupiter.api.Test;

/** Single fields of services and runtimes in the mode Standard: where they arrive, and what is said of the others. */
class StandardFieldsTest {
    private static ObjectNode play(String objects) {
        ObjectNode input = Trees.object();
        ManifestReader.parse(objects, "objects").forEach(Trees.list(input, "objects")::add);
        ObjectNode profile = ManifestReader.parse("config: {deploy: {defaultDeploymentMode: Standard}}", "profile")
                .get(0);
        return new GoldenCase("team", profile).play(input);
    }

    private static JsonNode object(ObjectNode played, String key) {
        for (JsonNode one : played.at("/stages/0/changed")) {
            if (Trees.key(one).equals(key)) {
                return one;
            }
        }
        throw new AssertionError("no " + key + " in " + played.at("/stages/0"));
    }

    private static JsonNode pod(ObjectNode played, String component) {
        for (JsonNode one : played.path("pods")) {
            if (one.toString().contains("\"component\":\"" + component + "\"")) {
                return one.at("/pod/spec");
            }
        }
        throw new AssertionError("no pod of the " + component + " in " + played.path("pods"));
    }

    private static JsonNode condition(ObjectNode played, int stage, String type) {
        JsonNode conditions = played.path("stages").path(stage).at("/status/InferenceService~1iris/conditions");
        ObjectNode found = Trees.find(conditions, "type", type);
        return found == null ? Trees.object() : found;
    }

    @Test
    void theStatusNamesFieldsWithoutAnEffectAndTheServiceIsReady() {
        ObjectNode played = play("""
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec:
                  predictor:
                    canaryTrafficPercent: 10
                    model: {modelFormat: {name: sklearn}, storageUri: gs://zoo/iris}
                """);
        JsonNode named = condition(played, 0, "FieldsWithoutEffect");
        assertThat(named.path("status").asText()).isEqualTo("True");
        assertThat(named.path("reason").asText()).isEqualTo("StandardMode");
        assertThat(named.path("message").asText())
                .startsWith("spec.predictor.canaryTrafficPercent has no effect in the deployment mode Standard");
        assertThat(condition(played, 1, "Ready").path("status").asText()).isEqualTo("True");
    }

    @Test
    void anAutoscalerTakesAnAverageOfTheProcessorTime() {
        ObjectNode played = play("""
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec:
                  predictor:
                    maxReplicas: 3
                    autoScaling:
                      metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 300m}}}]
                    model: {modelFormat: {name: sklearn}, storageUri: gs://zoo/iris}
                """);
        assertThat(object(played, "HorizontalPodAutoscaler/iris-predictor")
                        .at("/spec/metrics/0/resource/target")
                        .toString())
                .isEqualTo("{\"type\":\"AverageValue\",\"averageValue\":\"300m\"}");
    }

    @Test
    void whatARuntimeGivesItsPodsArrives() {
        ObjectNode played = play("""
                apiVersion: serving.kserve.io/v1alpha1
                kind: ServingRuntime
                metadata: {name: own, namespace: team}
                spec:
                  supportedModelFormats: [{name: own, autoSelect: true}]
                  hostIPC: true
                  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
                  containers: [{name: kserve-container, image: own:1}]
                ---
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec:
                  predictor:
                    resourceClaims: [{name: net, resourceClaimName: two}]
                    model: {modelFormat: {name: own}, storageUri: gs://zoo/iris}
                """);
        JsonNode pod = object(played, "Deployment/iris-predictor").at("/spec/template/spec");
        assertThat(pod.path("hostIPC").asBoolean()).isTrue();
        assertThat(pod.path("resourceClaims").findValuesAsText("name")).containsExactly("gpu", "net");
    }

    @Test
    void anExplainerIsNotBatchedAndItsStorageIsFetched() {
        ObjectNode played = play("""
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec:
                  predictor:
                    model: {modelFormat: {name: sklearn}, storageUri: gs://zoo/iris}
                  explainer:
                    batcher: {maxBatchSize: 4}
                    art:
                      type: SquareAttack
                      storage: {path: attack, parameters: {type: s3, bucket: zoo}}
                """);
        assertThat(object(played, "Service/iris-explainer")
                        .at("/spec/ports/0/targetPort")
                        .asInt())
                .isEqualTo(8080);
        JsonNode pod = pod(played, "explainer");
        assertThat(pod.path("containers")).hasSize(1);
        assertThat(pod.at("/initContainers/0/args").toString()).isEqualTo("[\"s3://zoo/attack\",\"/mnt/models\"]");
        assertThat(pod.at("/containers/0/args").toString()).contains("\"--storage_uri\",\"/mnt/models\"");
        assertThat(condition(played, 0, "FieldsWithoutEffect").path("message").asText())
                .startsWith("spec.explainer.batcher has no effect");
    }

    @Test
    void severalSourcesOfOneClaimAreItsDirectories() {
        ObjectNode played = play("""
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec:
                  predictor:
                    storageUris:
                    - {uri: "pvc://zoo/a", mountPath: /mnt/models/a}
                    - {uri: "pvc://zoo/b", mountPath: /mnt/models/b}
                    model: {modelFormat: {name: sklearn}}
                """);
        JsonNode mounts =
                object(played, "Deployment/iris-predictor").at("/spec/template/spec/containers/0/volumeMounts");
        assertThat(mounts.findValuesAsText("mountPath")).containsExactly("/mnt/models/a", "/mnt/models/b");
        assertThat(mounts.findValuesAsText("subPath")).containsExactly("a", "b");
    }

    @Test
    void aTransformerHasALoggerAndAStorageContainerOfItsOwn() {
        ObjectNode played = play("""
                apiVersion: serving.kserve.io/v1alpha1
                kind: ClusterStorageContainer
                metadata: {name: own}
                spec:
                  supportedUriFormats: [{prefix: "own://"}, {prefix: "gs://"}]
                  container: {name: storage-initializer, image: own:1}
                ---
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: {name: iris}
                spec:
                  predictor:
                    model: {modelFormat: {name: sklearn}, storageUri: s3://zoo/iris}
                  transformer:
                    storageContainerName: own
                    logger: {url: "http://sink", batchSize: 7}
                    containers:
                    - {name: kserve-container, image: t, env: [{name: STORAGE_URI, value: "gs://zoo/steps"}]}
                """);
        JsonNode pod = pod(played, "transformer");
        assertThat(pod.at("/initContainers/0/image").asText()).isEqualTo("own:1");
        assertThat(Trees.named(pod.path("containers"), "agent").path("args").toString())
                .contains("\"--log-batch-size\",\"7\"");
    }
}
