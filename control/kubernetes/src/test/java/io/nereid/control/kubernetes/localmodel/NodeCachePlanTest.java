// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class NodeCachePlanTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Instant NOW = Instant.parse("2026-01-02T03:04:05.6Z");

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private static ObjectNode group(String name, String limit) {
        return tree(
                "{'apiVersion':'serving.kserve.io/v1alpha1','kind':'LocalModelNodeGroup','metadata':{'name':'" + name
                        + "','uid':'u1'},'spec':{'storageLimit':'" + limit
                        + "','persistentVolumeSpec':{'hostPath':{'path':'/models'},'nodeAffinity':{'required':"
                        + "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'gpu','operator':'In','values':['a10','h200']}]},"
                        + "{'matchExpressions':[{'key':'memory','operator':'Gt','values':['100']}]}]}}},"
                        + "'persistentVolumeClaimSpec':{'accessModes':['ReadWriteOnce']}}}");
    }

    private static ObjectNode cache(
            String namespace, String name, String uri, String size, String created, String more) {
        String where = namespace.isEmpty() ? "" : ",'namespace':'" + namespace + "'";
        return tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'LocalModelCache','metadata':{'name':'" + name
                + "'"
                + where + ",'uid':'c-" + name + "','creationTimestamp':'2026-01-01T00:00:0" + created
                + "Z'},'spec':{'sourceModelUri':'" + uri + "','modelSize':'" + size + "','nodeGroups':['fast']}" + more
                + "}");
    }

    private static ObjectNode service(String name, String uri, String annotations) {
        return tree("{'metadata':{'name':'" + name + "','namespace':'team','annotations':{" + annotations
                + "}},'spec':{'predictor':{'sklearn':{'storageUri':'" + uri + "'}}}}");
    }

    private static ObjectNode node(String name, String labels) {
        return tree("{'metadata':{'name':'" + name + "','labels':{" + labels
                + "}},'status':{'conditions':[{'type':'Ready','status':'True'}]}}");
    }

    private static List<String> kept(NodeCachePlan plan) {
        return plan.models().stream()
                .filter(one -> !one.groups().isEmpty())
                .map(NodeCachePlan.Model::name)
                .toList();
    }

    @Test
    void theModelThatWasUnusedForTheLongestTimeGivesWay() {
        ObjectNode fast = group("fast", "2Gi");
        ObjectNode old = cache("", "old", "gs://zoo/old", "1Gi", "1", "");
        ObjectNode recent =
                cache("", "recent", "gs://zoo/recent", "1Gi", "0", ",'status':{'lastUsed':'2026-01-01T10:00:00Z'}");
        ObjectNode fresh = cache("", "fresh", "gs://zoo/fresh", "1Gi", "5", "");
        NodeCachePlan plan = NodeCachePlan.of(List.of(fast), List.of(old, recent, fresh), List.of());
        assertThat(kept(plan)).containsExactly("fresh", "recent");
        assertThat(plan.models().get(1).refusals().get("fast"))
                .isEqualTo("the LocalModelNodeGroup fast has 2147483648 bytes, of which other models have 2147483648,"
                        + " and modelSize is 1073741824; raise its storageLimit, or delete another model");
        // A service makes the oldest one needed.
        plan = NodeCachePlan.of(
                List.of(fast), List.of(old, recent, fresh), List.of(service("iris", "gs://zoo/old", "")));
        assertThat(kept(plan)).containsExactly("old", "recent");
        // Of those that are used, the ones that nodes have already stay.
        ObjectNode there = cache("", "there", "gs://zoo/there", "2Gi", "9", ",'status':{'copies':{'total':1}}");
        plan = NodeCachePlan.of(
                List.of(fast),
                List.of(old, there),
                List.of(service("a", "gs://zoo/old", ""), service("b", "gs://zoo/there", "")));
        assertThat(kept(plan)).containsExactly("there");
        assertThat(plan.used()).containsEntry("fast", 2L << 30);
    }

    @Test
    void servicesGetKservesLabelsAndLoseThemWithTheCache() {
        ObjectNode fast = group("fast", "10Gi");
        ObjectNode kept = cache("", "kept", "gs://zoo/kept", "1Gi", "1", "");
        ObjectNode own = cache("team", "own", "gs://zoo/kept", "1Gi", "1", "");
        ObjectNode hit = service("hit", "gs://zoo/kept/sub", "");
        NodeCachePlan plan = NodeCachePlan.of(List.of(fast), List.of(kept), List.of(hit));
        ObjectNode annotated = plan.annotated(hit);
        assertThat(annotated.path("metadata").path("labels"))
                .isEqualTo(tree("{'internal.serving.kserve.io/localmodel':'kept'}"));
        assertThat(annotated.path("metadata").path("annotations"))
                .isEqualTo(tree("{'internal.serving.kserve.io/localmodel-sourceuri':'gs://zoo/kept',"
                        + "'internal.serving.kserve.io/localmodel-pvc-name':'kept-fast'}"));
        assertThat(CachedModels.claimUri(
                        "gs://zoo/kept/sub",
                        Map.of(CachedModels.CLAIM, "kept-fast", CachedModels.SOURCE, "gs://zoo/kept")))
                .isEqualTo("pvc://kept-fast/models/" + CachedModels.folder("gs://zoo/kept") + "/sub");
        // The cache of the namespace comes first.
        assertThat(NodeCachePlan.of(List.of(fast), List.of(kept, own), List.of(hit))
                        .annotated(hit)
                        .path("metadata")
                        .path("labels"))
                .isEqualTo(tree("{'internal.serving.kserve.io/localmodel':'own',"
                        + "'internal.serving.kserve.io/localmodel-namespace':'team'}"));
        for (ObjectNode miss : List.of(
                service("miss", "gs://zoo/keptother", ""),
                service("opted", "gs://zoo/kept", "'serving.kserve.io/disable-localmodel':'true'"),
                service("elsewhere", "gs://zoo/kept", "'serving.kserve.io/nodegroup':'slow'"))) {
            assertThat(plan.annotated(miss)).isSameAs(miss);
        }
        // Without the group no node keeps it.
        assertThat(NodeCachePlan.of(List.of(), List.of(kept), List.of(hit)).annotated(hit))
                .isSameAs(hit);
        ObjectNode without = NodeCachePlan.EMPTY.annotated(annotated);
        assertThat(without.path("metadata").path("labels")).isEmpty();
        assertThat(without.path("metadata").path("annotations")).isEmpty();
    }

    @Test
    void podsWaitForTheirClaimUntilTheDownloadsHaveEnded() {
        ObjectNode fast = group("fast", "10Gi");
        ObjectNode kept = cache("", "kept", "gs://zoo/kept", "1Gi", "1", "");
        ObjectNode hit = service("hit", "gs://zoo/kept", "");
        NodeCachePlan plan = NodeCachePlan.of(List.of(fast), List.of(kept), List.of(hit));
        List<ObjectNode> nodes = List.of(
                node("n1", "'gpu':'a10'"), node("n2", "'memory':'128'"), node("n3", "'gpu':'t4','memory':'64'"));
        ClusterSettings settings = ClusterSettings.of(InferenceServiceConfig.defaults());
        NodeCacheCluster before = new NodeCacheCluster(List.of(fast), nodes, List.of());
        NodeCacheObjects objects = new NodeCacheObjects(plan, before, settings, "nereid");
        List<ObjectNode> lists = objects.nodes();
        assertThat(lists).extracting(NodeCachePlan::name).containsExactly("n1", "n2");
        assertThat(lists.get(0).path("spec"))
                .isEqualTo(tree("{'localModels':[{'sourceModelUri':'gs://zoo/kept','modelName':'kept',"
                        + "'nodeGroup':'fast','modelSize':'1073741824'}]}"));
        assertThat(objects.claims(List.of(hit), Set.of())).isEmpty();
        assertThat(NodeCacheStatus.of(plan.models().get(0), before, NOW))
                .isEqualTo(tree("{'nodeStatus':{'n1':'NodeDownloadPending','n2':'NodeDownloadPending'},"
                        + "'copies':{'total':2},'inferenceServices':[{'namespace':'team','name':'hit'}]}"));

        lists.get(0).set("status", tree("{'modelStatus':{'kept':'ModelDownloaded'},'messages':{'kept':'9 bytes'}}"));
        lists.get(1).set("status", tree("{'modelStatus':{'kept':'ModelDownloadError'},'messages':{'kept':'403'}}"));
        NodeCacheCluster after = new NodeCacheCluster(List.of(fast), nodes, lists);
        assertThat(NodeCacheStatus.of(plan.models().get(0), after, NOW))
                .isEqualTo(tree("{'nodeStatus':{'n1':'NodeDownloaded','n2':'NodeDownloadError'},"
                        + "'copies':{'total':2,'available':1,'failed':1},'messages':{'n1':'9 bytes','n2':'403'},"
                        + "'inferenceServices':[{'namespace':'team','name':'hit'}]}"));
        List<ObjectNode> claims = new NodeCacheObjects(plan, after, settings, "nereid").claims(List.of(hit), Set.of());
        assertThat(claims).extracting(NodeCachePlan::name).containsExactly("kept-fast-team", "kept-fast");
        assertThat(claims.get(1).path("spec")).isEqualTo(tree("{'accessModes':['ReadWriteOnce']}"));
        assertThat(claims.get(0).at("/spec/claimRef/namespace").asText()).isEqualTo("team");
    }

    @Test
    void theTimeOfTheLastUseIsKept() {
        ObjectNode cache = cache(
                "",
                "kept",
                "gs://zoo/kept",
                "1Gi",
                "1",
                ",'status':{'inferenceServices':[{'namespace':'team','name':'hit'}]}");
        NodeCacheCluster cluster = new NodeCacheCluster(List.of(group("fast", "1Gi")), List.of(), List.of());
        JsonNode first = status(cache, cluster);
        assertThat(first.path("lastUsed").asText()).isEqualTo("2026-01-02T03:04:05Z");
        cache.set("status", first);
        assertThat(status(cache, cluster)).isEqualTo(first);
        assertThat(first.path("messages").path("fast").asText()).contains("no node is in the LocalModelNodeGroup fast");
    }

    private static JsonNode status(ObjectNode cache, NodeCacheCluster cluster) {
        NodeCachePlan plan = NodeCachePlan.of(List.of(group("fast", "1Gi")), List.of(cache), List.of());
        return NodeCacheStatus.of(plan.models().get(0), cluster, NOW);
    }

    @Test
    void agentsRunOnTheNodesOfTheirGroup() {
        ObjectNode fast = group("fast", "10Gi");
        NodeCachePlan plan = NodeCachePlan.of(List.of(fast), List.of(), List.of());
        ObjectNode settings = tree(
                "{'kind':'ConfigMap','data':{'localModel':'{\\\"jobNamespace\\\":\\\"jobs\\\",\\\"fsGroup\\\":77}'}}");
        List<ObjectNode> made = new NodeCacheObjects(
                        plan,
                        new NodeCacheCluster(List.of(fast), List.of(), List.of()),
                        ClusterSettings.of(InferenceServiceConfig.read(settings)),
                        "nereid")
                .agents()
                .get("fast");
        assertThat(made)
                .extracting(one -> one.path("kind").asText())
                .containsExactly("PersistentVolume", "PersistentVolumeClaim", "DaemonSet");
        JsonNode pod = made.get(2).at("/spec/template/spec");
        assertThat(pod.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"))
                .isEqualTo(fast.at("/spec/persistentVolumeSpec/nodeAffinity/required"));
        assertThat(pod.at("/securityContext/fsGroup").asInt()).isEqualTo(77);
        assertThat(pod.at("/containers/0/args").toString())
                .contains("--group=fast", "--credentials-namespace=jobs", "--retry=60s");
        assertThat(pod.at("/volumes/0/persistentVolumeClaim/claimName").asText())
                .isEqualTo("nereid-node-agent-fast");
    }
}
