// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import ai.onnxruntime.providers.OrtTensorRTProviderOptions;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The execution providers and custom operator libraries of a session. Immutable.
 *
 * @param gpu the CUDA device, or -1 for the CPU
 * @param openVino whether CPU runs use the OpenVINO execution provider
 * @param cuda options of the CUDA execution provider, for runs on a GPU
 * @param tensorRt options of the TensorRT execution provider; null without it
 * @param libraries custom operator libraries, inside the model's directory
 */
record ExecutionProviders(
        int gpu,
        boolean openVino,
        Map<String, String> cuda,
        @Nullable Map<String, String> tensorRt,
        List<Path> libraries) {
    /** Runs on the CPU by ONNX Runtime's own kernels. */
    static final ExecutionProviders CPU = new ExecutionProviders(-1, false, Map.of(), null, List.of());

    /**
     * Reads what the configuration says about runs on processors, and checks that this build has the execution providers that it asks for.
     *
     * @param options what it says about runs on GPUs
     * @param providers the execution providers of this build of ONNX Runtime
     * @throws ServingException INVALID_ARGUMENT for a provider that this build does not have, or a missing library
     */
    static ExecutionProviders of(
            ModelLocation source, ModelConfig config, GpuOptions options, Set<OrtProvider> providers) {
        if (!providers.contains(OrtProvider.CUDA)) {
            rejectGpus(config, providers);
        }
        boolean openVino = false;
        for (ExecutionAccelerator accelerator : config.optimization().cpuAccelerators()) {
            if (!accelerator.name().equals("openvino")) {
                throw unknown(config, accelerator, "openvino");
            }
            if (!providers.contains(OrtProvider.OPEN_VINO)) {
                throw disabled(config, "OpenVINO", providers);
            }
            openVino = true;
        }
        if (options.tensorRt() != null && !providers.contains(OrtProvider.TENSOR_RT)) {
            throw disabled(config, "TensorRT", providers);
        }
        return new ExecutionProviders(-1, openVino, Map.of(), null, libraries(source, config));
    }

    private static void rejectGpus(ModelConfig config, Set<OrtProvider> providers) {
        for (InstanceGroup group : config.instanceGroups()) {
            if (group.kind() == InstanceGroup.Kind.GPU) {
                throw ServingException.invalidArgument(
                        "instance group " + group.name() + " of model " + config.name()
                                + " has kind KIND_GPU but server does not support GPUs",
                        "use KIND_CPU or KIND_AUTO, or install ONNX Runtime's GPU build: nereid plugins install "
                                + OrtLibrary.PLUGIN);
            }
        }
        for (ExecutionAccelerator accelerator : config.optimization().gpuAccelerators()) {
            throw disabled(config, accelerator.name().equals("cuda") ? "CUDA" : "TensorRT", providers);
        }
    }

    /** The ordinals of the GPUs that the instances of a configuration are on, in their order; empty for one on processors. */
    static List<Integer> gpus(ModelConfig config) {
        Set<Integer> ordinals = new TreeSet<>();
        for (InstanceGroup group : config.instanceGroups()) {
            if (group.kind() == InstanceGroup.Kind.GPU) {
                ordinals.addAll(group.gpus().isEmpty() ? List.of(0) : group.gpus());
            }
        }
        return List.copyOf(ordinals);
    }

    /** Whether a configuration has instances on processors. */
    static boolean onProcessors(ModelConfig config) {
        return config.instanceGroups().isEmpty()
                || config.instanceGroups().stream().anyMatch(group -> group.kind() != InstanceGroup.Kind.GPU);
    }

    /**
     * These libraries on a GPU.
     *
     * @param withTensorRt options of TensorRT; null for CUDA alone
     */
    ExecutionProviders on(int device, Map<String, String> withCuda, @Nullable Map<String, String> withTensorRt) {
        return new ExecutionProviders(device, false, Map.copyOf(withCuda), withTensorRt, libraries);
    }

    /** Their names in the order of preference. */
    String names() {
        return gpu >= 0 ? (tensorRt != null ? "tensorrt, cuda, cpu" : "cuda, cpu") : openVino ? "openvino, cpu" : "cpu";
    }

    private static ServingException unknown(ModelConfig config, ExecutionAccelerator accelerator, String known) {
        return ServingException.invalidArgument(
                "unknown Execution Accelerator '" + accelerator.name() + "' is requested for model '" + config.name()
                        + "' (known: " + known + ")",
                "remove it");
    }

    private static ServingException disabled(ModelConfig config, String name, Set<OrtProvider> providers) {
        return ServingException.invalidArgument(
                name + " Execution Accelerator is not enabled; model '" + config.name()
                        + "' asks for it, and this build of ONNX Runtime has " + providers,
                name.equals("OpenVINO")
                        ? "remove it from the configuration's optimization, or run the server with a build that has it"
                        : "remove it from the configuration's optimization, or install ONNX Runtime's GPU build: nereid"
                                + " plugins install " + OrtLibrary.PLUGIN);
    }

    private static List<Path> libraries(ModelLocation source, ModelConfig config) {
        List<Path> found = new ArrayList<>();
        for (String name : config.operatorLibraries()) {
            Path file = source.versionDirectory().resolve(name).normalize();
            if (!Files.isRegularFile(file)) {
                file = source.modelDirectory().resolve(name).normalize();
            }
            if (!Files.isRegularFile(file)) {
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' needs the operators in '" + name + "', which is neither in "
                                + source.versionDirectory() + " nor in " + source.modelDirectory(),
                        "put the library there, and name it relative to one of them");
            }
            if (!inside(file, source.modelDirectory())) {
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' needs the operators in '" + name
                                + "', which lies outside the model's directory",
                        "copy the library into " + source.modelDirectory());
            }
            found.add(file);
        }
        return List.copyOf(found);
    }

    /** Whether a file lies inside a directory, with symbolic links followed. */
    static boolean inside(Path file, Path directory) {
        try {
            return file.toRealPath().startsWith(directory.toRealPath());
        } catch (IOException e) {
            return false;
        }
    }

    /** Whether the library is a Python extension module, which only loads inside a Python interpreter. */
    private static boolean pythonModule(Path library, String text) {
        return String.valueOf(library.getFileName()).contains(".cpython-")
                || text.contains("undefined symbol: Py")
                || text.contains("undefined symbol: _Py");
    }

    /**
     * Adds the providers and libraries to the options of a new session. The order of the calls is the order of
     * preference: TensorRT takes the nodes that it supports, CUDA the rest, and the CPU what remains.
     */
    void applyTo(SessionOptions options) throws OrtException {
        for (Path library : libraries) {
            try {
                options.registerCustomOpLibrary(library.toString());
            } catch (OrtException e) {
                String text = OrtErrors.text(e);
                throw ServingException.wrap(
                        ErrorCode.INVALID_ARGUMENT,
                        "cannot load the operators in '" + library + "': " + text,
                        pythonModule(library, text)
                                ? "the library is a module for Python; take the one for Java"
                                        + " (libonnxruntime_extensions4j_jni.so in the jar"
                                        + " com.microsoft.onnxruntime:onnxruntime-extensions), or one built from its"
                                        + " sources"
                                : "the library must be built for this machine and for ONNX Runtime "
                                        + OrtLibrary.VERSION + " or older",
                        e);
            }
        }
        if (tensorRt != null) {
            try (OrtTensorRTProviderOptions given = new OrtTensorRTProviderOptions(gpu)) {
                for (Map.Entry<String, String> option : tensorRt.entrySet()) {
                    given.add(option.getKey(), option.getValue());
                }
                options.addTensorrt(given);
            }
        }
        if (gpu >= 0) {
            try (OrtCUDAProviderOptions given = new OrtCUDAProviderOptions(gpu)) {
                for (Map.Entry<String, String> option : cuda.entrySet()) {
                    given.add(option.getKey(), option.getValue());
                }
                options.addCUDA(given);
            }
        }
        if (openVino) {
            options.addOpenVINO("CPU");
        }
    }
}
