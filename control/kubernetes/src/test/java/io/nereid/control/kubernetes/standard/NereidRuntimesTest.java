// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Services with Nereid's engine in the Standard mode, as the objects that are planned for them. */
class NereidRuntimesTest {
    private static final Instant NOW = Instant.parse("2026-11-01T12:00:00Z");
    private static final String IMAGE = "registry.example.com/nereid:1.0";

    private static ObjectNode service(@Nullable String engine, String predictor) {
        String annotations = engine == null ? "" : "  annotations: {nereid.io/serving-engine: " + engine + "}\n";
        return ManifestReader.parse(
                        "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata:\n  name: iris\n"
                                + "  namespace: team-a\n  uid: u-1\n  generation: 1\n" + annotations
                                + "spec:\n  predictor: " + predictor + "\n",
                        "service")
                .get(0);
    }

    private static RuntimeCatalog catalog(@Nullable ServingEngine namespace) {
        List<ServingRuntime> all = new ArrayList<>(KserveCatalog.runtimes());
        BuiltInRuntimes.ofEngine(IMAGE).forEach(one -> all.add(ServingRuntime.read(one)));
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("servingEngine", "kserve");
        return new RuntimeCatalog(
                List.of(),
                all,
                KserveCatalog.storageContainers(),
                InferenceServiceConfig.defaults().with(settings),
                RuntimeCatalog.Gateway.UNKNOWN,
                namespace);
    }

    private static StandardPlan plan(ObjectNode service, RuntimeCatalog catalog, Map<String, ObjectNode> there) {
        JsonNode status = service.path("status");
        return StandardPlanner.plan(
                service,
                catalog,
                new ObservedCluster(there, List.of(), status, secret -> null, account -> null, map -> null),
                NOW);
    }

    private static ObjectNode object(StandardPlan plan, String kind) {
        return plan.objects().stream()
                .filter(one -> one.path("kind").asText().equals(kind))
                .findFirst()
                .orElseThrow();
    }

    private static JsonNode container(StandardPlan plan) {
        return Trees.named(object(plan, "Deployment").at("/spec/template/spec/containers"), "kserve-container");
    }

    private static List<String> args(StandardPlan plan) {
        List<String> all = new ArrayList<>();
        container(plan).path("args").forEach(one -> all.add(one.asText()));
        return all;
    }

    private static final String SKLEARN = "{model: {modelFormat: {name: sklearn}, storageUri: 'gs://models/iris'}}";

    @Test
    void withoutAChoiceTheObjectsAreThoseOfKserve() {
        RuntimeCatalog kserve = new RuntimeCatalog(
                List.of(),
                KserveCatalog.runtimes(),
                KserveCatalog.storageContainers(),
                InferenceServiceConfig.defaults(),
                RuntimeCatalog.Gateway.UNKNOWN);
        StandardPlan expected = plan(service(null, SKLEARN), kserve, Map.of());
        StandardPlan actual = plan(service(null, SKLEARN), catalog(null), Map.of());
        assertThat(actual.objects()).isEqualTo(expected.objects());
        assertThat(container(actual).path("image").asText()).startsWith("kserve/sklearnserver");
    }

    @Test
    void theEngineIsAServerOfTheInstallationsImageUnderTheNameOfTheService() {
        StandardPlan plan = plan(service("nereid", SKLEARN), catalog(null), Map.of());
        JsonNode container = container(plan);
        assertThat(container.path("image").asText()).isEqualTo(IMAGE);
        assertThat(container.path("command").toString()).isEqualTo("[\"nereid\",\"serve\"]");
        assertThat(args(plan))
                .contains(
                        "--model_name=iris",
                        "--model_dir=/mnt/models",
                        "--host=0.0.0.0",
                        "--http_port=8080",
                        "--grpc_port=8081",
                        "--model_format=sklearn");
        assertThat(args(plan)).noneMatch(one -> one.contains("management") || one.contains("upload"));
        assertThat(container.path("readinessProbe").at("/httpGet/path").asText())
                .isEqualTo("/v2/health/ready");
        JsonNode security = container.path("securityContext");
        assertThat(security.path("runAsNonRoot").asBoolean()).isTrue();
        assertThat(security.path("readOnlyRootFilesystem").asBoolean()).isTrue();
        assertThat(security.path("allowPrivilegeEscalation").asBoolean(true)).isFalse();
        assertThat(security.at("/capabilities/drop/0").asText()).isEqualTo("ALL");
        assertThat(security.at("/seccompProfile/type").asText()).isEqualTo("RuntimeDefault");
        assertThat(container.at("/resources/limits/memory").asText()).isEqualTo("2Gi");
        JsonNode ports = object(plan, "Service").at("/spec/ports");
        assertThat(ports.at("/0/port").asInt()).isEqualTo(80);
        assertThat(ports.at("/0/targetPort").asInt()).isEqualTo(8080);
        assertThat(ports.at("/1/port").asInt()).isEqualTo(8081);
        assertThat(ports.at("/1/appProtocol").asText()).isEqualTo("kubernetes.io/h2c");
        assertThat(plan.status().path("clusterServingRuntimeName").asText()).isEqualTo("nereid-sklearnserver");
        assertThat(object(plan, "Deployment")
                        .at("/spec/template/spec/initContainers/0/name")
                        .asText())
                .isEqualTo("storage-initializer");
    }

    @Test
    void aServiceKeepsItsArgumentsForKserve() {
        StandardPlan plan = plan(
                service(
                        "nereid",
                        "{model: {modelFormat: {name: xgboost}, storageUri: 'gs://m', runtimeVersion: 1.7.1, args:"
                                + " ['--nthread=4'], ports: [{containerPort: 8081, name: h2c, protocol: TCP}]}}"),
                catalog(null),
                Map.of());
        assertThat(args(plan)).contains("--nthread=4").endsWith("--model_format=xgboost");
        assertThat(container(plan).path("image").asText()).isEqualTo(IMAGE);
        assertThat(object(plan, "Service").at("/spec/ports/1/name").asText()).isEqualTo("h2c");
    }

    @Test
    void aFormatThatOnlyTheEngineServesIsNotServedByDefault() {
        String catboost = "{model: {modelFormat: {name: catboost}, storageUri: 'gs://m'}}";
        StandardPlan refused = plan(service(null, catboost), catalog(null), Map.of());
        assertThat(refused.objects()).noneMatch(one -> one.path("kind").asText().equals("Deployment"));
        assertThat(refused.status().toString()).contains("nereid.io/serving-engine: nereid");
        assertThat(args(plan(service(null, catboost), catalog(ServingEngine.NEREID), Map.of())))
                .contains("--model_format=catboost");
    }

    @Test
    void aRunningServiceMovesWhenItsNamespaceChoosesAnotherEngineAndNotWhenTheSettingsDo() {
        StandardPlan first = plan(service(null, SKLEARN), catalog(null), Map.of());
        Map<String, ObjectNode> there = new LinkedHashMap<>();
        first.objects()
                .forEach(one -> there.put(
                        Trees.key(
                                one.path("kind").asText(),
                                one.at("/metadata/name").asText()),
                        one));
        ObjectNode running = service(null, SKLEARN);
        running.set("status", first.status());
        ((ObjectNode) running.get("status")).put("observedGeneration", 1);

        RuntimeCatalog own = catalog(null);
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("servingEngine", "nereid");
        RuntimeCatalog other = new RuntimeCatalog(
                List.of(),
                own.clusterRuntimes(),
                own.storageContainers(),
                own.config().with(settings),
                RuntimeCatalog.Gateway.UNKNOWN);
        assertThat(container(plan(running, other, there)).path("image").asText())
                .startsWith("kserve/");
        assertThat(container(plan(service(null, SKLEARN), other, Map.of()))
                        .path("image")
                        .asText())
                .isEqualTo(IMAGE);

        StandardPlan moved = plan(running, catalog(ServingEngine.NEREID), there);
        assertThat(container(moved).path("image").asText()).isEqualTo(IMAGE);
        running.withObject("/metadata/annotations").put(ServingEngine.ANNOTATION, "nereid");
        assertThat(container(plan(running, own, there)).path("image").asText()).isEqualTo(IMAGE);
    }

    @Test
    void anUnknownEngineIsSaidInTheStatus() {
        StandardPlan plan = plan(service("onnx", SKLEARN), catalog(null), Map.of());
        assertThat(plan.status().toString()).contains("is not one of nereid, kserve");
    }

    @Test
    void theRuntimesOfKserveAndOfTheEngineHaveNamesOfTheirOwn() {
        TreeSet<String> names = new TreeSet<>();
        catalog(null)
                .clusterRuntimes()
                .forEach(one -> assertThat(names.add(one.name())).isTrue());
        assertThat(names)
                .contains("kserve-sklearnserver", "nereid-sklearnserver", "nereid-tritonserver", "kserve-nereid");
        for (ServingRuntime runtime : KserveCatalog.runtimes()) {
            // Servers of language models on several machines or GPUs have no counterpart.
            boolean without = List.of(
                            "kserve-autogluonserver", "kserve-huggingfaceserver-multinode", "kserve-vllmserver")
                    .contains(runtime.name());
            ServingRuntime own = catalog(null).clusterRuntimes().stream()
                    .filter(one -> one.name().equals(runtime.name().replace("kserve-", "nereid-")))
                    .findFirst()
                    .orElse(null);
            assertThat(own == null).as(runtime.name()).isEqualTo(without);
            if (own != null) {
                assertThat(own.supportedModelFormats()).isEqualTo(runtime.supportedModelFormats());
                assertThat(own.protocolVersions()).isEqualTo(runtime.protocolVersions());
            }
        }
    }

    @Test
    void anEncoderOfHuggingFaceGoesToTheEngineAndAModelThatGeneratesTextsToKserve() {
        String format = "{model: {modelFormat: {name: huggingface}, ";
        StandardPlan encoder = plan(
                service("nereid", format + "args: ['--model_id', 'me/bert', --return_probabilities]}}"),
                catalog(null),
                Map.of());
        assertThat(container(encoder).path("image").asText()).isEqualTo(IMAGE);
        assertThat(args(encoder))
                .contains("--model_id=me/bert", "--return_probabilities", "--model_format=huggingface");
        assertThat(object(encoder, "Deployment").at("/spec/template/spec/initContainers"))
                .isEmpty();
        for (String generative : List.of(
                "args: [--task=text_generation]",
                "args: [--task, text2text_generation], storageUri: 'hf://a/t5'",
                "args: [--backend=vllm]",
                "args: [--model_id=meta/llama], resources: {limits: {nvidia.com/gpu: '1'}}")) {
            StandardPlan plan = plan(service("nereid", format + generative + "}}"), catalog(null), Map.of());
            assertThat(container(plan).path("image").asText()).as(generative).startsWith("kserve/huggingfaceserver");
        }
        StandardPlan onGpu = plan(
                service(
                        "nereid",
                        format + "args: [--task=fill_mask], resources: {limits: {nvidia.com/gpu: '1'}},"
                                + " storageUri: 'hf://a/bert'}}"),
                catalog(null),
                Map.of());
        assertThat(container(onGpu).path("image").asText()).isEqualTo(IMAGE + "-cuda");
        StandardPlan kserve = plan(service(null, format + "args: [--model_id=me/bert]}}"), catalog(null), Map.of());
        assertThat(container(kserve).path("image").asText()).startsWith("kserve/huggingfaceserver");
        assertThat(args(kserve)).contains("--model_id=me/bert");
    }

    private static StandardPlan onGpus(String model, @Nullable String image, @Nullable String gpuImage) {
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        ObjectNode section = settings.putObject("nereid");
        if (image != null) {
            section.put("image", image);
        }
        if (gpuImage != null) {
            section.put("gpuImage", gpuImage);
        }
        List<ServingRuntime> all = new ArrayList<>(KserveCatalog.runtimes());
        BuiltInRuntimes.ofEngine(IMAGE).forEach(one -> all.add(ServingRuntime.read(one)));
        RuntimeCatalog catalog = new RuntimeCatalog(
                List.of(),
                all,
                KserveCatalog.storageContainers(),
                InferenceServiceConfig.defaults().with(settings),
                RuntimeCatalog.Gateway.UNKNOWN);
        return plan(
                service(
                        "nereid",
                        "{model: {modelFormat: {name: onnx}, storageUri: 'gs://models/net', resources: " + model
                                + "}}"),
                catalog,
                Map.of());
    }

    @Test
    void aContainerThatNeedsAGpuHasTheImageForGpus() {
        String one = "{limits: {nvidia.com/gpu: '1'}}";
        String part = "{limits: {nvidia.com/mig-1g.5gb: 2}}";
        for (String resources : List.of(one, part, "{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}")) {
            assertThat(container(onGpus(resources, IMAGE, "mine/nereid:cuda"))
                            .path("image")
                            .asText())
                    .as(resources)
                    .isEqualTo("mine/nereid:cuda");
        }
        JsonNode limits = container(onGpus(part, IMAGE, null)).at("/resources/limits");
        assertThat(limits.path("nvidia.com/mig-1g.5gb").asInt()).isEqualTo(2);
        assertThat(container(onGpus(one, null, null)).path("image").asText())
                .as("settings of another origin")
                .isEqualTo(IMAGE + "-cuda");
        assertThat(container(onGpus(one, "other/nereid:2", "unused"))
                        .path("image")
                        .asText())
                .as("a runtime with an image of its own")
                .isEqualTo(IMAGE);
        assertThat(container(onGpus(one + ", image: 'mine:1'", IMAGE, "unused"))
                        .path("image")
                        .asText())
                .as("a service with an image of its own")
                .isEqualTo("mine:1");
        assertThat(container(onGpus("{limits: {nvidia.com/gpu: 0}}", IMAGE, "unused"))
                        .path("image")
                        .asText())
                .isEqualTo(IMAGE);
        assertThat(onGpus(one, IMAGE, "").status().toString())
                .contains("spec.predictor: the model needs 1 of nvidia.com/gpu, and the settings name no image of"
                        + " Nereid for GPUs");
        assertThat(onGpus("{limits: {nvidia.com/gpu: 500m}}", IMAGE, "unused")
                        .status()
                        .toString())
                .contains("nvidia.com/gpu is '500m' (expected: a whole number from 0 to 1024)");
        assertThat(onGpus("{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}", IMAGE, "unused")
                        .status()
                        .toString())
                .contains("its limit is 2 (expected: the same number)");
    }

    @Test
    void theEngineLogsAndBatchesItselfAndKservesServersHaveAnAgent() throws Exception {
        String both = SKLEARN.substring(0, SKLEARN.length() - 1)
                + ", logger: {mode: request, url: 'http://sink', metadataHeaders: [x-team]}, batcher: {maxBatchSize: 8}}";
        StandardPlan kserve = plan(service(null, both), catalog(null), Map.of());
        assertThat(object(kserve, "Deployment")
                        .at("/spec/template/spec/containers/1/name")
                        .asText())
                .isEqualTo("agent");
        assertThat(object(kserve, "Service").at("/spec/ports/0/targetPort").asInt())
                .isEqualTo(9081);

        StandardPlan plan = plan(service("nereid", both), catalog(null), Map.of());
        JsonNode template = object(plan, "Deployment").at("/spec/template");
        assertThat(template.at("/spec/containers")).hasSize(1);
        assertThat(template.at("/metadata/annotations").toString()).doesNotContain("internal.serving.kserve.io/logger");
        assertThat(object(plan, "Service").at("/spec/ports/0/targetPort").asInt())
                .isEqualTo(8080);
        assertThat(args(plan)).contains("--max-batchsize=8", "--max-latency=5000");
        String log = args(plan).stream()
                .filter(one -> one.startsWith("--payload-log="))
                .findFirst()
                .orElseThrow();
        JsonNode tree = new ObjectMapper().readTree(log.substring("--payload-log=".length()));
        assertThat(tree.path("namespace").asText()).isEqualTo("team-a");
        assertThat(tree.path("service").asText()).isEqualTo("iris");
        assertThat(tree.path("component").asText()).isEqualTo("predictor");
        assertThat(tree.path("url").asText()).isEqualTo("http://sink");
        assertThat(tree.path("mode").asText()).isEqualTo("request");
        assertThat(tree.at("/logger/metadataHeaders/0").asText()).isEqualTo("x-team");
    }

    @Test
    void aStoreOfLoggedRequestsGetsItsCredentials() {
        ObjectNode service = service(
                "nereid",
                SKLEARN.substring(0, SKLEARN.length() - 1)
                        + ", logger: {mode: all, url: 's3://logs', storage: {path: p, serviceAccountName: writer}}}");
        ObjectNode account = JsonNodeFactory.instance.objectNode();
        account.putObject("metadata").put("name", "writer");
        account.putArray("secrets").addObject().put("name", "keys");
        ObjectNode secret = JsonNodeFactory.instance.objectNode();
        secret.putObject("metadata").put("name", "keys");
        secret.putObject("data").put("AWS_ACCESS_KEY_ID", "eA==").put("AWS_SECRET_ACCESS_KEY", "eA==");
        StandardPlan plan = StandardPlanner.plan(
                service,
                catalog(null),
                new ObservedCluster(
                        Map.of(),
                        List.of(),
                        JsonNodeFactory.instance.objectNode(),
                        name -> name.equals("keys") ? secret : null,
                        name -> name.equals("writer") ? account : null,
                        map -> null),
                NOW);
        JsonNode variable = Trees.named(container(plan).path("env"), "AWS_ACCESS_KEY_ID");
        assertThat(variable).isNotNull();
        assertThat(variable.at("/valueFrom/secretKeyRef/name").asText()).isEqualTo("keys");
    }
}
