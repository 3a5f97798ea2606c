// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.EngineFixture;
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
    private static final ModelRef STABLE = EngineFixture.label("m", "stable");

    @TempDir
    Path root;

    private EngineFixture fixture;

    @BeforeEach
    void fixture() throws Exception {
        fixture = new EngineFixture(root);
    }

    @AfterEach
    void everyModelIsClosed() {
        fixture.close();
        assertThat(fixture.backend.open).hasValue(0);
    }

    @Test
    void theStartWaitsUntilEveryModelOfTheListServesOrHasFailed() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("bad", 1, "broken");
        fixture.options.servedModels(List.of(fixture.served("m"), fixture.served("bad"), fixture.served("nothing")));
        fixture.start();
        assertThat(fixture.states()).isEqualTo("bad 1 FAILED; m 1 AVAILABLE; nothing 1 FAILED");
        assertThat(fixture.ask(LATEST))
                .as("one bad model does not affect the others")
                .isEqualTo(1);
    }

    @Test
    void anInvalidListIsRejectedBeforeAnythingStarts() throws Exception {
        fixture.options.servedModels(List.of(fixture.served("m"), fixture.served("m")));
        assertThatThrownBy(fixture::engine).hasMessage("Illegal to list model m multiple times in config list");
    }

    @Test
    void aNewListWaitsUntilItsModelsServe() throws Exception {
        fixture.version("m", 1, "slow");
        fixture.start();
        CompletionStage<List<ModelListChange>> change = fixture.engine().configure(List.of(fixture.served("m")), false);
        fixture.until(() -> fixture.states().equals("m 1 LOADING"));
        assertThat(change.toCompletableFuture()).isNotDone();
        fixture.backend.open("m/1");
        assertThat(EngineFixture.get(change))
                .containsExactly(new ModelListChange("m", Action.ADDED, List.of(1L), List.of(), null));
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void aModelThatTheListLeavesOutIsUnloaded() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("n", 2, "");
        fixture.start();
        fixture.configure(fixture.served("m"), fixture.served("n"));
        assertThat(fixture.configure(fixture.served("n")))
                .extracting(c -> c.model() + " " + c.action() + c.unload())
                .containsExactly("n KEPT[]", "m REMOVED[1]");
        assertThat(fixture.refusal(LATEST).code()).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(fixture.ask(ModelRef.latest("n"))).isEqualTo(2);
        assertThat(fixture.engine().ready()).isTrue();
    }

    @Test
    void aModelThatWasUnloadedIsLoadedAgain() throws Exception {
        fixture.version("m", 1, "");
        fixture.start();
        fixture.configure(fixture.served("m"));
        fixture.configure();
        fixture.configure(fixture.served("m"));
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
        assertThat(fixture.backend.loads("m/1")).isEqualTo(2);
    }

    @Test
    void theSameListAgainChangesNothing() throws Exception {
        fixture.version("m", 1, "");
        fixture.start();
        fixture.configure(fixture.served("m"));
        assertThat(fixture.configure(fixture.served("m")))
                .containsExactly(new ModelListChange("m", Action.KEPT, List.of(), List.of(), null));
        assertThat(fixture.backend.loads("m/1")).isEqualTo(1);
    }

    @Test
    void anotherBasePathIsServedWithoutAGap() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("other", 5, "");
        fixture.start();
        fixture.configure(fixture.served("m"));
        ModelListEntry moved =
                new ModelListEntry("m", root.resolve("models/other").toString(), "tensorflow", null, Map.of(), null);
        assertThat(fixture.configure(moved))
                .extracting(c -> c.action() + " " + c.load() + c.unload() + c.error())
                .containsExactly("CHANGED [5][1]null");
        assertThat(fixture.ask(LATEST)).isEqualTo(5);
    }

    @Test
    void aListIsCheckedWholeBeforeAnythingChanges() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("n", 1, "");
        fixture.start();
        fixture.configure(fixture.served("m"));
        ModelListEntry relative = new ModelListEntry("n", "relative/path", "tensorflow", null, Map.of(), null);
        assertThat(fixture.refused(fixture.served("n"), relative).getMessage())
                .isEqualTo("Illegal to list model n multiple times in config list");
        assertThat(fixture.refused(relative).getMessage())
                .startsWith("Expected model n to have an absolute path or URI; got base_path()=relative/path");
        ModelListEntry platform =
                new ModelListEntry("m", root.resolve("models/m").toString(), "puppet", null, Map.of(), null);
        assertThat(fixture.refused(platform).getMessage())
                .startsWith("Illegal to change a model's platform. For model m platform was tensorflow and new platform"
                        + " requested is puppet");
        assertThat(fixture.states()).isEqualTo("m 1 AVAILABLE");
        assertThat(fixture.configure(fixture.served("m")))
                .as("a rejected list changes nothing")
                .extracting(ModelListChange::action)
                .containsExactly(Action.KEPT);
    }

    @Test
    void oneBadModelIsReportedAndBlocksNoOther() throws Exception {
        fixture.version("bad", 1, "broken");
        fixture.version("m", 1, "");
        fixture.start();
        Files.createDirectories(root.resolve("models/empty"));
        List<ModelListChange> changes = fixture.configure(
                fixture.served("bad"), fixture.served("nothing"), fixture.served("empty"), fixture.served("m"));
        assertThat(changes).extracting(ModelListChange::model).containsExactly("bad", "nothing", "empty", "m");
        assertThat(error(changes.get(0)).getMessage())
                .isEqualTo("model 'bad' did not become available as listed: version 1: broken weights");
        assertThat(error(changes.get(1)).getMessage()).contains("Could not find base path");
        assertThat(error(changes.get(2)).getMessage()).contains("No versions of servable empty found under base path");
        assertThat(changes.get(3).error()).isNull();
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void aVersionThatFailsLeavesTheOldOneServing() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, "broken");
        fixture.start();
        fixture.configure(fixture.served("m", 1L));
        List<ModelListChange> changes = fixture.configure(fixture.served("m", 2L));
        assertThat(error(changes.get(0)).getMessage()).contains("version 2: broken weights");
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void waitingForAListTimesOutAndTheReportNamesWhatIsMissing() throws Exception {
        fixture.options.reloadTimeout(Duration.ofMillis(200));
        fixture.version("m", 1, "slow");
        fixture.start();
        List<ModelListChange> changes = fixture.configure(fixture.served("m"));
        assertThat(error(changes.get(0)).code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(error(changes.get(0)).getMessage()).contains("version 1 is not available after 200 ms");
        fixture.version("n", 1, "");
        fixture.configure(fixture.served("m"), fixture.served("n"));
        assertThat(fixture.ask(ModelRef.latest("n")))
                .as("the next list is not delayed")
                .isEqualTo(1);
        fixture.backend.open("m/1");
        fixture.until(() -> fixture.states().equals("m 1 AVAILABLE; n 1 AVAILABLE"));
    }

    @Test
    void listsThatComeTogetherAreTakenOneAfterTheOther() throws Exception {
        fixture.version("m", 1, "slow");
        fixture.version("m", 2, "");
        fixture.start();
        CompletionStage<List<ModelListChange>> first =
                fixture.engine().configure(List.of(fixture.served("m", 1L)), false);
        CompletionStage<List<ModelListChange>> second =
                fixture.engine().configure(List.of(fixture.served("m", 2L)), false);
        fixture.until(() -> fixture.states().equals("m 1 LOADING"));
        fixture.backend.open("m/1");
        assertThat(EngineFixture.get(first)).extracting(ModelListChange::action).containsExactly(Action.ADDED);
        assertThat(EngineFixture.get(second))
                .extracting(c -> c.action() + " " + c.load() + c.unload())
                .containsExactly("CHANGED [2][1]");
        assertThat(fixture.ask(LATEST)).isEqualTo(2);
    }

    @Test
    void aDryRunReportsTheChangesAndChangesNothing() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("n", 3, "");
        fixture.start();
        fixture.configure(fixture.served("m"));
        assertThat(EngineFixture.get(fixture.engine().configure(List.of(fixture.served("n")), true)))
                .extracting(c -> c.model() + " " + c.action() + c.load() + c.unload())
                .containsExactly("n ADDED[3][]", "m REMOVED[][1]");
        assertThat(fixture.states()).isEqualTo("m 1 AVAILABLE");
        ModelListEntry label = fixture.served("m", Map.of("stable", VersionLabel.of(7)));
        assertThat(EngineFixture.failure(fixture.engine().configure(List.of(label), true))
                        .code())
                .isEqualTo(ErrorCode.FAILED_PRECONDITION);
    }

    @Test
    void aListIsRejectedOnceTheServerStopsAndOneInProgressEnds() throws Exception {
        fixture.version("m", 1, "slow");
        fixture.start();
        CompletionStage<List<ModelListChange>> underWay =
                fixture.engine().configure(List.of(fixture.served("m")), false);
        fixture.until(() -> fixture.states().equals("m 1 LOADING"));
        fixture.backend.open("m/1");
        fixture.close();
        ServingException late = EngineFixture.failure(fixture.engine().configure(List.of(), false));
        assertThat(late.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(underWay.toCompletableFuture().handle((r, e) -> "ended"))
                .as("with a report or with the server")
                .succeedsWithin(Duration.ofSeconds(5));
    }

    @Test
    void listenersHearOfEveryListInForce() throws Exception {
        List<List<ModelListEntry>> lists = new CopyOnWriteArrayList<>();
        fixture.version("m", 1, "");
        fixture.options.servedModels(List.of(fixture.served("m")));
        fixture.engine().onConfigured(lists::add);
        fixture.start();
        assertThat(lists).containsExactly(List.of(fixture.served("m")));
        fixture.refused(fixture.served("m"), fixture.served("m"));
        fixture.configure();
        assertThat(lists).containsExactly(List.of(fixture.served("m")), List.of());
    }

    @Test
    void aLabelIsGivenToAVersionThatServes() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, "");
        fixture.start();
        fixture.configure(fixture.served("m", 1L, 2L));
        fixture.configure(
                fixture.served("m", Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)), 1L, 2L));
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        assertThat(fixture.ask(EngineFixture.label("m", "canary"))).isEqualTo(2);
        assertThat(fixture.engine().index().get(0).labels())
                .isEqualTo(Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)));
        fixture.configure(fixture.served("m", Map.of("canary", VersionLabel.of(1)), 1L, 2L));
        assertThat(fixture.ask(EngineFixture.label("m", "canary"))).isEqualTo(1);
        assertThat(fixture.refusal(STABLE).code())
                .as("not in the list any more")
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void aLabelForAnUnavailableVersionIsRejectedBeforeAnythingChanges() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("n", 1, "");
        fixture.start();
        fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(1))));
        ServingException e =
                fixture.refused(fixture.served("m", Map.of("stable", VersionLabel.of(2))), fixture.served("n"));
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.getMessage())
                .isEqualTo("Request to assign label to version 2 of model m, which is not currently available for"
                        + " inference");
        assertThat(fixture.states()).as("no half-applied list").isEqualTo("m 1 AVAILABLE");
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aLabelForAVersionThatTheListItselfUnloadsIsRejected() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, "");
        fixture.start();
        fixture.configure(fixture.served("m", 1L, 2L));
        assertThat(fixture.refused(fixture.served("m", Map.of("stable", VersionLabel.of(1)), 2L))
                        .code())
                .isEqualTo(ErrorCode.FAILED_PRECONDITION);
    }

    @Test
    void aListMayLoadAVersionAndMoveTheLabelToItWhichHappensWhenItServes() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, "slow");
        fixture.start();
        fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(1)), 1L));
        CompletionStage<List<ModelListChange>> change = fixture.engine()
                .configure(List.of(fixture.served("m", Map.of("stable", VersionLabel.of(2)), 2L)), false);
        fixture.until(() -> fixture.states().contains("2 LOADING"));
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        fixture.backend.open("m/2");
        while (!change.toCompletableFuture().isDone()) {
            assertThat(fixture.ask(STABLE)).as("always answered").isBetween(1f, 2f);
        }
        assertThat(EngineFixture.get(change).get(0).error()).isNull();
        assertThat(fixture.ask(STABLE)).isEqualTo(2);
        assertThat(fixture.engine().index().get(0).labels()).isEqualTo(Map.of("stable", VersionLabel.of(2)));
    }

    @Test
    void aLabelStaysWhereItIsWhenItsNewVersionFails() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, "broken");
        fixture.start();
        fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(1)), 1L));
        List<ModelListChange> changes =
                fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(2)), 2L));
        assertThat(error(changes.get(0)).getMessage()).contains("broken weights");
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        assertThat(fixture.engine().index().get(0).labels()).isEqualTo(Map.of("stable", VersionLabel.of(1)));
        fixture.version("m", 2, "");
        EngineFixture.get(fixture.engine().load("m"));
        fixture.until(() -> fixture.engine().index().get(0).labels().equals(Map.of("stable", VersionLabel.of(2))));
        assertThat(fixture.ask(STABLE)).as("moved once it became available").isEqualTo(2);
    }

    @Test
    void labelsOfTheFirstListAreSetWhenTheirVersionsServe() throws Exception {
        fixture.version("m", 1, "slow");
        fixture.version("m", 2, "");
        fixture.options
                .aspiredVersionPolicy(AspiredVersionPolicy.AVAILABILITY_PRESERVING)
                .servedModels(List.of(fixture.served(
                        "m", Map.of("stable", VersionLabel.of(1), "canary", VersionLabel.of(2)), 1L, 2L)));
        CompletionStage<Void> start = fixture.engine().start();
        fixture.until(() -> fixture.engine().index().get(0).labels().containsKey("canary"));
        assertThat(fixture.engine().index().get(0).labels()).containsOnlyKeys("canary");
        fixture.backend.open("m/1");
        EngineFixture.get(start);
        fixture.until(() -> fixture.engine().index().get(0).labels().containsKey("stable"));
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aFirstAssignmentToAVersionThatDoesNotServeMayBeAllowed() throws Exception {
        fixture.version("m", 1, "");
        fixture.options.labelAssignmentPolicy(LabelAssignmentPolicy.FIRST_ASSIGNMENT);
        fixture.start();
        fixture.configure(fixture.served("m", Map.of("canary", VersionLabel.of(7), "stable", VersionLabel.of(1))));
        assertThat(fixture.refusal(EngineFixture.label("m", "canary")).code()).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(fixture.refused(fixture.served("m", Map.of("stable", VersionLabel.of(7))))
                        .code())
                .as("it refers to the available version")
                .isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void anyAssignmentMayBeForced() throws Exception {
        fixture.version("m", 1, "");
        fixture.options.labelAssignmentPolicy(LabelAssignmentPolicy.ANY);
        fixture.start();
        fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(1))));
        assertThat(fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(7))))
                        .get(0)
                        .error())
                .isNull();
        assertThat(fixture.refusal(STABLE).code()).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void aLabelMayShareItsRequestsAmongVersions() throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, "");
        fixture.start();
        VersionLabel half = new VersionLabel(List.of(new WeightedVersion(1, 1), new WeightedVersion(2, 1)), List.of());
        fixture.configure(fixture.served("m", Map.of("stable", half), 1L, 2L));
        int[] counts = new int[3];
        for (int i = 0; i < 100; i++) {
            counts[(int) fixture.ask(STABLE)]++;
        }
        assertThat(counts[1]).isBetween(20, 80);
        assertThat(counts[1] + counts[2]).isEqualTo(100);
        assertThat(fixture.engine().metrics())
                .contains("nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"1\",shadow=\"false\"} "
                        + counts[1] + "\n");
    }

    @Test
    void aModelOfTheListIsReadAgainOnRequestAndNotUnloadedByIt() throws Exception {
        fixture.version("m", 1, "broken");
        fixture.options.servedModels(List.of(fixture.served("m")));
        fixture.start();
        assertThat(EngineFixture.failure(fixture.engine().load("m")).getMessage())
                .contains("broken weights");
        fixture.version("m", 1, "");
        EngineFixture.get(fixture.engine().load("m"));
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
        assertThat(EngineFixture.failure(fixture.engine().load("m", new LoadOptions("{}", Map.of())))
                        .getMessage())
                .isEqualTo("model 'm' comes from the list of models, which defines its configuration and its files");
        ServingException unload = EngineFixture.failure(fixture.engine().unload("m"));
        assertThat(unload.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
    }

    @Test
    void aFailedVersionIsTriedAgainWhenItsModelIsLoadedThoughNothingChanged() throws Exception {
        fixture.version("m", 1, "broken");
        fixture.options.servedModels(List.of(fixture.served("m")));
        fixture.start();
        EngineFixture.failure(fixture.engine().load("m"));
        assertThat(fixture.backend.loads("m/1")).isEqualTo(2);
    }

    @Test
    void theRepositoryGoesOnBesideTheListAndWhoNamedAModelFirstServesIt() throws Exception {
        fixture.stored("r", 4, "");
        fixture.version("m", 1, "");
        fixture.version("r", 9, "");
        fixture.start();
        List<ModelListChange> changes = fixture.configure(fixture.served("m"), fixture.served("r"));
        assertThat(changes.get(0).error()).isNull();
        assertThat(error(changes.get(1)).code()).isEqualTo(ErrorCode.ALREADY_EXISTS);
        assertThat(fixture.ask(ModelRef.latest("r"))).isEqualTo(4);
        fixture.configure();
        assertThat(fixture.ask(ModelRef.latest("r"))).isEqualTo(4);
        EngineFixture.get(fixture.engine().unload("r"));
        assertThat(fixture.refusal(ModelRef.latest("r")).code()).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void aListWaitsForFilesThatAreStillBeingWritten() throws Exception {
        fixture.options.modelListSource(FileSystemStoragePathSource.Options.DEFAULT
                .withPollInterval(Duration.ofMillis(50))
                .withSettle(Duration.ofMillis(100)));
        fixture.start();
        fixture.version("m", 1, "");
        assertThat(fixture.configure(fixture.served("m", Map.of("stable", VersionLabel.of(1))))
                        .get(0)
                        .error())
                .isNull();
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aNewVersionIsFoundAndServed() throws Exception {
        fixture.version("m", 1, "");
        fixture.options
                .modelListSource(FileSystemStoragePathSource.Options.DEFAULT
                        .withPollInterval(Duration.ofMillis(10))
                        .withSettle(Duration.ZERO))
                .servedModels(List.of(fixture.served("m")));
        fixture.start();
        assertThat(fixture.ask(LATEST)).isEqualTo(1);
        Path staged = Files.createDirectories(root.resolve("staged"));
        Files.writeString(staged.resolve("model.puppet"), "");
        Files.move(staged, root.resolve("models/m/2"));
        fixture.until(() -> fixture.states().equals("m 2 AVAILABLE"));
        assertThat(fixture.ask(LATEST)).isEqualTo(2);
    }

    private static ServingException error(ModelListChange change) {
        ServingException error = change.error();
        if (error == null) {
            throw new AssertionError("no error: " + change);
        }
        return error;
    }
}
