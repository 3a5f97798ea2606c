// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import io.nereid.control.operator.adopt.AdoptionPlan;
import io.nereid.control.operator.adopt.KserveSwitch;
import io.nereid.control.operator.adopt.ServiceAdoption;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.upgrade.UpgradeOptions;
import io.nereid.control.operator.webhook.WebhookOptions;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The take-over of a cluster from KServe's own controller manager, and the way back, as docs/KUBERNETES.md has them. It needs the
 * manager's program in {@code KSERVE_MANAGER}, and with {@code KSERVE_DEFINITIONS}, a file, takes KServe's definitions too.
 */
class KserveManagerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TEAM = "team-a";

    /** The kinds that KServe's manager and the operator write for services, and what they lead to, with their paths. */
    private static final Map<String, String> KINDS = Map.of(
            "Deployment", "/apis/apps/v1/namespaces/%s/deployments",
            "ReplicaSet", "/apis/apps/v1/namespaces/%s/replicasets",
            "Service", "/api/v1/namespaces/%s/services",
            "HorizontalPodAutoscaler", "/apis/autoscaling/v2/namespaces/%s/horizontalpodautoscalers",
            "Ingress", "/apis/networking.k8s.io/v1/namespaces/%s/ingresses",
            "ConfigMap", "/api/v1/namespaces/%s/configmaps",
            "Pod", "/api/v1/namespaces/%s/pods");

    private static final Map<String, String> OWNERS = Map.of(
            "InferenceService", "/apis/serving.kserve.io/v1beta1/namespaces/%s/inferenceservices",
            "InferenceGraph", "/apis/serving.kserve.io/v1alpha1/namespaces/%s/inferencegraphs",
            "TrainedModel", "/apis/serving.kserve.io/v1alpha1/namespaces/%s/trainedmodels");

    private TestCluster cluster;
    private ClusterClient client;

    static void until(String what, BooleanSupplier condition) {
        until(what, condition, () -> "");
    }

    private static void until(String what, BooleanSupplier condition, Supplier<String> log) {
        long end = System.nanoTime() + Duration.ofMinutes(3).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(() -> what + " " + log.get()).isLessThan(end);
            LockSupport.parkNanos(300_000_000);
        }
    }

    private static String variable(String name) {
        String value = System.getenv(name);
        return value == null ? "" : value;
    }

    private Map<String, ObjectNode> list(Map<String, String> kinds) {
        Map<String, ObjectNode> all = new TreeMap<>();
        kinds.forEach((kind, path) -> {
            try {
                JsonNode list = JSON.readTree(cluster.client().raw(path.replace("%s", TEAM)));
                list.path("items").forEach(one -> {
                    String name = one.at("/metadata/name").asText();
                    if (!name.equals("kube-root-ca.crt")) {
                        all.put(kind + "/" + name, (ObjectNode) one);
                    }
                });
            } catch (JsonProcessingException e) {
                throw new AssertionError(e);
            }
        });
        return all;
    }

    /** Waits until nothing has been written for five seconds. */
    private Map<String, ObjectNode> atRest() {
        Map<String, ObjectNode> objects = list(KINDS);
        String before = "";
        long since = System.nanoTime();
        long end = since + Duration.ofMinutes(3).toNanos();
        while (System.nanoTime() - since < Duration.ofSeconds(5).toNanos()) {
            objects = list(KINDS);
            StringBuilder versions = new StringBuilder();
            objects.forEach((key, one) -> versions.append(key).append(one.at("/metadata/resourceVersion")));
            list(OWNERS).forEach((key, one) -> versions.append(key).append(one.at("/metadata/resourceVersion")));
            if (!versions.toString().equals(before)) {
                before = versions.toString();
                since = System.nanoTime();
            }
            assertThat(System.nanoTime()).as("objects come to rest").isLessThan(end);
            LockSupport.parkNanos(300_000_000);
        }
        return objects;
    }

    /** What differs of objects: identity, generation, and what is written of them. */
    private static List<String> differences(Map<String, ObjectNode> before, Map<String, ObjectNode> after) {
        List<String> all = new ArrayList<>();
        before.forEach((key, one) -> {
            ObjectNode other = after.get(key);
            if (other == null) {
                all.add(key + " is gone");
                return;
            }
            compare(key, plain(one), plain(other), all);
        });
        after.keySet().forEach(key -> {
            if (!before.containsKey(key)) {
                all.add(key + " is new");
            }
        });
        return all;
    }

    /** Collects the fields of two trees that differ, with both values. */
    private static void compare(String path, JsonNode one, JsonNode other, List<String> all) {
        if (one.isObject() && other.isObject() || one.isArray() && other.isArray() && one.size() == other.size()) {
            Set<String> names = new TreeSet<>();
            one.fieldNames().forEachRemaining(names::add);
            other.fieldNames().forEachRemaining(names::add);
            names.forEach(name -> compare(path + "/" + name, one.path(name), other.path(name), all));
            for (int i = 0; one.isArray() && i < one.size(); i++) {
                compare(path + "/" + i, one.get(i), other.get(i), all);
            }
        } else if (!one.equals(other)) {
            all.add(path + ": " + one + " -> " + other);
        }
    }

    /** What is written of an object. An annotation more counts as a new generation of a Deployment: its spec is compared. */
    private static JsonNode plain(ObjectNode object) {
        ObjectNode plain = object.deepCopy();
        plain.remove("status");
        ObjectNode metadata = (ObjectNode) plain.path("metadata");
        metadata.remove(List.of("managedFields", "resourceVersion", "generation"));
        metadata.withObjectProperty("annotations").remove("nereid.io/template");
        return plain;
    }

    private static List<String> statuses(Map<String, ObjectNode> before, Map<String, ObjectNode> after) {
        List<String> all = new ArrayList<>();
        before.forEach((key, one) -> {
            Map<String, String> conditions = new TreeMap<>();
            for (String path : List.of("/status/url", "/status/address/url", "/status/deploymentMode")) {
                conditions.put(path, one.at(path).asText());
            }
            one.at("/status/conditions")
                    .forEach(condition -> conditions.put(
                            condition.path("type").asText(),
                            condition.path("status").asText()));
            JsonNode other = after.getOrDefault(key, JSON.createObjectNode());
            conditions.forEach((name, value) -> {
                String now = name.startsWith("/") ? other.at(name).asText() : condition(other, name);
                if (!value.equals(now)) {
                    all.add(key + " " + name + ": " + value + " -> " + now);
                }
            });
        });
        return all;
    }

    private static String condition(JsonNode object, String type) {
        for (JsonNode one : object.at("/status/conditions")) {
            if (one.path("type").asText().equals(type)) {
                return one.path("status").asText();
            }
        }
        return "";
    }

    /** An operator as installed, whose webhooks the API server calls at an address of this machine. */
    private RunningOperator operator(int port) {
        return new RunningOperator(
                cluster,
                new OperatorOptions(
                        HOME,
                        Set.of(),
                        "operator",
                        0,
                        null,
                        new WebhookOptions(port, HOME, condition -> {}, List.of("127.0.0.1")),
                        new UpgradeOptions("1", 1)));
    }

    private void webhooks(int port) {
        manifests().stream()
                .filter(one -> one.path("kind").asText().endsWith("WebhookConfiguration"))
                .forEach(one -> {
                    one.path("webhooks")
                            .forEach(hook -> ((ObjectNode) hook)
                                    .putObject("clientConfig")
                                    .put(
                                            "url",
                                            "https://127.0.0.1:" + port
                                                    + (hook.path("name")
                                                                    .asText()
                                                                    .startsWith("pods.")
                                                            ? "/mutate-pods"
                                                            : "/validate")));
                    ObjectNode unused = client.forceAs(
                            "kubectl",
                            one.path("kind").asText().startsWith("Mutating")
                                    ? ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION
                                    : ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION,
                            one);
                });
    }

    /** Takes the definitions and settings over, and lets the API server call the operator's webhooks. */
    private void install(int port) throws IOException {
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        KserveManager.settings(client, HOME);
        webhooks(port);
    }

    private static List<ObjectNode> manifests() {
        return OperatorManifests.of(ManifestOptions.of("nereid:1"), JsonNode::toString);
    }

    private void installGateway(Path directory) throws IOException {
        Path file = directory.resolve("gateway.json");
        Files.writeString(
                file,
                manifests().stream()
                        .filter(one -> one.at("/metadata/name").asText().startsWith("nereid-gateway")
                                || one.path("kind").asText().equals("PriorityClass"))
                        .map(ObjectNode::toString)
                        .collect(Collectors.joining("\n")));
        cluster.kubectl("apply", "--server-side", "-f", file.toString());
    }

    private void uninstallWebhooks() {
        for (ResourceKind kind :
                List.of(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION)) {
            client.delete(kind, null, HOME, null);
        }
    }

    private void createFleet(Path directory) throws IOException {
        Path fleet = directory.resolve("fleet.yaml");
        try (InputStream stream = KserveManagerTest.class.getResourceAsStream("/kserve/fleet.yaml")) {
            Files.write(fleet, stream.readAllBytes());
        }
        cluster.kubectl("create", "namespace", TEAM);
        cluster.kubectl("apply", "-n", TEAM, "-f", fleet.toString());
    }

    private boolean areReady() {
        return notReady().isEmpty();
    }

    private String notReady() {
        return list(OWNERS).entrySet().stream()
                .filter(one -> !one.getKey().equals("InferenceService/stopped"))
                .filter(one -> !Trees.isTrue(one.getValue(), "Ready"))
                .map(one -> one.getKey() + ": " + one.getValue().path("status"))
                .collect(Collectors.joining("; "));
    }

    private boolean isScaled(String... deployments) {
        Map<String, ObjectNode> all = list(KINDS);
        return Stream.of(deployments)
                .allMatch(one -> all.get("Deployment/" + one)
                                .at("/status/availableReplicas")
                                .asInt()
                        == 2);
    }

    /** The pods that run, by the Deployment that they are of and without what differs from pod to pod. */
    private Map<String, JsonNode> pods() {
        Map<String, JsonNode> all = new TreeMap<>();
        list(KINDS).forEach((key, one) -> {
            String of = one.at("/metadata/generateName").asText().replaceFirst("-[0-9a-z]+-$", "");
            if (key.startsWith("Pod/")
                    && one.at("/status/phase").asText().equals("Running")
                    && !one.path("metadata").has("deletionTimestamp")) {
                all.put(of, KserveObjects.plain(one));
            }
        });
        return all;
    }

    /** What is of one service, its pods and ReplicaSets included. */
    private static boolean isOf(String key, String service) {
        return key.matches("[A-Za-z]+/" + service + "(-(predictor|transformer|explainer).*|-[0-9a-z]+(-[0-9a-z]+)?)?");
    }

    private static Map<String, ObjectNode> without(Map<String, ObjectNode> objects, String... services) {
        Map<String, ObjectNode> rest = new TreeMap<>(objects);
        rest.keySet().removeIf(key -> Stream.of(services).anyMatch(one -> isOf(key, one)));
        return rest;
    }

    private List<String> left(String service) {
        return list(KINDS).keySet().stream().filter(key -> isOf(key, service)).toList();
    }

    @Test
    void theClusterGoesToTheOperatorAndBackWithoutARestartOfPods(@TempDir Path directory) throws Exception {
        String program = variable("KSERVE_MANAGER");
        assumeTrue(
                !program.isEmpty(),
                "SKIPPED: no controller manager of KServe; set KSERVE_MANAGER to its program of version 0.20.0");
        String given = variable("KSERVE_DEFINITIONS");
        Path definitions = given.isEmpty() ? null : Path.of(given);
        try (OperatorCluster fixture = OperatorCluster.start(directory)) {
            cluster = fixture.cluster();
            client = fixture.client();
            Map<String, ObjectNode> before;
            Map<String, ObjectNode> services;
            Map<String, JsonNode> pods;
            KserveSwitch toNereid = new KserveSwitch(cluster.client(), KserveManager.HOME, HOME);
            try (KserveManager kserve =
                    KserveManager.start(cluster, client, Path.of(program), definitions, directory)) {
                createFleet(directory);
                until("KServe's services are ready", this::areReady, this::notReady);
                until(
                        "autoscalers have set the replicas",
                        () -> isScaled("pipe-predictor", "raw-predictor"),
                        kserve::log);
                before = atRest();
                services = list(OWNERS);
                pods = pods();
                assertThat(pods).hasSizeGreaterThan(15);
                plan();
                assertThat(differences(before, list(KINDS)))
                        .as("a plan writes nothing")
                        .isEmpty();
                assertThat(toNereid.switchOff()).hasSize(7);
            }
            int port = KserveManager.free();
            install(port);
            try (RunningOperator operator = operator(port)) {
                takenOver(before, toNereid);
                installGateway(directory);
                asBefore(before, services, pods);
                changeAndDelete(before);
                assertThat(operator.isLeader()).isTrue();
            }
            try (KserveManager kserve =
                    KserveManager.start(cluster, client, Path.of(program), definitions, directory)) {
                uninstallWebhooks();
                back(before, services, pods, kserve);
            }
        }
    }

    /** What {@code nereid operator adopt --dry-run} prints. */
    private void plan() {
        List<ServiceAdoption> plan = new AdoptionPlan(cluster.client(), KserveManager.HOME, true).of(Set.of());
        assertThat(plan).hasSize(16).allSatisfy(one -> {
            assertThat(one.isQuiet()).as(one.name()).isTrue();
            assertThat(one.template())
                    .as(one.name())
                    .isEqualTo(
                            one.name().equals("stopped")
                                    ? ServiceAdoption.Template.NONE
                                    : ServiceAdoption.Template.KEPT);
            assertThat(one.changes())
                    .as(one.name())
                    .isEqualTo(
                            one.name().equals("pipe")
                                    ? List.of("Ingress pipe: spec.rules[1].http.paths[0].backend.service.name")
                                    : List.of());
        });
    }

    private void takenOver(Map<String, ObjectNode> before, KserveSwitch toNereid) {
        until("the operator's webhook completes pods", toNereid::completesPods);
        assertThat(toNereid.switchOff())
                .containsExactly("MutatingWebhookConfiguration inferenceservice.serving.kserve.io is deleted");
        assertThat(toNereid.remaining()).isEmpty();
        until(
                "all Deployments are taken over",
                () -> list(KINDS).entrySet().stream()
                        .filter(one -> one.getKey().startsWith("Deployment/")
                                && !one.getKey().equals("Deployment/chain"))
                        .allMatch(one -> one.getValue()
                                .at("/metadata/annotations/nereid.io~1template")
                                .asText()
                                .startsWith("kserve-")));
        until(
                "the graph has no gateway",
                () -> list(OWNERS)
                        .get("InferenceGraph/chain")
                        .path("status")
                        .toString()
                        .contains("GatewayNotReady"));
        Map<String, ObjectNode> after = atRest();
        assertThat(differences(before, after))
                .as("the router of the graph serves on")
                .singleElement()
                .asString()
                .startsWith("Ingress/pipe/");
    }

    /** The gateway is there: what was ready is ready, and new pods are like those of before. */
    private void asBefore(
            Map<String, ObjectNode> before, Map<String, ObjectNode> services, Map<String, JsonNode> pods) {
        until("the services and the graph are ready", this::areReady, this::notReady);
        until("the router goes", () -> left("chain").size() == 1);
        Map<String, ObjectNode> after = atRest();
        assertThat(differences(without(before, "chain"), without(after, "chain")))
                .containsExactly("Ingress/pipe/spec/rules/1/http/paths/0/backend/service/name:"
                        + " \"pipe-predictor\" -> \"pipe-transformer\"");
        assertThat(left("chain")).as("the gateway runs the graph").containsExactly("Service/chain");
        assertThat(statuses(services, list(OWNERS)))
                .containsExactly(
                        "InferenceGraph/chain /status/deploymentMode:  -> Standard",
                        "InferenceService/inside /status/url: http://inside-team-a.example.com"
                                + " -> http://inside-predictor.team-a.svc.cluster.local");

        cluster.client().pods().inNamespace(TEAM).delete();
        until("all pods are made anew", () -> pods().keySet().equals(ofServices(pods)) && areReady());
        List<String> different = new ArrayList<>();
        pods().forEach((of, pod) -> compare(of, pods.get(of), pod, different));
        assertThat(different)
                .as("the operator's webhook completes pods as KServe's does")
                .isEmpty();
    }

    private static Set<String> ofServices(Map<String, JsonNode> pods) {
        Set<String> rest = new TreeSet<>(pods.keySet());
        rest.remove("chain");
        return rest;
    }

    private void changeAndDelete(Map<String, ObjectNode> before) {
        ObjectNode unused = client.merge(
                ResourceKinds.INFERENCE_SERVICE,
                TEAM,
                "wine",
                tree("{'spec':{'predictor':{'model':{'env':[{'name':'FIRST','value':'1'}]}}}}"));
        client.delete(ResourceKinds.INFERENCE_SERVICE, TEAM, "block", null);
        until(
                "the changed service has the operator's template",
                () -> !list(KINDS)
                        .get("Deployment/wine-predictor")
                        .at("/metadata/annotations/nereid.io~1template")
                        .asText()
                        .startsWith("kserve-"));
        until("everything of the deleted service goes", () -> left("block").isEmpty());
        until("the changed service is ready, by the operator's status", () -> {
            ObjectNode wine = list(OWNERS).get("InferenceService/wine");
            return Trees.isTrue(wine, "Ready")
                    && wine.at("/status/observedGeneration").equals(wine.at("/metadata/generation"));
        });
        assertThat(differences(without(before, "chain", "pipe", "wine", "block"), list(KINDS)).stream()
                        .filter(one -> !one.matches("(Pod|.*/(pipe|wine|chain)).*"))
                        .toList())
                .as("no other one changes")
                .isEmpty();
    }

    private void back(
            Map<String, ObjectNode> before,
            Map<String, ObjectNode> services,
            Map<String, JsonNode> pods,
            KserveManager kserve)
            throws IOException {
        String[] others = {"chain", "wine", "block"};
        until(
                "KServe has its fields back",
                () -> differences(without(before, others), without(list(KINDS), others)).stream()
                        .allMatch(one -> one.startsWith("Pod/")));
        Map<String, ObjectNode> after = atRest();
        assertThat(differences(without(before, others), without(after, others)))
                .allMatch(one -> one.startsWith("Pod/"));
        until("the graph has a router again", () -> left("chain").size() == left("chain", before), kserve::log);

        cluster.kubectl("delete", "deployment", "wine-predictor", "-n", TEAM, "--cascade=orphan");
        until(
                "KServe makes the Deployment anew",
                () -> list(KINDS).containsKey("Deployment/wine-predictor"),
                kserve::log);
        until("its pod is one of KServe's", () -> pods().containsKey("wine-predictor") && areReady(), kserve::log);
        ObjectNode made = atRest().get("Deployment/wine-predictor");
        ObjectNode template = before.get("Deployment/wine-predictor");
        List<String> different = new ArrayList<>();
        compare("", template.at("/spec/template"), made.at("/spec/template"), different);
        assertThat(different).singleElement().asString().contains("env");
        assertThat(list(KINDS).get("ReplicaSet/" + replicaSet(before, "wine")).at("/metadata/ownerReferences/0/uid"))
                .as("the ReplicaSets are taken over")
                .isEqualTo(made.at("/metadata/uid"));
        List<String> rest = new ArrayList<>();
        pods().forEach((of, pod) -> {
            if (!of.equals("wine-predictor")) {
                compare(of, pods.get(of), pod, rest);
            }
        });
        assertThat(rest).isEmpty();
        services.remove("InferenceService/block");
        assertThat(statuses(services, list(OWNERS)))
                .containsExactly("InferenceGraph/chain /status/deploymentMode:  -> Standard");

        client.delete(ResourceKinds.INFERENCE_SERVICE, TEAM, "iris", null);
        until("everything of a service goes with it", () -> left("iris").isEmpty(), kserve::log);
    }

    private static int left(String service, Map<String, ObjectNode> objects) {
        return (int) objects.keySet().stream().filter(key -> isOf(key, service)).count();
    }

    private static String replicaSet(Map<String, ObjectNode> objects, String service) {
        return objects.keySet().stream()
                .filter(key -> key.startsWith("ReplicaSet/") && isOf(key, service))
                .map(key -> key.substring("ReplicaSet/".length()))
                .findFirst()
                .orElseThrow();
    }
}
