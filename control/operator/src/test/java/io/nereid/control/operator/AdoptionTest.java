// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.HOME;
import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.nereid.base.Clock;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import io.nereid.control.operator.adopt.AdoptionPlan;
import io.nereid.control.operator.adopt.ServiceAdoption;
import io.nereid.control.operator.certificate.CertificateKeeper;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.upgrade.UpgradeOptions;
import io.nereid.control.operator.webhook.Webhook;
import io.nereid.control.operator.webhook.WebhookOptions;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.net.ServerSocket;
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
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * The operator takes over services whose objects are as KServe's controller has stored them, on a real control plane that
 * asks the operator's webhook for their pods.
 */
@Execution(ExecutionMode.SAME_THREAD)
class AdoptionTest {
    /** With {@code -Dadoption.services=200}, as many as a fleet has; they take minutes. */
    private static final int SERVICES = Integer.getInteger("adoption.services", 12);

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STAMP = "nereid.io/template";

    /** Cases that are not of this test: other kinds, and a service for which KServe never comes to rest. */
    private static final Set<String> LEFT =
            Set.of("cfg-localmodel", "graph-waits", "multi-model", "refused", "workers");

    @TempDir
    static Path directory;

    private static final List<FakeNode> NODES = new ArrayList<>();
    private static OperatorCluster fixture;
    private static TestCluster cluster;
    private static ClusterClient client;
    private static CertificateKeeper keeper;
    private static Webhook webhook;

    @BeforeAll
    static void start() throws Exception {
        fixture = OperatorCluster.start(directory);
        cluster = fixture.cluster();
        client = fixture.client();
        cluster.define(Stream.of(
                        definition("gateway.networking.k8s.io", "v1", "HTTPRoute"),
                        definition("keda.sh", "v1alpha1", "ScaledObject"),
                        definition("serving.knative.dev", "v1", "Service"),
                        definition("networking.istio.io", "v1beta1", "VirtualService"))
                .map(ObjectNode::toString)
                .toList());
        // A node has 64 processors, and most pods ask for one.
        for (int i = 2; i < 7; i++) {
            NODES.add(new FakeNode(cluster.client(), "node-" + i, "10.244." + i, PodRunner.READY));
        }
        settings(tree("{}"));
        int port = free();
        webhook = new Webhook(client, HOME, new WebhookOptions(port, HOME, condition -> {}));
        webhook.start();
        ObjectNode pods = configuration();
        ((ObjectNode) pods.path("webhooks").path(0))
                .putObject("clientConfig")
                .put("url", "https://127.0.0.1:" + port + "/mutate-pods");
        ObjectNode unused = client.create(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, pods);
        List<String> hosts = new ArrayList<>(CertificateKeeper.hosts(WebhookOptions.SERVICE, HOME));
        hosts.add("127.0.0.1");
        keeper = new CertificateKeeper(client, Clock.system(), HOME, HOME, hosts);
        keeper.start();
        until(
                "the API server trusts the webhook",
                () -> client.get(ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, null, HOME)
                        .at("/webhooks/0/clientConfig")
                        .has("caBundle"));
    }

    /** The configuration of an installation. */
    private static ObjectNode configuration() {
        return OperatorManifests.of(ManifestOptions.of("nereid:1"), JsonNode::toString).stream()
                .filter(one -> one.path("kind").asText().equals("MutatingWebhookConfiguration"))
                .findFirst()
                .orElseThrow();
    }

    private static ObjectNode definition(String group, String version, String kind) {
        String plural = kind.toLowerCase(java.util.Locale.ROOT) + "s";
        return tree("{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'"
                + plural + "." + group + "','annotations':{'api-approved.kubernetes.io':'unapproved, for a test'}},"
                + "'spec':{'group':'" + group + "','scope':'Namespaced','names':{"
                + "'kind':'" + kind + "','plural':'" + plural + "'},'versions':[{'name':'" + version
                + "','served':true,'storage':true,'subresources':{'status':{}},'schema':{'openAPIV3Schema':{'type':"
                + "'object','x-kubernetes-preserve-unknown-fields':true}}}]}}");
    }

    private static int free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @AfterAll
    static void stop() {
        List<AutoCloseable> all = new ArrayList<>(NODES);
        all.add(webhook);
        all.add(keeper);
        all.add(fixture);
        for (AutoCloseable one : all) {
            try {
                if (one != null) {
                    one.close();
                }
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }

    /** Writes KServe's settings with the changes of a profile. */
    private static void settings(JsonNode profile) {
        ObjectNode settings = KserveCatalog.settings();
        settings.withObjectProperty("deploy").put("defaultDeploymentMode", "Standard");
        profile.path("config")
                .properties()
                .forEach(section -> section.getValue()
                        .properties()
                        .forEach(field ->
                                settings.withObjectProperty(section.getKey()).set(field.getKey(), field.getValue())));
        KserveObjects.settings(client, HOME, settings);
        profile.path("objects").forEach(one -> {
            if (one.path("kind").asText().equals("ConfigMap")) {
                ObjectNode own = one.deepCopy();
                own.withObjectProperty("metadata").put("namespace", HOME);
                client.apply(ResourceKinds.CONFIG_MAP, own);
            }
        });
    }

    private static RunningOperator operator(String identity) throws IOException {
        return new RunningOperator(
                cluster,
                new OperatorOptions(
                        HOME,
                        Set.of(),
                        identity,
                        0,
                        null,
                        new WebhookOptions(free(), HOME, condition -> {}, List.of("127.0.0.1")),
                        new UpgradeOptions("1", 1)));
    }

    private static String events(String namespace) {
        try {
            return "\n" + cluster.kubectl("get", "events", "-n", namespace);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofMinutes(5).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            // A condition may list all objects, which is work for the control plane.
            LockSupport.parkNanos(300_000_000);
        }
    }

    private static void namespace(String name) {
        try {
            cluster.client().raw("/api/v1/namespaces", "POST", "{\"metadata\":{\"name\":\"" + name + "\"}}");
        } catch (KubernetesClientException e) {
            assertThat(e.getCode()).isEqualTo(409);
        }
        until("a service account", () -> client.get(ResourceKinds.SERVICE_ACCOUNT, name, "default") != null);
    }

    private static Map<String, ObjectNode> deployments(String namespace) {
        Map<String, ObjectNode> all = new TreeMap<>();
        client.list(ClusterKinds.DEPLOYMENT, namespace)
                .forEach(one -> all.put(
                        one.path("metadata").path("namespace").asText() + "/"
                                + one.path("metadata").path("name").asText(),
                        one));
        return all;
    }

    private static JsonNode template(String namespace, String name) {
        return deployments(namespace).get(namespace + "/" + name).at("/spec/template");
    }

    private static String stamp(ObjectNode deployment) {
        return deployment.path("metadata").path("annotations").path(STAMP).asText("");
    }

    @Test
    void manyServicesKeepTheirTemplatesUntilASpecificationChanges() throws Exception {
        String namespace = "many";
        namespace(namespace);
        IntStream.range(0, SERVICES).parallel().forEach(i -> {
            List<ObjectNode> objects = KserveObjects.service(namespace, "s" + i);
            ObjectNode service = KserveObjects.createService(
                    cluster.client(), objects.get(0), objects.get(0).path("status"));
            String uid = service.path("metadata").path("uid").asText();
            objects.subList(1, objects.size())
                    .forEach(one -> KserveObjects.create(cluster.client(), KserveObjects.owned(one, uid)));
        });
        Map<String, ObjectNode> before = deployments(namespace);
        assertThat(before).hasSize(SERVICES);
        List<ServiceAdoption> planned = new AdoptionPlan(cluster.client(), HOME, true).of(Set.of(namespace));
        assertThat(planned).hasSize(SERVICES).allSatisfy(one -> {
            assertThat(one.template()).isEqualTo(ServiceAdoption.Template.KEPT);
            assertThat(one.changes()).isEmpty();
            assertThat(one.isQuiet()).isTrue();
        });
        assertThat(new AdoptionPlan(cluster.client(), HOME, false).of(Set.of(namespace)))
                .allSatisfy(one -> assertThat(one.template()).isEqualTo(ServiceAdoption.Template.ROLLS));
        deployments(namespace)
                .forEach((name, deployment) -> assertThat(
                                deployment.path("metadata").path("generation"))
                        .as("nothing is written")
                        .isEqualTo(before.get(name).path("metadata").path("generation")));
        RunningOperator running = operator("many");
        try {
            until(
                    "all are taken over",
                    () -> deployments(namespace).values().stream()
                            .noneMatch(one -> stamp(one).isEmpty()));
            Map<String, ObjectNode> after = deployments(namespace);
            after.forEach((name, deployment) -> {
                assertThat(deployment.path("spec"))
                        .as(name)
                        .isEqualTo(before.get(name).path("spec"));
                assertThat(stamp(deployment)).startsWith("kserve-");
            });
            // An operator that starts again leaves them alone, too.
            running.close();
            running = operator("many-again");
            ObjectNode patch = tree("{'spec':{'predictor':{'model':{'env':[{'name':'FIRST','value':'1'}]}}}}");
            ObjectNode unused = client.merge(ResourceKinds.INFERENCE_SERVICE, namespace, "s7", patch);
            until(
                    "the changed service has a new template",
                    () -> !template(namespace, "s7-predictor")
                            .equals(before.get(namespace + "/s7-predictor").at("/spec/template")));
            ObjectNode changed = deployments(namespace).get(namespace + "/s7-predictor");
            JsonNode pod = changed.at("/spec/template/spec");
            assertThat(pod.at("/initContainers/0/args/0").asText()).isEqualTo("gs://zoo/model");
            List<String> variables = new ArrayList<>();
            pod.at("/containers/0/env")
                    .forEach(one -> variables.add(one.path("name").asText()));
            assertThat(variables).containsExactlyInAnyOrder("FIRST", "INFERENCE_SERVICE_NAME");
            assertThat(stamp(changed)).doesNotStartWith("kserve-");
            deployments(namespace).forEach((name, deployment) -> {
                if (!name.endsWith("/s7-predictor")) {
                    assertThat(deployment.path("spec"))
                            .as(name)
                            .isEqualTo(before.get(name).path("spec"));
                }
            });
        } finally {
            running.close();
        }
        backToKserve(namespace);
    }

    /** What KServe's controller does with Deployments when it is back: an update that is not stored says whether to patch. */
    private static void backToKserve(String namespace) throws IOException {
        ObjectNode kept = asOwned(namespace, "s8");
        ObjectNode written = client.dryRunUpdate(ClusterKinds.DEPLOYMENT, kept);
        assertThat(written.at("/spec/template")).isEqualTo(template(namespace, "s8-predictor"));
        ObjectNode rolled = asOwned(namespace, "s7");
        written = client.dryRunUpdate(ClusterKinds.DEPLOYMENT, rolled);
        assertThat(written.at("/spec/template")).isNotEqualTo(template(namespace, "s7-predictor"));
        cluster.kubectl("delete", "deployment", "s7-predictor", "-n", namespace, "--cascade=orphan");
        String anew = KserveObjects.create(cluster.client(), rolled)
                .at("/metadata/uid")
                .asText();
        until("the new Deployment has taken over the ReplicaSets of the former one", () -> {
            try {
                String owners = cluster.kubectl(
                        "get",
                        "replicasets",
                        "-n",
                        namespace,
                        "-l",
                        "app=isvc.s7-predictor",
                        "-o",
                        "jsonpath={.items[*].metadata.ownerReferences[*].uid}");
                return Stream.of(owners.split(" ", -1)).filter(anew::equals).count() > 1;
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        });
    }

    /** The Deployment of a service as KServe's controller writes it. */
    private static ObjectNode asOwned(String namespace, String service) {
        String uid = client.get(ResourceKinds.INFERENCE_SERVICE, namespace, service)
                .at("/metadata/uid")
                .asText();
        return KserveObjects.owned(KserveObjects.service(namespace, service).get(1), uid);
    }

    @Test
    void everyRecordedServiceKeepsItsTemplateAndItsPodsAreThoseOfKserve() throws Exception {
        Path recordings = KserveObjects.recordings();
        assumeTrue(
                recordings != null, "SKIPPED: no recordings of KServe; set NEREID_KSERVE_GOLDENS to their directory");
        List<Path> files;
        try (Stream<Path> all = Files.list(recordings.resolve("shared/inputs"))) {
            files = all.sorted().toList();
        }
        Map<String, List<String>> profiles = new TreeMap<>();
        for (Path file : files) {
            String name = file.getFileName().toString().replace(".yaml", "");
            if (!name.startsWith("kn-") && !LEFT.contains(name)) {
                profiles.computeIfAbsent(
                                KserveObjects.read(file).path("profile").asText(), key -> new ArrayList<>())
                        .add(name);
            }
        }
        List<String> wrong = new ArrayList<>();
        for (Map.Entry<String, List<String>> profile : profiles.entrySet()) {
            settings(KserveObjects.read(recordings.resolve("common/profiles/" + profile.getKey() + ".yaml")));
            try {
                takeOver(recordings, profile.getKey(), profile.getValue(), wrong);
            } finally {
                settings(tree("{}"));
            }
        }
        assertThat(wrong).isEmpty();
    }

    private static void takeOver(Path recordings, String profile, List<String> cases, List<String> wrong)
            throws Exception {
        Map<String, ObjectNode> expected = new TreeMap<>();
        for (String one : cases) {
            expected.put(one, KserveObjects.read(recordings.resolve("shared/expected/" + one + ".yaml")));
            asByKserve(
                    one, KserveObjects.read(recordings.resolve("shared/inputs/" + one + ".yaml")), expected.get(one));
        }
        Map<String, ObjectNode> before = new TreeMap<>();
        cases.forEach(one -> before.putAll(deployments(one)));
        cases.forEach(one -> pods(one, expected.get(one), wrong));
        try (RunningOperator running = operator(profile)) {
            until(
                    "all are taken over",
                    () -> cases.stream()
                            .flatMap(one -> deployments(one).values().stream())
                            .noneMatch(one -> stamp(one).isEmpty()));
            for (String one : cases) {
                Map<String, ObjectNode> after = deployments(one);
                before.forEach((name, deployment) -> {
                    if (name.startsWith(one + "/")) {
                        ObjectNode now = after.get(name);
                        if (now == null
                                || !now.at("/spec/template").equals(deployment.at("/spec/template"))
                                || !stamp(now).startsWith("kserve-")) {
                            wrong.add(name + ": " + (now == null ? "gone" : stamp(now)));
                        }
                    }
                });
            }
        }
    }

    private static void asByKserve(String namespace, ObjectNode input, ObjectNode expected) {
        namespace(namespace);
        input.path("objects").forEach(one -> {
            if (!Set.of("InferenceService", "InferenceGraph")
                    .contains(one.path("kind").asText())) {
                ObjectNode own = one.deepCopy();
                own.withObjectProperty("metadata").put("namespace", namespace);
                if (!own.path("kind").asText().equals("ServiceAccount")
                        || client.get(
                                        ResourceKinds.SERVICE_ACCOUNT,
                                        namespace,
                                        own.at("/metadata/name").asText())
                                == null) {
                    KserveObjects.create(cluster.client(), own);
                }
            }
        });
        Map<String, ObjectNode> statuses = KserveObjects.services(expected, "status");
        Map<String, String> uids = new TreeMap<>();
        KserveObjects.services(expected, "stored").forEach((name, stored) -> {
            ObjectNode service = KserveObjects.createService(
                    cluster.client(), stored, statuses.getOrDefault(name, JSON.createObjectNode()));
            uids.put(name, service.path("metadata").path("uid").asText());
        });
        KserveObjects.objects(expected).forEach((key, object) -> {
            String owner = object.at("/metadata/ownerReferences/0/name").asText();
            if (uids.containsKey(owner)) {
                KserveObjects.create(cluster.client(), KserveObjects.owned(object, uids.get(owner)));
            }
        });
    }

    /** Compares the pods that the API server made of KServe's templates with those that it made with KServe's webhook. */
    private static void pods(String namespace, ObjectNode expected, List<String> wrong) {
        expected.path("pods").forEach(one -> {
            String of = one.path("of").asText();
            if (!deployments(namespace).containsKey(namespace + "/" + of)) {
                return;
            }
            List<ObjectNode> found = new ArrayList<>();
            until("a pod of " + namespace + "/" + of + events(namespace), () -> {
                found.clear();
                client.list(ClusterKinds.POD, namespace).forEach(pod -> {
                    if (pod.at("/metadata/generateName").asText().matches(of + "-[0-9a-z]+-")) {
                        found.add(pod);
                    }
                });
                return !found.isEmpty();
            });
            String difference = KserveObjects.difference(
                    "", KserveObjects.plain((ObjectNode) one.path("pod")), KserveObjects.plain(found.get(0)));
            if (!difference.isEmpty()) {
                wrong.add("pod of " + namespace + "/" + of + ": " + difference);
            }
        });
    }

    private static boolean isReady(String namespace, String name) {
        ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, namespace, name);
        return service != null
                && Trees.isTrue(service, "Ready")
                && service.at("/status/observedGeneration").equals(service.at("/metadata/generation"));
    }

    private static JsonNode predictor(String namespace, String name) {
        return client.get(ResourceKinds.INFERENCE_SERVICE, namespace, name).at("/status/components/predictor");
    }

    private static void change(String namespace, String name, String patch) {
        ObjectNode unused = client.merge(ResourceKinds.INFERENCE_SERVICE, namespace, name, tree(patch));
    }

    @Test
    void knativeServingRunsServicesThatHaveItAndNewOnesByTheSetting() throws Exception {
        String namespace = "serving";
        namespace(namespace);
        KnativePlayer knative = new KnativePlayer(client, namespace);
        Path recordings = KserveObjects.recordings();
        if (recordings != null) {
            ObjectNode expected = KserveObjects.read(recordings.resolve("shared/expected/kn-plain.yaml"));
            asByKserve("kn-plain", KserveObjects.read(recordings.resolve("shared/inputs/kn-plain.yaml")), expected);
            new KnativePlayer(client, "kn-plain").ready("iris-predictor");
            settings(tree("{'config':{'deploy':{'defaultDeploymentMode':'Knative'}}}"));
            assertThat(new AdoptionPlan(cluster.client(), HOME, true).of(Set.of("kn-plain")))
                    .singleElement()
                    .satisfies(one -> {
                        assertThat(one.template()).isEqualTo(ServiceAdoption.Template.KEPT);
                        assertThat(one.changes()).isEmpty();
                    });
        }
        settings(tree("{'config':{'nereid':{'knative':'auto'},'deploy':{'defaultDeploymentMode':'Knative'}}}"));
        try (RunningOperator running = operator("serving")) {
            ObjectNode service = OperatorCluster.service("bird", "Knative", ",'minReplicas':0,'logger':{'mode':'all'}");
            ((ObjectNode) service.get("metadata")).put("namespace", namespace);
            ObjectNode unused = client.create(ResourceKinds.INFERENCE_SERVICE, service);
            until("a Knative Service", () -> knative.service("bird-predictor") != null);
            assertThat(isReady(namespace, "bird")).isFalse();
            JsonNode pod = knative.pod("bird-predictor", "bird-predictor-00001").path("spec");
            assertThat(pod.at("/initContainers/0/args").toString()).isEqualTo("[\"gs://models/iris\",\"/mnt/models\"]");
            assertThat(pod.path("containers").findValuesAsText("name"))
                    .contains("kserve-container", "queue-proxy", "agent");
            assertThat(Trees.named(
                                    Trees.named(pod.path("containers"), "queue-proxy")
                                            .path("env"),
                                    "USER_PORT")
                            .path("value")
                            .asText())
                    .as("the queue leads to the agent")
                    .isEqualTo("9081");
            knative.ready("bird-predictor");
            until("the service is ready", () -> isReady(namespace, "bird"));
            ObjectNode route = client.get(ClusterKinds.VIRTUAL_SERVICE, namespace, "bird");
            assertThat(route.at("/spec/hosts").toString())
                    .isEqualTo("[\"bird.serving.svc.cluster.local\",\"bird.serving.example.com\"]");
            assertThat(client.list(ClusterKinds.DEPLOYMENT, namespace)).isEmpty();
            change(
                    namespace,
                    "bird",
                    "{'spec':{'predictor':{'canaryTrafficPercent':10,'model':{'storageUri':'gs://models/v2'}}}}");
            until(
                    "the new revision gets a tenth",
                    () -> knative.service("bird-predictor").at("/spec/traffic").size() == 2);
            JsonNode stable = knative.service("bird-predictor").at("/spec/traffic/1");
            assertThat(stable.path("revisionName").asText()).isEqualTo("bird-predictor-00001");
            assertThat(stable.path("percent").asInt()).isEqualTo(90);
            knative.ready("bird-predictor");
            until("the canary is ready", () -> isReady(namespace, "bird"));
            change(namespace, "bird", "{'spec':{'predictor':{'canaryTrafficPercent':null}}}");
            until(
                    "all requests to the newest",
                    () -> knative.service("bird-predictor").at("/spec/traffic").size() == 1);
            String last = knative.ready("bird-predictor");
            until(
                    "the rollout is known",
                    () -> predictor(namespace, "bird")
                            .path("latestRolledoutRevision")
                            .asText()
                            .equals(last));
            long generation =
                    knative.service("bird-predictor").at("/metadata/generation").asLong();
            LockSupport.parkNanos(Duration.ofSeconds(3).toNanos());
            assertThat(knative.service("bird-predictor")
                            .at("/metadata/generation")
                            .asLong())
                    .as("nothing is written again")
                    .isEqualTo(generation);
            change(namespace, "bird", "{'metadata':{'annotations':{'serving.kserve.io/stop':'true'}}}");
            until(
                    "a stopped service has nothing",
                    () -> knative.service("bird-predictor") == null
                            && client.get(ClusterKinds.VIRTUAL_SERVICE, namespace, "bird") == null);
            if (recordings != null) {
                ObjectNode kept = new KnativePlayer(client, "kn-plain").service("iris-predictor");
                assertThat(kept.at("/metadata/generation").asLong())
                        .as("a Knative Service of KServe keeps its revision")
                        .isEqualTo(1);
                until("its service is ready", () -> isReady("kn-plain", "iris"));
            }
        } finally {
            settings(tree("{}"));
        }
    }
}
