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
import io.nereid.spi.management.ModelListEntry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The behaviour of TensorFlow Serving's FileSystemStoragePathSource, and deliberate improvements. */
class FileSystemStoragePathSourceTest {
    private static final Duration SETTLE = Duration.ofSeconds(1);
    private static final Options SLOW = Options.DEFAULT.withPollInterval(Duration.ofHours(1));
    private static final VersionPolicy ALL = new VersionPolicy(Kind.ALL, 0, List.of());

    @TempDir
    Path root;

    private final FakeClock clock = new FakeClock();
    private final Recorder target = new Recorder();
    private FileSystemStoragePathSource source = source(SLOW);

    private FileSystemStoragePathSource source(Options options, ModelListEntry... models) {
        return source(options, clock, models);
    }

    private static FileSystemStoragePathSource source(Options options, Clock clock, ModelListEntry... models) {
        return new FileSystemStoragePathSource(
                List.of(models), List.of(Fakes.ONNX, Fakes.IDENTITY), Fakes.FACTORY, options, clock);
    }

    private void start(Options options, ModelListEntry... models) {
        source = source(options, models);
        source.start(target);
    }

    private void start(ModelListEntry... models) {
        start(SLOW, models);
    }

    @AfterEach
    void close() {
        source.close();
    }

    private ModelListEntry model(String name, VersionPolicy policy) {
        return new ModelListEntry(name, root.resolve(name).toString(), "tensorflow", policy, Map.of(), null);
    }

    private ModelListEntry model(String name) {
        return new ModelListEntry(name, root.resolve(name).toString(), "tensorflow", null, Map.of(), null);
    }

    private static VersionPolicy latest(int count) {
        return new VersionPolicy(Kind.LATEST, count, List.of());
    }

    private static VersionPolicy specific(Long... versions) {
        return new VersionPolicy(Kind.SPECIFIC, 0, List.of(versions));
    }

    private void version(String model, String version) {
        Fakes.write(root.resolve(model + "/" + version + "/model.onnx"), "v" + version);
    }

    /** Two polls a settle time apart. */
    private void settle() {
        source.poll();
        clock.advance(SETTLE);
        source.poll();
    }

    private List<Long> served(String model) {
        return target.last(model).loadable();
    }

    @Test
    void noVersionsUnderTheBasePathIsToldInTheWordsOfTheOriginal() throws IOException {
        Files.createDirectories(root.resolve("a"));
        start(model("a"));
        String text = "No versions of servable a found under base path " + root.resolve("a")
                + ". Did you forget to name your leaf directory as a number (eg. '/1/')?";
        assertThat(target.last("a").error()).contains(text);
        assertThat(source.problems())
                .singleElement()
                .satisfies(p -> assertThat(p.message()).isEqualTo(text));
    }

    @Test
    void aMissingBasePathIsToldAndAffectsNoOtherModel() {
        version("b", "1");
        start(model("a"), model("b"));
        assertThat(target.last("a").error())
                .contains("Could not find base path " + root.resolve("a") + " for servable a with error no such file");
        assertThat(served("b")).containsExactly(1L);
        version("a", "1");
        version("b", "2");
        settle();
        assertThat(served("a")).containsExactly(1L);
        assertThat(served("b")).containsExactly(2L);
        assertThat(source.problems()).isEmpty();
    }

    @Test
    void filesAppearAfterStartup() throws IOException {
        Files.createDirectories(root.resolve("a"));
        start(model("a"));
        version("a", "3");
        settle();
        assertThat(served("a")).containsExactly(3L);
    }

    @Test
    void theBasePathAppearsAfterStartup() {
        start(model("a"));
        settle();
        assertThat(target.count("a")).isEqualTo(1);
        version("a", "0");
        settle();
        assertThat(served("a")).containsExactly(0L);
    }

    @Test
    void multipleVersionsTheHighestIsServed() {
        version("a", "42");
        version("a", "17");
        version("a", "9");
        start(model("a"));
        assertThat(served("a")).containsExactly(42L);
    }

    @Test
    void nLatestVersions() {
        for (String v : List.of("1", "2", "3", "10")) {
            version("a", v);
        }
        start(model("a", latest(2)));
        assertThat(served("a")).containsExactly(3L, 10L);
    }

    @Test
    void moreLatestVersionsThanThereAreIsAllOfThem() {
        version("a", "1");
        start(model("a", latest(5)));
        assertThat(served("a")).containsExactly(1L);
    }

    @Test
    void allVersions() {
        for (String v : List.of("0", "7", "00000123")) {
            version("a", v);
        }
        start(model("a", ALL));
        assertThat(served("a")).containsExactly(0L, 7L, 123L);
    }

    @Test
    void specificVersions() {
        for (String v : List.of("1", "2", "3")) {
            version("a", v);
        }
        start(model("a", specific(1L, 3L)));
        assertThat(served("a")).containsExactly(1L, 3L);
    }

    @Test
    void specificVersionsWithLeadingZeros() {
        version("a", "00000123");
        version("a", "00000124");
        version("a", "5");
        start(model("a", specific(5L, 123L)));
        assertThat(served("a")).containsExactly(5L, 123L);
        assertThat(Fakes.FACTORY.directory(target.last("a").versions().get(1).id()))
                .isEqualTo(root.resolve("a/00000123"));
    }

    @Test
    void missingSpecificVersionsAreOnlyTold() {
        version("a", "1");
        start(model("a", specific(1L, 9L)));
        assertThat(served("a")).containsExactly(1L);
        assertThat(source.problems())
                .singleElement()
                .satisfies(p -> assertThat(p.message()).contains("version 9 of the version policy does not exist"));
    }

    @Test
    void whenNoSpecificVersionIsThereTheOthersAreNamed() {
        version("a", "1");
        start(model("a", specific(9L)));
        assertThat(target.last("a").error()).contains("none of the versions [9] of servable a", "there is [1]");
    }

    @Test
    void aTimestampIsAVersion() {
        version("a", "20261121104500");
        version("a", "1");
        start(model("a"));
        assertThat(served("a")).containsExactly(20261121104500L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "1.0", "x", "1x", "0x1", "+1", " 1", "9223372036854775808", ".1", "१"})
    void childrenThatAreNoNumbersArePassedOverSilently(String name) {
        version("a", "1");
        version("a", name);
        start(model("a", ALL));
        assertThat(served("a")).containsExactly(1L);
        assertThat(source.problems()).isEmpty();
    }

    @Test
    void aFileNamedLikeAVersionIsPassedOver() {
        version("a", "1");
        Fakes.write(root.resolve("a/2"), "x");
        start(model("a"));
        assertThat(served("a")).containsExactly(1L);
        assertThat(source.problems()).singleElement().matches(p -> p.message().contains("must be a directory"));
    }

    @Test
    void ofDuplicateVersionsOneWinsAndTheOtherIsTold() {
        version("a", "7");
        version("a", "007");
        start(model("a", ALL));
        assertThat(served("a")).containsExactly(7L);
        assertThat(target.last("a").loader().directory()).isEqualTo(root.resolve("a/7"));
        assertThat(source.problems()).singleElement().satisfies(p -> {
            assertThat(p.isError()).isFalse();
            assertThat(p.toString()).contains(root.resolve("a/007") + ": passed over, 7 is version 7 too");
        });
    }

    @Test
    void aVersionsDirectoryThatIsRenamedIsAnotherVersion() throws IOException {
        version("a", "1");
        version("a", "2");
        start(model("a"));
        Files.move(root.resolve("a/1"), root.resolve("a/3"));
        settle();
        assertThat(served("a")).containsExactly(3L);
    }

    @Test
    void aNewVersionIsServedWhenItHasSettled() {
        version("a", "1");
        start(model("a"));
        version("a", "2");
        source.poll();
        assertThat(served("a")).containsExactly(1L);
        clock.advance(SETTLE);
        source.poll();
        assertThat(served("a")).containsExactly(2L);
    }

    @Test
    void aHalfCopiedVersionIsNotServed() {
        version("a", "1");
        start(model("a"));
        version("a", "2");
        for (int i = 0; i < 5; i++) {
            source.poll();
            clock.advance(SETTLE);
            Fakes.write(root.resolve("a/2/part" + i), "x");
        }
        assertThat(target.count("a")).isEqualTo(1);
        settle();
        assertThat(served("a")).containsExactly(2L);
    }

    @Test
    void aVersionDirectoryThatHasJustBeenMadeDoesNotHideTheOthers() throws IOException {
        version("a", "1");
        Files.createDirectories(root.resolve("a/2"));
        start(model("a", ALL));
        assertThat(served("a")).containsExactly(1L, 2L);
        assertThat(target.last("a").loader().config().backend()).isEqualTo("onnxruntime");
    }

    @Test
    void atTheStartTheWrittenVersionsAreServedAndTheYoungOneFollows() {
        version("a", "1");
        Fakes.touch(root, clock.millis() - 10_000);
        version("a", "2");
        Fakes.touch(root.resolve("a/2"), clock.millis());
        start(SLOW.withSettle(Duration.ofMillis(200)), model("a", ALL));
        assertThat(served("a")).containsExactly(1L, 2L);
        assertThat(target.count("a")).isEqualTo(1);
    }

    @Test
    void theLastVersionIsNotRemovedBeforeThreeLooksAgree() {
        version("a", "1");
        start(model("a"));
        Fakes.delete(root.resolve("a/1"));
        settle();
        assertThat(served("a")).containsExactly(1L);
        assertThat(source.problems()).anyMatch(p -> p.message().startsWith("No versions of servable a found"));
        source.poll();
        assertThat(target.last("a").error()).contains("No versions of servable a found");
    }

    @Test
    void theNumberOfConfirmationsIsASetting() {
        version("a", "1");
        start(SLOW.withConfirmations(6), model("a"));
        Fakes.delete(root.resolve("a/1"));
        clock.advance(SETTLE);
        for (int i = 0; i < 5; i++) {
            source.poll();
            clock.advance(SETTLE);
        }
        assertThat(target.count("a")).isEqualTo(1);
        source.poll();
        assertThat(target.last("a").error()).contains("No versions of servable a found");
    }

    @Test
    void anEmptyListingThatFillsAgainUnloadsNothing() {
        version("a", "1");
        start(model("a"));
        for (int i = 0; i < 4; i++) {
            Fakes.delete(root.resolve("a/1"));
            settle();
            version("a", "1");
            settle();
        }
        assertThat(target.all).allMatch(e -> e.loadable().equals(List.of(1L)));
        assertThat(source.problems()).isEmpty();
    }

    @Test
    void aVersionThatComesBackAsItWasLeavesNoProblem(@TempDir Path elsewhere) throws IOException {
        version("a", "1");
        start(model("a"));
        Files.move(root.resolve("a/1"), elsewhere.resolve("1"));
        source.poll();
        assertThat(source.problems()).isNotEmpty();
        Files.move(elsewhere.resolve("1"), root.resolve("a/1"));
        settle();
        assertThat(source.problems()).isEmpty();
        assertThat(target.count("a")).isEqualTo(1);
    }

    @Test
    void aBasePathThatCannotBeReadNeverUnloads() {
        version("a", "1");
        start(model("a"));
        Fakes.delete(root.resolve("a"));
        for (int i = 0; i < 10; i++) {
            settle();
        }
        assertThat(target.count("a")).isEqualTo(1);
        assertThat(source.problems()).anyMatch(p -> p.message().contains("Could not find base path"));
        version("a", "2");
        settle();
        assertThat(served("a")).containsExactly(2L);
    }

    @Test
    void alwaysPresentNeverUnloadsAll() {
        version("a", "1");
        start(SLOW.withAlwaysPresent(true), model("a"));
        Fakes.delete(root.resolve("a/1"));
        for (int i = 0; i < 20; i++) {
            settle();
        }
        assertThat(target.count("a")).isEqualTo(1);
        version("a", "2");
        settle();
        assertThat(served("a")).containsExactly(2L);
    }

    @Test
    void aSpecificVersionThatVanishesIsBelievedLikeAnEmptyListing() {
        version("a", "1");
        version("a", "2");
        start(model("a", specific(1L)));
        Fakes.delete(root.resolve("a/1"));
        settle();
        assertThat(target.count("a")).isEqualTo(1);
        source.poll();
        assertThat(target.last("a").loadable()).isEmpty();
    }

    @Test
    void theStartFailsForZeroVersionsWhereThatIsAskedFor() throws IOException {
        Files.createDirectories(root.resolve("a"));
        version("b", "1");
        for (Options options : List.of(SLOW.withFailIfZeroVersionsAtStartup(true), SLOW.withAlwaysPresent(true))) {
            source = source(options, model("a"), model("b"));
            assertThatThrownBy(() -> source.start(target)).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                assertThat(e.getMessage())
                        .isEqualTo("Unable to find a numerical version path for servable a at: " + root.resolve("a"));
            });
            assertThat(target.all).isEmpty();
        }
    }

    @Test
    void aBasePathThatIsALinkIsFollowed(@TempDir Path elsewhere) throws IOException {
        Fakes.write(elsewhere.resolve("v1/1/model.onnx"), "x");
        Fakes.write(elsewhere.resolve("v2/2/model.onnx"), "x");
        Files.createSymbolicLink(root.resolve("a"), elsewhere.resolve("v1"));
        start(model("a"));
        assertThat(served("a")).containsExactly(1L);
        Files.delete(root.resolve("a"));
        Files.createSymbolicLink(root.resolve("a"), elsewhere.resolve("v2"));
        settle();
        assertThat(served("a")).containsExactly(2L);
    }

    @Test
    void theListsPolicyWinsOverTheConfigurationsWhichHoldsOtherwise() {
        version("a", "1");
        version("a", "2");
        Fakes.write(root.resolve("a/config.pbtxt"), "name: 'other' max_batch_size: 4 version_policy { all {} }");
        start(model("a"));
        assertThat(served("a")).containsExactly(1L, 2L);
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(4);
        assertThat(target.last("a").loader().config().name()).isEqualTo("a");
        source.close();
        start(model("a", latest(1)));
        assertThat(served("a")).containsExactly(2L);
    }

    @Test
    void aChangedConfigurationIsTakenUp() {
        version("a", "1");
        version("b", "1");
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 4");
        start(model("a"), model("b"));
        String before = target.last("a").loader().fingerprint();
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_size: 8");
        Fakes.write(root.resolve("b/config.pbtxt"), "max_batch_size: 2");
        settle();
        assertThat(target.last("a").loader().config().maxBatchSize()).isEqualTo(8);
        assertThat(target.last("a").loader().fingerprint()).isNotEqualTo(before);
        assertThat(target.last("b").loader().config().maxBatchSize()).isEqualTo(2);
    }

    @Test
    void aConfigurationThatBreaksLeavesTheModelServing() {
        version("a", "1");
        start(model("a"));
        Fakes.write(root.resolve("a/config.pbtxt"), "max_batch_sze: 4");
        settle();
        assertThat(target.count("a")).isEqualTo(1);
        assertThat(source.problems()).hasSize(1);
    }

    @Test
    void theListsPlatformChoosesTheBackend() {
        Fakes.write(root.resolve("a/1/weights.bin"), "x");
        start(new ModelListEntry("a", root.resolve("a").toString(), "identity", null, Map.of(), null));
        assertThat(target.last("a").loader().config().backend()).isEqualTo("identity");
    }

    @Test
    void aPlatformThatContradictsTheConfigurationIsRefused() {
        version("a", "1");
        Fakes.write(root.resolve("a/config.pbtxt"), "backend: 'identity'");
        start(new ModelListEntry("a", root.resolve("a").toString(), "onnxruntime_onnx", null, Map.of(), null));
        assertThat(target.last("a").error())
                .contains("Model a requests platform onnxruntime_onnx, but its configuration asks for the backend"
                        + " identity");
    }

    @Test
    void aModelsFileBesideTheVersionsIsNoVersion() {
        Fakes.write(root.resolve("a/model.onnx"), "x");
        start(model("a"));
        assertThat(target.last("a").error()).contains("No versions of servable a found");
    }

    @Test
    void theFileSystemIsPolledOnlyOnceWithoutAnInterval() throws Exception {
        version("a", "1");
        CountDownLatch second = new CountDownLatch(2);
        source = source(
                Options.DEFAULT.withPollInterval(Duration.ZERO).withSettle(Duration.ZERO), Clock.system(), model("a"));
        source.start((m, versions) -> second.countDown());
        version("a", "2");
        assertThat(second.await(300, TimeUnit.MILLISECONDS)).isFalse();
        assertThat(source.polling().polls()).isZero();
    }

    @Test
    void theTimerLooksByItself() throws Exception {
        version("a", "1");
        Fakes.touch(root, System.currentTimeMillis() - 60_000);
        CountDownLatch second = new CountDownLatch(2);
        List<Long> versions = new ArrayList<>();
        source = source(
                Options.DEFAULT.withPollInterval(Duration.ofMillis(20)).withSettle(Duration.ofMillis(20)),
                Clock.system(),
                model("a"));
        source.start((m, list) -> {
            versions.add(list.get(0).id().version());
            second.countDown();
        });
        version("a", "2");
        assertThat(second.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(versions).containsExactly(1L, 2L);
    }

    @Test
    void aSourceIsStartedOnceAndEmitsNothingAfterClosing() {
        version("a", "1");
        start(model("a"));
        assertThatThrownBy(() -> source.start(target)).hasMessage("the model list source is started already");
        source.close();
        version("a", "2");
        settle();
        assertThat(target.all).hasSize(1);
        assertThatThrownBy(() -> source.configure(List.of())).hasMessage("the model list source is not running");
    }

    @Test
    void settingsThatCannotBeAreRefused() {
        assertThatThrownBy(() -> SLOW.withPollInterval(Duration.ofSeconds(-1))).isInstanceOf(ServingException.class);
        assertThatThrownBy(() -> SLOW.withSettle(Duration.ofSeconds(-1))).isInstanceOf(ServingException.class);
        assertThatThrownBy(() -> SLOW.withConfirmations(0)).isInstanceOf(ServingException.class);
    }
}
