// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.warmup;

import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.options.WarmupOptions;
import io.nereid.engine.request.ScalarShapes;
import io.nereid.engine.request.TabularInputs;
import io.nereid.engine.servable.ModelServable;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TfRecordFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the recorded requests of a version, in TensorFlow Serving's format and location, on every instance, without the
 * queue and without statistics. The first failure ends the warm-up. Confined to the loading thread, which uses helper
 * threads when several instances are warmed at once.
 */
public final class SavedModelWarmup {
    /** The file of the recorded requests in a version's directory. */
    static final String FILE = "assets.extra/tf_serving_warmup_requests";

    static final int MOST = 1000;

    private static final Logger LOG = LoggerFactory.getLogger(SavedModelWarmup.class);
    private static final long LIMIT_SECONDS = 600;

    private final Path file;
    private final ModelServable servable;
    private final WarmupOptions options;

    /** One request of a record, for the servable of the signature that it names. */
    private record Sample(
            int record, ModelServable servable, InferenceRequest request, List<Tensor> inputs, int rows) {}

    public SavedModelWarmup(ModelLocation source, ModelServable servable, WarmupOptions options) {
        this.file = source.versionDirectory().resolve(FILE);
        this.servable = servable;
        this.options = options;
    }

    /**
     * Runs all recorded requests.
     *
     * @throws ServingException when a request is invalid or fails, or when there are too many
     */
    public void run() {
        if (!options.enabled() || !Files.isRegularFile(file)) {
            return;
        }
        if (servable.config().sequence() != null) {
            LOG.warn("{} is ignored: recorded requests cannot warm up a model with sequences", file);
            return;
        }
        List<byte[]> records = records();
        List<Sample> samples = new ArrayList<>();
        try {
            for (int i = 0; i < records.size(); i++) {
                add(samples, i, records.get(i));
            }
            run(samples);
            LOG.info("{} is warmed up by {} records", servable.metadata().id(), records.size());
        } finally {
            samples.forEach(s -> s.request().release());
        }
    }

    private List<byte[]> records() {
        List<byte[]> records = new ArrayList<>();
        try (TfRecordFile.Reader reader = new TfRecordFile.Reader(file)) {
            for (byte[] record = reader.next(); record != null; record = reader.next()) {
                if (records.size() == MOST) {
                    throw ServingException.invalidArgument(
                            "Number of warmup records exceeds the maximum (" + MOST + ") at " + file,
                            "keep the first few: they need only show every signature and batch size");
                }
                records.add(record);
            }
        }
        return records;
    }

    private void add(List<Sample> samples, int record, byte[] bytes) {
        List<InferenceRequest> requests;
        try {
            requests = new ArrayList<>(PredictionLog.parse(bytes).requests(servable.metadata()));
        } catch (ServingException e) {
            throw failure(record, e);
        }
        for (int i = 0; i < requests.size(); i++) {
            ScalarShapes scalars = servable.scalarShapes();
            if (scalars != null && requests.get(i).options().signature().equals(ModelMetadata.DEFAULT_SIGNATURE)) {
                requests.set(i, scalars.toModel(requests.get(i)));
            }
            try {
                ModelServable asked = (ModelServable)
                        servable.signature(requests.get(i).options().signature());
                TabularInputs tables = asked.tabularInputs();
                if (tables != null) {
                    requests.set(i, tables.toModel(requests.get(i)));
                }
                InferenceRequest request = requests.get(i);
                List<Tensor> inputs = asked.validator().inputs(request);
                asked.validator().outputs(request.outputs());
                samples.add(new Sample(
                        record, asked, request, inputs, asked.validator().batchSize(inputs)));
            } catch (ServingException e) {
                requests.subList(i, requests.size()).forEach(InferenceRequest::release);
                throw failure(record, e);
            }
        }
    }

    private void run(List<Sample> samples) {
        int instances = Math.max(1, servable.config().instances());
        int threads = Math.min(Math.max(1, options.threads()), instances);
        if (threads == 1) {
            for (int instance = 0; instance < instances; instance++) {
                run(samples, instance);
            }
            return;
        }
        ExecutorService pool = Threads.pool("warmup", threads);
        try {
            List<Future<?>> runs = new ArrayList<>();
            for (int i = 0; i < instances; i++) {
                int instance = i;
                runs.add(pool.submit(() -> run(samples, instance)));
            }
            ServingException failure = null;
            for (Future<?> run : runs) {
                try {
                    run.get();
                } catch (ExecutionException e) {
                    failure = failure == null ? ServingException.from(cause(e)) : failure;
                }
            }
            if (failure != null) {
                throw failure;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.from(e);
        } finally {
            pool.shutdownNow();
        }
    }

    private void run(List<Sample> samples, int instance) {
        for (Sample sample : samples) {
            for (int i = 0; i < Math.max(1, options.iterations()); i++) {
                run(sample, instance, 1);
            }
            if (options.allBatchSizes()) {
                for (int size : sizes(sample.servable().config())) {
                    if (sample.rows() > 0 && size / sample.rows() > 1) {
                        run(sample, instance, size / sample.rows());
                    }
                }
            }
        }
    }

    private static Throwable cause(ExecutionException e) {
        Throwable cause = e.getCause();
        return cause == null ? e : cause;
    }

    /** The batch sizes to warm up: the allowed sizes, or the powers of two where every size is allowed. */
    private static List<Integer> sizes(ModelConfig config) {
        DynamicBatching batching = config.batching();
        if (!config.batched() || batching == null) {
            return List.of();
        }
        if (!batching.batchSizePolicy().allowedSizes().isEmpty()) {
            return batching.batchSizePolicy().allowedSizes();
        }
        List<Integer> sizes = new ArrayList<>();
        for (long size = 2; size < config.maxBatchSize(); size *= 2) {
            sizes.add((int) size);
        }
        sizes.add(config.maxBatchSize());
        return sizes;
    }

    private void run(Sample sample, int instance, int copies) {
        List<InferenceJob> jobs = new ArrayList<>(copies);
        List<CompletableFuture<Void>> done = new ArrayList<>(copies);
        for (int i = 0; i < copies; i++) {
            List<Tensor> inputs = sample.inputs().stream().map(Tensor::retain).toList();
            WarmupJob job =
                    new WarmupJob(sample.request().with(inputs, sample.request().outputs()), sample.rows());
            jobs.add(job);
            done.add(job.done());
        }
        ModelServable asked = sample.servable();
        if (asked.config().batched() && sample.rows() > asked.config().maxBatchSize()) {
            // only the scheduler can split a request, so submit it through the queue
            asked.submit(jobs.get(0));
        } else {
            asked.warm(instance, jobs);
        }
        for (CompletableFuture<Void> one : done) {
            try {
                one.get(LIMIT_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw failure(sample.record(), e);
            } catch (ExecutionException e) {
                throw failure(sample.record(), cause(e));
            } catch (TimeoutException e) {
                throw ServingException.invalidArgument("warmup record " + sample.record() + " of " + file
                        + " has no response within " + LIMIT_SECONDS + " s");
            }
        }
    }

    private ServingException failure(int record, Throwable cause) {
        ServingException e = ServingException.from(cause);
        return ServingException.of(
                e.code(), "failed to run warmup record " + record + " of " + file + ": " + e.getMessage(), e.remedy());
    }
}
