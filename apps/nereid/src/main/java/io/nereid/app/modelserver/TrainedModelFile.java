// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The models of a service with many, from a file with the format that KServe's agent reads: a list of {@code modelName} and
 * {@code modelSpec} with {@code storageUri} and {@code framework}. Loads what is new, in place what has another URI, and
 * unloads what is gone; looks for changes each second, and tries what has failed again each minute. The server is not
 * ready before each model of the first file is loaded or has failed. A file that does not exist has no models.
 * Thread-safe.
 *
 * <pre>{@code
 * TrainedModelFile models = new TrainedModelFile(Path.of("/mnt/configs/models.json"), control, Clock.system());
 * models.start().toCompletableFuture().join();
 * }</pre>
 */
public final class TrainedModelFile implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TrainedModelFile.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration RETRY = Duration.ofMinutes(1);

    /** Models that are fetched and loaded at once. */
    private static final int PARALLEL = 4;

    private final Path file;
    private final ModelStorageControl control;
    private final Clock clock;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("trained-models");
    private final CompletableFuture<Void> first = new CompletableFuture<>();

    // The fields below are confined to the timer's thread.

    /** The bytes of the file at the last look. */
    private byte @Nullable [] latest;

    private Map<String, Spec> wanted = Map.of();
    private final Map<String, Spec> loaded = new HashMap<>();
    private final Map<String, Failed> failed = new HashMap<>();
    private final Set<String> busy = new HashSet<>();

    private record Spec(String uri, String framework) {}

    /** @param again when it is tried again, in nanoseconds of the clock */
    private record Failed(Spec spec, long again) {}

    /** @param control for this object alone */
    public TrainedModelFile(Path file, ModelStorageControl control, Clock clock) {
        this.file = file;
        this.control = control;
        this.clock = clock;
        control.hold(true);
    }

    /** Begins to load and to follow the file. The stage ends when each model of the first file is loaded or has failed. */
    public CompletionStage<Void> start() {
        Object unused = timer.scheduleWithFixedDelay(this::look, 0, 1, TimeUnit.SECONDS);
        return first;
    }

    private void look() {
        try {
            read();
            carryOut();
        } catch (RuntimeException e) {
            LOG.error("'{}' could not be carried out", file, e);
        }
    }

    private void read() {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (NoSuchFileException e) {
            bytes = new byte[0];
        } catch (IOException e) {
            LOG.warn("'{}' cannot be read, the models stay as they are: {}", file, e.toString());
            return;
        }
        if (Arrays.equals(bytes, latest)) {
            return;
        }
        latest = bytes;
        try {
            wanted = parse(bytes);
        } catch (ServingException e) {
            LOG.warn("'{}' is not used, the models stay as they are: {}", file, e.getMessage());
        }
    }

    private static Map<String, Spec> parse(byte[] bytes) {
        Map<String, Spec> models = new LinkedHashMap<>();
        if (bytes.length == 0) {
            return models;
        }
        JsonNode list;
        try {
            list = JSON.readTree(bytes);
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("it is not JSON: " + e.getOriginalMessage());
        } catch (IOException e) {
            throw ServingException.invalidArgument("it is not JSON: " + e.getMessage());
        }
        if (!list.isArray()) {
            throw ServingException.invalidArgument(
                    "it is not a list (expected: [{\"modelName\":…,\"modelSpec\":{…}}])");
        }
        for (JsonNode one : list) {
            String name = one.path("modelName").asText("");
            JsonNode spec = one.path("modelSpec");
            String uri = spec.path("storageUri").asText("");
            if (name.isEmpty() || uri.isEmpty()) {
                throw ServingException.invalidArgument("the model '" + name + "' has the storageUri '" + uri
                        + "' (expected: a modelName, and a" + " modelSpec with a storageUri such as gs://models/iris)");
            }
            models.put(name, new Spec(uri, spec.path("framework").asText("")));
        }
        return models;
    }

    private void carryOut() {
        for (String name : List.copyOf(loaded.keySet())) {
            if (!wanted.containsKey(name) && !busy.contains(name)) {
                loaded.remove(name);
                run(name, "unloaded", control.remove(name, false), null);
            }
        }
        failed.keySet().removeIf(name -> !wanted.containsKey(name));
        long now = clock.nanos();
        boolean all = true;
        for (Map.Entry<String, Spec> entry : wanted.entrySet()) {
            String name = entry.getKey();
            Spec spec = entry.getValue();
            Failed before = failed.get(name);
            boolean tried = spec.equals(loaded.get(name)) || before != null && before.spec.equals(spec);
            all &= tried;
            boolean due = !spec.equals(loaded.get(name)) && (!tried || before != null && now - before.again >= 0);
            if (due && !busy.contains(name) && busy.size() < PARALLEL) {
                run(name, "loaded", control.fetch(name, spec.uri, spec.framework), spec);
            }
        }
        if (all && !first.isDone()) {
            control.hold(false);
            first.complete(null);
        }
    }

    /** @param spec what is loaded; null for an unload */
    private void run(String name, String verb, CompletionStage<Void> stage, @Nullable Spec spec) {
        busy.add(name);
        Object unused = stage.whenComplete((done, failure) -> {
            try {
                timer.execute(() -> {
                    busy.remove(name);
                    ended(name, verb, spec, failure);
                    carryOut();
                });
            } catch (RejectedExecutionException e) {
                LOG.debug("the server ends");
            }
        });
    }

    private void ended(String name, String verb, @Nullable Spec spec, @Nullable Throwable failure) {
        if (failure == null) {
            failed.remove(name);
            if (spec != null) {
                loaded.put(name, spec);
            }
            return;
        }
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        LOG.warn(
                "model '{}' is not {}: {}{}",
                name,
                verb,
                ServingException.from(cause).describe(),
                spec == null ? "" : "; tried again in " + RETRY.toSeconds() + " s");
        if (spec != null) {
            failed.put(name, new Failed(spec, clock.nanos() + RETRY.toNanos()));
        }
    }

    /** Ends the looks; what is loaded stays. */
    @Override
    public void close() {
        timer.shutdownNow();
    }
}
