// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.service;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The ConfigMaps of services, with a real API server: models that come later, and the authorities of stores. */
class ConfigMapsTest {
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
        ObjectNode settings = map(HOME, "inferenceservice-config", "");
        ((ObjectNode) settings.path("data")).put("storageInitializer", "{\"caBundleConfigMapName\": \"stores\"}");
        client.create(ResourceKinds.CONFIG_MAP, settings);
        client.create(ResourceKinds.CONFIG_MAP, map(HOME, "stores", "'cabundle.crt':'PEM'"));
        own = fixture.cluster().connect();
        leases = fixture.cluster().connect();
        operator = new Operator(new OperatorOptions(HOME, Set.of(), "one", 0, null, null), own, leases, () -> {});
        operator.start();
    }

    @AfterAll
    static void stop() {
        if (fixture != null) {
            operator.close();
            own.close();
            leases.close();
            fixture.close();
        }
    }

    private static ObjectNode map(String namespace, String name, String data) {
        return tree("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'namespace':'" + namespace + "','name':'" + name
                + "'},'data':{" + data + "}}");
    }

    private static @Nullable ObjectNode map(String name) {
        return client.get(ResourceKinds.CONFIG_MAP, "default", name);
    }

    private static String ready(String name, String field) {
        ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, "default", name);
        if (service != null) {
            for (JsonNode condition : service.path("status").path("conditions")) {
                if (condition.path("type").asText().equals("Ready")) {
                    return condition.path(field).asText();
                }
            }
        }
        return "";
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    @Test
    void aServerThatGetsItsModelsLaterHasAMapOfThemWhichTheOperatorKeeps() {
        ObjectNode many = service("many", "Standard", "");
        ((ObjectNode) many.at("/spec/predictor/model")).remove("storageUri");
        client.create(ResourceKinds.INFERENCE_SERVICE, many);
        until("the map of models", () -> map("modelconfig-many-0") != null);
        until("the service is ready", () -> ready("many", "status").equals("True"));
        client.create(
                ResourceKinds.TRAINED_MODEL,
                tree(
                        "{'apiVersion':'serving.kserve.io/v1alpha1','kind':'TrainedModel','metadata':{'namespace':'default',"
                                + "'name':'later'},'spec':{'inferenceService':'many','model':{'framework':'sklearn',"
                                + "'storageUri':'gs://models/later','memory':'1Mi'}}}"));
        until("the model is in the map", () -> models().contains("\"modelName\":\"later\""));
        String listed = models();
        ObjectNode stored = client.get(ResourceKinds.INFERENCE_SERVICE, "default", "many");
        assertThat(stored).isNotNull();
        ((ObjectNode) stored.at("/spec/predictor")).put("terminationGracePeriodSeconds", 7);
        client.update(ResourceKinds.INFERENCE_SERVICE, stored);
        until("the change has arrived", () -> ready("many", "status").equals("True") && observed("many") == 2);
        assertThat(models()).isEqualTo(listed);
    }

    private static String models() {
        ObjectNode map = map("modelconfig-many-0");
        return map == null ? "" : map.at("/data/models.json").asText();
    }

    private static long observed(String name) {
        ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, "default", name);
        return service == null ? 0 : service.at("/status/observedGeneration").asLong();
    }

    @Test
    void theAuthoritiesOfStoresComeToTheNamespaceInBothModes() {
        for (Map.Entry<String, String> one :
                Map.of("Standard", "usual", "Knative", "zero").entrySet()) {
            ObjectNode there = map("global-ca-bundle");
            if (there != null) {
                client.delete(ResourceKinds.CONFIG_MAP, "default", "global-ca-bundle", null);
            }
            client.create(ResourceKinds.INFERENCE_SERVICE, service(one.getValue(), one.getKey(), ""));
            until("the bundle of the mode " + one.getKey(), () -> map("global-ca-bundle") != null);
            assertThat(map("global-ca-bundle").at("/data/cabundle.crt").asText())
                    .isEqualTo("PEM");
            assertThat(ready(one.getValue(), "reason")).isNotEqualTo("ReconcileFailed");
        }
    }
}
