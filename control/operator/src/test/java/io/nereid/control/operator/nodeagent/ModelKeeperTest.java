// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.kubernetes.localmodel.CachedModels;
import io.nereid.control.operator.nodeagent.ModelKeeper.Phase;
import io.nereid.control.operator.nodeagent.ModelKeeper.State;
import io.nereid.control.operator.nodeagent.ModelKeeper.Wanted;
import io.nereid.control.plane.loop.EventLoop;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The models of a directory, with real files and a store whose models are of ten bytes for each download step. */
class ModelKeeperTest {
    private static final String A = "s3://zoo/a";
    private static final String B = "s3://zoo/b";

    @TempDir
    Path directory;

    private final EventLoop loop = EventLoop.threads(Clock.system());
    private final List<AutoCloseable> opened = new ArrayList<>();

    /** The sizes of the models, in steps of ten bytes. */
    private final Map<String, Integer> store = new ConcurrentHashMap<>(Map.of(A, 3, B, 4));

    private final List<String> fetched = new CopyOnWriteArrayList<>();

    /** Appends what is missing, as a download that continues does. */
    private void fetch(ModelFetcher.Source source, Path to, long most, ModelFetcher.Progress progress) {
        fetched.add(source.uri());
        Integer steps = store.get(source.uri());
        if (steps == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "there is no " + source.uri());
        }
        try {
            Files.createDirectories(to);
            Path file = to.resolve("weights");
            long there = Files.exists(file) ? Files.size(file) : 0;
            for (long bytes = there; bytes < steps * 10L; bytes += 10) {
                progress.on(bytes, steps * 10L);
                Files.write(file, new byte[10], StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A keeper whose states are seen by {@link #await}. */
    private ModelKeeper keeper(ModelFetcher fetcher, Duration retry) {
        ModelKeeper keeper = new ModelKeeper(directory, fetcher, retry, loop, this::changed);
        opened.add(keeper);
        return keeper;
    }

    private synchronized void changed() {
        notifyAll();
    }

    private synchronized void await(ModelKeeper keeper, Predicate<Map<String, State>> condition)
            throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!condition.test(keeper.states())) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            assertThat(left).as(keeper.states().toString()).isPositive();
            wait(Math.min(left, 100));
        }
    }

    private static Predicate<Map<String, State>> is(String uri, Phase phase) {
        return states -> {
            State state = states.get(CachedModels.folder(uri));
            return state != null && state.phase() == phase;
        };
    }

    private static Wanted wanted(String uri, long size) {
        return new Wanted(CachedModels.folder(uri), new ModelFetcher.Source(uri, "jobs", null, null, Map.of()), size);
    }

    private Path model(String uri) {
        return directory.resolve("models").resolve(CachedModels.folder(uri));
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable one : opened) {
            one.close();
        }
        loop.close();
    }

    @Test
    void listedModelsAreDownloadedAndOthersRemoved() throws Exception {
        ModelKeeper keeper = keeper(this::fetch, Duration.ofMinutes(1));
        keeper.keep(List.of(wanted(A, 30), wanted(B, 40)), 100);
        await(keeper, is(A, Phase.DOWNLOADED).and(is(B, Phase.DOWNLOADED)));
        assertThat(model(A).resolve("weights")).hasSize(30);
        assertThat(model(B).resolve("weights")).hasSize(40);
        Path mine = Files.createDirectories(directory.resolve("models/notes"));
        keeper.keep(List.of(wanted(B, 40)), 100);
        await(keeper, states -> states.size() == 1 && !Files.exists(model(A)));
        assertThat(model(B).resolve("weights")).hasSize(40);
        assertThat(mine).isDirectory();
        assertThat(fetched).containsExactly(A, B);
    }

    @Test
    void aModelLargerThanItsSizeIsEndedAndLeavesNothing() throws Exception {
        ModelKeeper keeper = keeper(this::fetch, Duration.ofMinutes(1));
        keeper.keep(List.of(wanted(A, 29), wanted(B, 40)), 100);
        await(keeper, is(A, Phase.FAILED).and(is(B, Phase.DOWNLOADED)));
        assertThat(keeper.state(CachedModels.folder(A)).message())
                .contains("the model has 30 bytes, more than modelSize, 29", "raise modelSize");
        assertThat(model(A)).doesNotExist();
        assertThat(directory.resolve("downloads").resolve(CachedModels.folder(A)))
                .doesNotExist();
    }

    @Test
    void theLimitOfTheGroupHoldsWhateverTheSizesSay() throws Exception {
        ModelKeeper keeper = keeper(this::fetch, Duration.ofMinutes(1));
        keeper.keep(List.of(wanted(A, 0), wanted(B, 0)), 69);
        await(keeper, is(A, Phase.DOWNLOADED).and(is(B, Phase.FAILED)));
        assertThat(keeper.state(CachedModels.folder(B)).message())
                .contains("the model has 40 bytes, more than the 39 bytes that storageLimit leaves");
        assertThat(ModelFolders.size(directory.resolve("models"))).isEqualTo(30);
        assertThat(ModelFolders.size(directory.resolve("downloads"))).isZero();
        // The model that is not used any more gives way to the other one.
        keeper.keep(List.of(wanted(B, 0)), 69);
        await(keeper, states -> !Files.exists(model(A)));
    }

    @Test
    void aRestartInTheMiddleOfADownloadContinuesIt() throws Exception {
        CountDownLatch half = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        ModelKeeper first = keeper(
                (source, to, most, progress) -> {
                    try {
                        fetch(source, to, most, (bytes, total) -> {
                            if (bytes == 20) {
                                half.countDown();
                                try {
                                    assertThat(ended.await(30, TimeUnit.SECONDS))
                                            .isTrue();
                                } catch (InterruptedException e) {
                                    throw new AssertionError(e);
                                }
                            }
                            progress.on(bytes, total);
                        });
                    } finally {
                        fetched.add("end");
                        changed();
                    }
                },
                Duration.ofMinutes(1));
        first.keep(List.of(wanted(B, 40)), 100);
        assertThat(half.await(30, TimeUnit.SECONDS)).isTrue();
        first.close();
        ended.countDown();
        await(first, states -> fetched.contains("end"));
        assertThat(model(B)).doesNotExist();
        Path partial = directory.resolve("downloads").resolve(CachedModels.folder(B));
        assertThat(partial.resolve("weights")).hasSize(20);

        ModelKeeper second = keeper(this::fetch, Duration.ofMinutes(1));
        second.keep(List.of(wanted(B, 40)), 100);
        await(second, is(B, Phase.DOWNLOADED));
        assertThat(model(B).resolve("weights")).hasSize(40);
        assertThat(partial).doesNotExist();

        ModelKeeper third = keeper(this::fetch, Duration.ofMinutes(1));
        third.keep(List.of(wanted(B, 40)), 100);
        await(third, is(B, Phase.DOWNLOADED));
        assertThat(fetched).as("nothing is downloaded twice").containsExactly(B, "end", B);
    }

    @Test
    void aDamagedModelAndAnEmptyFolderOfAPodAreDownloadedAgain() throws Exception {
        ModelKeeper first = keeper(this::fetch, Duration.ofMinutes(1));
        first.keep(List.of(wanted(A, 30)), 100);
        await(first, is(A, Phase.DOWNLOADED));
        first.close();
        Files.write(model(A).resolve("weights"), new byte[7]);
        Files.createDirectories(model(B));
        ModelKeeper second = keeper(this::fetch, Duration.ofMinutes(1));
        second.keep(List.of(wanted(A, 30), wanted(B, 40)), 100);
        await(second, is(A, Phase.DOWNLOADED).and(is(B, Phase.DOWNLOADED)));
        assertThat(model(A).resolve("weights")).hasSize(30);
        assertThat(model(B).resolve("weights")).hasSize(40);
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(model(B))))
                .as("pods of other users read it")
                .matches("rwxr.xr.x");
    }

    @Test
    void aFailedDownloadIsTriedAgainAndADownloadEndsWhenItIsNotWanted() throws Exception {
        store.remove(A);
        ModelKeeper keeper = keeper(this::fetch, Duration.ofMillis(50));
        keeper.keep(List.of(wanted(A, 30)), 100);
        await(keeper, is(A, Phase.FAILED));
        assertThat(keeper.state(CachedModels.folder(A)).message()).contains("there is no s3://zoo/a");
        store.put(A, 3);
        await(keeper, is(A, Phase.DOWNLOADED));

        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch dropped = new CountDownLatch(1);
        ModelKeeper other = keeper(
                (source, to, most, progress) -> {
                    begun.countDown();
                    try {
                        assertThat(dropped.await(30, TimeUnit.SECONDS)).isTrue();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                    fetch(source, to, most, progress);
                },
                Duration.ofMinutes(1));
        other.keep(List.of(wanted(A, 30), wanted(B, 40)), 100);
        assertThat(begun.await(30, TimeUnit.SECONDS)).isTrue();
        other.keep(List.of(wanted(A, 30)), 100);
        dropped.countDown();
        await(
                other,
                states -> states.size() == 1
                        && !Files.exists(directory.resolve("downloads").resolve(CachedModels.folder(B)))
                        && fetched.contains(B));
        assertThat(model(B)).doesNotExist();
    }
}
