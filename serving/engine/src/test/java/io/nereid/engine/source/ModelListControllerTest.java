// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.EngineRig;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.lifecycle.policy.LabelAssignmentPolicy;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.spi.ModelRef;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListChange.Action;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ModelListControllerTest {
    private static final ModelRef LATEST = ModelRef.latest("m");
    private static final ModelRef STABLE = EngineRig.label("m", "stable");

    @TempDir
    Path root;

    private EngineRig rig;

    @BeforeEach
    void rig() throws Exception {
        rig = new EngineRig(root);
    }

    @AfterEach
    void everyModelIsClosed() {
        rig.close();
        assertThat(rig.backend.open).hasValue(0);
    }

    @Test
    void theStartWaitsUntilEveryModelOfTheListServesOrHasFailed() throws Exception {
        rig.version("m", 1, "");
        rig.version("bad", 1, "broken");
        rig.options.servedModels(List.of(rig.served("m"), rig.served("bad"), rig.served("nothing")));
        rig.start();
        assertThat(rig.states()).isEqualTo("bad 1 FAILED; m 1 AVAILABLE; nothing 1 FAILED");
        assertThat(rig.ask(LATEST))
                .as("one bad model does not affect the others")
                .isEqualTo(1);
    }

    @Test
    void anInvalidListIsRejectedBeforeAnythingStarts() throws Exception {
        rig.options.servedModels(List.of(rig.served("m"), rig.served("m")));
        assertThatThrownBy(rig::engine).hasMessage("Illegal to list model m multiple times in config list");
    }

    @Test
    void aNewListWaitsUntilItsModelsServe() throws Exception {
        rig.version("m", 1, "slow");
        rig.start();
        CompletionStage<List<ModelListChange>> change = rig.engine().configure(List.of(rig.served("m")), false);
        rig.until(() -> rig.states().equals("m 1 LOADING"));
        assertThat(change.toCompletableFuture()).isNotDone();
        rig.backend.open("m/1");
        assertThat(EngineRig.get(change))
                .containsExactly(new ModelListChange("m", Action.ADDED, List.of(1L), List.of(), null));
        assertThat(rig.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void aModelThatTheListLeavesOutIsUnloaded() throws Exception {
        rig.version("m", 1, "");
        rig.version("n", 2, "");
        rig.start();
        rig.configure(rig.served("m"), rig.served("n"));
        assertThat(rig.configure(rig.served("n")))
                .extracting(c -> c.model() + " " + c.action() + c.unload())
                .containsExactly("n KEPT[]", "m REMOVED[1]");
        assertThat(rig.refusal(LATEST).code()).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(rig.ask(ModelRef.latest("n"))).isEqualTo(2);
        assertThat(rig.engine().ready()).isTrue();
    }

    @Test
    void aModelThatWasUnloadedIsLoadedAgain() throws Exception {
        rig.version("m", 1, "");
        rig.start();
        rig.configure(rig.served("m"));
        rig.configure();
        rig.configure(rig.served("m"));
        assertThat(rig.ask(LATEST)).isEqualTo(1);
        assertThat(rig.backend.loads("m/1")).isEqualTo(2);
    }

    @Test
    void theSameListAgainChangesNothing() throws Exception {
        rig.version("m", 1, "");
        rig.start();
        rig.configure(rig.served("m"));
        assertThat(rig.configure(rig.served("m")))
                .containsExactly(new ModelListChange("m", Action.KEPT, List.of(), List.of(), null));
        assertThat(rig.backend.loads("m/1")).isEqualTo(1);
    }

    @Test
    void anotherBasePathIsServedWithoutAGap() throws Exception {
        rig.version("m", 1, "");
        rig.version("other", 5, "");
        rig.start();
        rig.configure(rig.served("m"));
        ModelListEntry moved =
                new ModelListEntry("m", root.resolve("models/other").toString(), "tensorflow", null, Map.of(), null);
        assertThat(rig.configure(moved))
                .extracting(c -> c.action() + " " + c.load() + c.unload() + c.error())
                .containsExactly("CHANGED [5][1]null");
        assertThat(rig.ask(LATEST)).isEqualTo(5);
    }

    @Test
    void aListIsCheckedWholeBeforeAnythingChanges() throws Exception {
        rig.version("m", 1, "");
        rig.version("n", 1, "");
        rig.start();
        rig.configure(rig.served("m"));
        ModelListEntry relative = new ModelListEntry("n", "relative/path", "tensorflow", null, Map.of(), null);
        assertThat(rig.refused(rig.served("n"), relative).getMessage())
                .isEqualTo("Illegal to list model n multiple times in config list");
        assertThat(rig.refused(relative).getMessage())
                .startsWith("Expected model n to have an absolute path or URI; got base_path()=relative/path");
        ModelListEntry platform =
                new ModelListEntry("m", root.resolve("models/m").toString(), "puppet", null, Map.of(), null);
        assertThat(rig.refused(platform).getMessage())
                .startsWith("Illegal to change a model's platform. For model m platform was tensorflow and new platform"
                        + " requested is puppet");
        assertThat(rig.states()).isEqualTo("m 1 AVAILABLE");
        assertThat(rig.configure(rig.served("m")))
                .as("a rejected list changes nothing")
                .extracting(ModelListChange::action)
                .containsExactly(Action.KEPT);
    }

    @Test
    void oneBadModelIsReportedAndBlocksNoOther() throws Exception {
        rig.version("bad", 1, "broken");
        rig.version("m", 1, "");
        rig.start();
        Files.createDirectories(root.resolve("models/empty"));
        List<ModelListChange> changes =
                rig.configure(rig.served("bad"), rig.served("nothing"), rig.served("empty"), rig.served("m"));
        assertThat(changes).extracting(ModelListChange::model).containsExactly("bad", "nothing", "empty", "m");
        assertThat(error(changes.get(0)).getMessage())
                .isEqualTo("model 'bad' did not become available as listed: version 1: broken weights");
        assertThat(error(changes.get(1)).getMessage()).contains("Could not find base path");
        assertThat(error(changes.get(2)).getMessage()).contains("No versions of servable empty found under base path");
        assertThat(changes.get(3).error()).isNull();
        assertThat(rig.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void aVersionThatFailsLeavesTheOldOneServing() throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, "broken");
        rig.start();
        rig.configure(rig.served("m", 1L));
        List<ModelListChange> changes = rig.configure(rig.served("m", 2L));
        assertThat(error(changes.get(0)).getMessage()).contains("version 2: broken weights");
        assertThat(rig.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void waitingForAListTimesOutAndTheReportNamesWhatIsMissing() throws Exception {
        rig.options.reloadTimeout(Duration.ofMillis(200));
        rig.version("m", 1, "slow");
        rig.start();
        List<ModelListChange> changes = rig.configure(rig.served("m"));
        assertThat(error(changes.get(0)).code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(error(changes.get(0)).getMessage()).contains("version 1 is not available after 200 ms");
        rig.version("n", 1, "");
        rig.configure(rig.served("m"), rig.served("n"));
        assertThat(rig.ask(ModelRef.latest("n")))
                .as("the next list is not delayed")
                .isEqualTo(1);
        rig.backend.open("m/1");
        rig.until(() -> rig.states().equals("m 1 AVAILABLE; n 1 AVAILABLE"));
    }

    @Test
    void listsThatComeTogetherAreTakenOneAfterTheOther() throws Exception {
        rig.version("m", 1, "slow");
        rig.version("m", 2, "");
        rig.start();
        CompletionStage<List<ModelListChange>> first = rig.engine().configure(List.of(rig.served("m", 1L)), false);
        CompletionStage<List<ModelListChange>> second = rig.engine().configure(List.of(rig.served("m", 2L)), false);
        rig.until(() -> rig.states().equals("m 1 LOADING"));
        rig.backend.open("m/1");
        assertThat(EngineRig.get(first)).extracting(ModelListChange::action).containsExactly(Action.ADDED);
        assertThat(EngineRig.get(second))
                .extracting(c -> c.action() + " " + c.load() + c.unload())
                .containsExactly("CHANGED [2][1]");
        assertThat(rig.ask(LATEST)).isEqualTo(2);
    }

    @Test
    void aDryRunReportsTheChangesAndChangesNothing() throws Exception {
        rig.version("m", 1, "");
        rig.version("n", 3, "");
        rig.start();
        rig.configure(rig.served("m"));
        assertThat(EngineRig.get(rig.engine().configure(List.of(rig.served("n")), true)))
                .extracting(c -> c.model() + " " + c.action() + c.load() + c.unload())
                .containsExactly("n ADDED[3][]", "m REMOVED[][1]");
        assertThat(rig.states()).isEqualTo("m 1 AVAILABLE");
        ModelListEntry label = rig.served("m", Map.of("stable", VersionLabel.of(7)));
        assertThat(EngineRig.failure(rig.engine().configure(List.of(label), true))
                        .code())
                .isEqualTo(ErrorCode.FAILED_PRECONDITION);
    }

    @Test
    void aListIsRejectedOnceTheServerStopsAndOneInProgressEnds() throws Exception {
        rig.version("m", 1, "slow");
        rig.start();
        CompletionStage<List<ModelListChange>> underWay = rig.engine().configure(List.of(rig.served("m")), false);
        rig.until(() -> rig.states().equals("m 1 LOADING"));
        rig.backend.open("m/1");
        rig.close();
        ServingException late = EngineRig.failure(rig.engine().configure(List.of(), false));
        assertThat(late.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(underWay.toCompletableFuture().handle((r, e) -> "ended"))
                .as("with a report or with the server")
                .succeedsWithin(Duration.ofSeconds(5));
    }

    @Test
    void listenersHearOfEveryListInForce() throws Exception {
        List<List<ModelListEntry>> lists = new CopyOnWriteArrayList<>();
        rig.version("m", 1, "");
        rig.options.servedModels(List.of(rig.served("m")));
        rig.engine().onConfigured(lists::add);
        rig.start();
        assertThat(lists).containsExactly(List.of(rig.served("m")));
        rig.refused(rig.served("m"), rig.served("m"));
        rig.configure();
        assertThat(lists).containsExactly(List.of(rig.served("m")), List.of());
    }

    @Test
    void aLabelIsGivenToAVersionThatServes() throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, "");
        rig.start();
        rig.configure(rig.served("m", 1L, 2L));
        rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)), 1L, 2L));
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        assertThat(rig.ask(EngineRig.label("m", "canary"))).isEqualTo(2);
        assertThat(rig.engine().index().get(0).labels())
                .isEqualTo(Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)));
        rig.configure(rig.served("m", Map.of("canary", VersionLabel.of(1)), 1L, 2L));
        assertThat(rig.ask(EngineRig.label("m", "canary"))).isEqualTo(1);
        assertThat(rig.refusal(STABLE).code()).as("not in the list any more").isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void aLabelForAnUnavailableVersionIsRejectedBeforeAnythingChanges() throws Exception {
        rig.version("m", 1, "");
        rig.version("n", 1, "");
        rig.start();
        rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(1))));
        ServingException e = rig.refused(rig.served("m", Map.of("stable", VersionLabel.of(2))), rig.served("n"));
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.getMessage())
                .isEqualTo("Request to assign label to version 2 of model m, which is not currently available for"
                        + " inference");
        assertThat(rig.states()).as("no half-applied list").isEqualTo("m 1 AVAILABLE");
        assertThat(rig.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aLabelForAVersionThatTheListItselfUnloadsIsRejected() throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, "");
        rig.start();
        rig.configure(rig.served("m", 1L, 2L));
        assertThat(rig.refused(rig.served("m", Map.of("stable", VersionLabel.of(1)), 2L))
                        .code())
                .isEqualTo(ErrorCode.FAILED_PRECONDITION);
    }

    @Test
    void aListMayLoadAVersionAndMoveTheLabelToItWhichHappensWhenItServes() throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, "slow");
        rig.start();
        rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(1)), 1L));
        CompletionStage<List<ModelListChange>> change =
                rig.engine().configure(List.of(rig.served("m", Map.of("stable", VersionLabel.of(2)), 2L)), false);
        rig.until(() -> rig.states().contains("2 LOADING"));
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        rig.backend.open("m/2");
        while (!change.toCompletableFuture().isDone()) {
            assertThat(rig.ask(STABLE)).as("always answered").isBetween(1f, 2f);
        }
        assertThat(EngineRig.get(change).get(0).error()).isNull();
        assertThat(rig.ask(STABLE)).isEqualTo(2);
        assertThat(rig.engine().index().get(0).labels()).isEqualTo(Map.of("stable", VersionLabel.of(2)));
    }

    @Test
    void aLabelStaysWhereItIsWhenItsNewVersionFails() throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, "broken");
        rig.start();
        rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(1)), 1L));
        List<ModelListChange> changes = rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(2)), 2L));
        assertThat(error(changes.get(0)).getMessage()).contains("broken weights");
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        assertThat(rig.engine().index().get(0).labels()).isEqualTo(Map.of("stable", VersionLabel.of(1)));
        rig.version("m", 2, "");
        EngineRig.get(rig.engine().load("m"));
        rig.until(() -> rig.engine().index().get(0).labels().equals(Map.of("stable", VersionLabel.of(2))));
        assertThat(rig.ask(STABLE)).as("moved once it became available").isEqualTo(2);
    }

    @Test
    void labelsOfTheFirstListAreSetWhenTheirVersionsServe() throws Exception {
        rig.version("m", 1, "slow");
        rig.version("m", 2, "");
        rig.options
                .transition(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
                .servedModels(List.of(
                        rig.served("m", Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)), 1L, 2L)));
        CompletionStage<Void> start = rig.engine().start();
        rig.until(() -> rig.engine().index().get(0).labels().containsKey("canary"));
        assertThat(rig.engine().index().get(0).labels()).containsOnlyKeys("canary");
        rig.backend.open("m/1");
        EngineRig.get(start);
        rig.until(() -> rig.engine().index().get(0).labels().containsKey("stable"));
        assertThat(rig.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aFirstAssignmentToAVersionThatDoesNotServeMayBeAllowed() throws Exception {
        rig.version("m", 1, "");
        rig.options.labelRule(LabelAssignmentPolicy.FIRST_ASSIGNMENT);
        rig.start();
        rig.configure(rig.served("m", Map.of("canary", VersionLabel.of(7), "stable", VersionLabel.of(1))));
        assertThat(rig.refusal(EngineRig.label("m", "canary")).code()).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(rig.refused(rig.served("m", Map.of("stable", VersionLabel.of(7))))
                        .code())
                .as("it refers to the available version")
                .isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(rig.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void anyAssignmentMayBeForced() throws Exception {
        rig.version("m", 1, "");
        rig.options.labelRule(LabelAssignmentPolicy.ANY);
        rig.start();
        rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(1))));
        assertThat(rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(7))))
                        .get(0)
                        .error())
                .isNull();
        assertThat(rig.refusal(STABLE).code()).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void aLabelMayShareItsRequestsAmongVersions() throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, "");
        rig.start();
        VersionLabel half = new VersionLabel(List.of(new WeightedVersion(1, 1), new WeightedVersion(2, 1)), List.of());
        rig.configure(rig.served("m", Map.of("stable", half), 1L, 2L));
        int[] counts = new int[3];
        for (int i = 0; i < 100; i++) {
            counts[(int) rig.ask(STABLE)]++;
        }
        assertThat(counts[1]).isBetween(20, 80);
        assertThat(counts[1] + counts[2]).isEqualTo(100);
        assertThat(rig.engine().metrics())
                .contains("nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"1\",shadow=\"false\"} "
                        + counts[1] + "\n");
    }

    @Test
    void aModelOfTheListIsReadAgainOnRequestAndNotUnloadedByIt() throws Exception {
        rig.version("m", 1, "broken");
        rig.options.servedModels(List.of(rig.served("m")));
        rig.start();
        assertThat(EngineRig.failure(rig.engine().load("m")).getMessage()).contains("broken weights");
        rig.version("m", 1, "");
        EngineRig.get(rig.engine().load("m"));
        assertThat(rig.ask(LATEST)).isEqualTo(1);
        assertThat(EngineRig.failure(rig.engine().load("m", new LoadOptions("{}", Map.of())))
                        .getMessage())
                .isEqualTo("model 'm' comes from the list of models, which defines its configuration and its files");
        ServingException unload = EngineRig.failure(rig.engine().unload("m"));
        assertThat(unload.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(rig.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void aFailedVersionIsTriedAgainWhenItsModelIsLoadedThoughNothingChanged() throws Exception {
        rig.version("m", 1, "broken");
        rig.options.servedModels(List.of(rig.served("m")));
        rig.start();
        EngineRig.failure(rig.engine().load("m"));
        assertThat(rig.backend.loads("m/1")).isEqualTo(2);
    }

    @Test
    void theRepositoryGoesOnBesideTheListAndWhoNamedAModelFirstServesIt() throws Exception {
        rig.stored("r", 4, "");
        rig.version("m", 1, "");
        rig.version("r", 9, "");
        rig.start();
        List<ModelListChange> changes = rig.configure(rig.served("m"), rig.served("r"));
        assertThat(changes.get(0).error()).isNull();
        assertThat(error(changes.get(1)).code()).isEqualTo(ErrorCode.ALREADY_EXISTS);
        assertThat(rig.ask(ModelRef.latest("r"))).isEqualTo(4);
        rig.configure();
        assertThat(rig.ask(ModelRef.latest("r"))).isEqualTo(4);
        EngineRig.get(rig.engine().unload("r"));
        assertThat(rig.refusal(ModelRef.latest("r")).code()).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void aListWaitsForFilesThatAreStillBeingWritten() throws Exception {
        rig.options.listing(FileSystemStoragePathSource.Options.DEFAULT
                .withPollInterval(Duration.ofMillis(50))
                .withSettle(Duration.ofMillis(100)));
        rig.start();
        rig.version("m", 1, "");
        assertThat(rig.configure(rig.served("m", Map.of("stable", VersionLabel.of(1))))
                        .get(0)
                        .error())
                .isNull();
        assertThat(rig.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aNewVersionIsFoundAndServed() throws Exception {
        rig.version("m", 1, "");
        rig.options
                .listing(FileSystemStoragePathSource.Options.DEFAULT
                        .withPollInterval(Duration.ofMillis(10))
                        .withSettle(Duration.ZERO))
                .servedModels(List.of(rig.served("m")));
        rig.start();
        assertThat(rig.ask(LATEST)).isEqualTo(1);
        Path staged = Files.createDirectories(root.resolve("staged"));
        Files.writeString(staged.resolve("model.puppet"), "");
        Files.move(staged, root.resolve("models/m/2"));
        rig.until(() -> rig.states().equals("m 2 AVAILABLE"));
        assertThat(rig.ask(LATEST)).isEqualTo(2);
    }

    private static ServingException error(ModelListChange change) {
        ServingException error = change.error();
        if (error == null) {
            throw new AssertionError("no error: " + change);
        }
        return error;
    }
}
