// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import static io.nereid.control.local.workload.Fakes.ONE;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.Phase;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.State;
import io.nereid.control.local.workload.Fakes;
import io.nereid.control.local.workload.Fakes.FakeArtifacts;
import io.nereid.control.local.workload.Fakes.FakeComponents;
import io.nereid.control.local.workload.Fakes.FakeEngine;
import io.nereid.control.local.workload.Fakes.FakeLoop;
import io.nereid.control.local.workload.Fakes.FakeRouting;
import io.nereid.spi.ServableState;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A service whose models are TrainedModels, in an engine that does what the test says. */
class MultiModelRunnerTest {
    private static final State LOADED = new State(Phase.LOADED, "");
    private static final String NAME = "default/iris-1/wine";
    private static final String SERVES_ON = "; the former model serves on";

    @TempDir
    Path disk;

    private final FakeLoop loop = new FakeLoop();
    private final FakeEngine engine = new FakeEngine();
    private final FakeArtifacts artifacts = new FakeArtifacts();
    private final List<State> states = new ArrayList<>();
    private LocalInfrastructure infrastructure = null;

    @BeforeEach
    void start() {
        infrastructure = new LocalInfrastructure(
                Fakes.settings(disk), engine.models, artifacts, new FakeComponents(), new FakeRouting(), loop);
        engine.listener = infrastructure::modelState;
        infrastructure.trainedModels().onChange((namespace, service) -> states.add(state()));
        infrastructure.start();
        Workload.Form empty = new Workload.Model(
                List.of(),
                "sklearn",
                null,
                "v1",
                "kserve-sklearnserver",
                List.of(),
                Map.of(),
                JsonNodeFactory.instance.objectNode());
        infrastructure.apply(
                "default",
                "iris",
                Fakes.plan(Fakes.route("iris-1"), Fakes.workload("iris-1", Component.PREDICTOR, empty, ONE)));
        for (String name : new String[] {"one", "two", "three"}) {
            artifacts.paths.put("s3://models/" + name, Fakes.sklearnModel(disk.resolve(name)));
        }
        place("one");
        assertThat(state()).isEqualTo(LOADED);
    }

    private State state() {
        return infrastructure.trainedModels().state("default", "iris", "wine");
    }

    /** Has the service one model with these files, or none. */
    private void place(@Nullable String files) {
        ObjectNode service = JsonNodeFactory.instance.objectNode();
        service.putObject("metadata").put("namespace", "default").put("name", "iris");
        List<TrainedModel> models = files == null
                ? List.of()
                : List.of(new TrainedModel(
                        "default", "wine", "iris", "sklearn", "s3://models/" + files, "1Mi", 1 << 20, service));
        assertThat(infrastructure.trainedModels().place(service, models)).isTrue();
        loop.run();
    }

    private void report(ServableState.Phase phase, @Nullable String reason) {
        engine.report(NAME, phase, reason);
        loop.run();
    }

    @Test
    void filesThatTheEngineRejectsAreReportedWhileTheFormerServe() {
        place("two");
        assertThat(state()).as("while it is being loaded").isEqualTo(LOADED);
        assertThat(artifacts.leases).isEqualTo(2);
        report(ServableState.Phase.AVAILABLE, "not a pickle");
        assertThat(state()).isEqualTo(new State(Phase.FAILED, "not a pickle" + SERVES_ON));

        // It is fetched again, what serves stays deployed, and the engine says nothing about the same files.
        loop.seconds(130);
        assertThat(engine.aspired).containsKey(NAME);
        assertThat(artifacts.fetches).isEqualTo(4);
        assertThat(artifacts.leases)
                .as("those that serve, and those that were rejected")
                .isEqualTo(2);
        assertThat(state().phase()).isEqualTo(Phase.FAILED);

        place("three");
        assertThat(state().phase()).as("until the engine says something else").isEqualTo(Phase.FAILED);
        report(ServableState.Phase.AVAILABLE, null);
        assertThat(state()).isEqualTo(LOADED);
        assertThat(artifacts.leases).isEqualTo(1);
        loop.seconds(130);
        assertThat(artifacts.fetches).isEqualTo(5);
    }

    @Test
    void filesThatCannotBeFetchedAreReportedWhileTheFormerServe() {
        artifacts.failing.put("s3://models/two", ServingException.of(ErrorCode.NOT_FOUND, "no such object"));
        place("two");
        assertThat(state()).isEqualTo(new State(Phase.FAILED, "no such object" + SERVES_ON));
        report(ServableState.Phase.AVAILABLE, null);
        assertThat(state().phase()).as("what serves is not what was described").isEqualTo(Phase.FAILED);
        loop.seconds(61);
        assertThat(engine.aspired).containsKey(NAME);
        assertThat(artifacts.fetches).isEqualTo(3);

        artifacts.failing.clear();
        loop.seconds(61);
        assertThat(state()).isEqualTo(LOADED);
    }

    @Test
    void aModelThatIsRemovedAndAddedAgainBeginsAnew() {
        place(null);
        loop.seconds(1);
        states.clear();
        engine.slow = true;
        place("two");
        assertThat(state()).isEqualTo(new State(Phase.LOADING, ""));
        assertThat(states).doesNotContain(LOADED);
        report(ServableState.Phase.AVAILABLE, null);
        assertThat(state()).isEqualTo(LOADED);
    }
}
