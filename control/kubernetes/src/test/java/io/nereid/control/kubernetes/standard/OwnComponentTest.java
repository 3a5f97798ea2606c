// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Transformers and explainers that Nereid runs, as the pods that are planned for them. */
class OwnComponentTest {
    private static final String IMAGE = "registry.example.com/nereid:1.0";
    private static final String TRANSFORMER = "transformer: {nereid: {storageUri: 's3://steps/words', class: Words,"
            + " config: {names: 'a,$(HOME)'}}, minReplicas: 2, containerConcurrency: 4}";
    private static final String EXPLAINER =
            "explainer: {nereid: {method: lime, storageUri: 'gs://data/background'," + " config: {nsamples: '500'}}}";

    private static StandardPlan plan(String components, String image) {
        ObjectNode service = ManifestReader.parse(
                        "{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: iris, namespace:"
                                + " team-a, uid: u, generation: 1}, spec: {predictor: {model: {modelFormat: {name:"
                                + " sklearn}, storageUri: 'gs://models/iris'}}, " + components + "}}",
                        "service")
                .get(0);
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("image", image);
        return StandardPlanner.plan(
                service,
                new RuntimeCatalog(
                        List.of(),
                        KserveCatalog.runtimes(),
                        KserveCatalog.storageContainers(),
                        InferenceServiceConfig.defaults().with(settings),
                        RuntimeCatalog.Gateway.UNKNOWN),
                new ObservedCluster(
                        Map.of(),
                        List.of(),
                        JsonNodeFactory.instance.objectNode(),
                        secret -> null,
                        account -> null,
                        map -> null),
                Instant.EPOCH);
    }

    private static JsonNode object(StandardPlan plan, String kind, String name) {
        return plan.objects().stream()
                .filter(one -> one.path("kind").asText().equals(kind)
                        && one.at("/metadata/name").asText().equals(name))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + kind + " " + name + " in " + plan.objects()));
    }

    private static JsonNode pod(StandardPlan plan, String deployment) {
        return object(plan, "Deployment", deployment).at("/spec/template/spec");
    }

    private static List<String> texts(JsonNode list) {
        List<String> all = new ArrayList<>();
        list.forEach(one -> all.add(one.asText()));
        return all;
    }

    @Test
    void stepsAreAnOrdinaryTransformerWithTheInstallationsImage() {
        StandardPlan plan = plan(TRANSFORMER, IMAGE);
        JsonNode pod = pod(plan, "iris-transformer");
        JsonNode container = Trees.named(pod.path("containers"), "kserve-container");
        assertThat(container.path("image").asText()).isEqualTo(IMAGE);
        assertThat(texts(container.path("command"))).containsExactly("nereid", "transformer");
        assertThat(texts(container.path("args")))
                .contains(
                        "--dir=/mnt/models", "--class=Words", "--config={\"names\":\"a,$$(HOME)\"}", "--grpc_port=8081")
                .containsSequence("--model_name", "iris")
                .containsSequence("--predictor_host", "iris-predictor.team-a")
                .containsSequence("--http_port", "8080")
                .containsSequence("--workers", "4");
        assertThat(container.at("/readinessProbe/httpGet/path").asText()).isEqualTo("/readyz");
        assertThat(container.at("/livenessProbe/httpGet/path").asText()).isEqualTo("/healthz");
        assertThat(container.at("/securityContext/readOnlyRootFilesystem").asBoolean())
                .isTrue();
        assertThat(container.at("/resources/limits/memory").asText()).isEqualTo("2Gi");
        JsonNode fetch = Trees.named(pod.path("initContainers"), "storage-initializer");
        assertThat(texts(fetch.path("args"))).containsExactly("s3://steps/words", "/mnt/models");
        assertThat(Trees.named(container.path("volumeMounts"), "kserve-provision-location")
                        .path("mountPath")
                        .asText())
                .isEqualTo("/mnt/models");
        JsonNode service = object(plan, "Service", "iris-transformer");
        assertThat(service.at("/spec/ports/0/port").asInt()).isEqualTo(80);
        assertThat(service.at("/spec/ports/0/targetPort").asInt()).isEqualTo(8080);
        assertThat(service.at("/spec/ports/1/appProtocol").asText()).isEqualTo("kubernetes.io/h2c");
        assertThat(object(plan, "HorizontalPodAutoscaler", "iris-transformer")
                        .at("/spec/minReplicas")
                        .asInt())
                .isEqualTo(2);
    }

    @Test
    void anExplainerHasItsSettingsAndFiles() {
        StandardPlan plan = plan(EXPLAINER, IMAGE);
        JsonNode pod = pod(plan, "iris-explainer");
        JsonNode container = Trees.named(pod.path("containers"), "kserve-container");
        assertThat(texts(container.path("command"))).containsExactly("nereid", "explainer");
        assertThat(texts(container.path("args")))
                .contains("--method=lime", "--config={\"nsamples\":\"500\"}", "--dir=/mnt/models")
                .containsSequence("--predictor_host", "iris-predictor.team-a");
        assertThat(texts(Trees.named(pod.path("initContainers"), "storage-initializer")
                        .path("args")))
                .containsExactly("gs://data/background", "/mnt/models");
    }

    @Test
    void withATransformerItsInputsAreExplained() {
        StandardPlan plan = plan(TRANSFORMER + ", " + EXPLAINER, IMAGE);
        assertThat(texts(pod(plan, "iris-explainer").at("/containers/0/args")))
                .containsSequence("--predictor_host", "iris-transformer.team-a");
        assertThat(texts(pod(plan, "iris-transformer").at("/containers/0/args")))
                .containsSequence("--predictor_host", "iris-predictor.team-a");
    }

    @Test
    void theContainerOfABuiltInExplainerIsOneToo() {
        StandardPlan plan = plan(
                "explainer: {containers: [{name: kserve-container, image: 'nereid/explainer:1', args: [--method=shap,"
                        + " --nsamples=50], resources: {limits: {memory: 5Gi}}}]}",
                IMAGE);
        JsonNode containers = pod(plan, "iris-explainer").path("containers");
        assertThat(containers).hasSize(1);
        assertThat(containers.at("/0/image").asText()).isEqualTo(IMAGE);
        assertThat(texts(containers.at("/0/args")))
                .contains("--method=shap", "--config={\"nsamples\":\"50\"}")
                .doesNotContain("--nsamples=50");
        assertThat(containers.at("/0/resources/limits/memory").asText()).isEqualTo("5Gi");
    }

    @Test
    void aFileOfAClaimIsMountedWithItsDirectory() {
        StandardPlan plan = plan("transformer: {nereid: {storageUri: 'pvc://code/words/steps.py'}}", IMAGE);
        JsonNode pod = pod(plan, "iris-transformer");
        JsonNode container = Trees.named(pod.path("containers"), "kserve-container");
        assertThat(texts(container.path("args"))).contains("--dir=/mnt/models", "--file=steps.py");
        JsonNode mount = Trees.named(container.path("volumeMounts"), "kserve-pvc-source");
        assertThat(mount.path("subPath").asText()).isEqualTo("words");
        assertThat(pod.path("initContainers")).isEmpty();
    }

    @Test
    void furtherFilesAreFetchedToTheirPaths() {
        StandardPlan plan = plan(
                "transformer: {nereid: {storageUri: 's3://steps/words'}, storageUris: [{uri: 's3://lists/x', mountPath:"
                        + " /mnt/lists}]}",
                IMAGE);
        JsonNode pod = pod(plan, "iris-transformer");
        assertThat(texts(Trees.named(pod.path("initContainers"), "storage-initializer")
                        .path("args")))
                .containsExactly("s3://steps/words", "/mnt/models", "s3://lists/x", "/mnt/lists");
        assertThat(texts(pod.at("/containers/0/args"))).contains("--dir=/mnt/models", "--dir=/mnt/lists");
    }

    @Test
    void whatCannotRunIsSaidInTheStatus() {
        StandardPlan none = plan(TRANSFORMER, "");
        assertThat(none.objects())
                .noneMatch(one -> one.at("/metadata/name").asText().equals("iris-transformer"));
        assertThat(none.status().toString())
                .contains("the settings name no image of Nereid")
                .contains("spec.transformer");
        StandardPlan trees = plan("explainer: {nereid: {method: tree_shap}}", IMAGE);
        assertThat(trees.status().toString()).contains("tree_shap needs the trees of the model");
    }
}
