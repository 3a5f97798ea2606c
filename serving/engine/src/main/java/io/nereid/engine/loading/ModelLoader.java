// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.loading;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.plugin.PluginApi;
import io.nereid.device.Devices;
import io.nereid.engine.execution.InstancePlacements;
import io.nereid.engine.servable.BatchingDefaults;
import io.nereid.engine.servable.ModelServable;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.engine.warmup.ModelWarmup;
import io.nereid.engine.warmup.SavedModelWarmup;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.config.InstanceGroupResolver;
import io.nereid.repository.config.ModelConfigDocument;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Loads a stored version on a backend. Called by one thread at a time. */
public final class ModelLoader implements Loader {
    private final ModelLocation source;
    private final Backend backend;
    private final BackendContext context;
    private final ServableFactory servables;
    private volatile ModelConfig config;
    private volatile String fingerprint;
    private long loadNanos;
    private @Nullable ModelServable servable;
    private @Nullable FileFingerprint files;

    public ModelLoader(
            ModelLocation source,
            ModelConfig config,
            Backend backend,
            String fingerprint,
            BackendContext context,
            ServableFactory servables) {
        this.source = source;
        this.config = config;
        this.backend = backend;
        this.fingerprint = fingerprint;
        this.context = context;
        this.servables = servables;
    }

    @Override
    public ServableId id() {
        return source.id();
    }

    @Override
    public String fingerprint() {
        return fingerprint;
    }

    @Override
    public String backend() {
        return backend.name();
    }

    /** The size of the version's files, because a loaded model holds at least its weights. */
    @Override
    public long estimateBytes() {
        try (Stream<java.nio.file.Path> all = Files.walk(source.versionDirectory())) {
            return all.filter(Files::isRegularFile)
                    .mapToLong(f -> f.toFile().length())
                    .sum();
        } catch (IOException | UncheckedIOException e) {
            return 0;
        }
    }

    @Override
    public Servable load() {
        String unavailable = backend.unavailableReason();
        if (unavailable != null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION, "backend '" + backend.name() + "' cannot work here: " + unavailable);
        }
        long from = servables.clock().nanos();
        files = FileFingerprint.of(source);
        BatchingDefaults rules = servables.batching();
        BatchingParameters parameters = rules.of(source);
        BackendContext used = rules.context(context, parameters);
        ModelConfig placed = placed(config);
        admit(placed);
        BackendModel model;
        try {
            model = backend.load(source, placed, used);
        } catch (LinkageError e) {
            throw linkFailure(e);
        }
        try {
            model = rules.apply(model, source, config, used, parameters);
            if (!placed.modelFile().equals(config.modelFile())) {
                // The configuration that clients get has the file that was written into it.
                model = new ForwardingModel(
                        model,
                        model.config().toBuilder().modelFile(config.modelFile()).build());
            }
            // Validate again: the backend may have filled in invalid settings.
            ModelConfigDocument.check(model.config(), source.modelDirectory(), GpuInventory.UNCHECKED);
            ModelServable made = servables.create(source, model);
            servable = made;
            loadNanos = servables.clock().nanos() - from;
            return made;
        } catch (RuntimeException e) {
            model.close();
            throw e;
        } catch (LinkageError e) {
            model.close();
            throw linkFailure(e);
        }
    }

    /** The configuration with the places of its instances. */
    private ModelConfig placed(ModelConfig given) {
        return InstanceGroupResolver.resolve(given, backend, GpuInventory.of(context.devices()));
    }

    /** Lets every GPU of the model decide whether the model may be loaded on it. */
    private void admit(ModelConfig placed) {
        Devices devices = context.devices();
        if (devices != null) {
            for (int ordinal : InstancePlacements.gpus(placed)) {
                devices.admit(placed.name(), ordinal, estimateBytes());
            }
        }
    }

    /** A plugin that was compiled against another version of the API is the operator's to replace. */
    private RuntimeException linkFailure(LinkageError e) {
        ServingException mismatch = PluginApi.mismatch("backend '" + backend.name() + "'", e);
        if (mismatch == null) {
            throw e;
        }
        return mismatch;
    }

    @Override
    public void warm() {
        ModelServable loaded = servable;
        if (loaded != null) {
            long from = servables.clock().nanos();
            new ModelWarmup(source.modelDirectory(), loaded, servables.clock()).run();
            new SavedModelWarmup(source, loaded, servables.warmup()).run();
            loaded.loadNanos(loadNanos + servables.clock().nanos() - from);
            servables.register(loaded, fingerprint);
        }
    }

    /**
     * A change of the number of instances, the version policy, the maximum batch size, the queue delay, preferred batch sizes, priority
     * levels, queue policies and the latency objective needs no reload; every other change does.
     */
    @Override
    public boolean updateInPlace(Loader next) {
        ModelServable serving = servable;
        FileFingerprint loaded = files;
        if (serving == null
                || loaded == null
                || !(next instanceof ModelLoader other)
                || !other.backend().equals(backend())
                || !other.source.equals(source)
                || !rest(config).equals(rest(other.config))
                || (config.batching() == null) != (other.config.batching() == null)
                || !sizable(other.config)
                || !(config.instanceGroups().equals(other.config.instanceGroups())
                        || resizable(groups(serving), other.config.instanceGroups()))
                || !loaded.same(FileFingerprint.of(source))) {
            return false;
        }
        ModelConfig.Builder changed = serving.config().toBuilder().versionPolicy(other.config.versionPolicy());
        if (!config.instanceGroups().equals(other.config.instanceGroups())) {
            changed.instanceGroups(placed(other.config).instanceGroups());
        }
        if (config.maxBatchSize() != other.config.maxBatchSize()) {
            changed.maxBatchSize(other.config.maxBatchSize());
        }
        if (!Objects.equals(config.batching(), other.config.batching())) {
            changed.batching(other.config.batching());
        }
        Map<String, String> parameters = new LinkedHashMap<>(serving.config().parameters());
        parameters.remove(LatencyObjective.PARAMETER);
        String objective = other.config.parameters().get(LatencyObjective.PARAMETER);
        if (objective != null) {
            parameters.put(LatencyObjective.PARAMETER, objective);
        }
        ModelConfig applied = servables.completed(changed.queue(other.config.queue())
                .parameters(Collections.unmodifiableMap(parameters))
                .build());
        try {
            ModelConfigDocument.check(applied, source.modelDirectory(), GpuInventory.UNCHECKED);
        } catch (ServingException e) {
            return false; // the load fails for the same reason, and reports it
        }
        if (!serving.configure(applied)) {
            return false;
        }
        config = other.config;
        fingerprint = other.fingerprint;
        return true;
    }

    private static ModelConfig rest(ModelConfig config) {
        Map<String, String> parameters = new LinkedHashMap<>(config.parameters());
        parameters.remove(LatencyObjective.PARAMETER);
        return config.toBuilder()
                .parameters(parameters)
                .maxBatchSize(Math.min(1, config.maxBatchSize()))
                .instanceGroups(List.of())
                .versionPolicy(VersionPolicy.LATEST)
                .batching(null)
                .queue(QueuePolicy.DEFAULT)
                .document(Map.of())
                .build();
    }

    /**
     * Whether the maximum batch size, which is positive in both configurations or the same, may become that of the other one. From 1 to
     * more, and back, a backend may fill in batching that the configuration does not have. An ensemble must not allow larger
     * batches than its models: the manager checks it again when this version is loaded again.
     */
    private boolean sizable(ModelConfig next) {
        int rows = next.maxBatchSize();
        return rows == config.maxBatchSize()
                || ((config.batching() != null || (rows > 1 && config.maxBatchSize() > 1))
                        && !servables.inLargerEnsemble(source.id().model(), rows));
    }

    /** The instance groups as configured, or as the backend chose them. */
    private List<InstanceGroup> groups(ModelServable serving) {
        return config.instanceGroups().isEmpty() ? serving.config().instanceGroups() : config.instanceGroups();
    }

    /** Whether the groups are equal, or differ only in their number of instances. */
    private static boolean resizable(List<InstanceGroup> now, List<InstanceGroup> next) {
        if (now.equals(next)) {
            return true;
        }
        return !now.isEmpty()
                && !next.isEmpty()
                && Stream.concat(now.stream(), next.stream())
                                .map(g -> new InstanceGroup(
                                        "",
                                        g.kind(),
                                        1,
                                        g.gpus(),
                                        g.passive(),
                                        g.hostPolicy(),
                                        g.resources(),
                                        g.priority()))
                                .distinct()
                                .count()
                        == 1
                && !now.get(0).passive();
    }

    @Override
    public void unload() {
        ModelServable loaded = servable;
        servable = null;
        if (loaded != null) {
            servables.unregister(loaded);
            loaded.unload();
        }
    }
}
