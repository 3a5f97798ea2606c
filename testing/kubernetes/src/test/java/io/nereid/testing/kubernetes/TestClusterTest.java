// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.ServiceBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.api.model.discovery.v1.EndpointSlice;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The control plane itself, with nodes in Java: real controllers and a real scheduler act on what a test creates. */
class TestClusterTest {
    @TempDir
    static Path directory;

    private static TestCluster cluster;
    private static FakeNode node;

    @BeforeAll
    static void start() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory);
        node = new FakeNode(cluster.client(), "node-1", "10.244.0", PodRunner.READY);
    }

    @AfterAll
    static void stop() {
        if (node != null) {
            node.close();
        }
        if (cluster != null) {
            cluster.close();
        }
    }

    private static Deployment deployment(String name, int replicas) {
        return new DeploymentBuilder()
                .withNewMetadata()
                .withName(name)
                .withNamespace("default")
                .endMetadata()
                .withNewSpec()
                .withReplicas(replicas)
                .withNewSelector()
                .withMatchLabels(Map.of("app", name))
                .endSelector()
                .withNewTemplate()
                .withNewMetadata()
                .withLabels(Map.of("app", name))
                .endMetadata()
                .withNewSpec()
                .addNewInitContainer()
                .withName("fetch")
                .withImage("nereid")
                .endInitContainer()
                .addNewContainer()
                .withName("server")
                .withImage("nereid")
                .addNewPort()
                .withContainerPort(8080)
                .endPort()
                .endContainer()
                .endSpec()
                .endTemplate()
                .endSpec()
                .build();
    }

    private static boolean hasTwoReady(EndpointSlice slice) {
        return slice != null
                && slice.getEndpoints() != null
                && slice.getEndpoints().stream()
                                .filter(e ->
                                        Boolean.TRUE.equals(e.getConditions().getReady()))
                                .count()
                        == 2;
    }

    @Test
    void aDeploymentBecomesAvailableAndItsPodsAreInTheEndpointSlice() throws Exception {
        KubernetesClient client = cluster.client();
        client.resource(deployment("web", 2)).create();
        client.resource(new ServiceBuilder()
                        .withNewMetadata()
                        .withName("web")
                        .withNamespace("default")
                        .endMetadata()
                        .withNewSpec()
                        .addToSelector("app", "web")
                        .addNewPort()
                        .withPort(80)
                        .withNewTargetPort(8080)
                        .endPort()
                        .endSpec()
                        .build())
                .create();
        client.apps()
                .deployments()
                .inNamespace("default")
                .withName("web")
                .waitUntilCondition(
                        d -> d != null
                                && d.getStatus() != null
                                && Integer.valueOf(2).equals(d.getStatus().getAvailableReplicas()),
                        180,
                        TimeUnit.SECONDS);
        EndpointSlice slice = client.discovery()
                .v1()
                .endpointSlices()
                .inNamespace("default")
                .withLabel("kubernetes.io/service-name", "web")
                .waitUntilCondition(TestClusterTest::hasTwoReady, 120, TimeUnit.SECONDS);
        assertThat(slice.getEndpoints())
                .allSatisfy(e -> assertThat(e.getAddresses().get(0)).startsWith("10.244.0."));
        assertThat(cluster.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"))
                .isEqualTo("2");
        client.apps().deployments().inNamespace("default").withName("web").scale(0);
        client.pods()
                .inNamespace("default")
                .withLabel("app", "web")
                .waitUntilCondition(p -> p == null, 120, TimeUnit.SECONDS);
    }

    @Test
    void theObjectsOutliveTheApiServer() throws Exception {
        cluster.client()
                .resource(new NamespaceBuilder()
                        .withNewMetadata()
                        .withName("kept")
                        .endMetadata()
                        .build())
                .create();
        cluster.restartApiServer();
        assertThat(cluster.kubectl("get", "namespace", "kept", "-o", "name")).contains("namespace/kept");
    }

    @Test
    void aPodWhoseImageIsMissingSaysSo() {
        node.use(new PodRunner() {
            @Override
            public void start(
                    io.fabric8.kubernetes.api.model.Pod pod,
                    String address,
                    java.util.function.Consumer<io.fabric8.kubernetes.api.model.PodStatus> status) {
                status.accept(PodStatuses.waiting(pod, address, "ImagePullBackOff", "no such image"));
            }

            @Override
            public void stop(io.fabric8.kubernetes.api.model.Pod pod, Runnable stopped) {
                stopped.run();
            }
        });
        try {
            cluster.client().resource(deployment("absent", 1)).create();
            var pod = cluster.client()
                    .pods()
                    .inNamespace("default")
                    .withLabel("app", "absent")
                    .waitUntilCondition(
                            p -> p != null
                                    && p.getStatus() != null
                                    && !p.getStatus().getContainerStatuses().isEmpty(),
                            120,
                            TimeUnit.SECONDS);
            assertThat(pod.getStatus()
                            .getContainerStatuses()
                            .get(0)
                            .getState()
                            .getWaiting()
                            .getReason())
                    .isEqualTo("ImagePullBackOff");
        } finally {
            node.use(PodRunner.READY);
            cluster.client().resource(deployment("absent", 1)).delete();
        }
    }
}
