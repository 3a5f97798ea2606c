// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.BackendModel;
import io.nereid.backend.InstancePlacement;
import io.nereid.backend.ModelInstance;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.PaddingPolicy;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs batches on a backend model: gathers the inputs, runs the model, and splits the outputs; or passes the single
 * requests to a model that takes requests. A batch of one request uses the request's tensors without a copy. A larger
 * batch is gathered into one slab per input, and its outputs are returned as slices of the run's output. Thread-safe
 * across instances: each has its own {@link ModelInstance}, and the scheduler runs one batch at a time on it.
 *
 * <p>Applies the batch part of {@link BatchSizePolicy}: adds rows up to the next allowed size, as copies of a row
 * whose results are discarded, and pads inputs of different shapes. Outputs of padded inputs are returned as the model
 * computed them. A single job of an allowed size is not padded. Requests that are split do not share a padded batch,
 * so that all pieces of a response have the same shape. With {@link LengthPadding} outputs are cut back instead.
 */
public final class BatchExecution implements BatchRunner, AutoCloseable {
    /** The model parameter that adds the response parameter {@link #BATCH_ID}. */
    public static final String BATCH_IDS = "nereid.batch_id";

    /**
     * The response parameter that identifies the run: equal for all requests of one run, and different for every other
     * run.
     */
    static final String BATCH_ID = "batch_id";

    private static final Logger LOG = LoggerFactory.getLogger(BatchExecution.class);

    private final BackendModel model;
    private final String signature;
    private final ServableId id;
    private final ModelStatistics statistics;
    private final Clock clock;
    private final IntSupplier idleThreads;
    private final InstancePlacements placements;
    private final IoMapping mapping;
    private final InputGatherer gatherer;
    private final OutputSplitter splitter;
    private final @Nullable DeviceRuns onDevices;
    private final boolean decoupled;
    /** Requests with more rows are split. */
    private final int splitAbove;

    private final boolean batchIds;
    private final Object lock = new Object();
    /** Created on first use. Elements are written under the lock, by the one run that occupies the instance. */
    private volatile @Nullable ModelInstance[] modelInstances;

    /** Creates the execution for the model's default signature, on a device that has only the thread of the run. */
    public BatchExecution(BackendModel model, ServableId id, ModelStatistics statistics, Clock clock) {
        this(model, "", model.config(), id, statistics, clock, () -> 0, new InstancePlacements(model.config(), null));
    }

    /**
     * Creates the execution for one of the model's signatures.
     *
     * @param signature the signature's name, empty for the default one
     * @param config the model's configuration with the signature's inputs and outputs
     * @param idleThreads how many threads of the device have nothing to do now, asked at the beginning of each run
     * @param placements where the instances run
     */
    public BatchExecution(
            BackendModel model,
            String signature,
            ModelConfig config,
            ServableId id,
            ModelStatistics statistics,
            Clock clock,
            IntSupplier idleThreads,
            InstancePlacements placements) {
        this.model = model;
        this.placements = placements;
        this.signature = signature;
        this.id = id;
        this.statistics = statistics;
        this.clock = clock;
        this.idleThreads = idleThreads;
        // a model that takes requests forms its own batch tensors, so there is nothing to pad
        if (model.traits().takesRequests() && PaddingPolicy.of(config) != null) {
            throw ServingException.invalidArgument(
                    "parameter " + PaddingPolicy.INPUTS + " of model '" + id.model() + "': backend '" + config.backend()
                            + "' gets each request for itself (expected: a backend that gets batches)",
                    "remove it; the model itself pads");
        }
        this.mapping =
                new IoMapping(config, model.traits().takesRequests() ? BatchSizePolicy.NONE : config.batchSizePolicy());
        this.gatherer = new InputGatherer(config, mapping, model.traits().inputAlignment());
        this.splitter = new OutputSplitter(id.model(), mapping, model.traits().ownOutputs());
        this.onDevices = DeviceRuns.of(model.traits(), placements, mapping);
        this.decoupled = config.decoupled();
        this.splitAbove = config.batchSizePolicy().maxRequestRows() > 0 ? config.maxBatchSize() : Integer.MAX_VALUE;
        this.batchIds = Boolean.parseBoolean(config.parameters().get(BATCH_IDS));
        this.modelInstances = new ModelInstance[Math.max(1, config.instances())];
    }

    @Override
    public boolean joinable(InferenceJob a, InferenceJob b) {
        // pieces of a split request must not be padded to different shapes, or their outputs could not be concatenated
        return (!mapping.pads() || (a.batchSize() <= splitAbove && b.batchSize() <= splitAbove))
                && mapping.joinable(a.request().inputs(), b.request().inputs());
    }

    @Override
    public int length(InferenceJob job) {
        LengthPadding lengths = mapping.lengths();
        return lengths == null
                ? 0
                : Math.max(0, lengths.padded(lengths.length(job.request().inputs())));
    }

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
        statistics.batchClosed(reason);
        for (int i = 0; i < jobs.size(); i++) {
            RequestTrace trace = jobs.get(i).request().options().trace();
            if (trace != null) {
                trace.attribute("batch.cut", reason.name().toLowerCase(Locale.ROOT));
                trace.attribute("batch.requests", Integer.toString(jobs.size()));
                if (trace instanceof RequestTiming timing) {
                    timing.batch(rows(jobs), jobs.size(), batchWait(jobs, jobs.get(i)));
                }
            }
        }
        run(instance, jobs, statistics);
    }

    /** How long a job waited for the last one of its batch to enter the queue. */
    private static long batchWait(List<InferenceJob> jobs, InferenceJob job) {
        long queued = job.queuedNanos();
        long wait = 0;
        for (InferenceJob other : jobs) {
            long since = other.queuedNanos();
            wait = queued == 0 || since == 0 ? wait : Math.max(wait, since - queued);
        }
        return wait;
    }

    /** As {@link #run(int, List, BatchCloseReason)}, with other statistics. Every job is ended, whatever the model throws. */
    public void run(int instance, List<InferenceJob> jobs, ModelStatistics counts) {
        LengthPadding lengths = mapping.lengths();
        int length = lengths == null ? LengthPadding.NONE : lengths.target(jobs);
        if (length == LengthPadding.APART) {
            runEach(instance, jobs, counts);
        } else {
            run(instance, jobs, length, counts);
        }
    }

    /** Runs every job alone and without padding. */
    private void runEach(int instance, List<InferenceJob> jobs, ModelStatistics counts) {
        for (InferenceJob job : jobs) {
            run(instance, List.of(job), LengthPadding.NONE, counts);
        }
    }

    private void run(int instance, List<InferenceJob> jobs, int length, ModelStatistics counts) {
        ServingException failure;
        try {
            ServingException refusal = placements.refusal();
            if (refusal != null) {
                throw refusal; // a GPU of the model was lost while the jobs were queued
            }
            ModelInstance modelInstance = modelInstance(instance);
            if (model.traits().takesRequests()) {
                runRequests(modelInstance, jobs, counts);
            } else if (jobs.size() == 1
                    && length < 0
                    && mapping.missing(jobs.get(0).batchSize()) == 0) {
                runOne(instance, modelInstance, jobs, counts);
            } else {
                runMany(instance, modelInstance, jobs, length, counts);
            }
            return;
        } catch (Throwable t) {
            failure = placements.reason(failure(t));
        }
        if ((jobs.size() > 1 || length >= 0) && failure.code() == ErrorCode.INVALID_ARGUMENT) {
            // the invalid input of one client must not fail the others: run every job alone
            runEach(instance, jobs, counts);
            return;
        }
        report(failure, jobs.size());
        for (InferenceJob job : jobs) {
            job.fail(failure);
        }
    }

    /** Whether the inputs of jobs may be in the memory of a GPU. */
    public boolean takesDeviceTensors() {
        return onDevices != null;
    }

    private ServingException failure(Throwable t) {
        return t instanceof ServingException e
                ? e
                : ServingException.internal(
                        "model '" + id.model() + "' failed: " + t.getClass().getSimpleName(), t);
    }

    private void report(ServingException failure, int jobs) {
        if (failure.code() == ErrorCode.INTERNAL) {
            LOG.error("{} failed on a batch of {}", id, jobs, failure);
        }
    }

    /**
     * Creates the instances now rather than at their first runs, so that a lack of memory on a device shows when the model
     * is loaded.
     *
     * @throws ServingException of the backend; the instances that were created before are closed
     */
    public void open() {
        try {
            for (int i = 0; i < modelInstances.length; i++) {
                ModelInstance unused = modelInstance(i);
            }
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private ModelInstance modelInstance(int instance) {
        // without the lock: an element is only ever written by the run that occupies the instance, which is this one
        @Nullable ModelInstance[] all = modelInstances;
        ModelInstance modelInstance = instance < all.length ? all[instance] : null;
        if (modelInstance != null) {
            return modelInstance;
        }
        synchronized (lock) {
            if (instance >= modelInstances.length) {
                modelInstances = Arrays.copyOf(modelInstances, instance + 1);
            }
            InstancePlacement placement = placements.of(instance);
            modelInstance =
                    signature.isEmpty() ? model.newInstance(placement) : model.newInstance(signature, placement);
            modelInstances[instance] = modelInstance;
            return modelInstance;
        }
    }

    /** Frees the memory of an instance that no longer runs. */
    @Override
    public void retired(int instance) {
        ModelInstance modelInstance = null;
        synchronized (lock) {
            if (instance < modelInstances.length) {
                modelInstance = modelInstances[instance];
                modelInstances[instance] = null;
            }
        }
        if (modelInstance != null) {
            modelInstance.close();
        }
    }

    /** Runs the model: its outputs are in memory of the host, or where one of the jobs keeps them. */
    private List<Tensor> run(
            int instance,
            ModelInstance modelInstance,
            List<InferenceJob> jobs,
            List<Tensor> inputs,
            List<String> outputs) {
        DeviceRuns there = onDevices;
        return there == null
                ? modelInstance.run(inputs, outputs, idleThreads.getAsInt())
                : there.run(modelInstance, placements.of(instance), jobs, inputs, outputs, idleThreads.getAsInt());
    }

    private void runOne(int instance, ModelInstance modelInstance, List<InferenceJob> jobs, ModelStatistics counts) {
        InferenceJob job = jobs.get(0);
        List<Tensor> inputs = job.request().inputs();
        List<String> outputNames = outputNames(job);
        List<Tensor> modelInputs = gatherer.one(job);
        List<Tensor> outputs;
        RunGuard guard = guard(modelInstance, job);
        long from = clock.nanos();
        try {
            outputs = run(instance, modelInstance, jobs, modelInputs, outputNames);
        } finally {
            if (guard != null) {
                guard.end();
                job.onCancel(null);
            }
            if (modelInputs != inputs) {
                Tensor.closeAll(modelInputs);
            }
        }
        long to = clock.nanos();
        outputs = splitter.one(job, outputs, outputNames);
        counts.executed(job.batchSize(), 0, to - from, 0);
        job.ran(from, to, job.batchSize());
        job.complete(outputs, runParameters());
    }

    private void runMany(
            int instance, ModelInstance modelInstance, List<InferenceJob> jobs, int length, ModelStatistics counts) {
        long started = clock.nanos();
        int given = rows(jobs);
        int extra = mapping.missing(given);
        int rows = given + extra;
        List<List<String>> outputNames = new ArrayList<>(jobs.size());
        for (InferenceJob job : jobs) {
            outputNames.add(outputNames(job));
        }
        List<String> allNames = union(outputNames);
        DeviceRuns there = onDevices;
        List<Tensor> inputs = there == null
                ? gatherer.many(jobs, given, extra, length)
                : there.gather(
                        jobs,
                        given,
                        extra == 0,
                        placements.of(instance),
                        () -> gatherer.many(jobs, given, extra, length));
        List<Tensor> outputs;
        RunGuard guard = guard(modelInstance, jobs);
        long from = clock.nanos();
        try {
            outputs = run(instance, modelInstance, jobs, inputs, allNames);
        } finally {
            if (guard != null) {
                guard.end();
                for (InferenceJob job : jobs) {
                    job.onCancel(null);
                }
            }
            Tensor.closeAll(inputs);
        }
        long to = clock.nanos();
        List<List<Tensor>> parts;
        try {
            parts = splitter.many(jobs, outputs, allNames, outputNames, rows, extra, length);
            if (there != null) {
                parts = there.answers(jobs, parts, placements.of(instance));
            }
        } finally {
            Tensor.closeAll(outputs);
        }
        counts.executed(rows, from - started, to - from, clock.nanos() - to);
        if (extra > 0) {
            counts.batches.padding.add(extra);
        }
        Map<String, Object> parameters = runParameters();
        for (int i = 0; i < jobs.size(); i++) {
            jobs.get(i).ran(from, to, rows);
            jobs.get(i).complete(parts.get(i), parameters);
        }
    }

    /** The response parameters that are common to all requests of a run. */
    private Map<String, Object> runParameters() {
        return batchIds ? Map.of(BATCH_ID, UUID.randomUUID().toString()) : Map.of();
    }

    /**
     * Passes the requests to the model. Every job ends here, whatever the model throws; those of a decoupled model
     * perhaps later.
     */
    private void runRequests(ModelInstance modelInstance, List<InferenceJob> jobs, ModelStatistics counts) {
        RequestBatch batch = new RequestBatch(
                id.model(), decoupled, splitter, jobs.size(), rows(jobs), counts, clock, runParameters());
        for (InferenceJob job : jobs) {
            batch.add(job, gatherer.request(job), outputNames(job));
        }
        ServingException failure = null;
        RunGuard guard = guard(modelInstance, jobs);
        try {
            modelInstance.execute(batch.requests());
        } catch (Throwable t) {
            failure = failure(t);
            report(failure, jobs.size());
        } finally {
            if (guard != null) {
                guard.end();
                batch.removeCancelActions();
            }
        }
        if (failure != null) {
            batch.fail(failure);
        } else {
            batch.endUnanswered();
        }
    }

    private static int rows(List<InferenceJob> jobs) {
        int rows = 0;
        for (InferenceJob job : jobs) {
            rows += job.batchSize();
        }
        return rows;
    }

    private List<String> outputNames(InferenceJob job) {
        List<RequestedOutput> requested = job.request().outputs();
        if (requested.isEmpty()) {
            return mapping.allOutputs();
        }
        if (requested.size() == 1) {
            return List.of(requested.get(0).name());
        }
        return requested.stream().map(RequestedOutput::name).toList();
    }

    private List<String> union(List<List<String>> outputNames) {
        List<String> first = outputNames.get(0);
        for (List<String> other : outputNames) {
            if (other != first && !other.equals(first)) {
                return mapping.union(outputNames);
            }
        }
        return first;
    }

    private @Nullable RunGuard guard(ModelInstance modelInstance, InferenceJob job) {
        if (!model.traits().cancellable()) {
            return null;
        }
        RunGuard guard = new RunGuard(modelInstance, 1);
        job.onCancel(guard);
        return guard;
    }

    private @Nullable RunGuard guard(ModelInstance modelInstance, List<InferenceJob> jobs) {
        if (!model.traits().cancellable()) {
            return null;
        }
        RunGuard guard = new RunGuard(modelInstance, jobs.size());
        for (InferenceJob job : jobs) {
            job.onCancel(guard);
        }
        return guard;
    }

    /** Closes the instances. No run is in progress and none follows. */
    @Override
    public void close() {
        for (int i = 0; i < modelInstances.length; i++) {
            retired(i);
        }
    }

    /**
     * Cancels a run when the last client that waits for it has gone. {@link #end} makes sure that a late cancellation
     * never hits the next run on the same instance; hence the lock.
     */
    private static final class RunGuard implements Runnable {
        private final ModelInstance modelInstance;

        @GuardedBy("this") private int waiting;

        RunGuard(ModelInstance modelInstance, int waiting) {
            this.modelInstance = modelInstance;
            this.waiting = waiting;
        }

        @Override
        public synchronized void run() {
            if (waiting > 0 && --waiting == 0) {
                modelInstance.cancel();
            }
        }

        synchronized void end() {
            waiting = 0;
        }
    }
}
