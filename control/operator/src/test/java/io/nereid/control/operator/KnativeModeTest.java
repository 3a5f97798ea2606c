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
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.core.Route;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.gateway.RevisionLoad;
import io.nereid.control.operator.revision.LoadSource;
import io.nereid.testing.kubernetes.TestCluster;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Services of the Knative mode with a real API server, real controllers and a real scheduler. */
@Execution(ExecutionMode.CONCURRENT)
class KnativeModeTest {
    private static final String FIRST = "iris-predictor-00001";
    private static final String SECOND = "iris-predictor-00002";

    @TempDir
    static Path directory;

    private static OperatorCluster fixture;
    private static TestCluster cluster;
    private static ClusterClient client;

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        cluster = fixture.cluster();
        client = fixture.client();
    }

    @AfterAll
    static void stop() {
        if (fixture != null) {
            fixture.close();
        }
    }

    /** The load as a test says it is. */
    static final class Loads implements LoadSource {
        volatile WakeListener listener = (namespace, revision) -> {};
        volatile boolean complete;
        volatile double concurrency;

        @Override
        public void start(Duration limit, WakeListener listener) {
            this.listener = listener;
        }

        @Override
        public boolean isComplete() {
            return complete;
        }

        @Override
        public boolean isServing() {
            return true;
        }

        @Override
        public void onServing(Runnable listener) {}

        @Override
        public RevisionLoad load(String namespace, String revision) {
            return new RevisionLoad(namespace, revision, 1, concurrency, concurrency, 0, 0);
        }

        @Override
        public boolean awaitRoute(String namespace, String name, String text, Duration limit) {
            return true;
        }

        @Override
        public void close() {}
    }

    private static final class Running implements AutoCloseable {
        final KubernetesClient own = cluster.connect();
        final KubernetesClient leases = cluster.connect();
        final Loads loads = new Loads();
        final Operator operator;

        Running(String identity) {
            operator = new Operator(
                    new OperatorOptions(HOME, Set.of(), identity, 0, null, null), own, leases, () -> {}, () -> loads);
            operator.start();
            until("the operator leads", operator::isLeader);
        }

        @Override
        public void close() {
            operator.close();
            own.close();
            leases.close();
        }
    }

    private static void change(String name, String patch) {
        client.merge(ResourceKinds.INFERENCE_SERVICE, "default", name, tree(patch));
    }

    private static boolean is(ResourceKind kind, String name, String type, String status) {
        ObjectNode resource = client.get(kind, "default", name);
        if (resource != null
                && resource.path("status").path("observedGeneration").asLong()
                        == resource.path("metadata").path("generation").asLong()) {
            for (JsonNode condition : resource.path("status").path("conditions")) {
                if (condition.path("type").asText().equals(type)) {
                    return condition.path("status").asText().equals(status);
                }
            }
        }
        return false;
    }

    private static boolean isReady(String name) {
        return is(ResourceKinds.INFERENCE_SERVICE, name, "Ready", "True");
    }

    private static @Nullable ObjectNode object(ResourceKind kind, String name) {
        return client.get(kind, "default", name);
    }

    private static int replicas(String revision) {
        ObjectNode deployment = object(ClusterKinds.DEPLOYMENT, revision + "-deployment");
        return deployment == null
                ? -1
                : deployment.path("spec").path("replicas").asInt();
    }

    /** The shares of a service's route by revision; empty without a route. */
    private static Map<String, Integer> shares(String name) {
        ObjectNode service = object(ClusterKinds.SERVICE, name);
        Map<String, Integer> shares = new TreeMap<>();
        if (service != null) {
            Route route = RouteCodec.read(service.path("metadata")
                    .path("annotations")
                    .path(GatewayObjects.ROUTE)
                    .asText());
            route.components()
                    .get(Component.PREDICTOR)
                    .targets()
                    .forEach(target -> shares.put(target.revision(), target.percent()));
        }
        return shares;
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(150).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime())
                    .as(() -> what + ": " + object(ResourceKinds.INFERENCE_SERVICE, "iris"))
                    .isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    /** The version of everything that a service has; it changes with every write. */
    private static Map<String, String> versions() {
        Map<String, String> versions = new TreeMap<>();
        for (ResourceKind kind : new ResourceKind[] {
            ClusterKinds.DEPLOYMENT, ClusterKinds.SERVICE, ResourceKinds.CONFIG_MAP, ResourceKinds.INFERENCE_SERVICE
        }) {
            for (String name : new String[] {
                "iris",
                "iris-predictor",
                "iris-revisions",
                FIRST + "-deployment",
                FIRST + "-private",
                SECOND + "-deployment",
                SECOND + "-private"
            }) {
                ObjectNode object = object(kind, name);
                if (object != null) {
                    versions.put(
                            kind.kind() + " " + name,
                            object.path("metadata").path("resourceVersion").asText());
                }
            }
        }
        return versions;
    }

    @Test
    void revisionsShareTheTrafficAndAServiceSurvivesRestartsZeroAndAChangeOfMode() {
        try (Running running = new Running("first")) {
            client.create(ResourceKinds.INFERENCE_SERVICE, service("iris", "Knative", ""));
            until("the service is ready", () -> isReady("iris"));
            ObjectNode status = object(ResourceKinds.INFERENCE_SERVICE, "iris");
            assertThat(status.path("status").path("url").asText()).isEqualTo("http://iris-default.example.com");
            assertThat(status.path("status").path("deploymentMode").asText()).isEqualTo("Knative");
            assertThat(shares("iris")).isEqualTo(Map.of(FIRST, 100));
            ObjectNode entry = object(ClusterKinds.SERVICE, "iris");
            assertThat(entry.path("spec").path("externalName").asText())
                    .isEqualTo("nereid-gateway.nereid.svc.cluster.local");
            assertThat(object(ClusterKinds.SERVICE, "iris-predictor")).isNotNull();
            ObjectNode own = object(ClusterKinds.SERVICE, FIRST + "-private");
            RevisionSettings settings = RevisionSettings.read(own.path("metadata")
                    .path("annotations")
                    .path(GatewayObjects.REVISION)
                    .asText());
            assertThat(settings.service()).isEqualTo("iris");
            assertThat(settings.httpPort()).isEqualTo(8080);

            change(
                    "iris",
                    "{'spec':{'predictor':{'canaryTrafficPercent':20,'model':{'storageUri':'gs://models/v2'}}}}");
            until("the canary gets its share", () -> shares("iris").equals(Map.of(FIRST, 80, SECOND, 20)));
            assertThat(replicas(FIRST)).isEqualTo(1);
            change("iris", "{'spec':{'predictor':{'canaryTrafficPercent':null}}}");
            until("the new revision has all traffic", () -> shares("iris").equals(Map.of(SECOND, 100)));
            until(
                    "the old revision goes",
                    () -> replicas(FIRST) < 0 && object(ClusterKinds.SERVICE, FIRST + "-private") == null);
            until("the service is ready", () -> isReady("iris"));
        }
        Map<String, String> before = versions();
        try (Running second = new Running("second")) {
            LockSupport.parkNanos(Duration.ofSeconds(8).toNanos());
            assertThat(versions()).as("a restart writes nothing").isEqualTo(before);

            change(
                    "iris",
                    "{'metadata':{'annotations':{'autoscaling.knative.dev/window':'6s'}},"
                            + "'spec':{'predictor':{'minReplicas':2,'maxReplicas':5}}}");
            until("the minimum holds without gateways", () -> replicas(SECOND) == 2);
            second.loads.complete = true;
            change("iris", "{'spec':{'predictor':{'minReplicas':0}}}");
            until("the revision goes to zero", () -> replicas(SECOND) == 0);
            until("a service at zero is ready", () -> isReady("iris"));
            second.loads.listener.wake("default", SECOND);
            until("a request wakes it", () -> replicas(SECOND) == 1);
            assertThat(isReady("iris")).isTrue();
            second.loads.concurrency = 250;
            until("load scales it up", () -> replicas(SECOND) > 1);
            assertThat(shares("iris")).isEqualTo(Map.of(SECOND, 100));

            client.create(
                    ResourceKinds.INFERENCE_GRAPH,
                    tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'InferenceGraph','metadata':"
                            + "{'name':'graph','namespace':'default'},'spec':{'nodes':{'root':{'routerType':'Sequence',"
                            + "'steps':[{'serviceName':'iris'}]}}}}"));
            until("the graph has a route", () -> is(ResourceKinds.INFERENCE_GRAPH, "graph", "Ready", "True"));
            assertThat(RouteCodec.read(object(ClusterKinds.SERVICE, "graph")
                                    .path("metadata")
                                    .path("annotations")
                                    .path(GatewayObjects.ROUTE)
                                    .asText())
                            .graph())
                    .contains("iris");
            client.delete(ResourceKinds.INFERENCE_GRAPH, "default", "graph", null);

            change("iris", "{'metadata':{'annotations':{'serving.kserve.io/deploymentMode':'Standard'}}}");
            until("the Standard mode takes over", () -> object(ClusterKinds.DEPLOYMENT, "iris-predictor") != null);
            until(
                    "the revisions go",
                    () -> replicas(SECOND) < 0 && object(ClusterKinds.SERVICE, SECOND + "-private") == null);
            until("the service is ready", () -> isReady("iris"));
            change("iris", "{'metadata':{'annotations':{'serving.kserve.io/deploymentMode':'Knative'}}}");
            until("the Knative mode takes over", () -> shares("iris").equals(Map.of(FIRST, 100)));
            until(
                    "the objects of the Standard mode go",
                    () -> object(ClusterKinds.DEPLOYMENT, "iris-predictor") == null
                            && object(ClusterKinds.HORIZONTAL_POD_AUTOSCALER, "iris-predictor") == null);

            client.delete(ResourceKinds.INFERENCE_SERVICE, "default", "iris", null);
            until("nothing of the service is left", () -> versions().isEmpty());
        }
    }
}
