// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.InstanceGroup;
import io.nereid.spi.ModelControl;
import io.nereid.spi.ServableId;
import io.nereid.spi.TensorSpec;
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
import org.jspecify.annotations.Nullable;

/** A loaded model: how its workers are started, and those that no invocation has taken yet. Thread-safe. */
final class PythonModel implements BackendModel {
    /**
     * What every worker of the model is started with. Immutable.
     *
     * @param file the model's file
     * @param modelDirectory what models are told as their repository
     * @param metrics what its instances count together
     */
    record Plan(
            ServableId id,
            Path file,
            Path modelDirectory,
            String interpreter,
            Path script,
            PythonSettings settings,
            boolean decoupled,
            CustomMetrics metrics,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control) {
        Plan decoupled(boolean value) {
            return new Plan(id, file, modelDirectory, interpreter, script, settings, value, metrics, engine, control);
        }
    }

    private static final long READINESS_MILLIS = 1000;

    private final Plan plan;
    private final ModelConfig config;
    private final Map<String, Object> tree;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("python-restart");
    private final ThreadPoolExecutor starters = Threads.pool("python-start", 4);
    private final Deque<Worker> ready = new ArrayDeque<>();
    private final BitSet seats = new BitSet();
    /** Those that run, in the order of their start. */
    private final List<Worker> running = new CopyOnWriteArrayList<>();

    /** Has instances asked whether they are ready; null for models that have no say in it. */
    private final @Nullable ScheduledFuture<?> asking;

    private boolean closed;

    /** @param first a worker that has loaded and initialised the model as the first instance */
    PythonModel(Plan plan, ModelConfig config, Worker first) {
        this.plan = plan;
        this.config = config;
        this.tree = ConfigTree.of(config);
        ready.add(first);
        running.add(first);
        this.asking = first.moody()
                ? timer.scheduleWithFixedDelay(
                        this::askReadiness, READINESS_MILLIS, READINESS_MILLIS, TimeUnit.MILLISECONDS)
                : null;
    }

    /** Has the models that have a say in it say whether they want requests; never waits. */
    private void askReadiness() {
        running.removeIf(worker -> !worker.alive());
        running.forEach(Worker::askReadiness);
    }

    /** Whether no instance has said that it wants none. */
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

    /** Starts what is missing of the configured instances, several at a time. */
    void fill() {
        List<CompletableFuture<Worker>> starting = new ArrayList<>();
        for (int i = 1; i < config.instances(); i++) {
            int seat = i;
            starting.add(CompletableFuture.supplyAsync(() -> start(seat), starters));
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

    ScheduledThreadPoolExecutor timer() {
        return timer;
    }

    ThreadPoolExecutor starters() {
        return starters;
    }

    /** The name of an instance, as Triton gives them. */
    private String label(int seat) {
        return seatGroup(seat).name() + "_" + seat;
    }

    private InstanceGroup seatGroup(int seat) {
        int at = seat;
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

    /** A worker that has loaded and initialised the model. */
    Worker start(int seat) {
        Worker worker = connected(plan, label(seat));
        try {
            worker.order(
                    loading(plan, null),
                    plan.settings().loadTimeout(),
                    "load " + plan.file().getFileName());
            initialise(plan, worker, config, tree, seatGroup(seat), label(seat), seat);
            running.add(worker);
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

    /** The order to import the model, and to complete a configuration if there is one. */
    static Map<String, Object> loading(Plan plan, @Nullable Map<String, Object> config) {
        PythonSettings settings = plan.settings();
        Map<String, Object> order = new LinkedHashMap<>();
        order.put("t", "load");
        order.put("file", plan.file().toAbsolutePath().toString());
        order.put("dirs", settings.directories().stream().map(Path::toString).toList());
        order.put("prefix", settings.prefix());
        order.put("initial", settings.initialBytes());
        order.put("growth", settings.growthBytes());
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
            int seat) {
        Map<String, Object> args = new LinkedHashMap<>();
        args.put("model_config", Frames.text(tree));
        args.put(
                "model_instance_kind",
                group.kind() == InstanceGroup.Kind.AUTO ? "CPU" : group.kind().name());
        args.put(
                "model_instance_device_id",
                group.gpus().isEmpty()
                        ? "0"
                        : String.valueOf(group.gpus().get(seat % group.gpus().size())));
        args.put("model_instance_name", label);
        args.put("model_repository", plan.modelDirectory().toAbsolutePath().toString());
        args.put("model_version", String.valueOf(plan.id().version()));
        args.put("model_name", config.name());
        Map<String, Object> types = new LinkedHashMap<>();
        for (TensorSpec spec : config.fetches()) {
            types.put(spec.name(), spec.dataType().name());
        }
        worker.initialised(worker.order(
                Map.of("t", "init", "args", args, "decoupled", plan.decoupled(), "types", types),
                plan.settings().loadTimeout(),
                "initialize " + plan.file().getFileName()));
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return new ModelTraits(1, false, false, true, false, true);
    }

    /** Takes a worker that is ready, or starts one. */
    @Override
    public ModelInstance newInvocation() {
        int seat;
        Worker worker;
        synchronized (this) {
            seat = seats.nextClearBit(0);
            seats.set(seat);
            worker = ready.pollFirst();
        }
        try {
            return new PythonInvocation(this, seat, worker == null ? start(seat) : worker);
        } catch (RuntimeException e) {
            left(seat);
            throw e;
        }
    }

    /** An invocation has been closed. */
    synchronized void left(int seat) {
        seats.clear(seat);
    }

    synchronized boolean closed() {
        return closed;
    }

    /** Processes of their own hold the memory. */
    @Override
    public long memoryBytes() {
        return -1;
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        if (asking != null) {
            asking.cancel(false);
        }
        timer.shutdownNow();
        starters.shutdown();
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
