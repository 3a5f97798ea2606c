// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession.SessionOptions;
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
import java.util.Set;

/**
 * The execution providers and custom operator libraries that a model's configuration asks for. Immutable.
 *
 * @param gpu the CUDA device, or -1 for the CPU
 * @param openVino whether CPU runs use the OpenVINO execution provider
 * @param tensorRt whether GPU runs use the TensorRT execution provider
 * @param libraries custom operator libraries, inside the model's directory
 */
record ExecutionProviders(int gpu, boolean openVino, boolean tensorRt, List<Path> libraries) {
    /** Runs on the CPU by ONNX Runtime's own kernels. */
    static final ExecutionProviders CPU = new ExecutionProviders(-1, false, false, List.of());

    /**
     * Reads the configuration.
     *
     * @param providers the execution providers of this build of ONNX Runtime
     * @throws ServingException INVALID_ARGUMENT for a provider that this build does not have, or a missing library
     */
    static ExecutionProviders of(ModelLocation source, ModelConfig config, Set<OrtProvider> providers) {
        int gpu = gpu(config, providers.contains(OrtProvider.CUDA));
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
        boolean tensorRt = false;
        for (ExecutionAccelerator accelerator : config.optimization().gpuAccelerators()) {
            switch (accelerator.name()) {
                case "tensorrt" -> {
                    if (!providers.contains(OrtProvider.TENSOR_RT)) {
                        throw disabled(config, "TensorRT", providers);
                    }
                    tensorRt = true;
                }
                case "cuda", "gpu_io" -> {
                    if (!providers.contains(OrtProvider.CUDA)) {
                        throw disabled(config, accelerator.name(), providers);
                    }
                }
                default -> throw unknown(config, accelerator, "tensorrt, cuda or gpu_io");
            }
        }
        return new ExecutionProviders(gpu, openVino, tensorRt && gpu >= 0, libraries(source, config));
    }

    private static int gpu(ModelConfig config, boolean available) {
        int gpu = -1;
        for (InstanceGroup group : config.instanceGroups()) {
            if (group.kind() == InstanceGroup.Kind.GPU) {
                if (!available) {
                    throw ServingException.invalidArgument(
                            "instance group " + group.name() + " of model " + config.name()
                                    + " has kind KIND_GPU but server does not support GPUs",
                            "use KIND_CPU or KIND_AUTO, or run the server with ONNX Runtime's GPU build");
                }
                gpu = group.gpus().isEmpty() ? 0 : group.gpus().get(0);
            }
        }
        return gpu;
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
                "remove it from the configuration's optimization, or run the server with a build that has it");
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

    private static boolean inside(Path file, Path directory) {
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
        if (tensorRt) {
            options.addTensorrt(gpu);
        }
        if (gpu >= 0) {
            options.addCUDA(gpu);
        }
        if (openVino) {
            options.addOpenVINO("CPU");
        }
    }
}
