// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.ModelControl;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A loaded Python model: starts its workers, and keeps those that were started at load time until the engine creates
 * instances for them. Thread-safe, by its lock.
 */
final class PythonModel implements BackendModel {
    private static final ModelTraits TRAITS = ModelTraits.builder()
            .takesRequests(true)
            .blocking(true)
            .cancellable(true)
            .ownOutputs(true)
            .build();

    /**
     * The parameters with which every worker of the model is started. Immutable.
     *
     * @param file the model's file
     * @param home the directory of the model's version; the file is in it, or is one of this backend's own
     * @param modelDirectory the directory that models receive as {@code model_repository}
     * @param metrics the custom metrics that all its instances share
     */
    record Plan(
            ServableId id,
            Path file,
            Path home,
            Path modelDirectory,
            String interpreter,
            Path script,
            PythonSettings settings,
            boolean decoupled,
            CustomMetrics metrics,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control) {
        private static final Pattern MODULE = Pattern.compile("No module named '([A-Za-z0-9_]{1,60})");

        Plan decoupled(boolean value) {
            return new Plan(
                    id, file, home, modelDirectory, interpreter, script, settings, value, metrics, engine, control);
        }

        /** Whether the model is a directory of MLflow, which a file of this backend runs. */
        boolean mlflow() {
            return file.endsWith(WorkerScript.MLFLOW_MODEL);
        }

        /**
         * The failure of a model to load or to initialise.
         *
         * @param message the error and the end of its trace; the first line is the error
         */
        ServingException failure(String what, String message) {
            String failed = "model '" + id.model() + "' failed to " + what + ": ";
            if (!message.contains("ModuleNotFoundError")) {
                return ServingException.invalidArgument(
                        failed + message, "correct the model's file; the server's log has the whole trace");
            }
            if (mlflow()) {
                Path requirements = home.resolve("requirements.txt");
                // Without the trace, which is of MLflow: what shows one line shows the command, too.
                return ServingException.invalidArgument(
                        failed + message.lines().findFirst().orElse(""),
                        "run '" + interpreter + " -m pip install "
                                + (Files.isRegularFile(requirements) ? "-r " + requirements : "mlflow")
                                + "', or name an interpreter that has these packages with --backend-config"
                                + " python,python=PATH or the parameter EXECUTION_ENV_PATH");
            }
            Matcher module = MODULE.matcher(message);
            return ServingException.invalidArgument(
                    failed + message,
                    "install " + (module.find() ? "'" + module.group(1) + "'" : "the module")
                            + " for the interpreter with its 'python3 -m pip install', or name another environment with"
                            + " EXECUTION_ENV_PATH");
        }

        /** The file that a message names: the one of the model's version. */
        String shownFile() {
            return mlflow() ? PythonBackend.MLFLOW_FILE : String.valueOf(file.getFileName());
        }
    }

    private static final long READINESS_MILLIS = 1000;

    private final Plan plan;
    private final ModelConfig config;
    private final Map<String, Object> tree;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("python-restart");
    private final ThreadPoolExecutor starters = Threads.pool("python-start", 4);
    private final WorkerPool workers = new WorkerPool(this);

    @GuardedBy("this") private final Deque<Worker> ready = new ArrayDeque<>();

    @GuardedBy("this") private final BitSet usedIndexes = new BitSet();
    /** The running workers, in the order of their start. */
    private final List<Worker> running = new CopyOnWriteArrayList<>();

    /** Polls the readiness of the instances; null for models without {@code is_ready}. */
    private final @Nullable ScheduledFuture<?> readinessPoll;

    @GuardedBy("this") private boolean closed;

    /** @param first a worker that has loaded and initialised the model as the first instance */
    PythonModel(Plan plan, ModelConfig config, Worker first) {
        this.plan = plan;
        this.config = config;
        this.tree = ModelConfigMapper.of(config);
        ready.add(first);
        runs(first);
        this.readinessPoll = first.reportsReadiness()
                ? timer.scheduleWithFixedDelay(
                        this::pollReadiness, READINESS_MILLIS, READINESS_MILLIS, TimeUnit.MILLISECONDS)
                : null;
    }

    /** Keeps a worker in the list until its process has ended; it holds buffers and executors. */
    private void runs(Worker worker) {
        running.add(worker);
        var unused = worker.death().thenAccept(reason -> running.remove(worker));
    }

    /** The number of running workers. */
    int runningWorkers() {
        return running.size();
    }

    /** Requests the readiness of every instance; the replies arrive later. Never waits. */
    private void pollReadiness() {
        running.forEach(Worker::requestReadiness);
    }

    /** Whether no running instance has reported that it is not ready. */
    @Override
    public boolean ready() {
        for (Worker worker : running) {
            if (worker.alive() && !worker.ready()) {
                return false;
            }
        }
        return true;
    }

    @Override
    public List<ModelMetric> metrics() {
        return plan.metrics().all();
    }

    /** Starts the workers of the other configured instances, several at a time. */
    void fill() {
        List<CompletableFuture<Worker>> starting = new ArrayList<>();
        for (int i = 1; i < config.instances(); i++) {
            int index = i;
            starting.add(CompletableFuture.supplyAsync(() -> start(index), starters));
        }
        RuntimeException problem = null;
        for (CompletableFuture<Worker> next : starting) {
            try {
                Worker worker = next.join();
                synchronized (this) {
                    ready.addLast(worker);
                }
            } catch (CompletionException e) {
                problem = ServingException.from(e.getCause() == null ? e : e.getCause());
            }
        }
        if (problem != null) {
            throw problem;
        }
    }

    Plan plan() {
        return plan;
    }

    WorkerPool workers() {
        return workers;
    }

    ScheduledThreadPoolExecutor timer() {
        return timer;
    }

    ThreadPoolExecutor starters() {
        return starters;
    }

    /** The instance's name in Triton's form: the group's name, an underscore and a number. */
    private String label(int index) {
        return groupOf(index).name() + "_" + index;
    }

    private InstanceGroup groupOf(int index) {
        int at = index;
        for (InstanceGroup group : config.instanceGroups()) {
            if (at < group.count()) {
                return group;
            }
            at -= group.count();
        }
        return config.instanceGroups().isEmpty()
                ? InstanceGroup.cpu(config.name(), 1)
                : config.instanceGroups().get(0);
    }

    /** Starts a worker that has loaded and initialised the model. */
    Worker start(int index) {
        Worker worker = connected(plan, label(index));
        try {
            worker.command(loading(plan, worker, null), plan.settings().loadTimeout(), "load " + plan.shownFile());
            initialise(plan, worker, config, tree, groupOf(index), label(index), index);
            runs(worker);
            return worker;
        } catch (RuntimeException e) {
            worker.abandon();
            throw e;
        }
    }

    static Worker connected(Plan plan, String label) {
        return new Worker(
                plan,
                label,
                new WorkerProcess(
                        label,
                        plan.interpreter(),
                        plan.script(),
                        plan.settings().connectTimeout()));
    }

    /**
     * The frame that makes a worker import the model.
     *
     * @param config the configuration to complete with {@code auto_complete_config}, or null
     */
    static Map<String, Object> loading(Plan plan, Worker worker, @Nullable Map<String, Object> config) {
        PythonSettings settings = plan.settings();
        Map<String, Object> order = new LinkedHashMap<>();
        order.put("t", "load");
        order.put("file", plan.file().toAbsolutePath().toString());
        order.put("home", plan.home().toAbsolutePath().toString());
        order.put("dirs", settings.directories().stream().map(Path::toString).toList());
        order.put("prefix", settings.prefix());
        order.put("initial", settings.initialBytes());
        order.put("growth", settings.growthBytes());
        order.put("begun", worker.begunAt());
        if (config != null) {
            order.put("config", config);
        }
        return order;
    }

    static void initialise(
            Plan plan,
            Worker worker,
            ModelConfig config,
            Map<String, Object> tree,
            InstanceGroup group,
            String label,
            int index) {
        Map<String, Object> args = new LinkedHashMap<>();
        args.put("model_config", FrameCodec.text(tree));
        args.put(
                "model_instance_kind",
                group.kind() == InstanceGroup.Kind.AUTO ? "CPU" : group.kind().name());
        args.put(
                "model_instance_device_id",
                group.gpus().isEmpty()
                        ? "0"
                        : String.valueOf(group.gpus().get(index % group.gpus().size())));
        args.put("model_instance_name", label);
        args.put("model_repository", plan.modelDirectory().toAbsolutePath().toString());
        args.put("model_version", String.valueOf(plan.id().version()));
        args.put("model_name", config.name());
        worker.initialised(worker.command(
                Map.of("t", "init", "args", args, "decoupled", plan.decoupled()),
                plan.settings().loadTimeout(),
                "initialize " + plan.shownFile()));
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return TRAITS;
    }

    /** Uses a worker that was started at load time, or starts one. */
    @Override
    public ModelInstance newInstance() {
        int index;
        Worker worker;
        synchronized (this) {
            index = usedIndexes.nextClearBit(0);
            usedIndexes.set(index);
            worker = ready.pollFirst();
        }
        try {
            return new PythonModelInstance(this, index, worker == null ? start(index) : worker);
        } catch (RuntimeException e) {
            releaseIndex(index);
            throw e;
        }
    }

    /** An instance has been closed, so its number can be used again. */
    synchronized void releaseIndex(int index) {
        usedIndexes.clear(index);
    }

    synchronized boolean closed() {
        return closed;
    }

    /** Unknown: the memory belongs to the worker processes. */
    @Override
    public long memoryBytes() {
        return -1;
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        if (readinessPoll != null) {
            readinessPoll.cancel(false);
        }
        timer.shutdownNow();
        starters.shutdown();
        workers.wake();
        while (true) {
            Worker worker;
            synchronized (this) {
                worker = ready.pollFirst();
            }
            if (worker == null) {
                return;
            }
            try {
                worker.finish();
            } catch (ServingException e) {
                worker.abandon();
            }
        }
    }
}
