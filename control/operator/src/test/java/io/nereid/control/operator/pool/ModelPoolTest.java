// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.operator.gateway.RevisionLoad;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;

/** A pool with pods that the test plays: every call ends when the test lets it. */
class ModelPoolTest {
    private static final long MIB = 1L << 20;

    private long now = 1_000_000_000L;

    private final Clock clock = new Clock() {
        @Override
        public long nanos() {
            return now;
        }

        @Override
        public long millis() {
            return now / 1_000_000;
        }
    };

    /** The calls to pods and gateways, in order. */
    private final List<String> log = new ArrayList<>();

    private final Map<String, Set<String>> loaded = new TreeMap<>();
    private final Map<String, String> broken = new HashMap<>();
    private final Map<String, List<String>> tables = new TreeMap<>();
    private final Map<String, Double> rates = new HashMap<>();
    private final Deque<Runnable> gatewaysFollow = new ArrayDeque<>();
    private boolean gatewaysWait;

    private final PoolServers servers = new PoolServers() {
        @Override
        public CompletionStage<Set<String>> loaded(Holder pod) {
            return CompletableFuture.completedFuture(
                    Set.copyOf(loaded.computeIfAbsent(pod.name(), name -> new TreeSet<>())));
        }

        @Override
        public CompletionStage<Void> load(Holder pod, String model, String uri) {
            log.add("load " + model + " " + uri + " on " + pod.name());
            String problem = broken.get(uri);
            if (problem != null) {
                // As a stage after the call fails.
                return CompletableFuture.<Void>failedFuture(ServingException.invalidArgument(problem))
                        .thenApply(done -> done);
            }
            loaded.computeIfAbsent(pod.name(), name -> new TreeSet<>()).add(model);
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public CompletionStage<Void> unload(Holder pod, String model) {
            log.add("unload " + model + " on " + pod.name());
            assertThat(tables.getOrDefault(model, List.of()))
                    .as("the pods to which gateways send requests for " + model)
                    .doesNotContain(pod.name());
            loaded.getOrDefault(pod.name(), new TreeSet<>()).remove(model);
            return CompletableFuture.completedFuture(null);
        }
    };

    private final PoolTables published = (service, holders, followed) -> {
        List<String> names = holders.stream().map(Holder::name).toList();
        assertThat(names)
                .as("pods that have " + service.name())
                .allSatisfy(pod -> assertThat(loaded.get(pod)).contains(service.name()));
        log.add("table " + service.name() + " " + names);
        CompletableFuture<Void> done = new CompletableFuture<>();
        Runnable follow = () -> {
            tables.put(service.name(), names);
            done.complete(null);
        };
        if (gatewaysWait && followed) {
            gatewaysFollow.add(follow);
        } else {
            follow.run();
        }
        return done;
    };

    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private final ModelPool pool = new ModelPool(
            "default/pool", new PoolSize(200 * MIB, 2, 1, 4), servers, published, tasks::add, clock, s -> {});

    private final List<PoolPod> pods = new ArrayList<>();

    private void settle() {
        while (!tasks.isEmpty()) {
            tasks.remove().run();
        }
    }

    private void tick(int seconds) {
        for (int i = 0; i < seconds; i++) {
            now += Duration.ofSeconds(1).toNanos();
            pool.tick((service, revision) -> new RevisionLoad(
                    "default",
                    revision,
                    1,
                    rates.getOrDefault(service.name(), 0.0) * 0.01,
                    rates.getOrDefault(service.name(), 0.0),
                    0,
                    0));
            settle();
        }
    }

    private static Holder holder(String name) {
        return new Holder(name, name + "-uid", "10.0.0." + name.charAt(name.length() - 1), 8080, 8081, "");
    }

    private void pod(String name, boolean ready, boolean ending) {
        pods.removeIf(pod -> pod.holder().name().equals(name));
        if (ready || ending) {
            pods.add(new PoolPod(holder(name), ready, ending, true));
        }
        pool.pods(List.copyOf(pods));
        settle();
    }

    private PooledService service(String name, String uri, long mib) {
        PooledService service = new PooledService(
                new Owner("serving.kserve.io/v1beta1", "InferenceService", name, "default", name + "-uid"),
                Set.of(name + "-predictor-00001"),
                new SharedModel("pool", uri, mib * MIB, false, 1, 4, JsonNodeFactory.instance.objectNode()));
        pool.put(service);
        settle();
        return Objects.requireNonNull(pool.service(name));
    }

    private List<String> since(int before) {
        return log.subList(before, log.size());
    }

    @Test
    void aModelIsLoadedBeforeGatewaysSendRequests() {
        PooledService iris = service("iris", "gs://iris", 50);
        assertThat(iris.state().phase()).isEqualTo(Phase.PENDING);
        pod("pod-1", true, false);
        assertThat(log).containsExactly("load iris gs://iris on pod-1", "table iris [pod-1]");
        assertThat(iris.state().phase()).isEqualTo(Phase.READY);
    }

    @Test
    void aModelThatCannotBeLoadedSaysWhyAndIsTriedAgain() {
        broken.put("gs://iris", "no model there");
        pod("pod-1", true, false);
        PooledService iris = service("iris", "gs://iris", 50);
        assertThat(iris.state().phase()).isEqualTo(Phase.FAILED);
        assertThat(iris.state().failure().message()).isEqualTo("no model there");
        tick(30);
        assertThat(log).hasSize(1);
        broken.clear();
        tick(60);
        assertThat(iris.state().phase()).isEqualTo(Phase.READY);
        assertThat(iris.state().failure()).isNull();
    }

    @Test
    void theLeastRecentlyUsedModelGoesAfterTheGatewaysHaveFollowed() {
        pod("pod-1", true, false);
        PooledService first = service("first", "gs://1", 90);
        tick(2);
        service("second", "gs://2", 90);
        rates.put("second", 10.0);
        tick(5);
        gatewaysWait = true;
        int before = log.size();
        PooledService third = service("third", "gs://3", 90);
        assertThat(since(before)).containsExactly("table first []");
        assertThat(third.state().phase()).isEqualTo(Phase.PENDING);
        gatewaysFollow.remove().run();
        settle();
        assertThat(since(before))
                .containsExactly(
                        "table first []", "unload first on pod-1", "load third gs://3 on pod-1", "table third [pod-1]");
        assertThat(first.state().phase()).isEqualTo(Phase.STANDBY);

        tick(1);
        gatewaysWait = false;
        pool.wake("first");
        settle();
        assertThat(first.state().phase()).isEqualTo(Phase.READY);
        assertThat(third.state().phase()).as("used least recently").isEqualTo(Phase.STANDBY);
    }

    @Test
    void whatFitsNowhereWaitsAndThePoolGrows() {
        pod("pod-1", true, false);
        PooledService large = service("large", "gs://large", 900);
        assertThat(large.state().phase()).isEqualTo(Phase.FAILED);
        assertThat(large.state().failure().message())
                .contains("waits for memory")
                .contains("943718400");
        assertThat(pool.desired(1)).isEqualTo(2);
    }

    @Test
    void modelsOfAPodThatEndsMoveBeforeItIsLeft() {
        pod("pod-1", true, false);
        PooledService iris = service("iris", "gs://iris", 50);
        rates.put("iris", 5.0);
        tick(3);
        pod("pod-2", true, false);
        tick(2);
        String has = tables.get("iris").get(0);
        String other = has.equals("pod-1") ? "pod-2" : "pod-1";
        int before = log.size();
        pod(has, false, true);
        tick(3);
        assertThat(since(before))
                .containsSubsequence(
                        "load iris gs://iris on " + other, "table iris [" + other + "]", "unload iris on " + has);
        assertThat(since(before)).doesNotContain("table iris []");
        assertThat(iris.state().phase()).isEqualTo(Phase.READY);
    }

    @Test
    void modelsOfALostPodAreLoadedElsewhereTheMostUsedFirst() {
        pod("pod-1", true, false);
        service("rare", "gs://rare", 20);
        service("often", "gs://often", 20);
        PooledService unused = service("unused", "gs://unused", 20);
        rates.put("rare", 1.0);
        rates.put("often", 3.0);
        tick(15 * 60); // what was used only by its first load is not in use any more
        pods.clear();
        int before = log.size();
        pod("pod-2", true, false);
        tick(2);
        assertThat(since(before))
                .containsSubsequence("table rare []", "load often gs://often on pod-2", "table often [pod-2]");
        assertThat(loaded.get("pod-2")).contains("often", "rare").doesNotContain("unused");
        assertThat(unused.state().phase()).isEqualTo(Phase.STANDBY);
    }

    @Test
    void anotherUriIsLoadedInPlaceWhileTheModelServes() {
        pod("pod-1", true, false);
        PooledService iris = service("iris", "gs://1", 50);
        broken.put("gs://2", "it is broken");
        int before = log.size();
        service("iris", "gs://2", 50);
        assertThat(since(before)).containsExactly("load iris gs://2 on pod-1");
        assertThat(iris.state().phase()).isEqualTo(Phase.FAILED);
        assertThat(tables.get("iris")).containsExactly("pod-1");
        service("iris", "gs://3", 50);
        assertThat(since(before)).containsExactly("load iris gs://2 on pod-1", "load iris gs://3 on pod-1");
        assertThat(iris.state().phase()).isEqualTo(Phase.READY);
    }

    @Test
    void aNewOperatorTakesOverWhatPodsHave() {
        loaded.put("pod-1", new TreeSet<>(Set.of("iris", "old")));
        pod("pod-1", true, false);
        PooledService iris = new PooledService(
                new Owner("serving.kserve.io/v1beta1", "InferenceService", "iris", "default", "uid"),
                Set.of("iris-predictor-00001"),
                new SharedModel("pool", "gs://iris", 50 * MIB, false, 1, 4, JsonNodeFactory.instance.objectNode()));
        iris.proven = true;
        pool.put(iris);
        settle();
        assertThat(iris.state().phase()).isEqualTo(Phase.READY);
        assertThat(log).containsExactly("load iris gs://iris on pod-1", "table iris [pod-1]");
        tick(61);
        assertThat(log).contains("unload old on pod-1");
    }

    @Test
    void aServiceThatGoesIsUnloaded() {
        pod("pod-1", true, false);
        service("iris", "gs://iris", 50);
        pool.remove("iris");
        settle();
        assertThat(log).containsSubsequence("table iris []", "unload iris on pod-1");
        assertThat(pool.isEmpty()).isTrue();
    }

    @Test
    void aServiceWhoseModelWasNeverLoadedGoesAtOnce() {
        broken.put("gs://iris", "no model there");
        pod("pod-1", true, false);
        service("iris", "gs://iris", 50);
        pool.remove("iris");
        settle();
        assertThat(pool.isEmpty()).as("nothing is left to unload").isTrue();
    }
}
