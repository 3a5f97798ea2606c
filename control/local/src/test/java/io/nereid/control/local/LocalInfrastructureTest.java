// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import static io.nereid.control.local.workload.Fakes.ONE;
import static io.nereid.control.local.workload.Fakes.ZERO;
import static io.nereid.control.local.workload.Fakes.model;
import static io.nereid.control.local.workload.Fakes.plan;
import static io.nereid.control.local.workload.Fakes.route;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.workload.Fakes;
import io.nereid.control.local.workload.Fakes.FakeActivator;
import io.nereid.control.local.workload.Fakes.FakeArtifacts;
import io.nereid.control.local.workload.Fakes.FakeComponents;
import io.nereid.control.local.workload.Fakes.FakeEngine;
import io.nereid.control.local.workload.Fakes.FakeLoop;
import io.nereid.control.local.workload.Fakes.FakeRouting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LocalInfrastructureTest {
    @TempDir
    Path disk;

    private final FakeLoop loop = new FakeLoop();
    private final FakeEngine engine = new FakeEngine();
    private final FakeArtifacts artifacts = new FakeArtifacts();
    private final FakeComponents components = new FakeComponents();
    private final FakeRouting routing = new FakeRouting();
    private final List<String> changes = new ArrayList<>();
    private LocalInfrastructure infrastructure = null;
    private Path model = null;

    @BeforeEach
    void start() {
        infrastructure =
                new LocalInfrastructure(Fakes.settings(disk), engine.models, artifacts, components, routing, loop);
        engine.listener = infrastructure::modelState;
        infrastructure.onChange((namespace, service) -> changes.add(namespace + "/" + service));
        infrastructure.start();
        model = Fakes.sklearnModel(disk.resolve("model"));
        artifacts.paths.put("s3://models/iris", model);
    }

    @AfterEach
    void closeLogs() {
        infrastructure.apply("default", "iris", plan(null));
        loop.seconds(2);
    }

    private WorkloadState state(String revision) {
        return Objects.requireNonNull(infrastructure.observe("default", "iris").get(revision), revision);
    }

    @Test
    void aModelIsFetchedDeployedAndThenReceivesRequests() {
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        engine.slow = true;
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.LOADING);
        assertThat(routing.activator("iris-1").capacity).isZero();

        engine.report("default/iris-1", io.nereid.spi.ServableState.Phase.AVAILABLE, null);
        loop.run();

        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
        assertThat(state("iris-1").replicas()).isEqualTo(1);
        assertThat(routing.activator("iris-1").capacity).isEqualTo(1);
        assertThat(routing.activator("iris-1").destination)
                .isEqualTo(new RevisionTarget.Models("default/iris-1", false, "iris"));
        assertThat(engine.aspired.get("default/iris-1").directory()).isEqualTo(model);
        assertThat(changes).contains("default/iris");
    }

    @Test
    void argumentsWithoutEffectAreReportedInTheLog() {
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        loop.run();

        assertThat(infrastructure.logs("default", "iris-1", 100))
                .anyMatch(l -> l.contains("--http_port has no effect"))
                .anyMatch(l -> l.contains("the model is ready"));
    }

    @Test
    void filesThatCannotBeFetchedAreReportedAndRetried() {
        artifacts.failing.put(
                "s3://models/iris", ServingException.of(ErrorCode.NOT_FOUND, "no bucket 'models'", "create it"));
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.FAILED);
        assertThat(Objects.requireNonNull(state("iris-1").failure()).message()).contains("no bucket 'models'");
        assertThat(Objects.requireNonNull(state("iris-1").failure()).reason()).isEqualTo("ModelLoadFailed");
        assertThat(routing.activator("iris-1").rejection).contains("no bucket");

        artifacts.failing.clear();
        loop.seconds(9);
        assertThat(state("iris-1").phase()).isEqualTo(Phase.FAILED);
        loop.seconds(2);

        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
        assertThat(routing.activator("iris-1").rejection).isNull();
    }

    @Test
    void aChangedSecretHasFilesFetchedAtOnce() {
        artifacts.failing.put("s3://models/iris", ServingException.of(ErrorCode.UNAUTHENTICATED, "who are you"));
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        loop.run();
        artifacts.failing.clear();

        infrastructure.retry("default");
        loop.run();

        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
    }

    @Test
    void aModelThatFailsIsRetriedAndItsReasonIsKept() {
        engine.failing.put("default/iris-1", "it is not a pickle");
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.FAILED);
        assertThat(Objects.requireNonNull(state("iris-1").failure()).message()).isEqualTo("it is not a pickle");

        engine.failing.clear();
        loop.seconds(11);

        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
        assertThat(state("iris-1").failure()).isNull();
    }

    @Test
    void aRepositoryIsReadyWhenAllItsModelsAre() {
        Path repository = disk.resolve("repository");
        Fakes.sklearnModel(repository.resolve("a"));
        Fakes.sklearnModel(repository.resolve("b"));
        artifacts.paths.put("s3://models/iris", repository);
        engine.failing.put("default/iris-1/b", "broken");
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.FAILED);
        assertThat(Objects.requireNonNull(state("iris-1").failure()).message()).contains("model 'b': broken");

        engine.failing.clear();
        loop.seconds(11);

        assertThat(routing.activator("iris-1").destination)
                .isEqualTo(new RevisionTarget.Models("default/iris-1", true, "iris"));
    }

    @Test
    void anIdleServiceGoesToZeroAndTheNextRequestBringsItBack() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ZERO)));
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);

        loop.seconds(100);
        assertThat(state("iris-1").phase()).isEqualTo(Phase.STANDBY);
        assertThat(engine.aspired).isEmpty();
        assertThat(routing.activator("iris-1").capacity).isZero();

        infrastructure.wake("default", "iris-1");
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
        assertThat(routing.activator("iris-1").capacity).isEqualTo(1);
    }

    @Test
    void aWakingServiceStaysInStandbyUntilItIsReady() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ZERO)));
        loop.seconds(100);
        engine.slow = true;

        infrastructure.wake("default", "iris-1");
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.STANDBY);
        assertThat(engine.aspired).containsKey("default/iris-1");

        engine.report("default/iris-1", io.nereid.spi.ServableState.Phase.AVAILABLE, null);
        loop.run();
        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
    }

    @Test
    void trafficScalesInstancesUpAndDown() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ZERO)));
        loop.run();
        FakeActivator activator = routing.activator("iris-1");

        activator.load(3);
        loop.seconds(30);
        assertThat(state("iris-1").replicas()).isEqualTo(3);
        assertThat(engine.aspired.get("default/iris-1").instances()).isEqualTo(3);
        assertThat(activator.capacity).isEqualTo(3);

        activator.load(0);
        loop.seconds(200);
        assertThat(state("iris-1").phase()).isEqualTo(Phase.STANDBY);
    }

    @Test
    void anIdleServiceRests() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.seconds(400);
        int calls = engine.calls;
        int before = routing.activator("iris-1").samples;
        int ran = loop.ran;

        loop.seconds(100);

        assertThat(engine.calls).isEqualTo(calls);
        assertThat(routing.activator("iris-1").samples - before).isBetween(99, 101);
        assertThat(loop.ran - ran).isLessThan(10);
    }

    @Test
    void aRevisionThatIsNoLongerPlannedEndsAfterItsLastRequest() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.run();
        FakeActivator activator = routing.activator("iris-1");
        activator.busy = true;

        infrastructure.apply("default", "iris", plan(route("iris-2"), model("iris-2", ONE)));
        loop.run();
        assertThat(activator.closed).isTrue();
        assertThat(engine.aspired).containsKeys("default/iris-1", "default/iris-2");
        assertThat(state("iris-1").phase()).isEqualTo(Phase.PENDING);

        Objects.requireNonNull(activator.drained).run();
        loop.seconds(1);
        assertThat(engine.aspired).containsOnlyKeys("default/iris-2");
        assertThat(infrastructure.observe("default", "iris")).containsOnlyKeys("iris-2");
        assertThat(artifacts.leases).isEqualTo(1);
    }

    @Test
    void aRevisionThatIsPlannedAgainWhileItEndsComesBack() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.run();
        FakeActivator activator = routing.activator("iris-1");
        activator.busy = true;
        infrastructure.apply("default", "iris", plan(route("iris-2"), model("iris-2", ONE)));
        loop.run();

        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.run();
        Objects.requireNonNull(activator.drained).run();
        loop.seconds(1);

        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
        assertThat(infrastructure.observe("default", "iris")).containsOnlyKeys("iris-1");
    }

    @Test
    void theSamePlanTwiceDoesNothing() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.run();
        int calls = engine.calls;

        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.run();

        assertThat(engine.calls).isEqualTo(calls);
    }

    @Test
    void anotherScaleReloadsNothing() {
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", ONE)));
        loop.run();

        Scaling three = new Scaling(3, 3, "concurrency", null, "kpa", Map.of());
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", three)));
        loop.seconds(3);

        assertThat(engine.aspired.get("default/iris-1").instances()).isEqualTo(3);
        assertThat(artifacts.fetches).isEqualTo(1);
        assertThat(state("iris-1").phase()).isEqualTo(Phase.READY);
    }

    @Test
    void aFixedNumberOfReplicasIsNotScaled() {
        Scaling two = new Scaling(2, 0, "concurrency", null, "none", Map.of());
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", two)));
        loop.seconds(200);

        assertThat(state("iris-1").replicas()).isEqualTo(2);
    }

    @Test
    void aMetricThatIsNotMeasuredIsReportedInTheLog() {
        Scaling cpu = new Scaling(1, 5, "cpu", 80.0, "kpa", Map.of());
        infrastructure.apply("default", "iris", plan(route("iris-1"), model("iris-1", cpu)));
        loop.run();

        assertThat(infrastructure.logs("default", "iris-1", 100))
                .anyMatch(l -> l.contains("the metric 'cpu' is not measured on one machine"));
    }

    @Test
    void anExplainerIsCreatedAndClosed() {
        Workload explainer = Fakes.workload(
                "iris-e-1", Component.EXPLAINER, new Workload.Explainer("shap", Map.of(), List.of()), ONE);
        infrastructure.apply("default", "iris", plan(route("iris-e-1"), explainer));
        loop.run();
        assertThat(state("iris-e-1").phase()).isEqualTo(Phase.READY);
        assertThat(routing.activator("iris-e-1").destination).isInstanceOf(RevisionTarget.Handler.class);

        infrastructure.apply("default", "iris", plan(null));
        loop.run();
        assertThat(components.running).isZero();
    }

    @Test
    void anUnknownExplainerFailsWithItsReason() {
        Workload explainer = Fakes.workload(
                "iris-e-1", Component.EXPLAINER, new Workload.Explainer("magic", Map.of(), List.of()), ONE);
        infrastructure.apply("default", "iris", plan(null, explainer));
        loop.run();

        assertThat(state("iris-e-1").phase()).isEqualTo(Phase.FAILED);
        assertThat(Objects.requireNonNull(state("iris-e-1").failure()).message())
                .contains("magic");
    }

    private static Workload steps(@Nullable String file) {
        Workload.Artifact where = new Workload.Artifact("s3://b/steps", "/mnt/models", null, Map.of(), null, null);
        return Fakes.workload(
                "iris-t-1",
                Component.TRANSFORMER,
                new Workload.Transformer(null, file, Map.of("a", "b"), List.of(where)),
                ONE);
    }

    @Test
    void aTransformerOfAJarRunsInThisProcess(@TempDir Path files) throws IOException {
        Path jar = Files.createFile(files.resolve("steps.jar"));
        artifacts.paths.put("s3://b/steps", files);
        infrastructure.apply("default", "iris", plan(route("iris-t-1"), steps(null)));
        loop.run();

        assertThat(components.jars).containsExactly(jar);
        assertThat(state("iris-t-1").phase()).isEqualTo(Phase.READY);
        assertThat(routing.activator("iris-t-1").destination).isInstanceOf(RevisionTarget.Handler.class);

        infrastructure.apply("default", "iris", plan(null));
        loop.run();
        assertThat(components.running).isZero();
        assertThat(artifacts.leases).isZero();
    }

    @Test
    void moreThanOneReplicaOfAnInProcessTransformerIsReported(@TempDir Path files) throws IOException {
        Path jar = Files.createFile(files.resolve("steps.jar"));
        artifacts.paths.put("s3://b/steps", jar);
        Workload two = Fakes.workload(
                "iris-t-1",
                Component.TRANSFORMER,
                steps(null).form(),
                new Scaling(2, 3, "concurrency", null, "kpa", Map.of()));
        infrastructure.apply("default", "iris", plan(route("iris-t-1"), two));
        loop.run();

        assertThat(state("iris-t-1").replicas()).isEqualTo(1);
        assertThat(infrastructure.logs("default", "iris-t-1", 100))
                .anyMatch(l -> l.contains("minReplicas 2 has no effect"));
    }

    @Test
    void filesWithoutATransformerFailWithTheExistingOnes(@TempDir Path files) throws IOException {
        Files.createFile(files.resolve("words.txt"));
        artifacts.paths.put("s3://b/steps", files);
        infrastructure.apply("default", "iris", plan(null, steps(null)));
        loop.run();

        assertThat(state("iris-t-1").phase()).isEqualTo(Phase.FAILED);
        assertThat(Objects.requireNonNull(state("iris-t-1").failure()).message())
                .contains("s3://b/steps", "does not contain a .jar or .py file", "words.txt");
    }

    @Test
    void aGraphIsARevisionOfItsOwnAndEndsWithItsRoute() {
        Route graph = new Route("default", "pipe", "InferenceGraph", List.of(), Map.of(), "{\"nodes\":{}}");
        infrastructure.apply("default", "pipe", plan(graph));
        loop.run();
        assertThat(components.graphs).isEqualTo(1);
        assertThat(routing.activator("pipe").capacity).isEqualTo(1);
        assertThat(routing.routes.get("default/pipe").components()).containsKey(Component.PREDICTOR);

        infrastructure.apply("default", "pipe", plan(graph));
        loop.run();
        assertThat(components.graphs).isEqualTo(1);

        infrastructure.apply("default", "pipe", plan(null));
        loop.run();
        assertThat(components.graphs).isZero();
        assertThat(routing.routes).isEmpty();
    }

    @Test
    void logLinesAreInAFileToo() throws Exception {
        infrastructure.apply("default", "iris", plan(null, model("iris-1", ONE)));
        loop.run();

        assertThat(Files.readString(disk.resolve("logs/default.iris-1.log"))).contains("fetching s3://models/iris");
    }
}
