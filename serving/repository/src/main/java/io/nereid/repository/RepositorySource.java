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
import io.nereid.repository.config.ModelNames;
import io.nereid.repository.layout.RepositoryLayout;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.TrackedModel;
import io.nereid.repository.polling.AspiredVersionsEmitter;
import io.nereid.repository.polling.EnsembleMembership;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.repository.polling.ModelPoller;
import io.nereid.repository.polling.ModelScanner;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.repository.polling.ModelTrees;
import io.nereid.repository.polling.PollInterval;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Triton model repository: models stored in directories, with {@code config.pbtxt}. A root may be
 * <ul>
 *   <li>a file of a kind that a backend knows ({@code my-model.onnx}): one model of that name, version 1;
 *   <li>a directory with a {@code config.pbtxt}, with a backend's default file ({@code model.onnx}), or with
 *       directories that are versions: one model, named by its configuration or else by the directory;
 *   <li>any other directory: a repository. Each directory in it that looks like a model is one, and so is each file of
 *       a kind that a backend knows. Names that start with a dot are ignored.
 * </ul>
 *
 * <p>A model's directory holds {@code config.pbtxt} if there is anything to configure, and a directory for each
 * version, named by a whole number from 1 without leading zeros. Without version directories, the model's file may lie
 * in the model's directory itself and is version 1. An ensemble, and a model of a backend that needs no file, do not
 * need a version directory.
 *
 * <p>Rules of polling:
 *
 * <ul>
 *   <li>A changed model is accepted when two polls at least a settle time apart saw the same files and configuration,
 *       so that a half-copied version is not loaded. At the start, files older than the settle time are accepted at
 *       once. {@link #load} does not wait.
 *   <li>A model whose configuration became invalid keeps serving its loaded versions; the problem is logged and listed.
 *   <li>An unreadable root changes nothing. Models of a root that is suddenly empty, and models whose directory is
 *       suddenly empty, are unloaded only after three polls in a row with the same result.
 *   <li>A model found in two roots is served from neither, unless it was served before the second one appeared.
 *   <li>A model that was loaded with an overridden configuration or files is not polled until it is loaded again
 *       without an override, or unloaded.
 *   <li>A poll reads only the models that may have changed, as {@linkplain ModelTrees detected} by the stamps of their
 *       files. The time between two polls is longer than configured while a poll takes more than 0.5 % of it, by up to
 *       a minute; a large delay is logged.
 * </ul>
 *
 * <pre>{@code
 * RepositorySource source = new RepositorySource(
 *         List.of(Path.of("/models")), backends, loaders, Options.DEFAULT.withMode(Mode.POLL), Clock.system());
 * source.start(manager::aspire);     // emits the versions to serve
 * source.load("resnet50");           // loads now, without waiting for a poll
 * }</pre>
 *
 * <p>Thread-safe: one lock guards reading and emitting.
 */
public final class RepositorySource implements Source {
    /** Triton's model control modes. */
    public enum Mode {
        /** Loads all models once, at the start. */
        NONE,
        /** Loads all models at the start, and polls for changes. */
        POLL,
        /** Loads only the named models at the start; later models are loaded by {@link #load}. */
        EXPLICIT
    }

    /**
     * Settings. Immutable.
     *
     * @param mode the model control mode
     * @param pollInterval time between two polls in {@link Mode#POLL}
     * @param settle how long files must have been unchanged to count as completely written; zero accepts them at once
     * @param startModels models to load at the start in {@link Mode#EXPLICIT}; {@code *} alone stands for all
     * @param configName a model's {@code configs/<configName>.pbtxt}, if it exists, replaces its {@code config.pbtxt};
     *     empty for {@code config.pbtxt} only
     * @param scratch the directory for files that are sent with a load request
     */
    public record Options(
            Mode mode,
            Duration pollInterval,
            Duration settle,
            List<String> startModels,
            String configName,
            Path scratch) {
        /** {@link Mode#NONE}, with a settle time of one second. */
        public static final Options DEFAULT = new Options(
                Mode.NONE,
                Duration.ofSeconds(15),
                Duration.ofSeconds(1),
                List.of(),
                "",
                Path.of(System.getProperty("java.io.tmpdir", "/tmp")));

        /** Rejects a {@code configName} that is not a file name. */
        public Options {
            if (!configName.isEmpty() && !ModelNames.valid(configName)) {
                throw ServingException.invalidArgument(
                        "invalid configuration name " + ProblemCollector.quote(configName),
                        "give the name of a file in a model's directory 'configs', without '.pbtxt'");
            }
        }

        /** These settings in another mode. */
        public Options withMode(Mode newMode) {
            return new Options(newMode, pollInterval, settle, startModels, configName, scratch);
        }

        /** These settings with another poll interval. */
        public Options withPollInterval(Duration newPollInterval) {
            return new Options(mode, newPollInterval, settle, startModels, configName, scratch);
        }

        /** These settings with another settle time. */
        public Options withSettle(Duration newSettle) {
            return new Options(mode, pollInterval, newSettle, startModels, configName, scratch);
        }

        /** These settings with other models to load at the start. */
        public Options withStartModels(List<String> newStartModels) {
            return new Options(mode, pollInterval, settle, newStartModels, configName, scratch);
        }

        /** These settings with named configurations. */
        public Options withConfigName(String newConfigName) {
            return new Options(mode, pollInterval, settle, startModels, newConfigName, scratch);
        }

        /** These settings with another scratch directory. */
        public Options withScratch(Path newScratch) {
            return new Options(mode, pollInterval, settle, startModels, configName, newScratch);
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(RepositorySource.class);

    private final RepositoryLayout layout;
    private final Options options;
    private final Clock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final CountDownLatch closed = new CountDownLatch(1);

    /** Detects changes between polls; null in other modes than {@link Mode#POLL}. */
    @GuardedBy("lock") private final @Nullable ModelTrees trees;

    @GuardedBy("lock") private final ModelScanner scanner;

    @GuardedBy("lock") private final PollInterval interval;

    private final EnsembleMembership ensembles = new EnsembleMembership();

    @GuardedBy("lock") private final AspiredVersionsEmitter emitter;

    @GuardedBy("lock") private final ModelPoller poller;

    @GuardedBy("lock") private final DesiredModels desired;

    @GuardedBy("lock") private final ModelControlRequests requests;

    @GuardedBy("lock") private boolean started;

    @GuardedBy("lock") private long polls;

    /** Whether the latest poll read and missed no model, and no request has changed one since. */
    @GuardedBy("lock") private boolean quiet;

    /** The scan result of the latest poll. */
    @GuardedBy("lock") private @Nullable Found complete;

    @GuardedBy("lock") private @Nullable ScheduledExecutorService timer;

    /**
     * Creates the source; {@link #start} reads the repository.
     *
     * @param roots repositories, model directories or model files
     * @param backends the available backends; earlier ones win where several recognise the same files
     * @param loaders creates the loader of every emitted version
     * @param options settings
     * @param clock for the age of files and the settle time
     */
    public RepositorySource(
            List<Path> roots, List<Backend> backends, LoaderFactory loaders, Options options, Clock clock) {
        this(roots, backends, loaders, options, GpuInventory.NONE, clock);
    }

    /**
     * As {@link #RepositorySource(List, List, LoaderFactory, Options, Clock)}, on a server with GPUs.
     *
     * @param gpus the GPUs that configurations are checked against
     */
    public RepositorySource(
            List<Path> roots,
            List<Backend> backends,
            LoaderFactory loaders,
            Options options,
            GpuInventory gpus,
            Clock clock) {
        this.options = options;
        this.clock = clock;
        this.layout = new RepositoryLayout(backends, options.configName, gpus);
        this.trees = options.mode == Mode.POLL ? new ModelTrees(options.pollInterval) : null;
        this.scanner = new ModelScanner(roots, layout, trees);
        this.interval = new PollInterval(options.pollInterval, "models");
        this.emitter = new AspiredVersionsEmitter(loaders, ensembles);
        this.poller = new ModelPoller(layout, ensembles, emitter, options.settle, ModelPoller.CONFIRMATIONS, clock);
        this.desired = new DesiredModels(options.mode);
        this.requests = new ModelControlRequests(poller, ensembles, emitter, desired, options.scratch);
        if (options.startModels.contains("*") && options.startModels.size() > 1) {
            throw ServingException.invalidArgument(
                    "Wildcard model name '*' must be the ONLY startup model if specified at all.");
        }
    }

    /**
     * Reads the repository and emits the versions of the start models. If files are younger than the settle time, waits
     * once for that time. Called once.
     *
     * @throws ServingException NOT_FOUND when a start model does not exist
     */
    @Override
    public void start(Target target) {
        List<String> young;
        lock.lock();
        try {
            if (started) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the repository source is started already");
            }
            started = true;
            emitter.target(target);
            Found found = scanner.find();
            var unused = scanner.takeChanged(found);
            young = acceptAtStart(startModels(found), found, false);
        } finally {
            lock.unlock();
        }
        if (!young.isEmpty() && !pause(options.settle)) {
            lock.lock();
            try {
                Found found = scanner.find();
                var unused = acceptAtStart(poller.read(young, found), found, true);
            } finally {
                lock.unlock();
            }
        }
        lock.lock();
        try {
            if (closed.getCount() > 0) {
                timer = Threads.timer("nereid-repository");
                schedule();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Reads the models to load at the start. */
    @GuardedBy("lock") private Map<String, StoredModel> startModels(Found found) {
        if (options.mode != Mode.EXPLICIT) {
            return poller.read(found.models().keySet(), found);
        }
        if (options.startModels.contains("*")) {
            found.models().keySet().forEach(desired::request);
            return poller.read(found.models().keySet(), found);
        }
        for (String name : options.startModels) {
            ModelNames.check(name);
            if (!found.has(name)) {
                throw found.notFound(name);
            }
            desired.request(name);
        }
        Map<String, StoredModel> models = poller.readWithMembers(options.startModels, found);
        models.keySet().forEach(desired::requestAsMember);
        return models;
    }

    /** Accepts models that are completely written; returns the names of the others. */
    @GuardedBy("lock") private List<String> acceptAtStart(Map<String, StoredModel> models, Found found, boolean second) {
        List<String> young = new ArrayList<>();
        models.forEach((name, model) -> {
            if (!poller.acceptAtStart(model, second)) {
                young.add(name);
            }
        });
        duplicates(found, false);
        emitter.flush();
        return young;
    }

    @GuardedBy("lock") private void duplicates(Found found, boolean onlyPending) {
        found.models().forEach((name, entries) -> {
            if (entries.size() > 1 && desired.contains(name)) {
                TrackedModel t = poller.of(name);
                if (!onlyPending || t.pending != null) {
                    emitter.duplicate(entries, t);
                }
            }
        });
    }

    /**
     * Polls the repository now, as the timer does. In {@link Mode#EXPLICIT} only loaded models are read.
     */
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
        long began = clock.nanos();
        long capturing = trees == null ? 0 : trees.captureNanos();
        Found found = scanner.find();
        long scanned = clock.nanos();
        Set<String> names = new TreeSet<>();
        Set<String> overridden = new TreeSet<>();
        boolean incomplete = !quiet || found != complete;
        if (incomplete) {
            for (TrackedModel t : poller.all()) {
                if (t.pending != null || (!onlyPending && t.missing > 0)) {
                    names.add(t.name);
                }
                if (t.overridden) {
                    overridden.add(t.name);
                }
            }
        }
        if (!onlyPending) {
            names.addAll(scanner.takeChanged(found));
        }
        retainDesired(names);
        incomplete |= !names.isEmpty();
        if (incomplete) {
            Map<String, StoredModel> read = poller.read(names, found);
            if (!onlyPending && trees != null) {
                Set<String> affected = new TreeSet<>(ensembles.affected(found, overridden));
                retainDesired(affected);
                read.putAll(poller.read(affected, found));
            }
            read.values().forEach(poller::poll);
            duplicates(found, onlyPending);
            boolean missing = !onlyPending && poller.missing(found);
            emitter.flush();
            quiet = !onlyPending && names.isEmpty() && !missing;
            complete = found;
        }
        if (!onlyPending && trees != null) {
            polls++;
            // Looking into what has changed is not a regular cost of polling.
            interval.polled(
                    scanned - began - (trees.captureNanos() - capturing),
                    found.models().size());
        }
    }

    @GuardedBy("lock") private void retainDesired(Set<String> names) {
        for (String name : List.copyOf(names)) {
            if (!desired.contains(name)) {
                names.remove(name);
            }
        }
    }

    /** Statistics of polling so far, in {@link Mode#POLL}. */
    public FileSystemStoragePathSource.PollStatistics polling() {
        lock.lock();
        try {
            return new FileSystemStoragePathSource.PollStatistics(
                    polls, trees == null ? 0 : trees.stampReads(), poller.reads(), interval.current());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Reads one model now, in any mode, and emits it, even if it did not change. The members of an ensemble are read
     * too, and emitted if they were not loaded or have changed. A model that was loaded with an override is read from
     * the repository again.
     *
     * @return the emitted versions
     * @throws ServingException INVALID_ARGUMENT for an invalid name or a configuration that cannot be served (loaded
     *     versions keep serving), NOT_FOUND for a model that is not in the repository
     */
    public List<ServableId> load(String model) {
        ModelNames.check(model);
        lock.lock();
        try {
            try {
                return requests.load(model, findToLoad());
            } finally {
                emitter.flush();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Loads a model with an overridden configuration and optionally overridden files. The override is in force until
     * {@link #load(String)} or {@link #unload}.
     *
     * @param config the whole configuration as JSON; null, without files, for {@link #load(String)}
     * @param files contents by path inside the model's directory, with or without a {@code file:} prefix. With files,
     *     the stored model is not used and need not exist
     * @return the emitted versions
     * @throws ServingException INVALID_ARGUMENT for files without a configuration, for paths that leave the model's
     *     directory, and for a configuration that cannot be served (loaded versions keep serving); else as
     *     {@link #load(String)}
     */
    public List<ServableId> load(String model, @Nullable String config, Map<String, byte[]> files) {
        if (config == null) {
            if (!files.isEmpty()) {
                throw ServingException.invalidArgument(
                        "Load parameter 'config' must be specified for model file override",
                        "send the configuration as JSON with the files");
            }
            return load(model);
        }
        ModelNames.check(model);
        lock.lock();
        try {
            try {
                return requests.load(model, config, files, findToLoad());
            } finally {
                emitter.flush();
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock") private Found findToLoad() {
        quiet = false;
        if (!started || closed.getCount() == 0) {
            throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the repository source is not running");
        }
        return scanner.find();
    }

    /** As {@link #unload(String, boolean)}, without the members of an ensemble. */
    public void unload(String model) {
        unload(model, false);
    }

    /**
     * Unloads all versions of the model. It stays unloaded until {@link #load}.
     *
     * @param dependents whether to unload also the members of the ensemble that were loaded only for it and that are
     *     not a member of another loaded ensemble
     * @throws ServingException INVALID_ARGUMENT for an invalid name, NOT_FOUND for a model that is neither in the
     *     repository nor served
     */
    public void unload(String model, boolean dependents) {
        ModelNames.check(model);
        lock.lock();
        try {
            try {
                quiet = false;
                requests.unload(model, dependents, poller.find(model) == null ? scanner.find() : null);
            } finally {
                emitter.flush();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Reads a model from the disk, without loading it or changing what is served.
     *
     * @return null for a model that is not in the repository, or is in two roots of it
     */
    public @Nullable StoredModel stored(String model) {
        StoredModel.@Nullable ModelEntry entry;
        lock.lock();
        try {
            entry = scanner.find().only(model);
        } finally {
            lock.unlock();
        }
        return entry == null ? null : layout.read(entry);
    }

    /** The file with the configuration of a model that was read; null for a model without one. */
    public @Nullable Path configuration(StoredModel model) {
        return layout.configuration(model.entry());
    }

    /** The sorted names of all models in the repository, and of models that are still served but no longer stored. */
    public List<String> names() {
        lock.lock();
        try {
            TreeSet<String> names = new TreeSet<>(scanner.find().models().keySet());
            for (TrackedModel t : poller.all()) {
                if (!t.emitted.isEmpty()) {
                    names.add(t.name);
                }
            }
            return List.copyOf(names);
        } finally {
            lock.unlock();
        }
    }

    /** The problems that the latest poll found: with the roots, then with the models in the order of their names. */
    public List<Problem> problems() {
        lock.lock();
        try {
            List<Problem> problems = new ArrayList<>(scanner.problems());
            poller.all().forEach(t -> problems.addAll(t.problems));
            return List.copyOf(problems);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        closed.countDown();
        lock.lock();
        try {
            if (timer != null) {
                timer.shutdownNow();
            }
            for (TrackedModel t : poller.all()) {
                if (t.scratch != null) {
                    t.scratch.retire();
                }
            }
            if (trees != null) {
                trees.close();
            }
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

    @GuardedBy("lock") private void schedule() {
        boolean pending = !quiet && poller.all().stream().anyMatch(t -> t.pending != null);
        boolean polls = options.mode == Mode.POLL;
        if (timer == null || (!pending && !polls)) {
            return;
        }
        Duration soon = options.settle.compareTo(Duration.ofMillis(10)) < 0 ? Duration.ofMillis(10) : options.settle;
        boolean early = pending && (!polls || soon.compareTo(interval.current()) < 0);
        Duration delay = early ? soon : interval.current();
        var unused = timer.schedule(() -> tick(early), delay.toNanos(), TimeUnit.NANOSECONDS);
    }

    private void tick(boolean onlyPending) {
        lock.lock();
        try {
            try {
                if (closed.getCount() > 0) {
                    poll(onlyPending);
                }
            } catch (RuntimeException e) {
                LOG.error("reading the repository failed; the next read is not affected", e);
            }
            if (closed.getCount() > 0) {
                schedule();
            }
        } finally {
            lock.unlock();
        }
    }
}
