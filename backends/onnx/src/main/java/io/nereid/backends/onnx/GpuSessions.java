// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import io.nereid.backend.BackendContext;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.engine.EngineCache;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.Devices;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens the sessions of one model: one for the processors where it has instances there, and one for each of its GPUs. Confined to the
 * thread that loads the model.
 */
final class GpuSessions {
    private static final Logger LOG = LoggerFactory.getLogger(GpuSessions.class);

    private final String model;
    private final OrtRuntime runtime;
    private final GpuLibraries libraries;
    private final OnnxFile file;
    private final ModelLocation source;
    private final OrtSettings settings;
    private final GpuOptions options;
    private final ExecutionProviders base;
    private final Path engines;
    private final @Nullable Devices devices;

    /** The libraries of layers that all plans may have, which the operator names; null for none. */
    private final @Nullable String common;

    private final Map<Integer, OnnxSession> sessions = new TreeMap<>();
    private final Map<Integer, String> notes = new TreeMap<>();

    /**
     * Prepares the sessions.
     *
     * @param base the execution providers of runs on processors
     * @param engines the directory for TensorRT's engines where the model does not name one
     */
    GpuSessions(
            String model,
            OrtRuntime runtime,
            GpuLibraries libraries,
            OnnxFile file,
            ModelLocation source,
            OrtSettings settings,
            GpuOptions options,
            ExecutionProviders base,
            Path engines,
            BackendContext context) {
        this.model = model;
        this.runtime = runtime;
        this.libraries = libraries;
        this.file = file;
        this.source = source;
        this.settings = settings;
        this.options = options;
        this.base = base;
        this.engines = engines;
        this.devices = context.devices();
        this.common = context.settings().get(TensorRtBackend.PLUGINS);
    }

    /**
     * Opens the sessions; if one fails, none stays open.
     *
     * @param gpus the ordinals of the GPUs
     * @param processors whether the model has instances on processors
     * @return the sessions by the ordinals of GPUs, {@link OnnxModel#PROCESSORS} for that of the processors; owned by the caller
     */
    Map<Integer, OnnxSession> open(List<Integer> gpus, boolean processors) throws OrtException {
        boolean done = false;
        try {
            if (processors) {
                sessions.put(OnnxModel.PROCESSORS, OnnxSession.open(model, runtime, file.path(), settings, base));
            }
            for (int gpu : gpus) {
                sessions.put(gpu, open(gpu));
            }
            done = true;
            return Map.copyOf(sessions);
        } finally {
            if (!done) {
                Set.copyOf(sessions.values()).forEach(OnnxSession::drop);
            }
        }
    }

    /** The execution providers of each place, and why one was replaced: {@code gpu 0: cuda, cpu}. Empty without GPUs. */
    String providers() {
        List<String> lines = new ArrayList<>();
        sessions.forEach((gpu, session) -> lines.add(
                (gpu < 0 ? "cpu" : "gpu " + gpu) + ": " + session.providers().names() + notes.getOrDefault(gpu, "")));
        return lines.size() == 1 && sessions.containsKey(OnnxModel.PROCESSORS) ? "" : String.join("; ", lines);
    }

    private OnnxSession open(int gpu) throws OrtException {
        boolean replaceable = options.fallback() != GpuOptions.Fallback.NEVER;
        String cudaReason = libraries.unusable(OrtProvider.CUDA);
        if (cudaReason != null) {
            if (options.fallback() != GpuOptions.Fallback.CPU) {
                throw GpuLibraries.failure(model, "CUDA", cudaReason, replaceable);
            }
            fellBack(gpu, "CUDA", "processors", cudaReason);
            OnnxSession there = sessions.get(OnnxModel.PROCESSORS);
            for (OnnxSession session : sessions.values()) {
                there = there == null && session.providers().gpu() < 0 ? session : there;
            }
            return there != null ? there : OnnxSession.open(model, runtime, file.path(), settings, base);
        }
        Map<String, String> tensorRt = options.tensorRt();
        String tensorRtReason = tensorRt == null ? null : libraries.unusable(OrtProvider.TENSOR_RT);
        if (tensorRtReason != null) {
            if (!replaceable || options.fallback() == GpuOptions.Fallback.NONE) {
                throw GpuLibraries.failure(model, "TensorRT", tensorRtReason, replaceable);
            }
            fellBack(gpu, "TensorRT", "CUDA", tensorRtReason);
            tensorRt = null;
        }
        return tensorRt == null ? session(gpu, null) : withTensorRt(gpu, tensorRt);
    }

    private void fellBack(int gpu, String from, String to, String reason) {
        LOG.warn("model '{}' runs on {} instead of {} on GPU {}: {}", model, to, from, gpu, reason);
        int end = reason.indexOf(GpuLibraries.DETAIL);
        notes.put(gpu, " (instead of " + from + ": " + (end < 0 ? reason : reason.substring(0, end)) + ")");
    }

    private OnnxSession session(int gpu, @Nullable Map<String, String> tensorRt) throws OrtException {
        return OnnxSession.open(model, runtime, file.path(), settings, base.on(gpu, options.cuda(), tensorRt));
    }

    private OnnxSession withTensorRt(int gpu, Map<String, String> given) throws OrtException {
        checkPlugins(given.get(GpuOptions.PLUGIN_LIBRARIES));
        Map<String, String> tensorRt = withCommon(given, common);
        boolean caches = "1".equals(tensorRt.get(GpuOptions.CACHE_ENABLE));
        boolean timings = "1".equals(tensorRt.get(GpuOptions.TIMING_ENABLE));
        String table = tensorRt.get(GpuOptions.CALIBRATION_TABLE);
        boolean context = "1".equals(tensorRt.get("trt_dump_ep_context_model"));
        if (!caches && !timings && table == null && !context) {
            return session(gpu, tensorRt);
        }
        String path = tensorRt.getOrDefault(GpuOptions.CACHE_PATH, tensorRt.get(GpuOptions.TIMING_PATH));
        try {
            EngineCache.Opened<OnnxSession> opened = EngineCache.open(
                    path == null ? engines : Path.of(path), EngineCache.key(file.files(), parts(gpu)), directory -> {
                        tensorRt.put(GpuOptions.CACHE_PATH, directory.toString());
                        if (timings) {
                            tensorRt.put(GpuOptions.TIMING_PATH, directory.toString());
                        }
                        tensorRt.computeIfPresent(
                                GpuOptions.CONTEXT_FILE,
                                (key, name) -> directory.resolve(name).toString());
                        if (table != null) {
                            Files.copy(table(table), directory.resolve(table), StandardCopyOption.REPLACE_EXISTING);
                        }
                        return session(gpu, tensorRt);
                    });
            return opened.session().with(opened.cache());
        } catch (OrtException | RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the engines of model '" + model + "' for TensorRT cannot be kept: "
                            + e.getClass().getSimpleName() + ": " + e.getMessage(),
                    "check the directory in '" + GpuOptions.CACHE_PATH + "'",
                    e);
        }
    }

    /** A copy of options of TensorRT, with the libraries of layers that all models have before those of the model. */
    static Map<String, String> withCommon(Map<String, String> given, @Nullable String libraries) {
        Map<String, String> all = new LinkedHashMap<>(given);
        if (libraries != null) {
            all.merge(GpuOptions.PLUGIN_LIBRARIES, libraries, (own, before) -> before + ";" + own);
        }
        return all;
    }

    /** What an engine depends on beside the model. */
    private List<String> parts(int gpu) {
        List<String> parts = new ArrayList<>();
        if (devices != null) {
            for (Device device : devices.all()) {
                if (device.ordinal() == gpu) {
                    parts.add(device.name() + " " + device.capability() + " " + device.totalBytes());
                }
            }
            parts.add("driver " + devices.driverVersion());
        }
        parts.add("onnxruntime " + OrtLibrary.VERSION);
        parts.add("tensorrt " + libraries.tensorRtVersion());
        parts.add("settings " + settings);
        Map<String, String> sorted = new TreeMap<>(options.tensorRt() == null ? Map.of() : options.tensorRt());
        sorted.remove(GpuOptions.CACHE_PATH);
        sorted.remove(GpuOptions.TIMING_PATH);
        sorted.forEach((key, value) -> parts.add(key + "=" + value));
        return parts;
    }

    /** The libraries of layers that TensorRT loads, which must be the model's own, as libraries of operators. */
    private void checkPlugins(@Nullable String paths) {
        for (String each : paths == null ? List.<String>of() : List.of(paths.split(";", -1))) {
            Path library = source.modelDirectory().resolve(each);
            if (!Files.isRegularFile(library) || !ExecutionProviders.inside(library, source.modelDirectory())) {
                throw ServingException.invalidArgument(
                        "'" + GpuOptions.PLUGIN_LIBRARIES + "' of model '" + model + "' names '" + each
                                + "', which is not a file in the model's directory",
                        "copy the library into " + source.modelDirectory() + ", and give its absolute path");
            }
        }
    }

    private Path table(String name) {
        for (Path directory : List.of(source.versionDirectory(), source.modelDirectory())) {
            Path file = directory.resolve(name);
            if (Files.isRegularFile(file)) {
                return file;
            }
        }
        throw ServingException.invalidArgument(
                "the calibration table '" + name + "' of model '" + model + "' is neither in "
                        + source.versionDirectory() + " nor in " + source.modelDirectory(),
                "copy it there");
    }
}
