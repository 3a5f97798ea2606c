// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.recording;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListEntry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * TensorFlow Serving's request logging: an {@link InferenceEngine} that delegates to another one and logs a sample of
 * the requests of some models, with their responses, as PredictionLog records in TFRecord files. The files can be used
 * without change as {@code assets.extra/tf_serving_warmup_requests}, for load tests, and for comparisons.
 *
 * <pre>{@code
 * RequestLogger logger = new RequestLogger(engine, Clock.system());
 * logger.configure(models); // models with a logging_config are logged from now on
 * }</pre>
 *
 * <p><b>Files.</b> The name is {@code <prefix>-<start>-<n>.tfrecord}, where {@code <start>} is the creation time of
 * this object ({@code 20260131T235959Z}) and {@code <n>} counts from 0. If several models have the same prefix, each
 * has its own files, {@code <prefix>-<model>-…}. A file has the suffix {@code .part} until it is complete and on the
 * disk.
 *
 * <p><b>Records.</b> Failed requests are not logged: as warm-up requests they would prevent their model from loading. A
 * request with several responses, or with classification results, is logged without the response. Logging never delays
 * a request: records that the disk cannot take in time are dropped and counted.
 *
 * <p>Thread-safe: the configuration is an immutable map in a volatile field; a separate thread encodes and writes.
 */
public final class RequestLogger implements InferenceEngine, AutoCloseable {
    /** What follows the prefix in the name of a file: the start of the server and a number. */
    private static final Pattern FILE = Pattern.compile("\\d{8}T\\d{6}Z-\\d+\\.tfrecord(?:\\.part)?");

    /**
     * The number of records of a model with one result. Immutable.
     *
     * @param model the name of the model
     * @param code OK for written records, RESOURCE_EXHAUSTED for a full queue, UNAVAILABLE for a disk error,
     *     INTERNAL for a failure to encode
     * @param count number since the creation of the logger
     */
    public record LogCount(String model, ErrorCode code, long count) {}

    /** The sampling rate and the files of a model. Immutable. */
    record Target(String model, double rate, String prefix) {
        boolean chosen() {
            return rate >= 1 || ThreadLocalRandom.current().nextDouble() < rate;
        }
    }

    private final InferenceEngine engine;
    private final RequestLogWriter writer;
    private volatile Map<String, Target> targets = Map.of();
    private volatile @Nullable Path clientRoot;
    private volatile Set<String> operatorPrefixes = Set.of();
    private volatile boolean configured;

    /** Creates a logger with default limits; it logs nothing before {@link #configure}. */
    public RequestLogger(InferenceEngine engine, Clock clock) {
        this(engine, clock, RequestLoggerOptions.DEFAULT);
    }

    /** Creates a logger with other limits. */
    public RequestLogger(InferenceEngine engine, Clock clock, RequestLoggerOptions options) {
        this(engine, new RequestLogWriter(clock, options, RequestLogFile::create));
    }

    RequestLogger(InferenceEngine engine, RequestLogWriter writer) {
        this.engine = engine;
        this.writer = writer;
    }

    /**
     * Validates the {@code logging_config} of models.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown collector, a rate outside 0 to 1, or an invalid prefix
     */
    public static void check(List<ModelListEntry> models) {
        for (ModelListEntry model : models) {
            LoggingConfig logging = model.logging();
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
     * Sets where the lists of clients may write: below a directory. Without it, and outside of it, they may only use the
     * prefixes of the first configuration, which is the operator's.
     */
    public void allowClientLogs(@Nullable Path directory) {
        clientRoot = directory == null ? null : directory.toAbsolutePath().normalize();
    }

    /**
     * Validates the {@code logging_config} of a list that a client sends: it must not write files elsewhere than the
     * operator has allowed.
     *
     * @throws ServingException PERMISSION_DENIED for another place, INVALID_ARGUMENT as {@link #check}
     */
    public void checkFromClient(List<ModelListEntry> models) {
        check(models);
        for (ModelListEntry model : models) {
            LoggingConfig logging = model.logging();
            if (logging == null || logging.filePrefix().isEmpty()) {
                continue;
            }
            String prefix = logging.filePrefix();
            Path root = clientRoot;
            Path path = Path.of(prefix).toAbsolutePath().normalize();
            boolean below = root != null && path.startsWith(root) && !path.equals(root);
            if (!below && !operatorPrefixes.contains(prefix)) {
                throw ServingException.of(
                        ErrorCode.PERMISSION_DENIED,
                        "logging_config of model '" + model.name() + "': a client may not write to '" + prefix + "'"
                                + (root == null ? "" : " (expected: a path below '" + root + "')"),
                        "name the directory at the start with --request-log-root");
            }
        }
    }

    /**
     * Replaces the logging configuration, from the next request on. Models without {@code logging_config}, or with a
     * rate of 0, are not logged. Files that are no longer written are completed.
     *
     * @throws ServingException INVALID_ARGUMENT, without a change, as {@link #check}
     */
    public void configure(List<ModelListEntry> models) {
        check(models);
        if (!configured) {
            configured = true;
            Set<String> prefixes = new HashSet<>();
            for (ModelListEntry model : models) {
                LoggingConfig logging = model.logging();
                if (logging != null) {
                    prefixes.add(logging.filePrefix());
                }
            }
            operatorPrefixes = Set.copyOf(prefixes);
        }
        Map<String, Integer> users = new HashMap<>();
        for (ModelListEntry model : models) {
            LoggingConfig logging = model.logging();
            if (logging != null && logging.samplingRate() > 0) {
                users.merge(logging.filePrefix(), 1, Integer::sum);
            }
        }
        Map<String, Target> next = new HashMap<>();
        for (ModelListEntry model : models) {
            LoggingConfig logging = model.logging();
            if (logging != null && logging.samplingRate() > 0) {
                String prefix = logging.filePrefix();
                // A warm-up file must contain the requests of one model only.
                String own = users.getOrDefault(prefix, 0) > 1
                        ? prefix + "-" + model.name().replace('/', '_')
                        : prefix;
                next.put(model.name(), new Target(model.name(), logging.samplingRate(), own));
            }
        }
        synchronized (writer) {
            targets = Map.copyOf(next);
            writer.keep(next.values());
        }
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        Map<String, Target> now = targets;
        if (now.isEmpty()) {
            return engine.infer(request, sink);
        }
        Target target = now.get(request.model().model());
        if (target == null || !target.chosen()) {
            return engine.infer(request, sink);
        }
        return engine.infer(request, new LoggingResponseSink(request, sink, target, writer));
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return engine.metadata(model);
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return engine.config(model);
    }

    /** Returns the number of records for each model and result. */
    public List<LogCount> counts() {
        return writer.counts();
    }

    /**
     * Lists the files with the requests of a model that are on the disk, of earlier runs of the server too, the newest first. The last
     * record of a file whose name ends with {@code .part} may not be complete. Blocks.
     *
     * @return empty for a model that is not recorded
     */
    public List<Path> files(String model) {
        Target target = targets.get(model);
        if (target == null) {
            return List.of();
        }
        Path prefix = Path.of(target.prefix()).toAbsolutePath();
        Path directory = prefix.getParent();
        String name = prefix.getFileName() + "-";
        if (directory == null || !Files.isDirectory(directory)) {
            return List.of();
        }
        try (Stream<Path> all = Files.list(directory)) {
            return all.filter(file -> {
                        String own = file.getFileName().toString();
                        return own.startsWith(name)
                                && FILE.matcher(own.substring(name.length())).matches();
                    })
                    .sorted(Comparator.comparing(RequestLogger::modified).reversed())
                    .toList();
        } catch (IOException | UncheckedIOException e) {
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE,
                    "the recorded requests in '" + directory + "' cannot be listed: " + e.getMessage(),
                    e);
        }
    }

    private static FileTime modified(Path file) {
        try {
            return Files.getLastModifiedTime(file);
        } catch (IOException e) {
            return FileTime.fromMillis(0); // it has just been completed, or removed
        }
    }

    /**
     * Completes all files with the records that were queued before this call; later records are written to new files.
     */
    public CompletionStage<Void> completeFiles() {
        return writer.completeFiles();
    }

    /** Stops logging and waits, with a timeout, until the queued records are on the disk. */
    @Override
    public void close() {
        synchronized (writer) {
            targets = Map.of();
            writer.close();
        }
    }
}
