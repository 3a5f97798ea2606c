// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.adopt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** KServe's controller and webhooks are switched off on a real control plane. */
@Execution(ExecutionMode.CONCURRENT)
class KserveSwitchTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String NAME = "inferenceservice.serving.kserve.io";

    private static ObjectNode tree(String json) throws IOException {
        return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
    }

    private static String webhook(String name, String resource) {
        return "{'name':'inferenceservice.kserve-webhook-server." + name + "','clientConfig':{'url':"
                + "'https://127.0.0.1:1/x'},'failurePolicy':'Fail','sideEffects':'None','admissionReviewVersions':['v1'],"
                + "'rules':[{'apiGroups':['example.com'],'apiVersions':['v1'],'operations':['CREATE'],'resources':['"
                + resource + "']}]}";
    }

    private static ObjectNode configuration(String kind, String name, String webhooks) throws IOException {
        return tree("{'apiVersion':'admissionregistration.k8s.io/v1','kind':'" + kind + "WebhookConfiguration',"
                + "'metadata':{'name':'" + name + "'},'webhooks':[" + webhooks + "]}");
    }

    @Test
    void theWebhookForPodsGoesOnceTheOneOfTheOperatorIsThere(@TempDir Path directory) throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        try (TestCluster cluster = TestCluster.start(directory.resolve("cluster"))) {
            ClusterClient client = new ClusterClient(cluster.client());
            cluster.kubectl("create", "namespace", "kserve");
            ObjectNode unused = client.create(
                    ClusterKinds.DEPLOYMENT,
                    tree("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'kserve-controller-manager',"
                            + "'namespace':'kserve'},'spec':{'replicas':1,'selector':{'matchLabels':{'a':'b'}},"
                            + "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'manager',"
                            + "'image':'kserve/kserve-controller:v0.20.0'}]}}}}"));
            unused = client.create(
                    ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION,
                    configuration("Validating", NAME, webhook("validator", "a")));
            unused = client.create(
                    ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION,
                    configuration("Mutating", NAME, webhook("defaulter", "b") + "," + webhook("pod-mutator", "c")));
            KserveSwitch kserve = new KserveSwitch(cluster.client(), "kserve", "nereid");

            assertThat(kserve.completesPods()).isFalse();
            assertThat(kserve.remaining()).hasSize(3);
            assertThat(kserve.switchOff()).hasSize(3);
            assertThat(client.get(ClusterKinds.DEPLOYMENT, "kserve", "kserve-controller-manager")
                            .at("/spec/replicas")
                            .asInt())
                    .isZero();
            assertThat(client.get(ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION, null, NAME))
                    .isNull();
            JsonNode left = client.get(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, null, NAME)
                    .path("webhooks");
            assertThat(left).hasSize(1);
            assertThat(left.at("/0/name").asText()).endsWith("pod-mutator");
            assertThat(kserve.switchOff()).as("the operator is not installed").isEmpty();

            ObjectNode own = configuration("Mutating", "nereid", webhook("pods", "d"));
            unused = client.create(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, own);
            assertThat(kserve.completesPods())
                    .as("the API server does not trust it yet")
                    .isFalse();
            ((ObjectNode) own.at("/webhooks/0/clientConfig")).put("caBundle", bundle(cluster));
            client.delete(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, null, "nereid", null);
            unused = client.create(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, own);
            assertThat(kserve.completesPods()).isTrue();
            assertThat(kserve.remaining()).hasSize(1);
            assertThat(kserve.switchOff()).hasSize(1);
            assertThat(kserve.remaining()).isEmpty();
        }
    }

    /** Any authority will do: the cluster's own. */
    private static String bundle(TestCluster cluster) throws IOException {
        return cluster.kubectl(
                "config",
                "view",
                "--raw",
                "--flatten",
                "-o",
                "jsonpath={.clusters[0].cluster.certificate-authority-data}");
    }
}
