// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore.Key;
import io.nereid.control.api.store.ResourceStore.Type;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.local.workload.Fakes;
import io.nereid.control.local.workload.Fakes.FakeArtifacts;
import io.nereid.control.local.workload.Fakes.FakeComponents;
import io.nereid.control.local.workload.Fakes.FakeEngine;
import io.nereid.control.local.workload.Fakes.FakeLoop;
import io.nereid.control.local.workload.Fakes.FakeRouting;
import io.nereid.control.plane.PlanReconciler;
import io.nereid.control.plane.ServiceController;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.reconcile.EventRecorder;
import io.nereid.control.plane.reconcile.RevisionStore;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The controller with the real planner, with a simulated clock. */
class ServiceControllerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Type SERVICES = new Type("serving.kserve.io", "inferenceservices");
    private static final Type GRAPHS = new Type("serving.kserve.io", "inferencegraphs");

    @TempDir
    Path disk;

    private final MemoryStore store = new MemoryStore();
    private Machine machine = null;

    /** A fake infrastructure. */
    private final class Machine {
        final FakeLoop loop = new FakeLoop();
        final FakeEngine engine = new FakeEngine();
        final FakeArtifacts artifacts = new FakeArtifacts();
        final FakeComponents components = new FakeComponents();
        final FakeRouting routing = new FakeRouting();
        final LocalInfrastructure infrastructure =
                new LocalInfrastructure(Fakes.settings(disk), engine.models, artifacts, components, routing, loop);
        final ServiceController controller = new ServiceController(
                store,
                new PlanReconciler(store, infrastructure),
                new RuntimeCatalogCache(
                        () -> new RuntimeCatalog.Gateway("localhost:8080", "localhost:8081"),
                        InferenceServiceConfig::defaults),
                new EventRecorder(store, loop.clock()),
                Retries.ofReconciliation(),
                loop);

        Machine() {
            artifacts.others = Fakes.sklearnModel(disk.resolve("model"));
            engine.listener = infrastructure::modelState;
            infrastructure.start();
            controller.start();
            loop.seconds(3);
        }
    }

    @BeforeEach
    void start() {
        machine = new Machine();
    }

    private static ObjectNode service(String uri) {
        return tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService',"
                + "'metadata':{'name':'iris','namespace':'default','generation':1},"
                + "'spec':{'predictor':{'model':{'modelFormat':{'name':'sklearn'},'storageUri':'" + uri + "'}}}}");
    }

    private static ObjectNode tree(String json) {
        try {
            ObjectNode tree = (ObjectNode) JSON.readTree(json.replace('\'', '"'));
            var kind = ResourceKinds.byKind(
                    tree.path("apiVersion").asText(), tree.path("kind").asText());
            return kind == null
                    ? tree
                    : new Admission(AdmissionContext.NONE)
                            .admit(kind, tree, null)
                            .resource();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private void apply(ObjectNode service) {
        if (store.get(new Key(SERVICES, "default", "iris")) == null) {
            store.create(SERVICES, service);
        } else {
            ObjectNode old = Objects.requireNonNull(store.get(new Key(SERVICES, "default", "iris")));
            old.set("spec", service.path("spec"));
            old.withObject("/metadata")
                    .put("generation", old.path("metadata").path("generation").asLong() + 1);
            store.update(SERVICES, old, null);
        }
        machine.loop.seconds(5);
    }

    private @Nullable ObjectNode current() {
        return store.get(new Key(SERVICES, "default", "iris"));
    }

    private JsonNode condition(String type) {
        for (JsonNode c : Objects.requireNonNull(current()).path("status").path("conditions")) {
            if (c.path("type").asText().equals(type)) {
                return c;
            }
        }
        return JSON.missingNode();
    }

    @Test
    void anAppliedServiceBecomesReadyAndHasARoute() {
        apply(service("s3://models/iris"));

        assertThat(condition("Ready").path("status").asText()).isEqualTo("True");
        assertThat(machine.routing.routes).containsKey("default/iris");
        assertThat(machine.engine.aspired).hasSize(1);
        assertThat(store.list(EventRecorder.EVENTS, null).items())
                .anyMatch(e -> e.path("reason").asText().equals("InferenceServiceReady"));
        assertThat(Objects.requireNonNull(current())
                        .path("metadata")
                        .path("finalizers")
                        .toString())
                .contains("inferenceservice.finalizers");
    }

    @Test
    void aSettledServiceIsNotWrittenAgain() {
        apply(service("s3://models/iris"));
        int writes = store.writes;

        machine.loop.seconds(120);

        assertThat(store.writes).isEqualTo(writes);
    }

    @Test
    void filesThatCannotBeFetchedAreInTheStatus() {
        machine.artifacts.failing.put(
                "s3://models/iris", ServingException.of(ErrorCode.NOT_FOUND, "no bucket 'models'"));
        apply(service("s3://models/iris"));

        assertThat(condition("Ready").path("status").asText()).isNotEqualTo("True");
        assertThat(Objects.requireNonNull(current())
                        .path("status")
                        .path("modelStatus")
                        .path("lastFailureInfo")
                        .path("message")
                        .asText())
                .contains("no bucket 'models'");
        assertThat(machine.routing.routes.toString()).doesNotContain("percent=100");
    }

    @Test
    void aNewRevisionTakesTrafficWhenItIsReadyAndTheOldOneGoes() {
        apply(service("s3://models/iris"));
        machine.artifacts.failing.put("s3://models/iris2", ServingException.of(ErrorCode.NOT_FOUND, "no iris2"));

        apply(service("s3://models/iris2"));
        assertThat(machine.routing.routes.get("default/iris").toString())
                .contains("00001")
                .doesNotContain("00002");
        assertThat(machine.engine.aspired.keySet()).anyMatch(n -> n.contains("00001"));

        machine.artifacts.failing.clear();
        machine.loop.seconds(400);
        assertThat(machine.routing.routes.get("default/iris").toString()).contains("00002");
        assertThat(machine.engine.aspired.keySet()).anyMatch(n -> n.contains("00002"));
    }

    @Test
    void aDeletedServiceDrainsAndGoes() {
        apply(service("s3://models/iris"));
        var activator = machine.routing.activators.values().iterator().next();
        activator.busy = true;

        store.delete(new Key(SERVICES, "default", "iris"), null);
        machine.loop.seconds(5);
        assertThat(current()).isNotNull();
        assertThat(activator.closed).isTrue();
        assertThat(machine.routing.routes).isEmpty();

        Objects.requireNonNull(activator.drained).run();
        machine.loop.seconds(5);
        assertThat(current()).isNull();
        assertThat(machine.engine.aspired).isEmpty();
        assertThat(store.get(new Key(RevisionStore.REVISIONS, "default", "iris")))
                .isNull();
    }

    @Test
    void afterAKillEverythingComesBackUnderItsNames() {
        apply(service("s3://models/iris"));
        apply(service("s3://models/iris2"));
        var route = machine.routing.routes.get("default/iris");
        int writes = store.writes;

        machine.controller.close();
        machine = new Machine();
        machine.loop.seconds(5);

        assertThat(machine.routing.routes.get("default/iris")).isEqualTo(route);
        assertThat(machine.engine.aspired.keySet()).anyMatch(n -> n.contains("00002"));
        assertThat(condition("Ready").path("status").asText()).isEqualTo("True");
        assertThat(store.writes - writes).isLessThan(12);
    }

    @Test
    void aRestartedServerIsSettledWhenItsServicesHaveRoutes() throws Exception {
        assertThat(machine.controller.settled(Duration.ZERO))
                .as("there were none")
                .isTrue();
        apply(service("s3://models/iris"));
        FakeLoop loop = new FakeLoop();
        FakeRouting routing = new FakeRouting();
        LocalInfrastructure infrastructure = new LocalInfrastructure(
                Fakes.settings(disk),
                new FakeEngine().models,
                new FakeArtifacts(),
                new FakeComponents(),
                routing,
                loop);
        ServiceController controller = new ServiceController(
                store,
                new PlanReconciler(store, infrastructure),
                new RuntimeCatalogCache(() -> RuntimeCatalog.Gateway.UNKNOWN, InferenceServiceConfig::defaults),
                new EventRecorder(store, loop.clock()),
                Retries.ofReconciliation(),
                loop);
        controller.start();
        boolean before = controller.settled(Duration.ZERO);
        assertThat(before).isEqualTo(!routing.routes.isEmpty());
        loop.seconds(3);
        assertThat(controller.settled(Duration.ZERO)).isTrue();
        assertThat(routing.routes).isNotEmpty();
    }

    @Test
    void aServiceThatWasCreatedAgainBeginsWithTheFirstRevision() {
        apply(service("s3://models/iris"));
        apply(service("s3://models/iris2"));
        store.delete(new Key(SERVICES, "default", "iris"), null);
        machine.loop.seconds(5);

        apply(service("s3://models/iris3"));

        assertThat(machine.engine.aspired.keySet()).hasSize(1).allMatch(n -> n.contains("00001"));
    }

    @Test
    void aFullDiskIsTriedAgain() {
        store.create(SERVICES, service("s3://models/iris"));
        store.failing = 2;
        machine.loop.seconds(30);

        assertThat(condition("Ready").path("status").asText()).isEqualTo("True");
    }

    @Test
    void aRuntimeThatIsAddedLaterIsUsed() {
        ObjectNode service = service("s3://models/iris");
        ((ObjectNode) service.at("/spec/predictor/model")).put("runtime", "mine");
        apply(service);
        assertThat(Objects.requireNonNull(current())
                        .path("status")
                        .path("modelStatus")
                        .path("lastFailureInfo")
                        .path("reason")
                        .asText())
                .isEqualTo("RuntimeNotRecognized");

        store.create(
                new Type("serving.kserve.io", "clusterservingruntimes"),
                tree(
                        "{'apiVersion':'serving.kserve.io/v1alpha1','kind':'ClusterServingRuntime',"
                                + "'metadata':{'name':'mine','annotations':{'nereid.io/engine':'true'}},"
                                + "'spec':{'supportedModelFormats':[{'name':'sklearn'}],'protocolVersions':['v1'],"
                                + "'containers':[{'name':'kserve-container','image':'x','args':['--model_name={{.Name}}']}]}}"));
        machine.loop.seconds(5);

        assertThat(condition("Ready").path("status").asText()).isEqualTo("True");
    }

    @Test
    void aGraphIsReadyWhenItsServicesAre() {
        store.create(
                GRAPHS,
                tree("{'apiVersion':'serving.kserve.io/v1alpha1','kind':'InferenceGraph',"
                        + "'metadata':{'name':'pipe','namespace':'default','generation':1},"
                        + "'spec':{'nodes':{'root':{'routerType':'Sequence','steps':[{'serviceName':'iris'}]}}}}"));
        machine.loop.seconds(5);
        assertThat(machine.components.graphs).isZero();

        apply(service("s3://models/iris"));
        machine.loop.seconds(5);

        assertThat(machine.components.graphs).isEqualTo(1);
        assertThat(machine.routing.routes).containsKey("default/pipe");
    }

    @Test
    void eventsThatComeAgainAreCountedAndOldOnesGo() {
        ObjectNode about = service("s3://models/iris");
        EventRecorder events = new EventRecorder(store, machine.loop.clock());
        var event = new io.nereid.control.core.Plan.Event("Warning", "Odd", "it is odd");
        events.record(about, event);
        machine.loop.seconds(2);
        events.record(about, event);

        var kept = store.list(EventRecorder.EVENTS, null).items();
        assertThat(kept).hasSize(1);
        assertThat(kept.get(0).path("count").asInt()).isEqualTo(2);

        machine.loop.seconds(4000);
        assertThat(store.list(EventRecorder.EVENTS, null).items()).isEmpty();
    }
}
