// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.repository.Fakes.FakeClock;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.repository.RepositorySource.Mode;
import io.nereid.repository.RepositorySource.Options;
import io.nereid.spi.ServableId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RepositorySourceTest {
    private static final Duration SETTLE = Duration.ofSeconds(1);
    private static final Options POLL = Options.DEFAULT.withMode(Mode.POLL).withPollInterval(Duration.ofHours(1));

    @TempDir
    Path root;

    private final FakeClock clock = new FakeClock();
    private final Recorder target = new Recorder();
    private RepositorySource source = source(POLL);

    private RepositorySource source(Options options, Path... roots) {
        return new RepositorySource(
                roots.length == 0 && root != null ? List.of(root) : List.of(roots),
                List.of(Fakes.ONNX, Fakes.IDENTITY),
                Fakes::loader,
                options,
                clock);
    }

    private void start(Options options, Path... roots) {
        source = source(options, roots);
        source.start(target);
    }

    @AfterEach
    void close() {
        source.close();
    }

    private void model(String name, int version) {
        Fakes.write(root.resolve(name + "/" + version + "/model.onnx"), "v" + version);
    }

    /** Two reads a settle time apart. */
    private void settle() {
        source.poll();
        clock.advance(SETTLE);
        source.poll();
    }

    @Test
    void theStartEmitsEveryModelBeforeItReturns() {
        model("a", 1);
        model("a", 2);
        model("b", 1);
        start(POLL);
        assertThat(target.last("a").loadable()).containsExactly(2L);
        assertThat(target.last("b").loadable()).containsExactly(1L);
        assertThat(target.last("a").loader().config().backend()).isEqualTo("onnxruntime");
        assertThat(target.last("a").loader().directory()).isEqualTo(root.resolve("a/2"));
    }

    @Test
    void aPollWithoutAnythingNewEmitsNothing() {
        model("a", 1);
        start(POLL);
        settle();
        assertThat(target.all).hasSize(1);
    }

    @Test
    void aNewVersionIsEmittedWhenItHasSettled() {
        model("a", 1);
        start(POLL);
        model("a", 2);
        source.poll();
        assertThat(target.count("a")).isEqualTo(1);
        clock.advance(SETTLE);
        source.poll();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void aVersionThatGrowsBetweenReadsIsNotEmitted() {
        model("a", 1);
        start(POLL);
        model("a", 2);
        for (int i = 0; i < 5; i++) {
            source.poll();
            clock.advance(SETTLE);
            Fakes.write(root.resolve("a/2/part" + i), "x");
        }
        assertThat(target.count("a")).isEqualTo(1);
        settle();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void aNewModelAppears() {
        model("a", 1);
        start(POLL);
        model("b", 1);
        settle();
        assertThat(target.last("b").loadable()).containsExactly(1L);
        assertThat(target.count("a")).isEqualTo(1);
    }

    @Test
    void aChangedConfigurationGivesANewFingerprint() {
        model("a", 1);
        start(POLL);
        String before = target.last("a").loader().fingerprint();
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 4");
        settle();
        assertThat(target.last("a").loader().fingerprint()).isNotEqualTo(before);
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(4);
    }

    @Test
    void aRemovedModelIsNoLongerWanted() {
        model("a", 1);
        model("b", 1);
        start(POLL);
        Fakes.delete(root.resolve("a"));
        source.poll();
        assertThat(target.last("a").versions()).isEmpty();
        assertThat(target.count("b")).isEqualTo(1);
    }

    @Test
    void anEmptyRootIsBelievedAfterThreeReads() {
        model("a", 1);
        start(POLL);
        Fakes.delete(root.resolve("a"));
        source.poll();
        source.poll();
        assertThat(target.count("a")).isEqualTo(1);
        source.poll();
        assertThat(target.last("a").versions()).isEmpty();
    }

    @Test
    void anEmptyRootThatFillsAgainUnloadsNothing() {
        model("a", 1);
        start(POLL);
        for (int i = 0; i < 4; i++) {
            Fakes.delete(root.resolve("a"));
            source.poll();
            source.poll();
            model("a", 1);
            settle();
        }
        assertThat(target.all).noneMatch(e -> e.versions().isEmpty());
    }

    @Test
    void aRootThatCannotBeReadUnloadsNothing() {
        model("a", 1);
        start(POLL);
        Fakes.delete(root);
        for (int i = 0; i < 10; i++) {
            settle();
        }
        assertThat(target.count("a")).isEqualTo(1);
        assertThat(source.problems()).anyMatch(p -> p.message().contains("cannot read the repository"));
    }

    @Test
    void aModelThatLosesItsVersionsIsBelievedAfterThreeReads() {
        Fakes.write(root.resolve("a/config.pbtxt"), "backend: \"onnxruntime\"");
        model("a", 1);
        start(POLL);
        Fakes.delete(root.resolve("a/1"));
        settle();
        assertThat(target.count("a")).isEqualTo(1);
        source.poll();
        assertThat(target.last("a").error()).contains("at least one version must be available");
    }

    @Test
    void aBrokenConfigurationFailsItsModelOnly() {
        model("a", 1);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_sze: 4");
        model("b", 1);
        start(POLL);
        assertThat(target.last("a").versions()).singleElement().matches(v -> v.id().version() == 1);
        assertThat(target.last("a").error())
                .isEqualTo(root.resolve("a/config.pbtxt") + ":1:1: unknown field 'max_batch_sze'"
                        + " (did you mean 'max_batch_size'?)");
        assertThat(target.last("b").loadable()).containsExactly(1L);
    }

    @Test
    void aConfigurationThatBreaksLaterLeavesTheModelServing() {
        model("a", 1);
        start(POLL);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_sze: 4");
        settle();
        assertThat(target.count("a")).isEqualTo(1);
        assertThat(source.problems()).hasSize(1);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 4");
        settle();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(4);
        assertThat(source.problems()).isEmpty();
    }

    @Test
    void aVersionThatBecomesUnreadableGoesOnServing() throws IOException {
        model("a", 1);
        start(POLL);
        Files.createSymbolicLink(root.resolve("a/1/weights"), root.resolve("gone"));
        settle();
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void aModelInTwoRootsIsServedFromNeither(@TempDir Path second) {
        model("a", 1);
        Fakes.write(second.resolve("a/1/model.onnx"), "x");
        start(POLL, root, second);
        assertThat(target.last("a").error())
                .contains(
                        "duplicate (model 'a' is not unique across all model repositories: ",
                        root.resolve("a").toString(),
                        second.resolve("a").toString());
        assertThat(source.problems()).hasSize(2);
        Fakes.delete(second.resolve("a"));
        settle();
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void aSecondModelOfTheNameDoesNotStopTheFirst(@TempDir Path second) {
        model("a", 1);
        start(POLL, root, second);
        Fakes.write(second.resolve("a/1/model.onnx"), "x");
        settle();
        assertThat(target.count("a")).isEqualTo(1);
        assertThat(source.problems()).hasSize(2);
    }

    @Test
    void youngFilesAreWaitedForAtTheStart() {
        model("old", 1);
        Fakes.touch(root, clock.millis() - 5_000);
        model("young", 1);
        Fakes.touch(root.resolve("young"), clock.millis());
        start(POLL.withSettle(Duration.ofMillis(50)));
        assertThat(target.all.get(0).model()).isEqualTo("old");
        assertThat(target.last("young").loadable()).containsExactly(1L);
    }

    @Test
    void filesThatStillChangeAtTheStartAreTakenUpLater() throws InterruptedException {
        model("a", 1);
        Fakes.touch(root, clock.millis() - 5_000);
        model("a", 2);
        Fakes.touch(root.resolve("a/2"), clock.millis());
        CountDownLatch second = new CountDownLatch(2);
        Clock growing = new Clock() {
            private int reads;

            @Override
            public long nanos() {
                return Clock.system().nanos();
            }

            @Override
            public synchronized long millis() {
                // Each read at the start finds version 2 just written to.
                if (reads++ < 4) {
                    Fakes.write(root.resolve("a/2/part" + reads), "x");
                }
                Fakes.touch(root.resolve("a/2"), clock.millis());
                return clock.millis();
            }
        };
        source = new RepositorySource(
                List.of(root),
                List.of(Fakes.ONNX),
                Fakes::loader,
                Options.DEFAULT.withSettle(Duration.ofMillis(50)),
                growing);
        source.start((name, versions) -> {
            target.aspire(name, versions);
            second.countDown();
        });
        assertThat(target.all.get(0).loadable()).containsExactly(1L);
        assertThat(second.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void theTimerPolls() throws InterruptedException {
        model("a", 1);
        CountDownLatch second = new CountDownLatch(2);
        source = new RepositorySource(
                List.of(root),
                List.of(Fakes.ONNX),
                Fakes::loader,
                POLL.withPollInterval(Duration.ofMillis(20)).withSettle(Duration.ofMillis(20)),
                Clock.system());
        source.start((name, versions) -> {
            target.aspire(name, versions);
            second.countDown();
        });
        model("a", 2);
        assertThat(second.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void explicitModeStartsWithTheNamedModelsOnly() {
        model("a", 1);
        model("b", 1);
        start(Options.DEFAULT.withMode(Mode.EXPLICIT).withStartModels(List.of("b")));
        assertThat(target.all).singleElement().matches(e -> e.model().equals("b"));
        assertThat(source.names()).containsExactly("a", "b");
    }

    @Test
    void explicitModeStartsWithEverythingForAStar() {
        model("a", 1);
        model("b", 1);
        start(Options.DEFAULT.withMode(Mode.EXPLICIT).withStartModels(List.of("*")));
        assertThat(target.all).hasSize(2);
        assertThatThrownBy(() -> source(Options.DEFAULT.withStartModels(List.of("*", "a"))))
                .hasMessageStartingWith("Wildcard model name '*' must be the ONLY startup model");
    }

    @Test
    void aStartModelThatIsNotThereIsRefused() {
        model("alpha", 1);
        assertThatThrownBy(() -> start(Options.DEFAULT.withMode(Mode.EXPLICIT).withStartModels(List.of("alpah"))))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                    assertThat(e.remedy()).isEqualTo("did you mean 'alpha'?");
                });
    }

    @Test
    void aModelCanBeLoadedUnloadedAndLoadedAgain() {
        model("a", 1);
        start(Options.DEFAULT.withMode(Mode.EXPLICIT));
        assertThat(target.all).isEmpty();
        assertThat(source.load("a")).extracting(Object::toString).containsExactly("a:1");
        assertThat(target.last("a").loadable()).containsExactly(1L);
        source.unload("a");
        assertThat(target.last("a").versions()).isEmpty();
        source.poll();
        assertThat(target.count("a")).isEqualTo(2);
        source.load("a");
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void loadingTakesWhatIsThereWithoutWaiting() {
        model("a", 1);
        start(POLL);
        model("a", 2);
        source.load("a");
        assertThat(target.last("a").loadable()).containsExactly(2L);
        settle();
        assertThat(target.count("a")).isEqualTo(2);
    }

    @Test
    void anUnloadedModelStaysAwayUntilItIsLoaded() {
        model("a", 1);
        start(POLL);
        source.unload("a");
        model("a", 2);
        settle();
        assertThat(target.last("a").versions()).isEmpty();
        source.load("a");
        assertThat(target.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void loadingABrokenModelTellsWhyAndLeavesTheOldOneServing() {
        model("a", 1);
        start(POLL);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: -4");
        assertThatThrownBy(() -> source.load("a")).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e)
                    .hasMessageContaining("load failed for model 'a'")
                    .hasMessageContaining("'max_batch_size' must be non-negative value for a")
                    .hasMessageContaining("the versions loaded before keep serving");
        });
        assertThat(target.last("a").loadable()).containsExactly(1L);
    }

    @Test
    void loadingAModelThatIsBrokenFromTheStartShowsItAsFailed() {
        model("a", 1);
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: -4");
        start(Options.DEFAULT.withMode(Mode.EXPLICIT));
        assertThatThrownBy(() -> source.load("a")).hasMessageContaining("load failed for model 'a'");
        assertThat(target.last("a").error()).contains("must be non-negative");
    }

    @Test
    void aModelThatIsNotThereCannotBeLoadedOrUnloaded() {
        model("a", 1);
        start(POLL);
        assertThatThrownBy(() -> source.load("b"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessage("failed to load 'b', failed to poll from model repository");
        assertThatThrownBy(() -> source.unload("b"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
        assertThat(source.load("a")).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"../a", "/etc", "a/b", "..", "a\\b", ".", "", "a\u0000"})
    void namesThatArePathsAreRefused(String name) {
        model("a", 1);
        start(POLL);
        assertThatThrownBy(() -> source.load(name))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        assertThatThrownBy(() -> source.unload(name)).isInstanceOf(ServingException.class);
    }

    @Test
    void nothingIsEmittedAfterClosing() {
        model("a", 1);
        start(POLL);
        source.close();
        model("b", 1);
        settle();
        assertThat(target.all).hasSize(1);
        assertThatThrownBy(() -> source.load("b")).hasMessage("the repository source is not running");
    }

    @Test
    void aTargetThatRejectsAListDoesNotBlockLaterCalls() throws Exception {
        model("a", 1);
        AtomicBoolean rejects = new AtomicBoolean();
        source = source(Options.DEFAULT.withMode(Mode.EXPLICIT));
        source.start((name, versions) -> {
            if (rejects.get()) {
                throw ServingException.of(ErrorCode.INTERNAL, "the list of '" + name + "' is rejected");
            }
            target.aspire(name, versions);
        });
        rejects.set(true);
        assertThatThrownBy(() -> source.load("a")).hasMessage("the list of 'a' is rejected");
        assertThatThrownBy(() -> source.unload("a")).hasMessage("the list of 'a' is rejected");
        rejects.set(false);

        CompletableFuture<List<ServableId>> later = new CompletableFuture<>();
        Threads.named("later").newThread(() -> later.complete(source.load("a"))).start();
        assertThat(later.get(30, TimeUnit.SECONDS)).hasSize(1);
    }
}
