// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelSource;
import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Suggestions;
import io.nereid.base.Threads;
import io.nereid.repository.RepositoryLayout.Listing;
import io.nereid.repository.StoredModel.ModelEntry;
import io.nereid.repository.StoredModel.Version;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
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
 * directory itself and is version 1; a backend that needs no file needs no version directory.
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
     */
    public record Options(Mode mode, Duration pollInterval, Duration settle, List<String> startModels) {
        /** Everything once, at the start. */
        public static final Options DEFAULT =
                new Options(Mode.NONE, Duration.ofSeconds(15), Duration.ofSeconds(1), List.of());

        /** These settings in another mode. */
        public Options withMode(Mode newMode) {
            return new Options(newMode, pollInterval, settle, startModels);
        }

        /** These settings with another poll interval. */
        public Options withPollInterval(Duration newPollInterval) {
            return new Options(mode, newPollInterval, settle, startModels);
        }

        /** These settings with another settle time. */
        public Options withSettle(Duration newSettle) {
            return new Options(mode, pollInterval, newSettle, startModels);
        }

        /** These settings with other models to start with. */
        public Options withStartModels(List<String> newStartModels) {
            return new Options(mode, pollInterval, settle, newStartModels);
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(RepositorySource.class);
    private static final int CONFIRMATIONS = 3;

    private final List<Path> roots;
    private final RepositoryLayout layout;
    private final LoaderFactory loaders;
    private final Options options;
    private final Clock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final Map<String, Tracked> tracked = new TreeMap<>();
    private final Set<String> loaded = new HashSet<>();
    private final Set<String> unloaded = new HashSet<>();
    private final Map<Path, List<Problem>> rootProblems = new HashMap<>();
    private @Nullable Target target;
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
        this.roots = List.copyOf(roots);
        this.layout = new RepositoryLayout(backends);
        this.loaders = loaders;
        this.options = options;
        this.clock = clock;
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
    public void start(Target newTarget) {
        Set<String> young = new TreeSet<>();
        lock.lock();
        try {
            if (target != null) {
                throw ServingException.of(Code.FAILED_PRECONDITION, "the repository is being watched already");
            }
            target = newTarget;
            Found found = find();
            if (options.mode == Mode.EXPLICIT) {
                startModels(found);
            }
            for (Map.Entry<String, List<ModelEntry>> e : found.models.entrySet()) {
                if (wanted(e.getKey()) && !takeUpAtStart(e.getKey(), e.getValue(), false)) {
                    young.add(e.getKey());
                }
            }
        } finally {
            lock.unlock();
        }
        if (!young.isEmpty() && !pause(options.settle)) {
            lock.lock();
            try {
                Found found = find();
                for (String name : young) {
                    List<ModelEntry> entries = found.models.get(name);
                    if (entries != null) {
                        takeUpAtStart(name, entries, true);
                    }
                }
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

    private void startModels(Found found) {
        if (options.startModels.contains("*")) {
            loaded.addAll(found.models.keySet());
            return;
        }
        for (String name : options.startModels) {
            ModelNames.check(name);
            if (!found.models.containsKey(name)) {
                throw notFound(name, found);
            }
            loaded.add(name);
        }
    }

    /** Whether the model was taken up, or at least everything of it that is completely written. */
    private boolean takeUpAtStart(String name, List<ModelEntry> entries, boolean second) {
        Tracked t = tracked.computeIfAbsent(name, n -> new Tracked());
        if (entries.size() > 1) {
            duplicate(name, entries, t);
            return true;
        }
        StoredModel model = layout.read(entries.get(0));
        boolean settled = settledAtStart(model.newestMillis())
                || (second && model.fingerprint().equals(t.pending));
        if (settled) {
            takeUp(name, model, t, false);
        } else if (!second) {
            t.pending = model.fingerprint();
            t.pendingSince = clock.nanos();
        } else {
            t.pending = model.fingerprint();
            t.pendingSince = clock.nanos();
            takeUpPartly(name, model, t);
        }
        return settled || second;
    }

    private boolean settledAtStart(long newestMillis) {
        return options.settle.isZero() || newestMillis <= clock.millis() - options.settle.toMillis();
    }

    /** Serves the versions that are completely written; a later read takes up the rest. */
    private void takeUpPartly(String name, StoredModel model, Tracked t) {
        t.at(model.entry());
        List<Version> settled = model.versions().stream()
                .filter(v -> settledAtStart(v.newestMillis()))
                .toList();
        if (settled.isEmpty() || model.hasErrors() || model.backend() == null) {
            emit(
                    name,
                    t,
                    List.of(Aspired.failed(
                            model.id(
                                    model.versions().isEmpty()
                                            ? 1
                                            : model.versions()
                                                    .get(model.versions().size() - 1)
                                                    .version()),
                            ServingException.of(
                                    Code.UNAVAILABLE,
                                    "model '" + name + "' is still being written at "
                                            + model.entry().place(),
                                    "it is loaded when its files stop changing"))));
            return;
        }
        emit(
                name,
                t,
                aspired(
                        t,
                        new StoredModel(
                                model.entry(),
                                model.config(),
                                model.backend(),
                                settled,
                                model.problems(),
                                true,
                                "",
                                0)));
    }

    /**
     * Reads the repository now, as the timer does. In {@link Mode#EXPLICIT} only models that are loaded are read.
     */
    public void poll() {
        lock.lock();
        try {
            if (target != null && closed.getCount() > 0) {
                poll(false);
            }
        } finally {
            lock.unlock();
        }
    }

    private void poll(boolean onlyPending) {
        Found found = find();
        for (Map.Entry<String, List<ModelEntry>> e : found.models.entrySet()) {
            String name = e.getKey();
            Tracked t = tracked.computeIfAbsent(name, n -> new Tracked());
            if (!wanted(name) || (onlyPending && t.pending == null)) {
                continue;
            }
            if (e.getValue().size() > 1) {
                duplicate(name, e.getValue(), t);
            } else {
                look(name, layout.read(e.getValue().get(0)), t);
            }
        }
        if (!onlyPending) {
            missing(found);
        }
    }

    private void look(String name, StoredModel model, Tracked t) {
        boolean vanished = model.versions().isEmpty() && t.serving && model.readable();
        t.missing = vanished ? t.missing + 1 : 0;
        if (model.fingerprint().equals(t.takenUp)) {
            t.pending = null;
            return;
        }
        if (!model.fingerprint().equals(t.pending)) {
            t.pending = model.fingerprint();
            t.pendingSince = clock.nanos();
        }
        boolean settled = clock.nanos() - t.pendingSince >= options.settle.toNanos();
        if (settled && (!vanished || t.missing >= CONFIRMATIONS)) {
            takeUp(name, model, t, vanished);
        }
    }

    private void missing(Found found) {
        List<String> gone = new ArrayList<>();
        for (Map.Entry<String, Tracked> e : tracked.entrySet()) {
            Tracked t = e.getValue();
            if (found.models.containsKey(e.getKey())) {
                continue;
            }
            if (t.root == null || !found.unreadable.contains(t.root)) {
                t.missing++;
                boolean doubtful = t.root != null
                        && (found.empty.contains(t.root) || (t.directory != null && Files.isDirectory(t.directory)));
                if (!doubtful || t.missing >= CONFIRMATIONS) {
                    gone.add(e.getKey());
                }
            }
        }
        for (String name : gone) {
            Tracked t = tracked.remove(name);
            if (t != null && !t.emitted.isEmpty()) {
                LOG.info("model '{}' is no longer in the repository", name);
                emit(name, t, List.of());
            }
        }
    }

    /** Emits what a model should serve from now on, unless it is in a worse state than what it serves. */
    private void takeUp(String name, StoredModel model, Tracked t, boolean vanished) {
        t.takenUp = model.fingerprint();
        t.pending = null;
        report(name, t, model.problems());
        t.at(model.entry());
        if (model.hasErrors() || model.backend() == null) {
            if (t.serving && !vanished) {
                LOG.warn("model '{}' keeps what it serves, for what is stored now cannot be served", name);
                return;
            }
            emit(name, t, failures(model));
            return;
        }
        emit(name, t, aspired(t, model));
    }

    private static void report(String name, Tracked t, List<Problem> problems) {
        if (!problems.equals(t.problems)) {
            t.problems = problems;
            for (Problem p : problems) {
                LOG.warn("model '{}': {}", name, p);
            }
        }
    }

    private static List<Aspired> failures(StoredModel model) {
        ServingException error = Problems.refusal(model.problems());
        List<Version> wanted = model.wanted();
        return wanted.isEmpty()
                ? List.of(Aspired.failed(model.id(1), error))
                : wanted.stream()
                        .map(v -> Aspired.failed(model.id(v.version()), error))
                        .toList();
    }

    /** A version that became unreadable stays as it was emitted, so that it goes on serving. */
    private List<Aspired> aspired(Tracked t, StoredModel model) {
        List<Aspired> list = new ArrayList<>();
        Backend backend = Objects.requireNonNull(model.backend());
        for (Version v : model.wanted()) {
            ServableId id = model.id(v.version());
            if (v.error() == null) {
                ModelSource where = new ModelSource(id, model.entry().directory(), v.directory());
                list.add(Aspired.of(loaders.create(where, model.config(), backend, v.fingerprint())));
            } else {
                LOG.warn("model '{}': {}", id.model(), v.error().describe());
                list.add(t.emitted.stream()
                        .filter(a -> a.id().equals(id) && a.loader() != null)
                        .findFirst()
                        .orElse(Aspired.failed(id, v.error())));
            }
        }
        return list;
    }

    private void duplicate(String name, List<ModelEntry> entries, Tracked t) {
        List<Problem> problems = new ArrayList<>();
        for (ModelEntry e : entries) {
            problems.add(new Problem(
                    Problem.Severity.ERROR,
                    e.place(),
                    0,
                    0,
                    duplicateText(name, entries),
                    "rename or remove one of them"));
        }
        report(name, t, problems);
        if (!t.serving && !"duplicate".equals(t.takenUp)) {
            t.takenUp = "duplicate";
            emit(name, t, List.of(Aspired.failed(new ServableId(name, 1), refusal(name, entries))));
        }
    }

    private static ServingException refusal(String name, List<ModelEntry> entries) {
        return ServingException.invalidArgument(duplicateText(name, entries), "rename or remove one of them");
    }

    static String duplicateText(String name, List<ModelEntry> entries) {
        return "model '" + name + "' is there more than once: "
                + String.join(
                        ", ", entries.stream().map(e -> e.place().toString()).toList());
    }

    private void emit(String name, Tracked t, List<Aspired> list) {
        t.emitted = list;
        t.serving = list.stream().anyMatch(a -> a.loader() != null);
        if (target != null) {
            target.aspire(name, list);
        }
    }

    /**
     * Reads one model now, whatever the mode, and emits it, even when nothing changed.
     *
     * @return the versions emitted
     * @throws ServingException INVALID_ARGUMENT for a name that cannot be one, or a configuration that cannot be served
     *     (a version that serves goes on), NOT_FOUND for a model that is not in the repository
     */
    public List<ServableId> load(String model) {
        ModelNames.check(model);
        lock.lock();
        try {
            if (target == null || closed.getCount() == 0) {
                throw ServingException.of(Code.FAILED_PRECONDITION, "the repository is not being watched");
            }
            Found found = find();
            List<ModelEntry> entries = found.models.get(model);
            if (entries == null) {
                throw notFound(model, found);
            }
            unloaded.remove(model);
            loaded.add(model);
            Tracked t = tracked.computeIfAbsent(model, n -> new Tracked());
            if (entries.size() > 1) {
                duplicate(model, entries, t);
                throw refusal(model, entries);
            }
            StoredModel stored = layout.read(entries.get(0));
            boolean served = t.serving;
            takeUp(model, stored, t, false);
            if (stored.hasErrors() || stored.backend() == null) {
                ServingException why = Problems.refusal(stored.problems());
                throw ServingException.invalidArgument(
                        "load failed for model '" + model + "': " + why.getMessage()
                                + (served ? "; what it served before goes on" : ""),
                        why.remedy());
            }
            return t.emitted.stream().map(Aspired::id).toList();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Emits that no version of the model is wanted; it stays so until {@link #load}.
     *
     * @throws ServingException INVALID_ARGUMENT for a name that cannot be one, NOT_FOUND for a model that is neither in
     *     the repository nor served
     */
    public void unload(String model) {
        ModelNames.check(model);
        lock.lock();
        try {
            Tracked t = tracked.get(model);
            if (t == null) {
                Found found = find();
                if (!found.models.containsKey(model)) {
                    throw ServingException.of(
                            Code.NOT_FOUND,
                            "failed to unload '" + model + "', no such model",
                            suggestion(model, found));
                }
                t = tracked.computeIfAbsent(model, n -> new Tracked());
            }
            loaded.remove(model);
            unloaded.add(model);
            t.pending = null;
            t.takenUp = null;
            emit(model, t, List.of());
        } finally {
            lock.unlock();
        }
    }

    private static ServingException notFound(String model, Found found) {
        return ServingException.of(
                Code.NOT_FOUND,
                "failed to load '" + model + "', failed to poll from model repository",
                suggestion(model, found));
    }

    private static String suggestion(String model, Found found) {
        Set<String> names = found.models.keySet();
        String otherwise =
                names.isEmpty() ? "the repository has no models" : "the repository index lists the models there are";
        return model.length() > 64 ? otherwise : Suggestions.didYouMean(model, names, otherwise);
    }

    /** Names of all models in the repository, and of those still served though gone from it, sorted. */
    public List<String> names() {
        lock.lock();
        try {
            TreeSet<String> names = new TreeSet<>(find().models.keySet());
            tracked.forEach((name, t) -> {
                if (!t.emitted.isEmpty()) {
                    names.add(name);
                }
            });
            return List.copyOf(names);
        } finally {
            lock.unlock();
        }
    }

    /** What the latest reads found wrong: with the roots, then with the models in the order of their names. */
    public List<Problem> problems() {
        lock.lock();
        try {
            List<Problem> problems = new ArrayList<>();
            roots.forEach(root -> problems.addAll(rootProblems.getOrDefault(root, List.of())));
            tracked.values().forEach(t -> problems.addAll(t.problems));
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
        } finally {
            lock.unlock();
        }
    }

    private boolean wanted(String name) {
        return options.mode == Mode.EXPLICIT ? loaded.contains(name) : !unloaded.contains(name);
    }

    private Found find() {
        Found found = new Found(new TreeMap<>(), new HashSet<>(), new HashSet<>());
        for (Path root : roots) {
            Listing listing = layout.list(root);
            if (!listing.problems().equals(rootProblems.put(root, listing.problems()))) {
                listing.problems().forEach(p -> LOG.warn("{}", p));
            }
            if (!listing.readable()) {
                found.unreadable.add(root);
            }
            if (listing.empty()) {
                found.empty.add(root);
            }
            listing.models()
                    .forEach(m -> found.models
                            .computeIfAbsent(m.name(), n -> new ArrayList<>())
                            .add(m));
        }
        return found;
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
        boolean pending = tracked.values().stream().anyMatch(t -> t.pending != null);
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

    private record Found(Map<String, List<ModelEntry>> models, Set<Path> unreadable, Set<Path> empty) {}

    /** What is remembered of a model. Guarded by the source's lock. */
    private static final class Tracked {
        List<Aspired> emitted = List.of();
        List<Problem> problems = List.of();

        @Nullable Path root;

        @Nullable Path directory;

        @Nullable String takenUp;

        @Nullable String pending;

        long pendingSince;
        int missing;
        boolean serving;

        void at(ModelEntry entry) {
            root = entry.root();
            directory = entry.file() == null ? entry.directory() : null;
        }
    }
}
