// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * TensorRT plans (also called engines), which are compiled for one version of TensorRT and one GPU architecture. The
 * message also lists the libraries that are missing on this machine. Immutable.
 */
public final class TensorrtBackend extends UnsupportedBackend {
    private static final List<String> DIRECTORIES = List.of(
            "usr/lib/x86_64-linux-gnu",
            "usr/lib/aarch64-linux-gnu",
            "usr/lib64",
            "usr/lib",
            "usr/lib/wsl/lib",
            "usr/local/lib",
            "usr/local/cuda/lib64",
            "usr/local/tensorrt/lib");

    private final Path root;
    private final String libraryPath;

    /** For {@link java.util.ServiceLoader}. */
    public TensorrtBackend() {
        this(Path.of("/"), System.getenv().getOrDefault("LD_LIBRARY_PATH", ""));
    }

    /** @param root the root of the file system, for tests */
    TensorrtBackend(Path root, String libraryPath) {
        super("tensorrt", List.of("tensorrt_plan"), List.of("model.plan", "model.engine", "model.trt"));
        this.root = root;
        this.libraryPath = libraryPath;
    }

    @Override
    String reason(Path file, FileHeader head) {
        boolean plan = head.text().startsWith("ptrt") || head.text().startsWith("ftrt");
        List<String> missing = new ArrayList<>();
        missing(missing, "libcuda.so", "NVIDIA's driver (libcuda.so.1)");
        missing(missing, "libnvinfer.so", "TensorRT's runtime (libnvinfer.so)");
        return (plan
                        ? "is a TensorRT plan, compiled for one version of TensorRT and one kind of GPU"
                        : "has the name of a TensorRT plan, but does not begin like one")
                + "; this server does not run plans"
                + (missing.isEmpty() ? "" : ", and this machine does not have " + String.join(" and ", missing));
    }

    @Override
    String remedy(Path file) {
        return "serve the ONNX model that the plan was compiled from: model.onnx, which runs on CPUs too; for TensorRT,"
                + " on a GPU build of ONNX Runtime, add to config.pbtxt: optimization { execution_accelerators {"
                + " gpu_execution_accelerator: [ { name: \"tensorrt\" } ] } }";
    }

    private void missing(List<String> missing, String library, String description) {
        for (String directory : DIRECTORIES) {
            if (has(root.resolve(directory), library)) {
                return;
            }
        }
        for (String directory : libraryPath.split(":", -1)) {
            if (!directory.isEmpty() && has(Path.of(directory), library)) {
                return;
            }
        }
        missing.add(description);
    }

    private static boolean has(Path directory, String library) {
        try (Stream<Path> files = Files.list(directory)) {
            return files.anyMatch(f -> f.getFileName().toString().startsWith(library));
        } catch (IOException e) {
            return false;
        }
    }
}
