// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.repository.config.GpuInventory;
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
import io.nereid.repository.polling.ModelTrees;
import io.nereid.repository.polling.PollInterval;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
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
 * The source for TensorFlow Serving's {@linkplain ModelServerConfig model list}. Each model has a base path with a
 * directory for each version, {@code <base_path>/<integer>/…}, named by a whole number from 0, with leading zeros
 * ({@code 00000123} is version 123) or without. Other names are ignored. A {@code config.pbtxt} in the base path is
 * honoured as in a repository, except for its {@code name}, and for its {@code version_policy} if the list has one.
 * Without {@code config.pbtxt}, the backend is found by the files of the highest aspired version.
 *
 * <p>Rules of polling:
 *
 * <ul>
 *   <li>A changed model is accepted when two reads at least a settle time apart saw the same files, so that a
 *       half-copied version is not loaded. At the start, and for a new list, files older than that are accepted at
 *       once.
 *   <li>A model whose base path cannot be read, or whose configuration became invalid, keeps serving its loaded
 *       versions; the problem is logged and listed. It never affects another model.
 *   <li>A model whose versions suddenly vanished is unloaded only after a number of polls in a row with the same
 *       result, or never.
 *   <li>A poll reads only the models that may have changed, as {@linkplain ModelTrees detected} by the stamps of their
 *       files, and those that settle.
 *   <li>When a poll takes more than 0.5 % of the poll interval, the next one is delayed until it does not, by up to a
 *       minute; a large delay is logged. So polling ten thousand models uses less than 1 % of a processor.
 * </ul>
 *
 * <pre>{@code
 * List<ModelListEntry> models = ModelServerConfig.read(Path.of("/models/models.config"));
 * var source = new FileSystemStoragePathSource(models, backends, loaders, Options.DEFAULT, Clock.system());
 * source.start(target);                 // emits the aspired versions, and polls from now on
 * source.configure(changedModels);      // HandleReloadConfigRequest
 * }</pre>
 *
 * <p>Together with other sources it is started through a {@link SourceArbiter}. Thread-safe: one lock guards reading
 * and emitting.
 */
public final class FileSystemStoragePathSource implements Source {
    /**
     * Settings. Immutable.
     *
     * @param pollInterval time between two polls of the base paths; zero reads them once, at the start
     * @param settle how long files must have been unchanged to count as completely written; zero accepts them at once
     * @param confirmations polls in a row that must find no versions before a served model is unloaded; at least 1
     * @param alwaysPresent whether a served model is never unloaded because its versions vanished, and
     *     {@link #start} and a new list fail for a model without versions
     * @param failIfZeroVersionsAtStartup whether {@link #start} fails when a model has no versions
     */
    public record Options(
            Duration pollInterval,
            Duration settle,
            int confirmations,
            boolean alwaysPresent,
            boolean failIfZeroVersionsAtStartup) {
        /** Polls every second, with a settle time of one second. */
        public static final Options DEFAULT =
                new Options(Duration.ofSeconds(1), Duration.ofSeconds(1), 3, false, false);

        /** Validates the settings; throws INVALID_ARGUMENT. */
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

        /** These settings with or without {@code alwaysPresent}. */
        public Options withAlwaysPresent(boolean newAlwaysPresent) {
            return new Options(pollInterval, settle, confirmations, newAlwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings with or without {@code failIfZeroVersionsAtStartup}. */
        public Options withFailIfZeroVersionsAtStartup(boolean fail) {
            return new Options(pollInterval, settle, confirmations, alwaysPresent, fail);
        }
    }

    /**
     * Statistics of polling. Immutable.
     *
     * @param polls polls of the whole list
     * @param scans how many times the modification time, size and inode of a file or directory were read
     * @param reads models read
     * @param interval current time between two polls
     */
    public record PollStatistics(long polls, long scans, long reads, Duration interval) {}

    private static final Logger LOG = LoggerFactory.getLogger(FileSystemStoragePathSource.class);

    private final List<Backend> backends;
    private final RepositoryLayout layout;
    private final Options options;
    private final Clock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final EnsembleMembership ensembles = new EnsembleMembership();

    @GuardedBy("lock") private final AspiredVersionsEmitter emitter;

    @GuardedBy("lock") private final ModelPoller poller;

    @GuardedBy("lock") private final ModelTrees trees;

    @GuardedBy("lock") private final BasePaths paths;

    @GuardedBy("lock") private List<ModelListEntry> models;

    @GuardedBy("lock") private boolean started;

    @GuardedBy("lock") private long pollCount;

    /** Whether the latest poll read no model and nothing has been read since, so that no model settles. */
    @GuardedBy("lock") private boolean quiet;

    @GuardedBy("lock") private final PollInterval interval;

    @GuardedBy("lock") private @Nullable ScheduledExecutorService timer;

    @GuardedBy("lock") private @Nullable Future<?> next;

    /** End of the timer's latest complete poll, by the clock's nanoseconds. */
    @GuardedBy("lock") private long polledNanos;

    /**
     * Creates the source; {@link #start} reads the base paths.
     *
     * @param models the list
     * @param backends the available backends; earlier ones win where several recognise the same files
     * @param loaders creates the loader of every emitted version
     * @param options settings
     * @param clock for the age of files and the settle time
     * @throws ServingException INVALID_ARGUMENT for an invalid list
     */
    public FileSystemStoragePathSource(
            List<ModelListEntry> models, List<Backend> backends, LoaderFactory loaders, Options options, Clock clock) {
        this(models, backends, loaders, options, GpuInventory.NONE, clock);
    }

    /**
     * As {@link #FileSystemStoragePathSource(List, List, LoaderFactory, Options, Clock)}, on a server with GPUs.
     *
     * @param gpus the GPUs that configurations are checked against
     */
    public FileSystemStoragePathSource(
            List<ModelListEntry> models,
            List<Backend> backends,
            LoaderFactory loaders,
            Options options,
            GpuInventory gpus,
            Clock clock) {
        ModelServerConfig.check(models, List.of(), backends);
        this.models = List.copyOf(models);
        this.backends = List.copyOf(backends);
        this.layout = new RepositoryLayout(backends, "", gpus);
        this.options = options;
        this.clock = clock;
        this.interval = new PollInterval(options.pollInterval, "base paths");
        this.emitter = new AspiredVersionsEmitter(loaders, ensembles);
        int confirmations = options.alwaysPresent ? Integer.MAX_VALUE : options.confirmations;
        this.poller = new ModelPoller(layout, ensembles, emitter, options.settle, confirmations, clock);
        this.trees = new ModelTrees(options.pollInterval);
        this.paths = new BasePaths(trees);
    }

    /**
     * Reads every base path and emits the aspired versions. If files are younger than the settle time, waits once for
     * that time. A model that cannot be served is emitted with its error. Called once.
     *
     * @throws ServingException NOT_FOUND for a model without versions, with {@code failIfZeroVersionsAtStartup};
     *     nothing has been emitted then
     */
    @Override
    public void start(Target target) {
        List<String> young;
        lock.lock();
        try {
            if (started) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the model list source is started already");
            }
            paths.replace(models);
            Map<String, StoredModel> read = read(names(models));
            if (options.failIfZeroVersionsAtStartup || options.alwaysPresent) {
                read.values().forEach(FileSystemStoragePathSource::checkVersions);
            }
            started = true;
            emitter.target(target);
            young = acceptAtStart(read, false);
        } finally {
            lock.unlock();
        }
        if (!young.isEmpty() && !pause(options.settle)) {
            lock.lock();
            try {
                List<String> unsettled = new ArrayList<>();
                for (String name : young) {
                    if (poller.of(name).pending != null) {
                        unsettled.add(name);
                    }
                }
                var unused = acceptAtStart(read(unsettled), true);
            } finally {
                lock.unlock();
            }
        }
        lock.lock();
        try {
            if (closed.getCount() > 0) {
                timer = Threads.timer("nereid-models");
                polledNanos = clock.nanos();
                schedule();
            }
        } finally {
            lock.unlock();
        }
    }

    private static List<String> names(List<ModelListEntry> models) {
        return models.stream().map(ModelListEntry::name).toList();
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

    /** Accepts models that are completely written; returns the names of the others. */
    @GuardedBy("lock") private List<String> acceptAtStart(Map<String, StoredModel> read, boolean second) {
        List<String> young = new ArrayList<>();
        read.forEach((name, model) -> {
            if (!poller.acceptAtStart(model, second)) {
                young.add(name);
            }
        });
        emitter.flush();
        return young;
    }

    @GuardedBy("lock") private Map<String, StoredModel> read(Collection<String> names) {
        quiet = false;
        paths.capture(names);
        return poller.read(names, paths.found());
    }

    /** The model list in force. */
    public List<ModelListEntry> models() {
        lock.lock();
        try {
            return models;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the changes that {@link #configure} would make now, without making them. Before {@link #start} every
     * model counts as new.
     *
     * @throws ServingException as {@link #configure} for the list
     */
    public List<ModelListChange> plan(List<ModelListEntry> next) {
        lock.lock();
        try {
            List<ModelListEntry> before = started ? models : List.of();
            ModelServerConfig.check(next, before, backends);
            ModelListDiff changes = ModelListDiff.of(next, before);
            Set<String> toRead = changes.toRead();
            Found found = BasePaths.foundOf(next);
            List<ModelListChange> plan = new ArrayList<>();
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
     * Replaces the list. The whole list is validated before anything changes. Models that are no longer in it are
     * emitted without versions; new and changed models are read now. Files that are still being written are accepted
     * when they have settled, as during polling; the versions to load of a change include them. A changed model that
     * cannot be served keeps its loaded versions, and its change has the error.
     *
     * @return a change for every model of the new list in its order, then for those removed
     * @throws ServingException INVALID_ARGUMENT for a list that cannot be, NOT_FOUND for a model without versions where
     *     models are to be always present, nothing having changed; FAILED_PRECONDITION before {@link #start} and after
     *     {@link #close}
     */
    public List<ModelListChange> configure(List<ModelListEntry> next) {
        lock.lock();
        try {
            if (!started || closed.getCount() == 0) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the model list source is not running");
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
            List<ModelListChange> done = new ArrayList<>();
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

    @GuardedBy("lock") private ModelListChange changed(ModelListDiff changes, StoredModel model) {
        String name = model.entry().name();
        TrackedModel t = poller.of(name);
        Set<Long> before = served(name);
        t.missing = 0;
        if (poller.acceptAtStart(model, false)) {
            return changes.read(model, before, refusal(t.problems));
        }
        if (!t.serving) {
            poller.acceptWritten(model);
        }
        return changes.read(model, before, null);
    }

    @GuardedBy("lock") private void remove(String name) {
        TrackedModel t = poller.find(name);
        if (t != null) {
            poller.remove(name);
            emitter.drop(t);
        }
    }

    /** Versions that are served or being loaded. */
    @GuardedBy("lock") private Set<Long> served(String name) {
        TrackedModel t = poller.find(name);
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
     * Reads one model of the list now, in full, and emits it even if it did not change, so that a failed load can be
     * retried.
     *
     * @return the emitted versions
     * @throws ServingException NOT_FOUND for a model that is not in the list, INVALID_ARGUMENT for one that cannot be
     *     served (loaded versions keep serving), FAILED_PRECONDITION before {@link #start} and after {@link #close}
     */
    public List<ServableId> load(String model) {
        lock.lock();
        try {
            try {
                if (!started || closed.getCount() == 0) {
                    throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the model list source is not running");
                }
                StoredModel stored =
                        names(models).contains(model) ? read(Set.of(model)).get(model) : null;
                if (stored == null) {
                    throw ServingException.of(
                            ErrorCode.NOT_FOUND, "model '" + model + "' is not in the list of models");
                }
                TrackedModel t = poller.of(model);
                ServingException why =
                        refusal(emitter.accept(stored, t, false, null).problems());
                if (why != null) {
                    throw ServingException.invalidArgument(
                            "load failed for model '" + model + "': " + why.getMessage(), why.remedy());
                }
                return t.emitted.stream().map(AspiredVersion::id).toList();
            } finally {
                emitter.flush();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Polls all models now, as the timer does. */
    public void poll() {
        lock.lock();
        try {
            if (started && closed.getCount() > 0) {
                poll(false);
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock") private void poll(boolean onlyPending) {
        Set<String> open = new LinkedHashSet<>();
        if (!quiet) {
            for (TrackedModel t : poller.all()) {
                if (onlyPending ? settling(t) : t.pending != null || t.missing > 0) {
                    open.add(t.name);
                }
            }
        }
        if (onlyPending) {
            poll(read(open));
            return;
        }
        pollCount++;
        long began = clock.nanos();
        long capturing = trees.captureNanos();
        Set<String> toRead = paths.changed();
        // Looking into what has changed is not a regular cost of polling.
        long scanning = clock.nanos() - began - (trees.captureNanos() - capturing);
        toRead.addAll(open);
        quiet = toRead.isEmpty();
        if (!quiet) {
            poll(read(toRead));
        }
        interval.polled(scanning, paths.size());
    }

    /** Whether a model is read again before the next complete poll. One without versions waits for complete polls. */
    private static boolean settling(TrackedModel t) {
        return t.pending != null && t.missing == 0;
    }

    @GuardedBy("lock") private void poll(Map<String, StoredModel> read) {
        read.forEach((name, model) -> {
            TrackedModel t = poller.of(name);
            boolean missed = t.missing > 0;
            poller.poll(model);
            if (t.missing == 1 && !missed) {
                LOG.warn(
                        options.alwaysPresent
                                ? "Refusing to unload all versions for Servable: {}"
                                : "model '{}' keeps serving until more polls have found no versions of it",
                        name);
            }
            if (t.missing > 0 || missed) {
                AspiredVersionsEmitter.report(t, model.problems());
            }
        });
        emitter.flush();
    }

    /** The problems that the latest reads found, in the order of the models' names. */
    public List<Problem> problems() {
        lock.lock();
        try {
            List<Problem> problems = new ArrayList<>();
            poller.all().forEach(t -> problems.addAll(t.problems));
            return List.copyOf(problems);
        } finally {
            lock.unlock();
        }
    }

    /** Statistics of polling so far. */
    public PollStatistics polling() {
        lock.lock();
        try {
            return new PollStatistics(pollCount, trees.stampReads(), poller.reads(), interval.current());
        } finally {
            lock.unlock();
        }
    }

    /** Stops polling. Emitted versions stay aspired. */
    @Override
    public void close() {
        closed.countDown();
        lock.lock();
        try {
            if (timer != null) {
                timer.shutdownNow();
            }
            trees.close();
        } finally {
            lock.unlock();
        }
    }

    /** Waits; returns whether the source was closed meanwhile. */
    private boolean pause(Duration time) {
        try {
            return closed.await(time.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    /** Schedules the next poll, and cancels one that is already scheduled. */
    @GuardedBy("lock") private void schedule() {
        if (next != null) {
            next.cancel(false);
            next = null;
        }
        boolean pending = !quiet && poller.all().stream().anyMatch(FileSystemStoragePathSource::settling);
        boolean polls = !options.pollInterval.isZero() && !models.isEmpty();
        if (timer == null || (!pending && !polls)) {
            return;
        }
        Duration soon = options.settle.compareTo(Duration.ofMillis(10)) < 0 ? Duration.ofMillis(10) : options.settle;
        long left = interval.current().toNanos() - (clock.nanos() - polledNanos);
        boolean early = pending && (!polls || soon.toNanos() < left);
        long delay = early ? soon.toNanos() : Math.max(0, left);
        next = timer.schedule(() -> tick(early), delay, TimeUnit.NANOSECONDS);
    }

    private void tick(boolean onlyPending) {
        lock.lock();
        try {
            try {
                if (closed.getCount() > 0) {
                    poll(onlyPending);
                }
            } catch (RuntimeException e) {
                LOG.error("polling the base paths failed; the next poll is not affected", e);
            }
            if (!onlyPending) {
                polledNanos = clock.nanos();
            }
            if (closed.getCount() > 0) {
                schedule();
            }
        } finally {
            lock.unlock();
        }
    }
}
