// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A cluster with what an installation has but for the operator: definitions, namespace, KServe's runtimes. Its node makes
 * pods ready at once.
 *
 * @param cluster the control plane
 * @param client an administrator's client
 */
record OperatorCluster(TestCluster cluster, ClusterClient client, FakeNode node) implements AutoCloseable {
    /** The operator's own namespace. */
    static final String HOME = "nereid";

    private static final ObjectMapper JSON = new ObjectMapper();

    /** Starts a cluster; the test is skipped where none can be started. */
    static OperatorCluster start(Path directory) throws IOException {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        TestCluster cluster = TestCluster.start(directory.resolve("cluster"));
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        cluster.kubectl("create", "namespace", HOME);
        ObjectNode list = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "List");
        list.putArray("items").addAll(KserveCatalog.manifests());
        Path file = directory.resolve("catalog.json");
        Files.writeString(file, list.toString());
        cluster.kubectl("apply", "--server-side", "-f", file.toString());
        return new OperatorCluster(
                cluster,
                new ClusterClient(cluster.client()),
                new FakeNode(cluster.client(), "node-1", "10.244.0", PodRunner.READY));
    }

    /** Reads JSON in which apostrophes stand for quotation marks. */
    static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    /**
     * Returns a service in the namespace {@code default}.
     *
     * @param mode the deployment mode
     * @param predictor more fields of the predictor, which begin with a comma
     */
    static ObjectNode service(String name, String mode, String predictor) {
        return tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':{'name':'" + name
                + "','namespace':'default','annotations':{'serving.kserve.io/deploymentMode':'" + mode + "'}},"
                + "'spec':{'predictor':{'model':{'modelFormat':{'name':'sklearn'},"
                + "'storageUri':'gs://models/iris'}" + predictor + "}}}");
    }

    @Override
    public void close() {
        node.close();
        cluster.close();
    }
}
