// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.repository.ManagedModel;
import io.nereid.repository.ManagedModels;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.Source;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.TreeSet;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Models in the process of an application: loaded from repositories, folders and files, scheduled and batched as by the
 * server, and asked with Java values. It opens no port. Several may exist in one process; they share nothing but the native
 * libraries.
 *
 * <p>Execution technologies are the backends on the class path, such as the artifact {@code nereid-backend-onnx}. Messages
 * go to SLF4J.
 *
 * <p>Thread-safe. It owns threads and native memory until {@link #close}.
 *
 * <pre>{@code
 * try (Nereid nereid = Nereid.builder()
 *         .repository(Path.of("models"))
 *         .model("iris", Path.of("iris.onnx"))
 *         .reload(Duration.ofSeconds(10))
 *         .build()) {
 *     Model iris = nereid.model("iris");
 *     float[] probabilities = iris.predict(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}}).floats("probabilities");
 * }
 * }</pre>
 */
public final class Nereid implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Nereid.class);

    private final Engine engine;
    private final Clock clock;
    private final ManagedModels managed;
    private final @Nullable PredictionTraces traces;
    private final @Nullable ScheduledThreadPoolExecutor timer;

    /** The models of files and folders, by name. */
    @GuardedBy("this") private Map<String, ManagedModel> placed = new LinkedHashMap<>();

    @GuardedBy("this") private boolean closed;

    private Nereid(Builder from) {
        this.clock = Clock.system();
        this.traces = from.traces;
        List<Backend> backends = from.backends == null ? onClassPath(from.classLoader) : from.backends;
        if (backends.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "there is not a single backend on the class path",
                    "add the artifact of one, such as io.nereid:nereid-backend-onnx, or of several");
        }
        this.managed = new ManagedModels(backends);
        RepositorySource.Options reading = RepositorySource.Options.DEFAULT;
        if (from.reload != null) {
            reading = reading.withMode(RepositorySource.Mode.POLL).withPollInterval(from.reload);
        }
        EngineOptions.Builder options = EngineOptions.builder(from.repositories)
                .repository(reading)
                // A table of any length is one call, as in the server.
                .splitUnconfigured(true);
        options = from.engine.apply(options);
        List<Source> sources = new ArrayList<>(options.build().sources());
        sources.add(managed);
        this.engine = new Engine(options.sources(sources).build(), backends, clock);
        from.listeners.forEach(engine::onState);
        try {
            start(from);
            this.timer = from.reload == null ? null : polling(from.reload);
        } catch (RuntimeException e) {
            engine.close(Duration.ZERO);
            throw e;
        }
    }

    private static List<Backend> onClassPath(@Nullable ClassLoader loader) {
        ClassLoader from = loader;
        if (from == null) {
            from = Thread.currentThread().getContextClassLoader();
        }
        List<Backend> all = backends(from);
        return all.isEmpty() && loader == null ? backends(Nereid.class.getClassLoader()) : all;
    }

    private static List<Backend> backends(@Nullable ClassLoader loader) {
        List<Backend> all = new ArrayList<>();
        ServiceLoader.load(Backend.class, loader).forEach(all::add);
        return all;
    }

    private void start(Builder from) {
        engine.start().toCompletableFuture().join();
        List<String> problems = new ArrayList<>();
        for (ModelStatus status : engine.index()) {
            for (ServableState version : status.versions()) {
                if (version.phase() == ServableState.Phase.FAILED) {
                    problems.add("model '" + status.model() + "' version "
                            + version.id().version() + ": " + version.reason());
                }
            }
        }
        synchronized (this) {
            placed = from.models;
            Map<String, List<String>> names = managed.place(List.copyOf(placed.values()));
            for (List<String> each : names.values()) {
                for (String name : each) {
                    try {
                        await(name);
                    } catch (ServingException e) {
                        problems.add("model '" + name + "': " + e.describe());
                    }
                }
            }
        }
        if (problems.isEmpty()) {
            return;
        }
        if (from.failOnModelError) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.join("; ", problems),
                    "correct the models, or start without them by failOnModelError(false)");
        }
        problems.forEach(problem -> LOG.error("{}", problem));
    }

    /** Waits until a model that was placed is available; fails with the reason why it is not. */
    private void await(String name) {
        try {
            engine.load(name).toCompletableFuture().join();
        } catch (CompletionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        }
    }

    private ScheduledThreadPoolExecutor polling(Duration interval) {
        ScheduledThreadPoolExecutor every = Threads.timer("nereid-reload");
        Object unused = every.scheduleWithFixedDelay(
                () -> {
                    try {
                        managed.refresh(true);
                    } catch (RuntimeException e) {
                        LOG.error("the models could not be read again", e);
                    }
                },
                interval.toMillis(),
                Math.max(1, interval.toMillis()),
                TimeUnit.MILLISECONDS);
        return every;
    }

    /** Starts to describe what to load. */
    public static Builder builder() {
        return new Builder();
    }

    /** Describes what a {@link Nereid} loads, and how. Confined to one thread. */
    public static final class Builder {
        private final List<Path> repositories = new ArrayList<>();
        private final Map<String, ManagedModel> models = new LinkedHashMap<>();
        private final List<Consumer<ServableState>> listeners = new ArrayList<>();
        private UnaryOperator<EngineOptions.Builder> engine = UnaryOperator.identity();
        private @Nullable List<Backend> backends;
        private @Nullable ClassLoader classLoader;
        private @Nullable Duration reload;
        private @Nullable PredictionTraces traces;
        private boolean failOnModelError = true;

        private Builder() {}

        /** Loads every model of a repository in Triton's or TensorFlow Serving's layout. */
        public Builder repository(Path directory) {
            if (!Files.isDirectory(directory)) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND, "the repository " + directory + " is not a directory that can be read");
            }
            repositories.add(directory);
            return this;
        }

        /** Loads the model of a file or folder under a name. */
        public Builder model(String name, Path path) {
            return model(name, path, ModelSettings.DEFAULT);
        }

        /**
         * Loads the model of a file or folder under a name.
         *
         * @throws ServingException INVALID_ARGUMENT for a name that is taken, NOT_FOUND for a path that does not exist
         */
        public Builder model(String name, Path path, ModelSettings settings) {
            checkPath(name, path);
            if (models.putIfAbsent(name, settings.managed(name, path)) != null) {
                throw ServingException.invalidArgument("model '" + name + "' is given twice (expected: once)");
            }
            return this;
        }

        /** Looks for changed files in this interval, and loads them while the former version serves. */
        public Builder reload(Duration interval) {
            if (interval.isNegative() || interval.isZero()) {
                throw ServingException.invalidArgument("reload after " + interval + " (expected: above zero)");
            }
            this.reload = interval;
            return this;
        }

        /**
         * Whether {@link #build} fails when a model cannot be loaded, which is the default; else the others are served, and
         * the reason is in the log and in {@link Nereid#models}.
         */
        public Builder failOnModelError(boolean fail) {
            this.failOnModelError = fail;
            return this;
        }

        /** Changes settings of the engine, such as {@code deviceThreads}, the response cache or memory limits. */
        public Builder engine(UnaryOperator<EngineOptions.Builder> change) {
            UnaryOperator<EngineOptions.Builder> before = this.engine;
            this.engine = options -> change.apply(before.apply(options));
            return this;
        }

        /** Uses these backends instead of those on the class path. */
        public Builder backends(List<? extends Backend> given) {
            this.backends = List.copyOf(given);
            return this;
        }

        /** Finds backends by this class loader instead of the thread's. */
        public Builder classLoader(ClassLoader loader) {
            this.classLoader = loader;
            return this;
        }

        /** Traces each prediction. */
        public Builder traces(PredictionTraces start) {
            this.traces = start;
            return this;
        }

        /** Is called for each change of the state of a version, on a thread that must not be blocked. */
        public Builder onState(Consumer<ServableState> listener) {
            listeners.add(listener);
            return this;
        }

        /**
         * Loads the models, and waits until they are available.
         *
         * @throws ServingException FAILED_PRECONDITION for models that cannot be loaded, with all reasons, and without a
         *     backend; INVALID_ARGUMENT for a wrong setting
         */
        public Nereid build() {
            return new Nereid(this);
        }
    }

    private static void checkPath(String name, Path path) {
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("the name of a model is empty (expected: one or more characters)");
        }
        if (!Files.exists(path)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "model '" + name + "': " + path + " does not exist or cannot be read");
        }
    }

    // ---- models ----

    /**
     * A model to ask.
     *
     * @throws ServingException NOT_FOUND for a name that is not known
     */
    public Model model(String name) {
        TreeSet<String> known = new TreeSet<>();
        for (ModelStatus status : engine.index()) {
            if (status.model().equals(name)) {
                return new Model(engine, clock, traces, ModelRef.latest(name));
            }
            known.add(status.model());
        }
        throw ServingException.of(
                ErrorCode.NOT_FOUND,
                "there is no model '" + name + "' (expected one of: " + String.join(", ", known) + ")");
    }

    /** All models with the states of their versions. */
    public List<ModelStatus> models() {
        return engine.index();
    }

    /** Whether all models are available. */
    public boolean isReady() {
        return engine.ready();
    }

    /** Loads a further model, or replaces one of the same name that was given by a path. See the other form. */
    public void put(String name, Path path) {
        put(name, path, ModelSettings.DEFAULT);
    }

    /**
     * Loads a further model, or replaces one of the same name that was given by a path, and waits until it is available.
     * The former one serves until then, and goes on when the new one cannot be loaded.
     *
     * @throws ServingException NOT_FOUND for a path that does not exist, INVALID_ARGUMENT when it cannot be loaded,
     *     FAILED_PRECONDITION after {@link #close}
     */
    public synchronized void put(String name, Path path, ModelSettings settings) {
        checkPath(name, path);
        Map<String, ManagedModel> next = new LinkedHashMap<>(placed);
        next.put(name, settings.managed(name, path));
        List<String> names = managed.place(List.copyOf(next.values())).getOrDefault(name, List.of());
        placed = next;
        names.forEach(this::await);
    }

    /**
     * Removes a model that was given by a path. Requests in flight still finish.
     *
     * @return false for a model that is not there
     */
    public synchronized boolean remove(String name) {
        Map<String, ManagedModel> next = new LinkedHashMap<>(placed);
        if (next.remove(name) == null) {
            return false;
        }
        Object unused = managed.place(List.copyOf(next.values()));
        placed = next;
        return true;
    }

    /**
     * Reads a model's files again, loads them if they have changed, and waits until they serve.
     *
     * @throws ServingException NOT_FOUND for a name that is not known, INVALID_ARGUMENT when the files cannot be loaded: the
     *     former version goes on then
     */
    public synchronized void reload(String name) {
        if (placed.keySet().stream().anyMatch(own -> name.equals(own) || name.startsWith(own + "/"))) {
            managed.refresh(false);
        }
        await(name);
    }

    // ---- for tools ----

    /** The counters of all versions that are served. */
    public List<ModelStatisticsSnapshot> statistics() {
        return statistics(null, -1);
    }

    /**
     * The counters of versions that are served.
     *
     * @param model one model; null for all
     * @param version one version; -1 for all
     * @throws ServingException INVALID_ARGUMENT for a model or version that is not served
     */
    public List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version) {
        return engine.statistics(model, version);
    }

    /**
     * Samples of the slow and the failed requests of a model's available versions.
     *
     * @param version one version, or -1 for all
     */
    public List<RequestSamples> requestSamples(String model, long version) {
        return engine.requestSamples(model, version);
    }

    /** The number of requests that wait, by model. */
    public Map<String, Long> waiting() {
        return engine.waiting();
    }

    /** All metrics in Prometheus' text format 0.0.4, under Triton's names. */
    public String metrics() {
        return metrics(MetricsFormat.TEXT);
    }

    /** All metrics in a text format of Prometheus or OpenMetrics, under Triton's names. */
    public String metrics(MetricsFormat format) {
        return MetricsWriter.page(format, engine::writeMetrics);
    }

    /** The engine's own interface, for requests on tensors with all options. It ends with this object. */
    public InferenceEngine engine() {
        return engine;
    }

    /** The engine's interface for health, loading and unloading. It ends with this object. */
    public ModelControl control() {
        return engine;
    }

    /** As {@link #close(Duration)}, with 30 seconds. */
    @Override
    public void close() {
        close(Duration.ofSeconds(30));
    }

    /** Takes no more requests, waits for those in flight, and frees all models and threads. Idempotent. */
    public void close(Duration limit) {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        if (timer != null) {
            timer.shutdownNow();
        }
        engine.close(limit);
    }
}
