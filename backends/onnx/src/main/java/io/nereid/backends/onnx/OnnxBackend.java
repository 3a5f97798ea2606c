// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.WideRuns;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs ONNX models with ONNX Runtime. Thread-safe; ONNX Runtime is started on first use, under this object's lock.
 *
 * <p>All instances of a model on processors share one session, and those on one GPU another, so the weights are in each memory once. Instances run in parallel, each run
 * on the thread that calls it, unless the model's parameters ask for more threads per run.
 *
 * <p>The server finds this class through {@link java.util.ServiceLoader}. Used directly:
 *
 * <pre>{@code
 * Backend backend = new OnnxBackend();
 * if (backend.unavailableReason() == null) {
 *     BackendModel model = backend.load(location, config, context);
 * }
 * }</pre>
 */
public final class OnnxBackend implements Backend {
    private static final Logger LOG = LoggerFactory.getLogger(OnnxBackend.class);

    static final String NAME = "onnxruntime";
    static final String PLATFORM = "onnxruntime_onnx";
    static final String DEFAULT_FILE = "model.onnx";

    private static final String DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size";
    private static final String GLOBAL_POOL = "enable-global-threadpool";
    private static final List<String> SETTINGS =
            List.of(DEFAULT_MAX_BATCH_SIZE, GLOBAL_POOL, "intra_op_thread_count", "inter_op_thread_count");

    private final OrtLibrary library;
    private final GpuLibraries gpuLibraries = GpuLibraries.ofMachine();

    @GuardedBy("this") private @Nullable OrtRuntime runtime;

    @GuardedBy("this") private @Nullable String failure;

    /** Creates the backend. It loads native code only when a model is loaded or its availability is checked. */
    public OnnxBackend() {
        this(OrtLibrary.ofUser());
    }

    OnnxBackend(OrtLibrary library) {
        this.library = library;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(PLATFORM);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(DEFAULT_FILE);
    }

    @Override
    public synchronized @Nullable String unavailableReason() {
        if (runtime == null && failure == null) {
            try {
                runtime = OrtRuntime.start(library);
            } catch (OrtException | IllegalStateException | LinkageError e) {
                Throwable cause = e;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                failure = "ONNX Runtime cannot be loaded on this machine (" + OrtLibrary.platform() + "): "
                        + OrtErrors.text(cause);
            }
        }
        return failure;
    }

    private synchronized OrtRuntime started() {
        String reason = unavailableReason();
        OrtRuntime started = runtime;
        if (started == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.valueOf(reason),
                    "ONNX Runtime needs Linux with glibc 2.27 or newer on x86-64 or arm64; musl (Alpine) is not"
                            + " supported");
        }
        return started;
    }

    /** {@inheritDoc} They run on GPUs with ONNX Runtime's GPU build; whether NVIDIA's libraries are there shows a load. */
    @Override
    public @Nullable String gpuUnavailableReason() {
        return library.forGpus()
                ? null
                : "this build of ONNX Runtime computes on processors only; its GPU build is the plugin "
                        + OrtLibrary.PLUGIN;
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.copyOf(SETTINGS));
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        int defaultMaxBatchSize = defaultMaxBatchSize(context.settings());
        GpuOptions options = GpuOptions.read(config);
        List<Integer> gpus = ExecutionProviders.gpus(config);
        OrtSettings settings = OrtSettings.read(
                config.parameters(),
                config.optimization().graphLevel(),
                context.cores(),
                context.settings(),
                !gpus.isEmpty());
        OnnxFile file = OnnxFile.find(source, config.modelFile());
        if (gpus.isEmpty() && !config.optimization().gpuAccelerators().isEmpty()) {
            LOG.warn(
                    "model '{}' has accelerators for GPUs and runs on processors, where they are without effect",
                    config.name());
        }
        try {
            return open(source, config, context, NAME, file, options, settings, defaultMaxBatchSize);
        } catch (OrtException e) {
            throw OrtErrors.loading(config.name(), file.path(), e);
        }
    }

    /**
     * Opens the sessions of a model and completes its configuration.
     *
     * @param backend the name of the backend that the model belongs to
     * @param file the ONNX model, which may be removed afterwards when no instance runs on processors
     * @throws OrtException when ONNX Runtime rejects the model
     */
    BackendModel open(
            ModelLocation source,
            ModelConfig config,
            BackendContext context,
            String backend,
            OnnxFile file,
            GpuOptions options,
            OrtSettings settings,
            int defaultMaxBatchSize)
            throws OrtException {
        OrtRuntime engine = started();
        boolean processors = ExecutionProviders.onProcessors(config);
        ExecutionProviders placement =
                ExecutionProviders.of(source, config, options, OrtEnvironment.getAvailableProviders());
        GpuSessions opened = new GpuSessions(
                config.name(),
                engine,
                gpuLibraries,
                file,
                source,
                settings,
                options,
                placement,
                library.engines(),
                context);
        Map<Integer, OnnxSession> sessions = opened.open(ExecutionProviders.gpus(config), processors);
        boolean loaded = false;
        try {
            OrtSession graph = sessions.values().iterator().next().session();
            List<TensorBinding> inputs = TensorBinding.inputs(graph, file, engine);
            List<TensorBinding> outputs = TensorBinding.outputs(graph, file);
            int instances = Math.max(1, context.cores() / settings.intraThreads());
            ModelConfig complete = new ConfigCompletion(
                            config, backend, inputs, outputs, file.facts().defaultedInputs())
                    .complete(context.autoComplete(), defaultMaxBatchSize, instances);
            WideRuns<OnnxSession> wide =
                    processors ? wideRuns(config.name(), engine, file, settings, placement, context) : null;
            OnnxModel model = new OnnxModel(
                    engine,
                    sessions,
                    withProviders(complete, opened.providers()),
                    settings,
                    inputs,
                    outputs,
                    file.bytes(),
                    wide);
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                Set.copyOf(sessions.values()).forEach(OnnxSession::drop);
            }
        }
    }

    /** The version of TensorRT that is loaded, as the file of its library has it; empty when it is not known. */
    String tensorRtVersion() {
        return gpuLibraries.tensorRtVersion();
    }

    /** The configuration with what a model with GPUs runs on. */
    private static ModelConfig withProviders(ModelConfig config, String providers) {
        if (providers.isEmpty()) {
            return config;
        }
        Map<String, String> parameters = new LinkedHashMap<>(config.parameters());
        parameters.put(OnnxModel.PROVIDERS, providers);
        return config.toBuilder().parameters(parameters).build();
    }

    /**
     * Wide runs of a model that has just been loaded, with a session of their own, since ONNX Runtime fixes the number of threads when
     * it opens one. Null where the number of threads is configured, or the runs are not on the CPU.
     */
    static @Nullable WideRuns<OnnxSession> wideRuns(
            String model,
            OrtRuntime engine,
            OnnxFile file,
            OrtSettings settings,
            ExecutionProviders placement,
            BackendContext context) {
        if (settings.threadsGiven() || !placement.equals(ExecutionProviders.CPU)) {
            return null;
        }
        String loaded;
        try {
            loaded = file.state();
        } catch (IOException e) {
            return null;
        }
        // Twice the size of the files: ONNX Runtime keeps weights in a second layout while it opens a session.
        return WideRuns.of(context, model, "intra_op_thread_count", 2 * file.bytes(), threads -> {
            if (!file.state().equals(loaded)) {
                return null;
            }
            OnnxSession session;
            try {
                session = OnnxSession.open(model, engine, file.path(), settings.withIntraThreads(threads), placement);
            } catch (OrtException e) {
                throw OrtErrors.loading(model, file.path(), e);
            }
            if (!file.state().equals(loaded)) {
                // Replaced meanwhile: these may be other weights than those that answer now.
                session.drop();
                return null;
            }
            return session;
        });
    }

    private static int defaultMaxBatchSize(Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (!SETTINGS.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown setting '" + key + "' of the onnxruntime backend (known: "
                                + String.join(", ", SETTINGS) + ")",
                        NameSuggestions.didYouMean(key, SETTINGS, "remove it"));
            }
        }
        String pool = settings.getOrDefault(GLOBAL_POOL, "0").strip();
        if (!pool.equals("0")) {
            throw ServingException.invalidArgument(
                    "setting '" + GLOBAL_POOL + "' is '" + pool + "' (expected: 0)",
                    "remove it: runs already share one pool, the server's, with one thread each; "
                            + "set intra_op_thread_count for more");
        }
        String text = settings.getOrDefault(DEFAULT_MAX_BATCH_SIZE, "4");
        try {
            int value = Integer.parseInt(text.strip());
            if (value >= 0) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Rejected below, like a negative number.
        }
        throw ServingException.invalidArgument(
                "setting '" + DEFAULT_MAX_BATCH_SIZE + "' is '" + text + "' (expected: a whole number >= 0)");
    }
}
