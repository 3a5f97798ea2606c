// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.engine.EngineGraph;
import io.nereid.backends.onnx.engine.PlanFile;
import io.nereid.backends.onnx.engine.PlanRules;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Runs TensorRT plans on GPUs, through ONNX Runtime's TensorRT execution provider: a plan becomes the engine of an ONNX model
 * with a single node ({@link EngineGraph}). Thread-safe.
 *
 * <p>The instances on one GPU share one session, whose runs ONNX Runtime makes one after another, since an execution context of
 * TensorRT has one run at a time.
 */
public final class TensorRtBackend implements Backend {
    private static final Logger LOG = System.getLogger(TensorRtBackend.class.getName());

    static final String NAME = "tensorrt";
    static final String PLATFORM = "tensorrt_plan";

    /** The setting with libraries of layers, separated by semicolons. */
    static final String PLUGINS = "plugins";

    /** The setting by which Triton lets TensorRT run code that a plan has. */
    private static final String VERSION_COMPATIBLE = "version-compatible";

    private static final List<String> SETTINGS = List.of(PLUGINS, VERSION_COMPATIBLE);

    /** The level of ONNX Runtime's own optimizations for a graph with nothing to optimize: none. */
    private static final int NO_OPTIMIZATION = 2;

    private final OnnxBackend runtime;

    /** Creates the backend. It loads native code only when a model is loaded or its availability is checked. */
    public TensorRtBackend() {
        this(new OnnxBackend());
    }

    TensorRtBackend(OnnxBackend runtime) {
        this.runtime = runtime;
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
        return PlanFile.NAMES;
    }

    @Override
    public @Nullable String unavailableReason() {
        return runtime.unavailableReason();
    }

    @Override
    public @Nullable String gpuUnavailableReason() {
        return runtime.gpuUnavailableReason();
    }

    @Override
    public boolean needsGpu() {
        return true;
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.copyOf(SETTINGS));
    }

    @Override
    public void check(ModelConfig config) {
        PlanRules.check(config);
        GpuOptions unused = options(config);
    }

    /** What ONNX Runtime gets for runs of a plan. */
    static GpuOptions options(ModelConfig config) {
        GpuOptions given = GpuOptions.read(config);
        Map<String, String> tensorRt = given.tensorRt() == null ? Map.of() : given.tensorRt();
        List<String> others = new ArrayList<>(given.cuda().keySet());
        config.optimization().gpuAccelerators().stream()
                .map(ExecutionAccelerator::name)
                .filter(name -> !name.equals(NAME))
                .forEach(others::add);
        if (given.fallback() != GpuOptions.Fallback.NONE) {
            others.add(GpuOptions.FALLBACK);
        }
        PlanRules.checkOptions(config, others, tensorRt.keySet(), GpuOptions.PLUGIN_LIBRARIES);
        return new GpuOptions(Map.of(), Map.copyOf(tensorRt), GpuOptions.Fallback.NEVER);
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig given, BackendContext context) {
        checkSettings(context.settings());
        ModelConfig config = given.toBuilder().platform(PLATFORM).backend(NAME).build();
        check(config);
        PlanFile plan = PlanFile.find(source, config.modelFile());
        OrtSettings settings = OrtSettings.read(config.parameters(), NO_OPTIMIZATION, context.cores(), Map.of(), true);
        try {
            Path work = Files.createTempDirectory(Files.createDirectories(context.scratch()), "plan-");
            try {
                return open(source, config, context, plan, settings, work);
            } finally {
                remove(work);
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot prepare the plan of model '" + config.name() + "' in '" + context.scratch() + "': "
                            + e.getClass().getSimpleName() + ": " + e.getMessage(),
                    "let the server write there",
                    e);
        }
    }

    /** ONNX Runtime reads both files while it opens a session, and takes the plan from beside the ONNX model only. */
    private BackendModel open(
            ModelLocation source,
            ModelConfig config,
            BackendContext context,
            PlanFile plan,
            OrtSettings settings,
            Path work)
            throws IOException {
        String name = PlanFile.NAMES.get(0);
        Files.write(work.resolve(OnnxBackend.DEFAULT_FILE), EngineGraph.of(config, name));
        Files.createSymbolicLink(work.resolve(name), plan.path().toRealPath());
        OnnxFile file = OnnxFile.find(new ModelLocation(source.id(), work, work), "");
        try {
            return runtime.open(source, config, context, NAME, file, options(config), settings, 0);
        } catch (OrtException e) {
            String version = plan.version().isEmpty() ? "another version" : plan.version();
            String own = runtime.tensorRtVersion();
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "unable to load model '" + config.name() + "' from '" + plan.path() + "', a plan of TensorRT "
                            + version + (own.isEmpty() ? "" : " on " + own) + ": " + OrtErrors.text(e),
                    "a plan runs on the version of TensorRT and the kind of GPU that it was compiled for: compile it there"
                            + " again, or serve the ONNX model",
                    e);
        }
    }

    private static void remove(Path work) {
        try {
            for (String name : List.of(OnnxBackend.DEFAULT_FILE, PlanFile.NAMES.get(0))) {
                Files.deleteIfExists(work.resolve(name));
            }
            Files.deleteIfExists(work);
        } catch (IOException e) {
            LOG.log(Level.WARNING, "cannot remove " + work + ": " + e);
        }
    }

    private static void checkSettings(Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (!SETTINGS.contains(key)) {
                throw ServingException.invalidArgument(
                        "unknown setting '" + key + "' of the tensorrt backend (known: " + String.join(", ", SETTINGS)
                                + ")",
                        NameSuggestions.didYouMean(key, SETTINGS, "remove it"));
            }
        }
        String compatible = settings.getOrDefault(VERSION_COMPATIBLE, "false").strip();
        if (!compatible.equals("false")) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "setting '" + VERSION_COMPATIBLE + "' is '" + compatible
                            + "' (expected: false); ONNX Runtime does not"
                            + " let TensorRT run the code that a plan for several versions has",
                    "remove it, and compile plans with the version of TensorRT that the server has");
        }
        String plugins = settings.get(PLUGINS);
        for (String each : plugins == null ? List.<String>of() : List.of(plugins.split(";", -1))) {
            if (!each.startsWith("/") || !Files.isRegularFile(Path.of(each))) {
                throw ServingException.invalidArgument(
                        "setting '" + PLUGINS + "' of the tensorrt backend has '" + each
                                + "' (expected: absolute paths of libraries, separated by ';')",
                        "name files that exist");
            }
        }
    }
}
