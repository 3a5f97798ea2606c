// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.repository.layout.ChecksumAgent;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.polling.AspiredVersionsEmitter;
import io.nereid.repository.polling.EnsembleMembership;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.repository.polling.ModelPoller;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.ModelControl.ModelChange;
import io.nereid.spi.ModelControl.ServedModel;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Models of a {@linkplain ModelServerConfig list}, each with a base path that holds a directory for each version,
 * {@code <base_path>/<integer>/…}, named by a whole number from 0, with leading zeros ({@code 00000123} is version 123) or
 * without. What is not a number is passed over. A {@code config.pbtxt} in the base path is honoured as in a repository,
 * except for its {@code name}, and for its {@code version_policy} where the list has one; without one the backend is
 * found by the files of the highest wanted version.
 *
 * <p>Rules of watching:
 *
 * <ul>
 *   <li>A model that changed is taken up when two reads at least a settle time apart saw the same files, so that a
 *       half-copied version is not loaded. At the start, and for a new list, files older than that are taken at once.
 *   <li>A model whose base path cannot be read, or whose configuration became wrong, keeps what it serves; the problem is
 *       logged and listed. It never affects another model.
 *   <li>A model of which suddenly nothing is found is unloaded only after a number of looks in a row that agree, or
 *       never.
 *   <li>A look asks for the time of change of each base path, and of its {@code config.pbtxt} where there is one. A model
 *       is read in full when that differs, was less than two seconds ago, when it has not settled yet, and by turns, so
 *       that 256 looks see every change of a file in place.
 *   <li>When a look takes more than 0.5 % of the poll interval the next one is put off until it does not, by up to a
 *       minute; a line of the log says so when that is much. Looking at ten thousand models stays below 1 % of a processor so.
 * </ul>
 *
 * <p>Together with other sources it is started behind a {@link SourceArbiter}. Thread-safe: one lock guards reading and
 * emitting.
 */
public final class FileSystemStoragePathSource implements Source {
    /**
     * Settings. Immutable.
     *
     * @param pollInterval time between two looks at the base paths; zero looks once, at the start
     * @param settle how long files must have been unchanged to count as completely written; zero takes them as they are
     * @param confirmations looks in a row that must find nothing before a model that serves is unloaded; at least 1
     * @param alwaysPresent whether a model that serves is never unloaded because nothing of it is found, and one of
     *     which nothing is found is refused
     * @param failIfZeroVersionsAtStartup whether {@link #start} fails when a model has no versions
     */
    public record Options(
            Duration pollInterval,
            Duration settle,
            int confirmations,
            boolean alwaysPresent,
            boolean failIfZeroVersionsAtStartup) {
        /** A look every second, half-copied versions not being loaded. */
        public static final Options DEFAULT =
                new Options(Duration.ofSeconds(1), Duration.ofSeconds(1), 3, false, false);

        /** Refuses what cannot be, with INVALID_ARGUMENT. */
        public Options {
            if (pollInterval.isNegative() || settle.isNegative() || confirmations < 1) {
                throw ServingException.invalidArgument(
                        "poll interval " + pollInterval + ", settle time " + settle + ", " + confirmations
                                + " confirmations (expected: no negative times, at least 1 confirmation)");
            }
        }

        /** These settings with another poll interval. */
        public Options withPollInterval(Duration newPollInterval) {
            return new Options(newPollInterval, settle, confirmations, alwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings with another settle time. */
        public Options withSettle(Duration newSettle) {
            return new Options(pollInterval, newSettle, confirmations, alwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings with another number of confirmations. */
        public Options withConfirmations(int newConfirmations) {
            return new Options(pollInterval, settle, newConfirmations, alwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings, unloading for lack of files or not. */
        public Options withAlwaysPresent(boolean newAlwaysPresent) {
            return new Options(pollInterval, settle, confirmations, newAlwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings, starting without versions or not. */
        public Options withFailIfZeroVersionsAtStartup(boolean fail) {
            return new Options(pollInterval, settle, confirmations, alwaysPresent, fail);
        }
    }

    /**
     * What looking has cost so far. Immutable.
     *
     * @param looks looks at the whole list
     * @param glances times that a base path's time of change was asked for
     * @param reads models that were read in full
     * @param interval time between two looks, as it is now
     */
    public record Polling(long looks, long glances, long reads, Duration interval) {}

    private static final Logger LOG = LoggerFactory.getLogger(FileSystemStoragePathSource.class);

    /** Looking takes up to one part in so many of the time, so that with all that it entails it stays below 1 %. */
    private static final int SHARE = 200;

    /** Looks so many times rarer than asked for are told of. */
    private static final int NOTABLE = 4;

    private static final Duration LONGEST_STRETCH = Duration.ofMinutes(1);

    private final List<Backend> backends;
    private final RepositoryLayout layout;
    private final Options options;
    private final Clock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final EnsembleMembership ensembles = new EnsembleMembership();
    private final AspiredVersionsEmitter emitter;
    private final ModelPoller watch;
    private final BasePaths paths;
    private List<ServedModel> models;
    private boolean started;
    private long looks;
    private long reads;
    private Duration interval;
    private @Nullable ScheduledExecutorService timer;
    private @Nullable Future<?> next;

    /** When the timer's latest look at everything ended. */
    private long looked;

    /**
     * Reads nothing yet.
     *
     * @param models the list
     * @param backends what can run models; earlier ones win where several recognise the same files
     * @param loaders makes the loader of every version emitted
     * @param options settings
     * @param clock tells how long files have been as they are
     * @throws ServingException INVALID_ARGUMENT for a list that cannot be
     */
    public FileSystemStoragePathSource(
            List<ServedModel> models, List<Backend> backends, LoaderFactory loaders, Options options, Clock clock) {
        ModelServerConfig.check(models, List.of(), backends);
        this.models = List.copyOf(models);
        this.backends = List.copyOf(backends);
        this.layout = new RepositoryLayout(backends);
        this.options = options;
        this.clock = clock;
        this.interval = options.pollInterval;
        this.emitter = new AspiredVersionsEmitter(loaders, ensembles);
        int confirmations = options.alwaysPresent ? Integer.MAX_VALUE : options.confirmations;
        this.watch = new ModelPoller(layout, ensembles, emitter, options.settle, confirmations, clock);
        this.paths = new BasePaths(clock);
    }

    /**
     * Reads every base path and emits what is wanted; may wait once for the settle time when files are younger than that.
     * A model that cannot be served is emitted with the reason. Called once.
     *
     * @throws ServingException NOT_FOUND for a model without versions where the settings say so, nothing having been
     *     emitted
     */
    @Override
    public void start(Target target) {
        List<String> young;
        lock.lock();
        try {
            if (started) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the list of models is being watched already");
            }
            paths.replace(models);
            Map<String, StoredModel> read = read(names(models));
            if (options.failIfZeroVersionsAtStartup || options.alwaysPresent) {
                read.values().forEach(FileSystemStoragePathSource::checkVersions);
            }
            started = true;
            emitter.target(target);
            young = takeUpAtStart(read, false);
        } finally {
            lock.unlock();
        }
        if (!young.isEmpty() && !pause(options.settle)) {
            lock.lock();
            try {
                young.removeIf(name -> watch.of(name).pending == null);
                var unused = takeUpAtStart(read(young), true);
            } finally {
                lock.unlock();
            }
        }
        lock.lock();
        try {
            if (closed.getCount() > 0) {
                timer = Threads.timer("nereid-models");
                looked = clock.nanos();
                schedule();
            }
        } finally {
            lock.unlock();
        }
    }

    private static List<String> names(List<ServedModel> models) {
        return models.stream().map(ServedModel::name).toList();
    }

    private static void checkVersions(StoredModel model) {
        if (model.versions().isEmpty()) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Unable to find a numerical version path for servable "
                            + model.entry().name() + " at: " + model.entry().directory(),
                    "put a version into a directory '1' there");
        }
    }

    /** Takes up what has been completely written; gives the names of the others. */
    private List<String> takeUpAtStart(Map<String, StoredModel> read, boolean second) {
        List<String> young = new ArrayList<>();
        read.forEach((name, model) -> {
            if (!watch.takeUpAtStart(model, second)) {
                young.add(name);
            }
        });
        emitter.flush();
        return young;
    }

    /** Reads models in full. */
    private Map<String, StoredModel> read(Collection<String> names) {
        paths.noteAll(names);
        return readNoted(names);
    }

    private Map<String, StoredModel> readNoted(Collection<String> names) {
        reads += names.size();
        Map<String, StoredModel> read = watch.read(names, paths.found());
        read.values().forEach(paths::read);
        return read;
    }

    /** The list in force. */
    public List<ServedModel> models() {
        lock.lock();
        try {
            return models;
        } finally {
            lock.unlock();
        }
    }

    /**
     * What {@link #configure} would do now; does nothing. Before {@link #start} every model counts as new.
     *
     * @throws ServingException what {@link #configure} would throw for the list
     */
    public List<ModelChange> plan(List<ServedModel> next) {
        lock.lock();
        try {
            List<ServedModel> before = started ? models : List.of();
            ModelServerConfig.check(next, before, backends);
            ModelListDiff changes = ModelListDiff.of(next, before);
            Set<String> toRead = changes.toRead();
            Found found = BasePaths.foundOf(next);
            List<ModelChange> plan = new ArrayList<>();
            for (String name : changes.next().keySet()) {
                ModelEntry entry = toRead.contains(name) ? found.only(name) : null;
                if (entry == null) {
                    plan.add(changes.unread(name));
                    continue;
                }
                StoredModel stored = layout.read(entry);
                if (options.alwaysPresent) {
                    checkVersions(stored);
                }
                StoredModel model = stored.loadable() ? ChecksumAgent.verified(stored) : stored;
                plan.add(changes.read(model, served(name), refusal(model.problems())));
            }
            changes.removed().forEach(name -> plan.add(ModelListDiff.gone(name, served(name))));
            return List.copyOf(plan);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Replaces the list. Checked whole before anything changes. Models that are not in it any more are emitted without
     * versions; new and changed ones are read now. Files that are still being written are taken up when they have
     * settled, like those that a look finds; the versions to load that a change names include them. A changed model of
     * which nothing can be served goes on with what it serves, and the change says why.
     *
     * @return a change for every model of the new list in its order, then for those removed
     * @throws ServingException INVALID_ARGUMENT for a list that cannot be, NOT_FOUND for a model without versions where
     *     models are to be always present, nothing having changed; FAILED_PRECONDITION before {@link #start} and after
     *     {@link #close}
     */
    public List<ModelChange> configure(List<ServedModel> next) {
        lock.lock();
        try {
            if (!started || closed.getCount() == 0) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the list of models is not being watched");
            }
            ModelServerConfig.check(next, models, backends);
            ModelListDiff changes = ModelListDiff.of(next, models);
            Set<String> toRead = changes.toRead();
            if (options.alwaysPresent) {
                Found found = BasePaths.foundOf(next);
                for (String name : toRead) {
                    checkVersions(layout.read(Objects.requireNonNull(found.only(name))));
                }
            }
            models = List.copyOf(next);
            paths.replace(models);
            Map<String, StoredModel> read = read(toRead);
            List<ModelChange> done = new ArrayList<>();
            for (String name : changes.next().keySet()) {
                StoredModel model = read.get(name);
                done.add(model == null ? changes.unread(name) : changed(changes, model));
            }
            for (String name : changes.removed()) {
                done.add(ModelListDiff.gone(name, served(name)));
                remove(name);
            }
            emitter.flush();
            if (timer != null) {
                schedule();
            }
            return List.copyOf(done);
        } finally {
            lock.unlock();
        }
    }

    private ModelChange changed(ModelListDiff changes, StoredModel model) {
        String name = model.entry().name();
        TrackedModel t = watch.of(name);
        Set<Long> before = served(name);
        t.missing = 0;
        if (watch.takeUpAtStart(model, false)) {
            return changes.read(model, before, refusal(t.problems));
        }
        if (!t.serving) {
            watch.takeUpWritten(model);
        }
        return changes.read(model, before, null);
    }

    private void remove(String name) {
        TrackedModel t = watch.find(name);
        if (t != null) {
            watch.remove(name);
            emitter.drop(t);
        }
    }

    /** Versions that are served now, or on their way to it. */
    private Set<Long> served(String name) {
        TrackedModel t = watch.find(name);
        Set<Long> versions = new TreeSet<>();
        if (t != null) {
            t.emitted.stream().filter(a -> a.loader() != null).forEach(a -> versions.add(a.id().version()));
        }
        return versions;
    }

    private static @Nullable ServingException refusal(List<Problem> problems) {
        return problems.stream().anyMatch(Problem::isError) ? ProblemCollector.refusal(problems) : null;
    }

    /**
     * Reads one model of the list now, in full, and emits what is there, even when nothing changed, so that what failed is
     * tried once more where the manager was asked to.
     *
     * @return the versions emitted
     * @throws ServingException NOT_FOUND for a model that is not in the list, INVALID_ARGUMENT for one that cannot be
     *     served as it is stored (what serves goes on), FAILED_PRECONDITION before {@link #start} and after {@link #close}
     */
    public List<ServableId> load(String model) {
        lock.lock();
        try {
            if (!started || closed.getCount() == 0) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the list of models is not being watched");
            }
            StoredModel stored =
                    names(models).contains(model) ? read(Set.of(model)).get(model) : null;
            if (stored == null) {
                throw ServingException.of(ErrorCode.NOT_FOUND, "model '" + model + "' is not in the list of models");
            }
            TrackedModel t = watch.of(model);
            ServingException why =
                    refusal(emitter.takeUp(stored, t, false, null).problems());
            if (why != null) {
                throw ServingException.invalidArgument(
                        "load failed for model '" + model + "': " + why.getMessage(), why.remedy());
            }
            return t.emitted.stream().map(Source.Aspired::id).toList();
        } finally {
            emitter.flush();
            lock.unlock();
        }
    }

    /** Looks at all models now, as the timer does. */
    public void poll() {
        lock.lock();
        try {
            if (started && closed.getCount() > 0) {
                look(false);
            }
        } finally {
            lock.unlock();
        }
    }

    private void look(boolean onlyPending) {
        long began = clock.nanos();
        Set<String> open = new LinkedHashSet<>();
        for (TrackedModel t : watch.all()) {
            if (onlyPending ? settling(t) : t.pending != null || t.missing > 0) {
                open.add(t.name);
            }
        }
        if (onlyPending) {
            look(readNoted(open));
            return;
        }
        looks++;
        Set<String> toRead = new LinkedHashSet<>(paths.changed());
        toRead.addAll(open);
        long glanced = clock.nanos();
        look(readNoted(toRead));
        // What is read because it changed is not what a look costs, and does not put the next one off.
        double turns = toRead.isEmpty() ? 0 : Math.min(1.0, paths.turns() / (double) toRead.size());
        stretch((long) (glanced - began + (clock.nanos() - glanced) * turns));
    }

    /** Whether a model is looked at again before all are; one of which nothing is found has to wait for that. */
    private static boolean settling(TrackedModel t) {
        return t.pending != null && t.missing == 0;
    }

    private void look(Map<String, StoredModel> read) {
        read.forEach((name, model) -> {
            TrackedModel t = watch.of(name);
            boolean missed = t.missing > 0;
            watch.look(model);
            if (t.missing == 1 && !missed) {
                LOG.warn(
                        options.alwaysPresent
                                ? "Refusing to unload all versions for Servable: {}"
                                : "model '{}' goes on serving until more looks have found nothing of it",
                        name);
            }
            if (t.missing > 0 || missed) {
                AspiredVersionsEmitter.report(t, model.problems());
            }
        });
        emitter.flush();
    }

    /** Puts the next look off when this one has cost more than its share. */
    private void stretch(long nanos) {
        Duration wanted = Duration.ofNanos(nanos).multipliedBy(SHARE);
        Duration most = longer(LONGEST_STRETCH, options.pollInterval);
        Duration stretched = longer(options.pollInterval, wanted.compareTo(most) > 0 ? most : wanted);
        // A slow look or two is nothing to tell anybody about.
        Duration notable = options.pollInterval.multipliedBy(NOTABLE);
        boolean was = interval.compareTo(notable) > 0;
        boolean is = stretched.compareTo(notable) > 0 && !options.pollInterval.isZero();
        if (is && !was) {
            LOG.info(
                    "a look at {} base paths takes {} ms, so the next one comes after {} ms instead of {} ms:"
                            + " looking shall cost less than 1 % of a processor",
                    paths.size(), nanos / 1_000_000, stretched.toMillis(), options.pollInterval.toMillis());
        } else if (was && !is) {
            LOG.info("a look at {} base paths comes every {} ms again", paths.size(), options.pollInterval.toMillis());
        }
        interval = options.pollInterval.isZero() ? options.pollInterval : stretched;
    }

    private static Duration longer(Duration a, Duration b) {
        return a.compareTo(b) > 0 ? a : b;
    }

    /** What the latest reads found wrong, in the order of the models' names. */
    public List<Problem> problems() {
        lock.lock();
        try {
            List<Problem> problems = new ArrayList<>();
            watch.all().forEach(t -> problems.addAll(t.problems));
            return List.copyOf(problems);
        } finally {
            lock.unlock();
        }
    }

    /** What looking has cost so far. */
    public Polling polling() {
        lock.lock();
        try {
            return new Polling(looks, paths.glances(), reads, interval);
        } finally {
            lock.unlock();
        }
    }

    /** Stops looking. What was emitted stays wanted. */
    @Override
    public void close() {
        closed.countDown();
        lock.lock();
        try {
            if (timer != null) {
                timer.shutdownNow();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Waits; whether the source was closed meanwhile. */
    private boolean pause(Duration time) {
        try {
            return closed.await(time.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    /** Sets the timer for the next look, anew where it was set already. */
    private void schedule() {
        if (next != null) {
            next.cancel(false);
            next = null;
        }
        boolean pending = watch.all().stream().anyMatch(FileSystemStoragePathSource::settling);
        boolean polls = !options.pollInterval.isZero();
        if (timer == null || (!pending && !polls)) {
            return;
        }
        Duration soon = longer(options.settle, Duration.ofMillis(10));
        long left = interval.toNanos() - (clock.nanos() - looked);
        boolean early = pending && (!polls || soon.toNanos() < left);
        long delay = early ? soon.toNanos() : Math.max(0, left);
        next = timer.schedule(() -> tick(early), delay, TimeUnit.NANOSECONDS);
    }

    private void tick(boolean onlyPending) {
        lock.lock();
        try {
            if (closed.getCount() > 0) {
                look(onlyPending);
            }
        } catch (RuntimeException e) {
            LOG.error("looking at the base paths failed; the next look is not affected", e);
        } finally {
            if (!onlyPending) {
                looked = clock.nanos();
            }
            if (closed.getCount() > 0) {
                schedule();
            }
            lock.unlock();
        }
    }
}
