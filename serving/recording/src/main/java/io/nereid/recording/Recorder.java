// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelControl.RequestLogging;
import io.nereid.spi.ModelControl.ServedModel;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadLocalRandom;

/**
 * An engine that writes down a share of the requests of some models, with their answers: as prediction logs in files of
 * TFRecords, which serve unchanged as {@code assets.extra/tf_serving_warmup_requests}, as load, and for comparison.
 *
 * <p>Files are called {@code <prefix>-<start>-<n>.tfrecord}, {@code <start>} being when this began ({@code 20260131T235959Z})
 * and {@code <n>} counting from 0; when several models share a prefix, each has its own files, {@code <prefix>-<model>-…}. A
 * file has {@code .part} after its name until it is complete and on the disk.
 *
 * <p>Written down are requests that were answered. One that failed is not: used for warm-up it would keep its model from
 * loading. A request with several answers, or for classes in place of values, is written without them. Requests are never held
 * up: what the disk cannot take is left out and counted.
 *
 * <p>Thread-safe: what is recorded is replaced whole; one thread of its own encodes and writes.
 */
public final class Recorder implements InferenceEngine, AutoCloseable {
    /**
     * How many records of a model came to what. Immutable.
     *
     * @param model its name
     * @param code OK when written, RESOURCE_EXHAUSTED when too many waited, UNAVAILABLE when the disk failed, INTERNAL when
     *     it could not be encoded
     * @param count since this began
     */
    public record LogCount(String model, ErrorCode code, long count) {}

    /** What is recorded of a model, and where. Immutable. */
    record Target(String model, double rate, String prefix) {
        boolean chosen() {
            return rate >= 1 || ThreadLocalRandom.current().nextDouble() < rate;
        }
    }

    private final InferenceEngine engine;
    private final Journal journal;
    private volatile Map<String, Target> targets = Map.of();

    /** Records what {@code engine} answers, once it is told to. */
    public Recorder(InferenceEngine engine, Clock clock) {
        this(engine, clock, RecorderOptions.DEFAULT);
    }

    /** As {@link #Recorder(InferenceEngine, Clock)}, with other limits. */
    public Recorder(InferenceEngine engine, Clock clock, RecorderOptions options) {
        this(engine, new Journal(clock, options, LogFile::create));
    }

    Recorder(InferenceEngine engine, Journal journal) {
        this.engine = engine;
        this.journal = journal;
    }

    /**
     * Whether these models can be recorded as they say.
     *
     * @throws ServingException INVALID_ARGUMENT
     */
    public static void check(List<ServedModel> models) {
        for (ServedModel model : models) {
            RequestLogging logging = model.logging();
            if (logging == null) {
                continue;
            }
            String of = "logging_config of model '" + model.name() + "': ";
            if (!logging.type().isEmpty() && !logging.type().equals("tfrecord")) {
                throw ServingException.invalidArgument(
                        of + "unknown type '" + logging.type() + "' of log collector (expected: tfrecord)");
            }
            if (!(logging.samplingRate() >= 0 && logging.samplingRate() <= 1)) {
                throw ServingException.invalidArgument(
                        of + "sampling_rate " + logging.samplingRate() + " (expected: 0 to 1)");
            }
            if (logging.samplingRate() > 0 && logging.filePrefix().isEmpty()) {
                throw ServingException.invalidArgument(
                        of + "no filename_prefix (expected: a path and the beginning of the files' names)");
            }
            try {
                Path unused = Path.of(logging.filePrefix());
            } catch (InvalidPathException e) {
                throw ServingException.invalidArgument(
                        of + "filename_prefix '" + logging.filePrefix() + "' is not a path: " + e.getReason());
            }
        }
    }

    /**
     * Replaces what is recorded, from the next request on. Models without logging, or with a rate of 0, are not recorded;
     * files that nobody writes to any more are completed.
     *
     * @throws ServingException INVALID_ARGUMENT as {@link #check}, nothing having changed
     */
    public void configure(List<ServedModel> models) {
        check(models);
        Map<String, Integer> users = new HashMap<>();
        for (ServedModel model : models) {
            RequestLogging logging = model.logging();
            if (logging != null && logging.samplingRate() > 0) {
                users.merge(logging.filePrefix(), 1, Integer::sum);
            }
        }
        Map<String, Target> next = new HashMap<>();
        for (ServedModel model : models) {
            RequestLogging logging = model.logging();
            if (logging != null && logging.samplingRate() > 0) {
                String prefix = logging.filePrefix();
                // a file for warm-up must hold the requests of one model
                String own = users.getOrDefault(prefix, 0) > 1
                        ? prefix + "-" + model.name().replace('/', '_')
                        : prefix;
                next.put(model.name(), new Target(model.name(), logging.samplingRate(), own));
            }
        }
        synchronized (journal) {
            targets = Map.copyOf(next);
            journal.keep(next.values());
        }
    }

    @Override
    public Call infer(InferenceRequest request, ResponseSink sink) {
        Map<String, Target> now = targets;
        if (now.isEmpty()) {
            return engine.infer(request, sink);
        }
        Target target = now.get(request.model().model());
        if (target == null || !target.chosen()) {
            return engine.infer(request, sink);
        }
        return engine.infer(request, new RecordingSink(request, sink, target, journal));
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return engine.metadata(model);
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return engine.config(model);
    }

    /** What came of recording so far, for each model and outcome that there was. */
    public List<LogCount> counts() {
        return journal.counts();
    }

    /** Completes the files as they are, with all that was recorded before this call; later records go to new ones. */
    public CompletionStage<Void> completeFiles() {
        return journal.completeFiles();
    }

    /** Ends recording; waits until what was recorded is on the disk, but not for long. */
    @Override
    public void close() {
        synchronized (journal) {
            targets = Map.of();
            journal.close();
        }
    }
}
