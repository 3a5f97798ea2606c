// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
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
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Models stored in directories. A root may be
 * <ul>
 *   <li>a file of a kind that a backend knows ({@code my-model.onnx}): one model of that name, version 1;
 *   <li>a directory with a {@code config.pbtxt}, with a backend's default file ({@code model.onnx}), or with directories
 *       that are versions: one model, named by its configuration or else by the directory;
 *   <li>any other directory: a repository. Each directory in it that looks like a model is one, and so is each file of a
 *       kind that a backend knows. What starts with a dot is passed over.
 * </ul>
 *
 * <p>A model's directory holds {@code config.pbtxt} if there is anything to configure, and a directory for each version,
 * named by a whole number from 1 without leading zeros. Without any of these the model's file may lie in the model's
 * directory itself and is version 1; an ensemble, and a backend that needs no file, need no version directory.
 *
 * <p>Rules of watching:
 *
 * <ul>
 *   <li>A model that changed is taken up when two reads at least a settle time apart saw the same files and
 *       configuration, so that a half-copied version is not loaded. At the start, files older than the settle time are
 *       taken at once. {@link #load} takes what is there.
 *   <li>A model whose configuration became wrong keeps what it serves; the problem is logged and listed.
 *   <li>A root that cannot be read changes nothing. A root, or a model, that suddenly holds nothing at all is believed
 *       after three reads in a row.
 *   <li>A model found in two roots is served from neither, unless it was served before the second one came.
 *   <li>A model that was loaded with another configuration or other files than the stored ones is left alone until it is
 *       loaded again or unloaded.
 * </ul>
 *
 * Thread-safe: one lock guards reading and emitting.
 */
public final class RepositorySource implements Source {
    /** When the repository is read. */
    public enum Mode {
        /** Everything once, at the start. */
        NONE,
        /** Everything at the start, and again every poll interval. */
        POLL,
        /** At the start only the named models; later what {@link #load} asks for. */
        EXPLICIT
    }

    /**
     * Settings. Immutable.
     *
     * @param mode when the repository is read
     * @param pollInterval time between two reads in {@link Mode#POLL}
     * @param settle how long files must have been unchanged to count as completely written; zero takes them as they are
     * @param startModels models to load at the start in {@link Mode#EXPLICIT}; {@code *} alone stands for all
     * @param configName a model's {@code configs/<configName>.pbtxt}, where there is one, replaces its
     *     {@code config.pbtxt}; empty for none
     * @param scratch where files are kept that come with a request to load
     */
    public record Options(
            Mode mode,
            Duration pollInterval,
            Duration settle,
            List<String> startModels,
            String configName,
            Path scratch) {
        /** Everything once, at the start. */
        public static final Options DEFAULT = new Options(
                Mode.NONE,
                Duration.ofSeconds(15),
                Duration.ofSeconds(1),
                List.of(),
                "",
                Path.of(System.getProperty("java.io.tmpdir", "/tmp")));

        /** Refuses a {@code configName} that is not the name of a file. */
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

        /** These settings with other models to start with. */
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
    private final ReentrantLock lock = new ReentrantLock();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final ModelScanner finder;
    private final EnsembleMembership ensembles = new EnsembleMembership();
    private final AspiredVersionsEmitter emitter;
    private final ModelPoller watch;
    private final DesiredModels wanted;
    private final ModelControlRequests requests;
    private boolean started;
    private @Nullable ScheduledExecutorService timer;

    /**
     * Reads nothing yet.
     *
     * @param roots repositories, model directories or model files
     * @param backends what can run models; earlier ones win where several recognise the same files
     * @param loaders makes the loader of every version emitted
     * @param options settings
     * @param clock tells how long files have been as they are
     */
    public RepositorySource(
            List<Path> roots, List<Backend> backends, LoaderFactory loaders, Options options, Clock clock) {
        this.options = options;
        this.layout = new RepositoryLayout(backends, options.configName);
        this.finder = new ModelScanner(roots, layout);
        this.emitter = new AspiredVersionsEmitter(loaders, ensembles);
        this.watch = new ModelPoller(layout, ensembles, emitter, options.settle, ModelPoller.CONFIRMATIONS, clock);
        this.wanted = new DesiredModels(options.mode);
        this.requests = new ModelControlRequests(watch, ensembles, emitter, wanted, options.scratch);
        if (options.startModels.contains("*") && options.startModels.size() > 1) {
            throw ServingException.invalidArgument(
                    "Wildcard model name '*' must be the ONLY startup model if specified at all.");
        }
    }

    /**
     * Reads the repository and emits what is wanted at the start; may wait once for the settle time when files are
     * younger than that. Called once.
     *
     * @throws ServingException NOT_FOUND when a model to start with is not there
     */
    @Override
    public void start(Target target) {
        List<String> young;
        lock.lock();
        try {
            if (started) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the repository is being watched already");
            }
            started = true;
            emitter.target(target);
            Found found = finder.find();
            young = takeUpAtStart(startModels(found), found, false);
        } finally {
            lock.unlock();
        }
        if (!young.isEmpty() && !pause(options.settle)) {
            lock.lock();
            try {
                Found found = finder.find();
                var unused = takeUpAtStart(watch.read(young, found), found, true);
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

    /** Reads what is to be served from the start on. */
    private Map<String, StoredModel> startModels(Found found) {
        if (options.mode != Mode.EXPLICIT) {
            return watch.read(found.models().keySet(), found);
        }
        if (options.startModels.contains("*")) {
            found.models().keySet().forEach(wanted::ask);
            return watch.read(found.models().keySet(), found);
        }
        for (String name : options.startModels) {
            ModelNames.check(name);
            if (!found.has(name)) {
                throw found.notFound(name);
            }
            wanted.ask(name);
        }
        Map<String, StoredModel> models = watch.readWithMembers(options.startModels, found);
        models.keySet().forEach(wanted::need);
        return models;
    }

    /** Takes up what has been completely written; gives the names of the others. */
    private List<String> takeUpAtStart(Map<String, StoredModel> models, Found found, boolean second) {
        List<String> young = new ArrayList<>();
        models.forEach((name, model) -> {
            if (!watch.takeUpAtStart(model, second)) {
                young.add(name);
            }
        });
        duplicates(found, false);
        emitter.flush();
        return young;
    }

    private void duplicates(Found found, boolean onlyPending) {
        found.models().forEach((name, entries) -> {
            if (entries.size() > 1 && wanted.wants(name)) {
                TrackedModel t = watch.of(name);
                if (!onlyPending || t.pending != null) {
                    emitter.duplicate(entries, t);
                }
            }
        });
    }

    /**
     * Reads the repository now, as the timer does. In {@link Mode#EXPLICIT} only models that are loaded are read.
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

    private void poll(boolean onlyPending) {
        Found found = finder.find();
        List<String> names = new ArrayList<>();
        for (String name : found.models().keySet()) {
            if (wanted.wants(name) && (!onlyPending || watch.of(name).pending != null)) {
                names.add(name);
            }
        }
        watch.read(names, found).values().forEach(watch::look);
        duplicates(found, onlyPending);
        if (!onlyPending) {
            watch.missing(found);
        }
        emitter.flush();
    }

    /**
     * Reads one model now, whatever the mode, and emits it, even when nothing changed. What an ensemble is made of is
     * read, and emitted where it was not loaded or has changed, with it. A model that was loaded with other files or
     * another configuration is read from the repository again.
     *
     * @return the versions emitted
     * @throws ServingException INVALID_ARGUMENT for a name that cannot be one, or a configuration that cannot be served
     *     (a version that serves goes on), NOT_FOUND for a model that is not in the repository
     */
    public List<ServableId> load(String model) {
        ModelNames.check(model);
        lock.lock();
        try {
            return requests.load(model, findToLoad());
        } finally {
            emitter.flush();
            lock.unlock();
        }
    }

    /**
     * Loads a model with another configuration, and perhaps from other files, than the stored ones. It stays like that
     * until {@link #load(String)} or {@link #unload}.
     *
     * @param config the whole configuration as JSON; null, without files, for {@link #load(String)}
     * @param files contents by path inside the model's directory, with or without {@code file:} before it; where there are
     *     any, nothing stored is used, and the model need not be in the repository
     * @return the versions emitted
     * @throws ServingException INVALID_ARGUMENT for files without a configuration, for paths that leave the model's
     *     directory, and for a configuration that cannot be served (what serves goes on); else as {@link #load(String)}
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
            return requests.load(model, config, files, findToLoad());
        } finally {
            emitter.flush();
            lock.unlock();
        }
    }

    private Found findToLoad() {
        if (!started || closed.getCount() == 0) {
            throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the repository is not being watched");
        }
        return finder.find();
    }

    /** As {@link #unload(String, boolean)}, leaving what the model is made of as it is. */
    public void unload(String model) {
        unload(model, false);
    }

    /**
     * Emits that no version of the model is wanted; it stays so until {@link #load}.
     *
     * @param dependents whether models go too that were loaded only because this one is made of them, and of which no
     *     other wanted ensemble is made
     * @throws ServingException INVALID_ARGUMENT for a name that cannot be one, NOT_FOUND for a model that is neither in
     *     the repository nor served
     */
    public void unload(String model, boolean dependents) {
        ModelNames.check(model);
        lock.lock();
        try {
            requests.unload(model, dependents, watch.find(model) == null ? finder.find() : null);
        } finally {
            emitter.flush();
            lock.unlock();
        }
    }

    /** Names of all models in the repository, and of those still served though gone from it, sorted. */
    public List<String> names() {
        lock.lock();
        try {
            TreeSet<String> names = new TreeSet<>(finder.find().models().keySet());
            for (TrackedModel t : watch.all()) {
                if (!t.emitted.isEmpty()) {
                    names.add(t.name);
                }
            }
            return List.copyOf(names);
        } finally {
            lock.unlock();
        }
    }

    /** What the latest reads found wrong: with the roots, then with the models in the order of their names. */
    public List<Problem> problems() {
        lock.lock();
        try {
            List<Problem> problems = new ArrayList<>(finder.problems());
            watch.all().forEach(t -> problems.addAll(t.problems));
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
            for (TrackedModel t : watch.all()) {
                if (t.scratch != null) {
                    t.scratch.retire();
                }
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

    private void schedule() {
        boolean pending = watch.all().stream().anyMatch(t -> t.pending != null);
        boolean polls = options.mode == Mode.POLL;
        if (timer == null || (!pending && !polls)) {
            return;
        }
        Duration soon = options.settle.compareTo(Duration.ofMillis(10)) < 0 ? Duration.ofMillis(10) : options.settle;
        boolean early = pending && (!polls || soon.compareTo(options.pollInterval) < 0);
        Duration delay = early ? soon : options.pollInterval;
        var unused = timer.schedule(() -> tick(early), delay.toNanos(), TimeUnit.NANOSECONDS);
    }

    private void tick(boolean onlyPending) {
        lock.lock();
        try {
            if (closed.getCount() > 0) {
                poll(onlyPending);
            }
        } catch (RuntimeException e) {
            LOG.error("reading the repository failed; the next read is not affected", e);
        } finally {
            if (closed.getCount() > 0) {
                schedule();
            }
            lock.unlock();
        }
    }
}
