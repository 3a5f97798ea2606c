// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** TrainedModels with a real API server and the operator: what the pods are given, and what the statuses say. */
class TrainedModelsClusterTest {
    @TempDir
    static Path directory;

    private static OperatorCluster fixture;
    private static ClusterClient client;
    private static KubernetesClient own;
    private static KubernetesClient leases;
    private static Operator operator;

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        client = fixture.client();
        for (ObjectNode runtime : BuiltInRuntimes.ofEngine("nereid:test")) {
            ObjectNode unused = client.apply(ResourceKinds.CLUSTER_SERVING_RUNTIME, runtime);
        }
        own = fixture.cluster().connect();
        leases = fixture.cluster().connect();
        operator = new Operator(new OperatorOptions(HOME, Set.of(), "one", 0, null, null), own, leases, () -> {});
        operator.start();
    }

    @AfterAll
    static void stop() {
        if (operator != null) {
            operator.close();
            own.close();
            leases.close();
        }
        if (fixture != null) {
            fixture.close();
        }
    }

    private static @Nullable ObjectNode object(ResourceKind kind, String name) {
        return client.get(kind, "default", name);
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime())
                    .as(() -> what + ": " + client.list(ResourceKinds.TRAINED_MODEL, "default") + ""
                            + client.list(ResourceKinds.INFERENCE_SERVICE, "default"))
                    .isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    private static void model(String name, String service, String uri, String memory) {
        model(name, service, uri, memory, "sklearn");
    }

    private static void model(String name, String service, String uri, String memory, String framework) {
        ObjectNode unused = client.create(
                ResourceKinds.TRAINED_MODEL,
                tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'TrainedModel','metadata':{'name':'" + name
                        + "','namespace':'default'},'spec':{'inferenceService':'" + service
                        + "','model':{'framework':'" + framework + "','storageUri':'" + uri + "','memory':'" + memory
                        + "'}}}"));
    }

    private static JsonNode condition(String name, String type) {
        ObjectNode model = object(ResourceKinds.TRAINED_MODEL, name);
        if (model != null) {
            for (JsonNode one : model.path("status").path("conditions")) {
                if (one.path("type").asText().equals(type)) {
                    return one;
                }
            }
        }
        return MissingNode.getInstance();
    }

    private static boolean is(String name, String type, String status) {
        return condition(name, type).path("status").asText().equals(status);
    }

    private static String models(String service) {
        ObjectNode map = object(ResourceKinds.CONFIG_MAP, "modelconfig-" + service + "-0");
        return map == null ? "" : map.path("data").path("models.json").asText();
    }

    private static String entry(String name, String uri, String memory) {
        return tree("{'modelName':'" + name + "','modelSpec':{'storageUri':'" + uri
                        + "','framework':'sklearn','memory':'" + memory + "'}}")
                .toString();
    }

    @Test
    void theModelsOfAServiceAreGivenToItsPodsAndGoWithIt() {
        ObjectNode unusedService = client.create(
                ResourceKinds.INFERENCE_SERVICE,
                tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':{'name':'parent',"
                        + "'namespace':'default','annotations':{'serving.kserve.io/deploymentMode':'Standard'}},"
                        + "'spec':{'predictor':{'model':{'modelFormat':{'name':'sklearn'},'runtime':'kserve-nereid',"
                        + "'resources':{'requests':{'memory':'1Gi'},'limits':{'memory':'1Gi'}}}}}}"));
        model("first", "parent", "gs://z/one", "256Mi");
        until("the first is ready", () -> is("first", "Ready", "True"));
        ObjectNode first = Objects.requireNonNull(object(ResourceKinds.TRAINED_MODEL, "first"));
        assertThat(first.path("status").path("url").asText())
                .isEqualTo("http://parent-default.example.com/v1/models/first:predict");
        assertThat(first.path("status").path("address").path("url").asText())
                .isEqualTo("http://parent-predictor.default.svc.cluster.local/v1/models/first:predict");
        assertThat(models("parent")).isEqualTo("[" + entry("first", "gs://z/one", "256Mi") + "]");

        ObjectNode deployment = Objects.requireNonNull(object(ClusterKinds.DEPLOYMENT, "parent-predictor"));
        JsonNode pod = deployment.path("spec").path("template").path("spec");
        assertThat(pod.path("containers")).as("no agent").hasSize(1);
        assertThat(pod.path("containers").path(0).path("args").toString())
                .contains("--trained-models=/mnt/configs/models.json")
                .doesNotContain("--model_dir", "--model_name");
        assertThat(pod.path("volumes").findValuesAsText("name")).contains("modelconfig-parent-0");

        model("second", "parent", "gs://z/two", "512Mi");
        until("the second is ready", () -> is("second", "Ready", "True"));
        model("third", "parent", "gs://z/three", "900Mi");
        until("the third has no memory", () -> is("third", "MemoryResourceAvailable", "False"));
        assertThat(condition("third", "Ready").path("reason").asText()).isEqualTo("MemoryResourceNotAvailable");
        assertThat(models("parent"))
                .isEqualTo("[" + entry("first", "gs://z/one", "256Mi") + "," + entry("second", "gs://z/two", "512Mi")
                        + "]");

        ObjectNode unused = client.merge(
                ResourceKinds.TRAINED_MODEL,
                "default",
                "first",
                tree("{'spec':{'model':{'storageUri':'gs://z/one-b'}},"
                        + "'metadata':{'finalizers':['trainedmodel.finalizer']}}"));
        until("the first moves", () -> models("parent").contains("gs://z/one-b"));
        client.delete(ResourceKinds.TRAINED_MODEL, "default", "second", null);
        until("the second goes", () -> !models("parent").contains("second"));

        ObjectNode unusedPlain =
                client.create(ResourceKinds.INFERENCE_SERVICE, OperatorCluster.service("plain", "Standard", ""));
        model("lost", "plain", "gs://z/lost", "1Mi");
        until("a service with a model of its own takes none", () -> is("lost", "IsMMSPredictor", "False"));
        model("strange", "parent", "gs://z/strange", "1Mi", "vision");
        until("its runtime does not support it", () -> is("strange", "FrameworkSupported", "False"));
        assertThat(models("parent")).doesNotContain("strange");
        model("early", "later", "gs://z/early", "1Mi");
        until(
                "a model waits for its service",
                () -> condition("early", "InferenceServiceReady")
                        .path("reason")
                        .asText()
                        .equals("InferenceServiceNotFound"));

        client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "parent", null);
        until(
                "models go with their service, whatever KServe's finalizer",
                () -> object(ResourceKinds.TRAINED_MODEL, "first") == null
                        && object(ResourceKinds.TRAINED_MODEL, "third") == null);
        assertThat(object(ResourceKinds.TRAINED_MODEL, "early")).isNotNull();
    }
}
