// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentStatus;
import io.fabric8.kubernetes.api.model.apps.ReplicaSet;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.upgrade.UpgradeOptions;
import io.nereid.testing.kubernetes.PodRunner;
import io.nereid.testing.kubernetes.PodStatuses;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** An operator whose built-in runtime has another image than the one before, with many services that run. */
@Execution(ExecutionMode.CONCURRENT)
class UpgradeTest {
    private static final int SERVICES = 20;
    private static final int BUDGET = 2;

    @TempDir
    static Path directory;

    private static final HeldRunner NODE = new HeldRunner();
    private static OperatorCluster fixture;
    private static TestCluster cluster;
    private static ClusterClient client;

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        cluster = fixture.cluster();
        client = fixture.client();
        fixture.node().use(NODE);
    }

    @AfterAll
    static void stop() {
        if (fixture != null) {
            fixture.close();
        }
    }

    /** Pods with the image of the second version become ready when the test says so. */
    private static final class HeldRunner implements PodRunner {
        private final List<Runnable> waiting = new ArrayList<>();
        private boolean held = true;

        @Override
        public synchronized void start(Pod pod, String address, Consumer<PodStatus> status) {
            Runnable ready = () -> status.accept(PodStatuses.ready(pod, address));
            boolean second = pod.getSpec().getContainers().stream()
                    .anyMatch(container -> container.getImage().endsWith(":v2"));
            if (held && second) {
                waiting.add(ready);
            } else {
                ready.run();
            }
        }

        @Override
        public void stop(Pod pod, Runnable stopped) {
            stopped.run();
        }

        synchronized void release() {
            held = false;
            waiting.forEach(Runnable::run);
            waiting.clear();
        }
    }

    private static RunningOperator operator(String identity, String version) {
        return new RunningOperator(
                cluster,
                new OperatorOptions(
                        HOME, Set.of(), identity, 0, builtIn(version), null, new UpgradeOptions(version, BUDGET)));
    }

    private static Path builtIn(String version) {
        try {
            Path files = Files.createDirectories(directory.resolve("built-in-" + version));
            Files.writeString(files.resolve("runtime.yaml"), """
                    apiVersion: serving.kserve.io/v1alpha1
                    kind: ClusterServingRuntime
                    metadata: {name: upgraded}
                    spec:
                      supportedModelFormats: [{name: upgraded, version: "1"}]
                      protocolVersions: [v1]
                      containers:
                        - name: kserve-container
                          image: example.com/server:vVERSION
                          args: [--port=8080]
                    """.replace("VERSION", version));
            return files;
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(180).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            LockSupport.parkNanos(100_000_000);
        }
    }

    private static void create(String name, String mode) {
        ObjectNode service = OperatorCluster.service(name, mode, "");
        service.withObject("/spec/predictor/model")
                .setAll(tree("{'modelFormat':{'name':'upgraded'},'runtime':'upgraded'}"));
        client.create(ResourceKinds.INFERENCE_SERVICE, service);
    }

    private static boolean isReady(String name) {
        ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, "default", name);
        for (JsonNode condition : service == null
                ? List.<JsonNode>of()
                : (Iterable<JsonNode>) service.path("status").path("conditions")) {
            if (condition.path("type").asText().equals("Ready")) {
                return condition.path("status").asText().equals("True");
            }
        }
        return false;
    }

    private static List<Deployment> deployments() {
        return cluster.client()
                .apps()
                .deployments()
                .inNamespace("default")
                .list()
                .getItems();
    }

    private static boolean isSecond(Deployment deployment) {
        return deployment.getSpec().getTemplate().getSpec().getContainers().stream()
                .anyMatch(container -> container.getImage().endsWith(":v2"));
    }

    private static boolean isComplete(Deployment deployment) {
        DeploymentStatus status = deployment.getStatus();
        return status.getObservedGeneration() != null
                && status.getObservedGeneration() >= deployment.getMetadata().getGeneration()
                && number(status.getUpdatedReplicas()) == 1
                && number(status.getAvailableReplicas()) == 1
                && number(status.getReplicas()) == 1;
    }

    private static int number(Integer count) {
        return count == null ? 0 : count;
    }

    private static long second() {
        return deployments().stream().filter(UpgradeTest::isSecond).count();
    }

    /** The versions of all Deployments, which change with each write and with each change of their pods. */
    private static Map<String, Long> generations() {
        Map<String, Long> generations = new TreeMap<>();
        deployments()
                .forEach(one -> generations.put(
                        one.getMetadata().getName(), one.getMetadata().getGeneration()));
        return generations;
    }

    @Test
    void newTemplatesComeToAFewServicesAtATimeAndAtOnceWhereTheServiceChanges() throws Exception {
        try (RunningOperator first = operator("first", "1")) {
            until(
                    "the runtime is there",
                    () -> client.get(ResourceKinds.CLUSTER_SERVING_RUNTIME, null, "upgraded") != null);
            for (int i = 0; i < SERVICES; i++) {
                create("s" + i, "Standard");
            }
            create("revised", "Knative");
            until("all are ready", () -> {
                List<Deployment> all = deployments();
                return all.size() == SERVICES + 1 && all.stream().allMatch(UpgradeTest::isComplete);
            });
            until("the last service is ready", () -> isReady("s" + (SERVICES - 1)));
        }
        assertThat(second()).isZero();
        Map<String, Long> before = generations();

        try (RunningOperator upgraded = operator("upgraded", "2")) {
            until("the budget is used", () -> second() == BUDGET);
            LockSupport.parkNanos(Duration.ofSeconds(5).toNanos());
            assertThat(second()).isEqualTo(BUDGET);
        }
        try (RunningOperator again = operator("again", "2")) {
            // Another leader knows from the Deployments who is on the way.
            LockSupport.parkNanos(Duration.ofSeconds(5).toNanos());
            assertThat(second()).isEqualTo(BUDGET);
            assertThat(generations().entrySet().stream()
                            .filter(one -> !one.getValue().equals(before.get(one.getKey())))
                            .count())
                    .as("Deployments that were changed")
                    .isEqualTo(BUDGET);

            String changed = deployments().stream()
                    .filter(one ->
                            !isSecond(one) && !one.getMetadata().getName().startsWith("revised"))
                    .findFirst()
                    .orElseThrow()
                    .getMetadata()
                    .getName()
                    .replace("-predictor", "");
            client.merge(
                    ResourceKinds.INFERENCE_SERVICE,
                    "default",
                    changed,
                    tree("{'spec':{'predictor':{'model':{'env':[{'name':'A','value':'B'}]}}}}"));
            until("a service that changes gets its template at once", () -> second() == BUDGET + 1);
            // What does not reach pods follows at once, without the template.
            String scaled = deployments().stream()
                    .filter(one ->
                            !isSecond(one) && !one.getMetadata().getName().startsWith("revised"))
                    .findFirst()
                    .orElseThrow()
                    .getMetadata()
                    .getName()
                    .replace("-predictor", "");
            client.merge(
                    ResourceKinds.INFERENCE_SERVICE,
                    "default",
                    scaled,
                    tree("{'spec':{'predictor':{'maxReplicas':3}}}"));
            until(
                    "its autoscaler follows",
                    () -> cluster.client()
                                    .autoscaling()
                                    .v2()
                                    .horizontalPodAutoscalers()
                                    .inNamespace("default")
                                    .withName(scaled + "-predictor")
                                    .get()
                                    .getSpec()
                                    .getMaxReplicas()
                            == 3);
            assertThat(second()).isEqualTo(BUDGET + 1);

            NODE.release();
            until("all services have their new template", () -> {
                List<Deployment> all = deployments();
                assertThat(all.stream().filter(one -> isSecond(one) && !isComplete(one)))
                        .as("services on the way, and the one that was changed")
                        .hasSizeLessThanOrEqualTo(BUDGET + 1);
                return all.stream().allMatch(one -> isSecond(one) && isComplete(one));
            });
            assertThat(cluster.client()
                            .apps()
                            .replicaSets()
                            .inNamespace("default")
                            .list()
                            .getItems())
                    .extracting(UpgradeTest::owner)
                    .as("each Deployment had two templates")
                    .hasSize(2 * (SERVICES + 1));
            assertThat(deployments())
                    .extracting(one -> one.getMetadata().getName())
                    .as("no other revision")
                    .contains("revised-predictor-00001-deployment")
                    .doesNotContain("revised-predictor-00002-deployment");
        }
        LockSupport.parkNanos(Duration.ofSeconds(2).toNanos());
        Map<String, String> versions = versions();
        try (RunningOperator same = operator("same", "2")) {
            LockSupport.parkNanos(Duration.ofSeconds(8).toNanos());
            assertThat(versions()).as("nothing is written").isEqualTo(versions);
        }
    }

    private static Map<String, String> versions() {
        Map<String, String> versions = new TreeMap<>();
        deployments()
                .forEach(one -> versions.put(
                        one.getMetadata().getName(), one.getMetadata().getResourceVersion()));
        return versions;
    }

    private static String owner(ReplicaSet set) {
        return set.getMetadata().getOwnerReferences().get(0).getName();
    }
}
