// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import io.nereid.app.perf.input.ModelSignature;
import io.nereid.app.perf.input.RequestSample;
import io.nereid.app.perf.input.TensorData;
import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.Engine;
import io.nereid.engine.ModelFiles;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.config.ModelConfigDocument;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * A model in this process, loaded from a repository and called by the engine without a network: what an application that embeds it
 * measures. Thread-safe after {@link #use}.
 */
public final class InProcessTarget implements LoadTarget {
    private final Engine engine;
    private final Clock clock = Clock.system();
    private final ModelRef model;
    private List<Prepared> prepared = List.of();

    /** A request whose tensors share the memory of the sample. Immutable. */
    private record Prepared(
            List<TensorData> inputs,
            List<MemoryRegion> memory,
            List<RequestedOutput> outputs,
            InferenceRequest.Options options) {}

    /**
     * Loads one model.
     *
     * @param repository a repository, a model's directory or a model file
     * @param version the version; -1 for the latest one
     * @throws ServingException NOT_FOUND for a model or version that is not there, FAILED_PRECONDITION when it cannot be loaded
     */
    public InProcessTarget(Path repository, String model, long version, List<Backend> backends) {
        this.model = version < 0 ? ModelRef.latest(model) : ModelRef.exact(model, version);
        this.engine = new Engine(
                EngineOptions.builder(List.of(repository))
                        .repository(RepositorySource.Options.DEFAULT
                                .withMode(RepositorySource.Mode.EXPLICIT)
                                .withStartModels(List.of()))
                        // a table of any length is one call, as in the server
                        .splitUnconfigured(true)
                        .build(),
                backends,
                clock);
        try {
            engine.start().toCompletableFuture().join();
            load(repository, model);
        } catch (RuntimeException e) {
            engine.close(Duration.ZERO);
            throw ServingException.from(e instanceof CompletionException && e.getCause() != null ? e.getCause() : e);
        }
    }

    private void load(Path repository, String name) {
        TreeSet<String> known = new TreeSet<>();
        engine.index().forEach(status -> known.add(status.model()));
        if (!known.contains(name)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "there is no model '" + name + "' in '" + repository + "' (expected one of: "
                            + String.join(", ", known) + ")");
        }
        engine.load(name).toCompletableFuture().join();
        for (ModelStatus status : engine.index()) {
            for (ServableState version : status.versions()) {
                if (status.model().equals(name) && version.phase() == ServableState.Phase.FAILED) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "model '" + name + "' version " + version.id().version() + " cannot be loaded: "
                                    + version.reason());
                }
            }
        }
    }

    /** The inputs of the model. */
    public ModelSignature signature() {
        ModelConfig config = engine.config(model);
        return ModelSignature.of(engine.metadata(model), config.sequence() != null, config.decoupled());
    }

    /**
     * Loads the model again, as it is stored or with another configuration.
     *
     * @param config a configuration as JSON; null for the stored one
     * @throws ServingException INVALID_ARGUMENT for a configuration that is not valid, FAILED_PRECONDITION when it cannot be loaded
     */
    public void reload(@Nullable String config) {
        try {
            (config == null
                            ? engine.load(model.model())
                            : engine.load(model.model(), new LoadOptions(config, Map.of())))
                    .toCompletableFuture()
                    .join();
        } catch (CompletionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        }
    }

    /** What the repository holds of the model; null when it is not there any more. Blocks. */
    public @Nullable ModelFiles files() {
        return engine.files(model.model());
    }

    /** The configuration with every default, as the field names of Triton's {@code ModelConfig}. */
    public Map<String, Object> configuration() {
        return ModelConfigDocument.of(engine.config(model));
    }

    /** The version that is called. */
    public long version() {
        return engine.metadata(model).id().version();
    }

    /** Sends these requests from now on. */
    public void use(List<RequestSample> samples) {
        List<Prepared> all = new ArrayList<>();
        for (RequestSample sample : samples) {
            all.add(new Prepared(
                    sample.inputs(),
                    sample.inputs().stream()
                            .map(input -> MemoryRegion.copyOf(input.bytes(), 0, input.bytes().length))
                            .toList(),
                    sample.outputs().stream()
                            .map(name -> new RequestedOutput(name, 0))
                            .toList(),
                    InferenceRequest.Options.NONE.withSignature(sample.signature())));
        }
        prepared = List.copyOf(all);
    }

    @Override
    public void send(int index, Completion completion) {
        Prepared sample = prepared.get(index % prepared.size());
        List<Tensor> inputs = new ArrayList<>(sample.inputs.size());
        for (int i = 0; i < sample.inputs.size(); i++) {
            TensorData input = sample.inputs.get(i);
            inputs.add(Tensor.over(
                    input.name(),
                    input.dataType(),
                    input.shape(),
                    sample.memory.get(i).retain(),
                    0,
                    input.bytes().length));
        }
        Object unused = engine.infer(
                new InferenceRequest(
                        model, "", inputs, sample.outputs, Map.of(), Long.MAX_VALUE, clock.nanos(), sample.options),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        response.close();
                        if (last) {
                            completion.done(null);
                        }
                    }

                    @Override
                    public void fail(ServingException e) {
                        completion.done(e.code() + ": " + e.getMessage());
                    }
                });
    }

    @Override
    public boolean runsOnCaller() {
        return true;
    }

    @Override
    public @Nullable ServerTimes serverTimes() {
        return ServerTimes.of(engine.statistics(model.model(), model.version()));
    }

    @Override
    public void close() {
        engine.close(Duration.ofSeconds(5));
        prepared.forEach(sample -> sample.memory.forEach(MemoryRegion::release));
    }
}
