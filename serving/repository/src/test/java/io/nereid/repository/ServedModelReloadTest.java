// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.Fakes.FakeClock;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.repository.FileSystemStoragePathSource.Options;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.VersionPolicy.Kind;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListChange.Action;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Replacing the model list. */
class ServedModelReloadTest {
    private static final Duration SETTLE = Duration.ofSeconds(1);
    private static final Options SLOW = Options.DEFAULT.withPollInterval(Duration.ofHours(1));
    private static final VersionPolicy ALL = new VersionPolicy(Kind.ALL, 0, List.of());

    @TempDir
    Path root;

    private final FakeClock clock = new FakeClock();
    private final Recorder target = new Recorder();
    private FileSystemStoragePathSource source = source(SLOW);

    private FileSystemStoragePathSource source(Options options, ModelListEntry... models) {
        return new FileSystemStoragePathSource(
                List.of(models), List.of(Fakes.ONNX, Fakes.IDENTITY), Fakes.FACTORY, options, clock);
    }

    private void start(ModelListEntry... models) {
        source = source(SLOW, models);
        source.start(target);
    }

    @AfterEach
    void close() {
        source.close();
    }

    private ModelListEntry model(String name) {
        return model(name, name, null);
    }

    private ModelListEntry model(String name, String directory, VersionPolicy policy) {
        return new ModelListEntry(name, root.resolve(directory).toString(), "tensorflow", policy, Map.of(), null);
    }

    private void version(String model, int version) {
        Fakes.write(root.resolve(model + "/" + version + "/model.onnx"), "v" + version);
    }

    private static ModelListChange change(String model, Action action, List<Long> load, List<Long> unload) {
        return new ModelListChange(model, action, load, unload, null);
    }

    /** Checks that the plan equals the changes that are made then. */
    private List<ModelListChange> configure(ModelListEntry... models) {
        int emitted = target.all.size();
        List<ModelListChange> plan = source.plan(List.of(models));
        assertThat(target.all).hasSize(emitted);
        List<ModelListChange> done = source.configure(List.of(models));
        assertThat(done).usingRecursiveComparison().ignoringFields("error").isEqualTo(plan);
        return done;
    }

    private static void refused(ThrowingCallable call, ErrorCode code, String text) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(code);
            assertThat(e.getMessage()).contains(text);
        });
    }

    @Test
    void aReloadLoadsNewModelsAndLeavesTheOthersAlone() {
        version("a", 1);
        version("b", 4);
        start(model("a"));
        assertThat(configure(model("a"), model("b")))
                .containsExactly(
                        change("a", Action.KEPT, List.of(), List.of()),
                        change("b", Action.ADDED, List.of(4L), List.of()));
        assertThat(target.last("b").loadable()).containsExactly(4L);
        assertThat(target.count("a")).isEqualTo(1);
    }

    @Test
    void aReloadUnloadsModelsThatAreNotInTheListAnyMore() {
        version("a", 1);
        version("b", 1);
        start(model("a"), model("b"));
        assertThat(configure(model("b")))
                .containsExactly(
                        change("b", Action.KEPT, List.of(), List.of()),
                        change("a", Action.REMOVED, List.of(), List.of(1L)));
        assertThat(target.last("a").versions()).isEmpty();
        assertThat(source.models()).containsExactly(model("b"));
        version("a", 2);
        clock.advance(SETTLE);
        source.poll();
        clock.advance(SETTLE);
        source.poll();
        assertThat(target.last("a").versions()).isEmpty();
    }

    @Test
    void aReloadLoadsAPreviouslyUnloadedModel() {
        version("a", 1);
        start(model("a"));
        var unused = configure();
        assertThat(target.last("a").versions()).isEmpty();
        assertThat(configure(model("a"))).containsExactly(change("a", Action.ADDED, List.of(1L), List.of()));
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void aReloadChangesAModelsBasePath() {
        version("old", 1);
        version("old", 2);
        version("new", 2);
        Fakes.touch(root, clock.millis() - 60_000);
        start(model("a", "old", ALL));
        String before = target.last("a").versions().get(1).loader().fingerprint();
        assertThat(configure(model("a", "new", ALL)))
                .containsExactly(change("a", Action.CHANGED, List.of(2L), List.of(1L)));
        assertThat(target.last("a").loadable()).containsExactly(2L);
        assertThat(target.last("a").loader().directory()).isEqualTo(root.resolve("new/2"));
        assertThat(target.last("a").loader().fingerprint()).isNotEqualTo(before);
    }

    @Test
    void aReloadChangesAModelsVersionPolicyWithoutLoadingAnythingAnew() {
        version("a", 1);
        version("a", 2);
        start(model("a"));
        String before = target.last("a").loader().fingerprint();
        assertThat(configure(model("a", "a", ALL)))
                .containsExactly(change("a", Action.CHANGED, List.of(1L), List.of()));
        assertThat(target.last("a").loadable()).containsExactly(1L, 2L);
        assertThat(target.last("a").versions().get(1).loader().fingerprint()).isEqualTo(before);
        assertThat(configure(model("a", "a", new VersionPolicy(Kind.SPECIFIC, 0, List.of(1L)))))
                .containsExactly(change("a", Action.CHANGED, List.of(), List.of(2L)));
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void labelsAloneAreAChangeThatLoadsNothing() {
        version("a", 1);
        start(model("a"));
        ModelListEntry labelled = new ModelListEntry(
                "a", root.resolve("a").toString(), "tensorflow", null, Map.of("stable", VersionLabel.of(1)), null);
        assertThat(configure(labelled)).containsExactly(change("a", Action.CHANGED, List.of(), List.of()));
        assertThat(target.count("a")).isEqualTo(1);
        assertThat(source.models()).containsExactly(labelled);
    }

    @Test
    void theSameListAgainChangesNothing() {
        version("a", 1);
        start(model("a"));
        for (int i = 0; i < 3; i++) {
            assertThat(configure(model("a"))).containsExactly(change("a", Action.KEPT, List.of(), List.of()));
        }
        assertThat(target.all).hasSize(1);
    }

    @Test
    void anErroringModelHoldsUpNoOther() {
        version("b", 1);
        start();
        List<ModelListChange> changes = configure(model("gone"), model("b"));
        assertThat(changes.get(0).error()).hasMessageContaining("Could not find base path " + root.resolve("gone"));
        assertThat(changes.get(0).load()).isEmpty();
        assertThat(changes.get(1)).isEqualTo(change("b", Action.ADDED, List.of(1L), List.of()));
        assertThat(target.last("gone").error()).contains("Could not find base path");
        assertThat(target.last("b").loadable()).containsExactly(1L);
    }

    @Test
    void aChangedModelThatCannotBeServedGoesOnAsItWas() {
        version("a", 1);
        start(model("a"));
        List<ModelListChange> changes = configure(model("a", "nowhere", null));
        assertThat(changes.get(0).action()).isEqualTo(Action.CHANGED);
        assertThat(changes.get(0).unload()).isEmpty();
        assertThat(changes.get(0).error()).hasMessageContaining("Could not find base path " + root.resolve("nowhere"));
        for (int i = 0; i < 10; i++) {
            clock.advance(SETTLE);
            source.poll();
        }
        assertThat(target.last("a").loadable()).containsExactly(1L);
        assertThat(target.last("a").loader().directory()).isEqualTo(root.resolve("a/1"));
        version("nowhere", 2);
        source.poll();
        clock.advance(SETTLE);
        source.poll();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void aChangedModelWithAnEmptyBasePathGoesOnAsItWas() throws IOException {
        version("a", 1);
        Files.createDirectories(root.resolve("empty"));
        start(model("a"));
        List<ModelListChange> changes = configure(model("a", "empty", null));
        assertThat(changes.get(0).error()).hasMessageContaining("No versions of servable a found under base path");
        for (int i = 0; i < 10; i++) {
            clock.advance(SETTLE);
            source.poll();
        }
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void aChangedPolicyIsTakenUpWhenYoungFilesHaveSettled() {
        version("a", 1);
        version("a", 2);
        start(model("a"));
        Fakes.touch(root.resolve("a"), clock.millis() + 5_000);
        source.poll();
        clock.advance(SETTLE);
        source.poll();
        int count = (int) target.count("a");
        assertThat(count).isEqualTo(2);
        assertThat(configure(model("a", "a", ALL)))
                .containsExactly(change("a", Action.CHANGED, List.of(1L), List.of()));
        assertThat(target.count("a")).isEqualTo(count);
        clock.advance(SETTLE);
        source.poll();
        assertThat(target.last("a").loadable()).containsExactly(1L, 2L);
    }

    @Test
    void anEnsembleOfTheListIsMadeOfModelsOfTheList() {
        version("a", 1);
        Fakes.write(root.resolve("e/config.pbtxt"), """
            name: "x" platform: "ensemble" max_batch_size: 1
            input { name: "i" data_type: TYPE_FP32 dims: 1 } output { name: "o" data_type: TYPE_FP32 dims: 1 }
            ensemble_scheduling { step { model_name: "a" model_version: -1
              input_map { key: "i" value: "i" } output_map { key: "o" value: "o" } } }
            """);
        start(model("e"), model("a"));
        assertThat(target.last("e").loadable()).containsExactly(1L);
        assertThat(target.all.get(0).model()).isEqualTo("a");
        var unused = configure(model("e"));
        assertThat(target.last("a").versions()).isEmpty();
    }

    @Test
    void aPolicyThatWantsWhatIsNotThereLeavesTheModelAsItWas() {
        version("a", 1);
        start(model("a"));
        List<ModelListChange> changes = configure(model("a", "a", new VersionPolicy(Kind.SPECIFIC, 0, List.of(7L))));
        assertThat(changes.get(0).error()).hasMessageContaining("none of the versions [7]");
        for (int i = 0; i < 10; i++) {
            clock.advance(SETTLE);
            source.poll();
        }
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void anIllegalListChangesNothing() {
        version("a", 1);
        version("b", 1);
        start(model("a"));
        ModelListEntry relative = new ModelListEntry("b", "models/b", "tensorflow", null, Map.of(), null);
        ModelListEntry other =
                new ModelListEntry("a", root.resolve("a").toString(), "onnxruntime", null, Map.of(), null);
        ModelListEntry unknown = new ModelListEntry("b", root.resolve("b").toString(), "caffe", null, Map.of(), null);
        List<ModelListEntry> twice = List.of(model("b"), model("b"));
        for (var call : List.<java.util.function.Consumer<List<ModelListEntry>>>of(
                l -> source.configure(l), l -> source.plan(l))) {
            refused(() -> call.accept(twice), ErrorCode.INVALID_ARGUMENT, "Illegal to list model b multiple times");
            refused(() -> call.accept(List.of(model("b"), relative)), ErrorCode.INVALID_ARGUMENT, "multiple times");
            refused(
                    () -> call.accept(List.of(relative)),
                    ErrorCode.INVALID_ARGUMENT,
                    "to have an absolute path or URI");
            refused(
                    () -> call.accept(List.of(other)),
                    ErrorCode.INVALID_ARGUMENT,
                    "Illegal to change a model's platform");
            refused(
                    () -> call.accept(List.of(unknown)),
                    ErrorCode.INVALID_ARGUMENT,
                    "requests unsupported platform caffe");
        }
        assertThat(source.models()).containsExactly(model("a"));
        assertThat(target.all).hasSize(1);
        refused(() -> source(SLOW, relative), ErrorCode.INVALID_ARGUMENT, "absolute path");
    }

    @Test
    void modelsOfSeveralPlatformsAreServedTogether() {
        version("a", 1);
        version("b", 1);
        start(new ModelListEntry("a", root.resolve("a").toString(), "onnxruntime_onnx", null, Map.of(), null));
        var unused = configure(
                new ModelListEntry("a", root.resolve("a").toString(), "onnxruntime_onnx", null, Map.of(), null),
                new ModelListEntry("b", root.resolve("b").toString(), "identity", null, Map.of(), null));
        assertThat(target.last("a").loader().backend()).isEqualTo("onnxruntime");
        assertThat(target.last("b").loader().backend()).isEqualTo("identity");
    }

    @Test
    void youngFilesOfANewModelAreServedWhenTheyHaveSettled() {
        start();
        version("a", 1);
        version("a", 2);
        Fakes.touch(root.resolve("a"), clock.millis());
        assertThat(configure(model("a"))).containsExactly(change("a", Action.ADDED, List.of(2L), List.of()));
        assertThat(target.count("a")).isZero();
        clock.advance(SETTLE);
        source.poll();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void aWrittenVersionOfANewModelDoesNotWaitForAYoungOne() {
        start();
        version("a", 1);
        version("a", 2);
        Fakes.touch(root.resolve("a/2"), clock.millis());
        var unused = configure(model("a"));
        assertThat(target.last("a").loadable()).containsExactly(1L);
        clock.advance(SETTLE);
        source.poll();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void alwaysPresentRefusesAListWithAModelWithoutVersions() {
        version("a", 1);
        source = source(SLOW.withAlwaysPresent(true), model("a"));
        source.start(target);
        refused(
                () -> source.configure(List.of(model("b"))),
                ErrorCode.NOT_FOUND,
                "Unable to find a numerical version path for servable b at: " + root.resolve("b"));
        assertThat(source.models()).containsExactly(model("a"));
        assertThat(target.all).hasSize(1);
    }

    @Test
    void aPlanBeforeTheStartShowsEverythingAsNew() {
        version("a", 3);
        source = source(SLOW, model("a"));
        assertThat(source.plan(List.of(model("a")))).containsExactly(change("a", Action.ADDED, List.of(3L), List.of()));
        refused(() -> source.configure(List.of()), ErrorCode.FAILED_PRECONDITION, "is not running");
    }

    @Test
    void listsThatAreReplacedWhileLooksGoOnLeaveTheLastOneInForce() throws Exception {
        for (int i = 0; i < 20; i++) {
            version("m" + i, 1);
        }
        Fakes.touch(root, System.currentTimeMillis() - 60_000);
        source = new FileSystemStoragePathSource(
                List.of(),
                List.of(Fakes.ONNX),
                Fakes.FACTORY,
                Options.DEFAULT.withPollInterval(Duration.ofMillis(1)),
                Clock.system());
        source.start(target);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CountDownLatch done = new CountDownLatch(4);
        for (int thread = 0; thread < 4; thread++) {
            int own = thread;
            new Thread(() -> {
                        try {
                            for (int i = 0; i < 50; i++) {
                                List<ModelListEntry> list = new ArrayList<>();
                                for (int m = own; m < 20; m += 1 + i % 3) {
                                    list.add(model("m" + m));
                                }
                                assertThat(source.configure(list)).hasSizeGreaterThanOrEqualTo(list.size());
                                source.poll();
                            }
                        } catch (RuntimeException | AssertionError e) {
                            failure.set(e);
                        } finally {
                            done.countDown();
                        }
                    })
                    .start();
        }
        assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
        assertThat(failure.get()).isNull();
        var unused = source.configure(List.of(model("m3"), model("m7")));
        for (int m = 0; m < 20; m++) {
            String name = "m" + m;
            boolean wanted = m == 3 || m == 7;
            if (wanted || target.count(name) > 0) {
                assertThat(target.last(name).loadable()).isEqualTo(wanted ? List.of(1L) : List.of());
            }
        }
    }
}
