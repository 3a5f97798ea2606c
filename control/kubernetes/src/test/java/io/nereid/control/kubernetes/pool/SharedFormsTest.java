// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pool;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Plan;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.kubernetes.revision.RevisionPlanner;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SharedFormsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private static ObjectNode service(String name, String uri) {
        return tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':{'name':'" + name
                + "','namespace':'default','uid':'u-1','generation':1,'annotations':{'nereid.io/placement':'shared'}},"
                + "'spec':{'predictor':{'model':{'modelFormat':{'name':'onnx'},'runtime':'kserve-nereid','storageUri':'"
                + uri + "'}}}}");
    }

    private static Plan plan(ObjectNode service, ObservedState observed) {
        RuntimeCatalog catalog = new RuntimeCatalog(
                List.of(),
                BuiltInRuntimes.ofEngine("nereid:1").stream()
                        .map(ServingRuntime::read)
                        .toList(),
                KserveCatalog.storageContainers(),
                InferenceServiceConfig.defaults(),
                RuntimeCatalog.Gateway.UNKNOWN);
        ObservedCluster cluster = new ObservedCluster(
                Map.of(), List.of(), observed.status(), secret -> null, account -> null, map -> null);
        return RevisionPlanner.plan(
                service, catalog, observed, cluster, NOW, context -> new SharedForms(service, context, cluster));
    }

    private static Plan plan(ObjectNode service) {
        return plan(service, ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
    }

    private static SharedModel model(Plan plan) {
        return Objects.requireNonNull(SharedForms.model(plan.workloads().get(0)));
    }

    @Test
    void thePodOfAPoolServesNoModelUntilItGetsSome() {
        SharedModel model = model(plan(service("iris", "gs://models/iris")));
        assertThat(model.pool()).isEqualTo("nereid-pool-kserve-nereid");
        assertThat(model.uri()).isEqualTo("gs://models/iris");
        assertThat(model.bytes()).isEqualTo(64L << 20);
        JsonNode container = model.pod().at("/containers/0");
        assertThat(container.path("args").toString())
                .contains("--allow-model-storage", "--model-control-mode=explicit", "--api-keys=", "--http_port=8080")
                .doesNotContain("--model_name", "--model_dir", "iris");
        assertThat(model.pod().path("initContainers")).isEmpty();
        assertThat(model(plan(service("other", "gs://models/other"))).pod())
                .as("all services of a pool have the same pod")
                .isEqualTo(model.pod());
    }

    @Test
    void aServiceOfTrainedModelsHasThePodOfThePoolToo() {
        ObjectNode many = service("many", "");
        ((ObjectNode) many.at("/spec/predictor/model")).remove("storageUri");
        SharedModel model = model(plan(many));
        assertThat(model.uri()).isEmpty();
        assertThat(model.pod())
                .isEqualTo(model(plan(service("iris", "gs://models/iris"))).pod());

        ((ObjectNode) many.at("/metadata/annotations")).put("nereid.io/placement-memory", "1Gi");
        assertThat(plan(many).status().toString())
                .contains("InvalidPredictorSpec", "each of its TrainedModels has a spec.model.memory");
        ((ObjectNode) many.at("/metadata/annotations")).remove("nereid.io/placement-memory");
        ((ObjectNode) many.at("/spec/predictor/model")).putObject("resources").put("cpu", "1");
        assertThat(plan(many).status().toString()).contains("spec.predictor.model.resources");

        assertThat(PoolObjects.modelRevision("rose")).isEqualTo("rose-trainedmodel");
        String one = PoolObjects.modelRevision("a".repeat(63));
        assertThat(one).isNotEqualTo(PoolObjects.modelRevision("a".repeat(62))).hasSizeLessThanOrEqualTo(55);
        assertThat(PoolObjects.modelRevision("1st")).startsWith("m-1st-");
    }

    @Test
    void anotherUriIsNoOtherRevision() {
        Plan first = plan(service("iris", "gs://models/1"));
        ObservedState ready = new ObservedState(
                Map.of("iris-predictor-00001", new WorkloadState(Phase.READY, 1, 1, null, Traffic.NONE)),
                first.revisions(),
                first.status());
        Plan second = plan(service("iris", "gs://models/2"), ready);
        assertThat(second.workloads())
                .singleElement()
                .satisfies(workload -> assertThat(workload.revision()).isEqualTo("iris-predictor-00001"));
        assertThat(model(second).uri()).isEqualTo("gs://models/2");
        assertThat(second.status().path("url").asText()).isEqualTo("http://iris-default.example.com");
        assertThat(second.status().toString()).contains("\"status\":\"True\",\"type\":\"PredictorReady\"");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/spec/predictor/minReplicas | 1 | spec.predictor.minReplicas",
                "/spec/predictor/model/resources | {\"limits\":{\"cpu\":\"2\"}} | spec.predictor.model.resources",
                "/spec/predictor/canaryTrafficPercent | 10 | spec.predictor.canaryTrafficPercent",
                "/spec/predictor/serviceAccountName | \"sa\" | spec.predictor.serviceAccountName",
                "/spec/transformer | {\"containers\":[{\"image\":\"x\"}]} | spec.transformer",
                "/spec/predictor/model/storageUri | \"pvc://claim/iris\" | pvc:// needs a volume",
                "/metadata/annotations/security.opendatahub.io~1enable-auth | \"true\" | enable-auth",
                "/metadata/annotations/nereid.io~1placement-memory | \"much\" | a positive quantity such as 64Mi",
                "/metadata/annotations/nereid.io~1placement | \"share\" | expected: shared or dedicated",
            })
    void whatNeedsPodsOfItsOwnIsRefusedByName(String pointer, String value, String words) throws IOException {
        ObjectNode service = service("iris", "gs://models/iris");
        int last = pointer.lastIndexOf('/');
        ((ObjectNode) service.at(pointer.substring(0, last)))
                .set(pointer.substring(last + 1).replace("~1", "/"), JSON.readTree(value));
        Plan plan = plan(service);
        assertThat(plan.workloads()).isEmpty();
        assertThat(plan.status().toString()).contains("InvalidPredictorSpec", words);
    }

    @Test
    void aRuntimeOfAnotherServerMakesNoPool() {
        ObjectNode service = service("iris", "gs://models/iris");
        ((ObjectNode) service.at("/spec/predictor/model")).put("runtime", "kserve-sklearnserver");
        RuntimeCatalog catalog = new RuntimeCatalog(
                List.of(),
                KserveCatalog.runtimes(),
                KserveCatalog.storageContainers(),
                InferenceServiceConfig.defaults(),
                RuntimeCatalog.Gateway.UNKNOWN);
        ((ObjectNode) service.at("/spec/predictor/model/modelFormat")).put("name", "sklearn");
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        ObservedCluster cluster =
                new ObservedCluster(Map.of(), List.of(), status, secret -> null, account -> null, map -> null);
        Plan plan = RevisionPlanner.plan(
                service,
                catalog,
                ObservedState.nothing(status),
                cluster,
                NOW,
                context -> new SharedForms(service, context, cluster));
        assertThat(plan.workloads()).isEmpty();
        assertThat(plan.status().toString()).contains("'kserve-sklearnserver' is of another server");
    }
}
