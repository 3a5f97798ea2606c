// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.core.Plan;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.operator.leader.LeaderElection;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** What the operator builds on, with a real API server. */
@Execution(ExecutionMode.CONCURRENT)
class ClusterClientTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    static Path directory;

    private static TestCluster cluster;
    private static ClusterClient client;

    @BeforeAll
    static void start() throws Exception {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory);
        client = new ClusterClient(cluster.client());
    }

    @AfterAll
    static void stop() {
        if (cluster != null) {
            cluster.close();
        }
    }

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private static ObjectNode deployment(String name, String container) {
        return tree("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'" + name
                + "','namespace':'default','labels':{'app':'" + name + "'}},"
                + "'spec':{'selector':{'matchLabels':{'app':'" + name + "'}},'template':{'metadata':{'labels':{'app':'"
                + name + "'}},'spec':{'nodeSelector':{},'containers':[" + container + "]}}}}");
    }

    private static final String CONTAINER = "{'name':'server','image':'nereid:1','args':['--port','8080'],"
            + "'env':[{'name':'A','value':'1'},{'name':'B','value':'2.0'}],'ports':[{'containerPort':8080}],"
            + "'resources':{'requests':{'cpu':'1000m','memory':'1024Mi'}}}";

    private static void until(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(end);
            LockSupport.parkNanos(50_000_000);
        }
    }

    @Test
    void whatWasAppliedIsNotAppliedAgain() {
        ObjectNode desired = deployment("same", CONTAINER);
        client.apply(ClusterKinds.DEPLOYMENT, desired);
        Supplier<ObjectNode> stored =
                () -> Objects.requireNonNull(client.get(ClusterKinds.DEPLOYMENT, "default", "same"));
        assertThat(difference(desired, stored.get())).isNull();

        // Another manager's replicas, and values in other words, do not count.
        client.merge(ClusterKinds.DEPLOYMENT, "default", "same", tree("{'spec':{'replicas':3}}"));
        assertThat(difference(desired, stored.get())).isNull();
        assertThat(difference(
                        deployment("same", CONTAINER.replace("1000m", "1").replace("1024Mi", "1Gi")), stored.get()))
                .isNull();
        assertThat(difference(
                        deployment(
                                "same",
                                CONTAINER.replace(
                                        "{'name':'A','value':'1'},{'name':'B','value':'2.0'}",
                                        "{'name':'B','value':'2.0'},{'name':'A','value':'1'}")),
                        stored.get()))
                .as("the order of a list with keys")
                .isNull();
    }

    private static String difference(ObjectNode desired, ObjectNode stored) {
        return ApplyDifference.find(desired, stored, ClusterClient.FIELD_MANAGER);
    }

    @Test
    void everyChangeIsADifferenceUntilItIsApplied() {
        client.apply(ClusterKinds.DEPLOYMENT, deployment("changing", CONTAINER));
        String container = "spec.template.spec.containers[server]";
        change(CONTAINER.replace("nereid:1", "nereid:2"), container + ".image");
        change(CONTAINER.replace("'value':'2.0'", "'value':'2'"), container + ".env[B].value");
        change(CONTAINER.replace(",{'name':'B','value':'2.0'}", ""), container + ".env");
        change(CONTAINER.replace("'--port','8080'", "'8080','--port'"), container + ".args[0]");
        change(CONTAINER.replace("'cpu':'1000m'", "'cpu':'1001m'"), container + ".resources.requests.cpu");
        change(CONTAINER.replace(",'ports':[{'containerPort':8080}]", ""), container + ".ports");
        change(CONTAINER.replace("'image':'nereid:1',", "'image':'nereid:1','tty':true,"), container + ".tty");
        ObjectNode labelled = deployment("changing", CONTAINER);
        labelled.withObject("/metadata/labels").removeAll();
        ObjectNode stored = client.apply(ClusterKinds.DEPLOYMENT, deployment("changing", CONTAINER));
        assertThat(difference(labelled, stored)).startsWith("metadata.labels");
    }

    private static void change(String container, String path) {
        ObjectNode before = client.apply(ClusterKinds.DEPLOYMENT, deployment("changing", CONTAINER));
        ObjectNode desired = deployment("changing", container);
        assertThat(difference(desired, before)).startsWith(path.replaceAll("\\[server].*", ""));
        ObjectNode after = client.apply(ClusterKinds.DEPLOYMENT, desired);
        assertThat(difference(desired, after)).as(path).isNull();
    }

    @Test
    void anObjectOfAnotherManagerIsTakenOver() {
        ObjectNode desired = deployment("foreign", CONTAINER);
        cluster.client()
                .genericKubernetesResources("apps/v1", "Deployment")
                .inNamespace("default")
                .load(new java.io.ByteArrayInputStream(
                        desired.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8)))
                .create();
        ObjectNode stored = Objects.requireNonNull(client.get(ClusterKinds.DEPLOYMENT, "default", "foreign"));
        assertThat(difference(desired, stored)).isEqualTo("metadata.managedFields");
        assertThat(difference(desired, client.apply(ClusterKinds.DEPLOYMENT, desired)))
                .isNull();
    }

    @Test
    void errorsHaveTheWordsOfTheApiServer() {
        assertThat(client.get(ClusterKinds.DEPLOYMENT, "default", "absent")).isNull();
        client.delete(ClusterKinds.DEPLOYMENT, "default", "absent", null);
        assertThat(client.has(ClusterKinds.DEPLOYMENT)).isTrue();
        assertThat(client.has(ClusterKinds.HTTP_ROUTE)).isFalse();
        ObjectNode wrong =
                deployment("wrong", CONTAINER.replace("'8080'}", "'8080'}").replace("'cpu':'1000m'", "'cpu':'x'"));
        assertThatThrownBy(() -> client.apply(ClusterKinds.DEPLOYMENT, wrong))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.code()).isIn(ErrorCode.INVALID_ARGUMENT, ErrorCode.UNAVAILABLE))
                .hasMessageContaining("quantities must match");
        ObjectNode map = tree("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'m','namespace':'default'}}");
        ObjectNode first = client.create(ResourceKinds.CONFIG_MAP, map);
        assertThatThrownBy(() -> client.create(ResourceKinds.CONFIG_MAP, map))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.ALREADY_EXISTS));
        client.merge(ResourceKinds.CONFIG_MAP, "default", "m", tree("{'data':{'a':'1'}}"));
        assertThatThrownBy(() -> client.update(ResourceKinds.CONFIG_MAP, first))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.ABORTED));
    }

    @Test
    void aCacheFollowsTheCluster() throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        ObjectNode map = tree("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'seen','namespace':'default',"
                + "'labels':{'watched':'yes'}},'data':{'a':'1'}}");
        client.create(ResourceKinds.CONFIG_MAP, map);
        try (ObjectCache cache =
                new ObjectCache(client, ResourceKinds.CONFIG_MAP, Set.of("default"), "watched", tree -> {
                    tree.withObject("/metadata").remove("managedFields");
                    return tree.path("data").path("a").asText().equals("hidden") ? null : tree;
                })) {
            AutoCloseable unused = cache.listen((change, object) ->
                    seen.add(change + " " + object.path("data").path("a").asText()));
            cache.start(Duration.ofSeconds(30));
            assertThat(cache.get("default", "seen"))
                    .isNotNull()
                    .satisfies(kept -> assertThat(kept.toString()).doesNotContain("managedFields"));
            ObjectNode written = client.merge(ResourceKinds.CONFIG_MAP, "default", "seen", tree("{'data':{'a':'2'}}"));
            cache.written(written);
            assertThat(Objects.requireNonNull(cache.get("default", "seen"))
                            .path("data")
                            .path("a")
                            .asText())
                    .as("a write is seen at once")
                    .isEqualTo("2");
            client.merge(ResourceKinds.CONFIG_MAP, "default", "seen", tree("{'data':{'a':'hidden'}}"));
            until("the object is filtered out", () -> cache.get("default", "seen") == null);
            client.merge(ResourceKinds.CONFIG_MAP, "default", "seen", tree("{'data':{'a':'3'}}"));
            until("the object is back", () -> cache.get("default", "seen") != null);
            client.delete(ResourceKinds.CONFIG_MAP, "default", "seen", null);
            until("the object is gone", () -> cache.get("default", "seen") == null);
        }
        assertThat(seen)
                .containsExactly(
                        Change.Kind.ADDED + " 1",
                        Change.Kind.MODIFIED + " 2",
                        Change.Kind.DELETED + " 2",
                        Change.Kind.ADDED + " 3",
                        Change.Kind.DELETED + " 3");
    }

    @Test
    void repeatedEventsAreCounted() {
        ObjectNode about = client.create(
                ResourceKinds.CONFIG_MAP,
                tree("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'about','namespace':'default'}}"));
        for (int run = 0; run < 2; run++) {
            // The second recorder finds the event of the first, as after a restart.
            try (ClusterEventRecorder events = new ClusterEventRecorder(client, Clock.system())) {
                int expected = 2 * (run + 1);
                events.record(about, new Plan.Event("Warning", "Broken", "it is broken"));
                events.record(about, new Plan.Event("Warning", "Broken", "it is broken"));
                until(
                        "the event is counted",
                        () -> cluster.client().v1().events().inNamespace("default").list().getItems().stream()
                                .anyMatch(e -> e.getInvolvedObject().getName().equals("about")
                                        && e.getReason().equals("Broken")
                                        && Integer.valueOf(expected).equals(e.getCount())));
            }
        }
    }

    @Test
    void anotherReplicaBecomesTheLeaderWhenTheFirstOneEnds() {
        List<String> leaders = new CopyOnWriteArrayList<>();
        try (KubernetesClient one = cluster.connect();
                KubernetesClient two = cluster.connect()) {
            LeaderElection first = new LeaderElection(
                    one, "default", "test", "one", () -> leaders.add("one"), () -> leaders.add("lost"));
            first.start();
            until("the first one leads", first::isLeader);
            try (LeaderElection second = new LeaderElection(
                    two, "default", "test", "two", () -> leaders.add("two"), () -> leaders.add("lost"))) {
                second.start();
                first.close();
                until("the second one leads", () -> leaders.contains("two"));
            }
        }
        assertThat(leaders).containsExactly("one", "two");
    }
}
