// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import ai.onnxruntime.providers.OrtTensorRTProviderOptions;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * NVIDIA's libraries that ONNX Runtime's execution providers are linked with: finds them, loads them before ONNX Runtime does, and
 * says which are missing, which ONNX Runtime does not. Thread-safe by its lock.
 *
 * <p>The dynamic linker looks for a provider's libraries in {@code LD_LIBRARY_PATH} and in the system's folders alone. Here the
 * folders of CUDA and of PyPI's packages {@code nvidia-…} are searched as well: a library that is loaded already satisfies
 * the linker by its name. The names are those in the dynamic sections of the providers of ONNX Runtime
 * {@link OrtLibrary#VERSION}.
 */
final class GpuLibraries {
    private static final Logger LOG = System.getLogger(GpuLibraries.class.getName());

    /** Separates what is missing from what ONNX Runtime has to say. */
    static final String DETAIL = "; ONNX Runtime says: ";

    /** The CUDA that the providers are built for. */
    static final String CUDA_MAJOR = "12";

    /**
     * A library that a provider is linked with.
     *
     * @param name the file name by which the linker looks for it
     * @param source what has it, for messages
     */
    record Library(String name, String source) {}

    private static final Library CUDART = new Library("libcudart.so.12", "nvidia-cuda-runtime-cu12");
    private static final Library CUDNN = new Library("libcudnn.so.9", "nvidia-cudnn-cu12");
    private static final Library CUBLAS = new Library("libcublas.so.12", "nvidia-cublas-cu12");

    /** Each after those that it needs itself. */
    private static final List<Library> CUDA = List.of(
            new Library("libcuda.so.1", "NVIDIA's driver"),
            CUDART,
            new Library("libcublasLt.so.12", "nvidia-cublas-cu12"),
            CUBLAS,
            new Library("libcurand.so.10", "nvidia-curand-cu12"));

    private static final List<Library> TENSORRT = List.of(
            CUDART,
            CUBLAS,
            CUDNN,
            new Library("libnvinfer.so.10", "tensorrt-cu12"),
            new Library("libnvonnxparser.so.10", "tensorrt-cu12"));

    /**
     * What CUDA's provider opens by its name when a model needs it: convolutions, and kernels that are compiled at run time. Without them
     * other models run.
     */
    private static final List<Library> OPENED_LATER =
            List.of(CUDNN, new Library("libnvrtc.so.12", "nvidia-cuda-nvrtc-cu12"));

    private final List<Path> folders;

    @GuardedBy("this") private final Map<String, @Nullable Path> loaded = new LinkedHashMap<>();

    @GuardedBy("this") private final Map<OrtProvider, String> reasons = new EnumMap<>(OrtProvider.class);

    /** Looks in these folders, in their order. */
    GpuLibraries(List<Path> folders) {
        this.folders = List.copyOf(folders);
    }

    /** Looks in the folders of this machine. */
    static GpuLibraries ofMachine() {
        return new GpuLibraries(folders(Path.of("/"), System.getProperty("user.home", ""), System::getenv));
    }

    /**
     * The folders that may have the libraries: the environment's, CUDA's, PyPI's and the system's, as far as they exist.
     *
     * @param root the file system's root
     * @param home the user's directory, below which PyPI's packages of the user are
     * @param environment returns the variables of the environment, or null
     */
    static List<Path> folders(Path root, String home, Function<String, @Nullable String> environment) {
        Set<Path> found = new LinkedHashSet<>();
        String path = environment.apply("LD_LIBRARY_PATH");
        if (path != null) {
            for (String folder : path.split(":", -1)) {
                if (folder.startsWith("/")) {
                    found.add(Path.of(folder));
                }
            }
        }
        found.add(root.resolve("usr/local/cuda-" + CUDA_MAJOR + "/lib64"));
        found.add(root.resolve("usr/local/cuda/lib64"));
        List<Path> pythons = new ArrayList<>();
        String virtual = environment.apply("VIRTUAL_ENV");
        if (virtual != null && virtual.startsWith("/")) {
            pythons.add(Path.of(virtual, "lib"));
        }
        if (home.startsWith("/")) {
            pythons.add(Path.of(home, ".local", "lib"));
        }
        pythons.add(root.resolve("usr/local/lib"));
        pythons.add(root.resolve("usr/lib"));
        for (Path python : pythons) {
            for (Path version : inside(python, "python3*")) {
                for (Path packages : inside(version, "{site,dist}-packages")) {
                    for (Path nvidia : inside(packages.resolve("nvidia"), "*")) {
                        found.add(nvidia.resolve("lib"));
                    }
                    found.add(packages.resolve("tensorrt_libs"));
                }
            }
        }
        for (String system : List.of("usr/lib/x86_64-linux-gnu", "usr/lib64", "lib/x86_64-linux-gnu", "lib64")) {
            found.add(root.resolve(system));
        }
        return found.stream().filter(Files::isDirectory).toList();
    }

    private static List<Path> inside(Path folder, String glob) {
        List<Path> found = new ArrayList<>();
        if (Files.isDirectory(folder)) {
            try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, glob)) {
                entries.forEach(found::add);
            } catch (IOException e) {
                LOG.log(Level.DEBUG, "cannot list " + folder, e);
            }
        }
        found.sort(null);
        return found;
    }

    /**
     * Makes an execution provider ready.
     *
     * @param provider {@link OrtProvider#CUDA} or {@link OrtProvider#TENSOR_RT}
     * @return null when it can be used; else which libraries are missing, and what has them
     */
    synchronized @Nullable String unusable(OrtProvider provider) {
        if (!reasons.containsKey(provider)) {
            List<Library> wanted = provider == OrtProvider.CUDA ? CUDA : TENSORRT;
            List<Library> missing = missing(wanted);
            if (provider == OrtProvider.CUDA) {
                missing(OPENED_LATER);
            } else if (unusable(OrtProvider.CUDA) != null) {
                missing.addAll(0, missing(CUDA));
            }
            reasons.put(provider, attempt(provider, missing));
        }
        String reason = String.valueOf(reasons.get(provider));
        return reason.isEmpty() ? null : reason;
    }

    /** Loads the libraries as far as they are found, and returns the others. */
    private synchronized List<Library> missing(List<Library> wanted) {
        List<Library> missing = new ArrayList<>();
        for (Library library : wanted) {
            Path path = loaded.computeIfAbsent(library.name(), this::load);
            if (path == null) {
                missing.add(library);
            }
        }
        return missing;
    }

    private @Nullable Path load(String name) {
        for (Path folder : folders) {
            Path file = folder.resolve(name);
            if (Files.exists(file)) {
                try {
                    System.load(file.toString());
                    return file;
                } catch (UnsatisfiedLinkError e) {
                    LOG.log(Level.INFO, "cannot load " + file + ": " + e.getMessage());
                }
            }
        }
        return null;
    }

    /** Returns why ONNX Runtime cannot load a provider; empty when it can. */
    private String attempt(OrtProvider provider, List<Library> missing) {
        try (SessionOptions options = new SessionOptions()) {
            if (provider == OrtProvider.CUDA) {
                try (OrtCUDAProviderOptions cuda = new OrtCUDAProviderOptions(0)) {
                    options.addCUDA(cuda);
                }
            } else {
                try (OrtTensorRTProviderOptions tensorRt = new OrtTensorRTProviderOptions(0)) {
                    options.addTensorrt(tensorRt);
                }
            }
            return "";
        } catch (OrtException e) {
            return reason(missing, OrtErrors.text(e));
        }
    }

    private String reason(List<Library> missing, String text) {
        if (missing.isEmpty()) {
            return text;
        }
        StringBuilder list = new StringBuilder();
        for (Library library : new LinkedHashSet<>(missing)) {
            list.append(list.length() == 0 ? "" : ", ")
                    .append(library.name())
                    .append(" (")
                    .append(library.source())
                    .append(')');
        }
        return list + " not found or not loadable in " + folders + DETAIL + text;
    }

    /**
     * FAILED_PRECONDITION for a model whose provider cannot be used.
     *
     * @param replaceable whether a parameter of the model allows another provider
     */
    static ServingException failure(String model, String provider, String reason, boolean replaceable) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + model + "' needs ONNX Runtime's execution provider " + provider + ", which cannot be used: "
                        + reason,
                "install what is missing (CUDA " + CUDA_MAJOR + " and cuDNN 9, for TensorRT also TensorRT 10; PyPI's"
                        + " packages do) or add its folder to LD_LIBRARY_PATH"
                        + (replaceable
                                ? "; '" + GpuOptions.FALLBACK + "' of the model's parameters allows another provider"
                                : ""));
    }

    /** The version of TensorRT, as the file of its library has it; empty when it is not known. */
    synchronized String tensorRtVersion() {
        Path file = loaded.get("libnvinfer.so.10");
        if (file == null) {
            return "";
        }
        try {
            return String.valueOf(file.toRealPath().getFileName());
        } catch (IOException e) {
            return "";
        }
    }
}
