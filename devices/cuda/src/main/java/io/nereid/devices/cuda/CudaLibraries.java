// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Set;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nvml;
import org.bytedeco.javacpp.Loader;
import org.jspecify.annotations.Nullable;

/** Finds NVIDIA's libraries, then loads what calls them, once per process. Thread-safe by its lock. */
final class CudaLibraries {
    private static final Logger LOG = System.getLogger(CudaLibraries.class.getName());
    private static final String CACHE = "org.bytedeco.javacpp.cachedir";

    /** The libraries of the driver. */
    private static final List<String> DRIVER = List.of("libcuda.so.1", "libnvidia-ml.so.1");

    /** The library of the CUDA toolkit, and where its packages install it. */
    private static final String RUNTIME = "libcudart.so.13";

    private static final List<String> TOOLKITS = List.of("/usr/local/cuda-13/lib64/", "/usr/local/cuda/lib64/");

    private CudaLibraries() {}

    /**
     * Loads the libraries. Nothing of CUDA is loaded before the driver's libraries have been found.
     *
     * @throws ServingException UNAVAILABLE when one is missing, by its name
     */
    static synchronized void load() {
        // By default, JavaCPP frees native objects when they are garbage-collected, and runs System.gc() when it
        // believes that memory is short. This driver closes everything explicitly.
        System.setProperty("org.bytedeco.javacpp.nopointergc", "true");
        System.setProperty("org.bytedeco.javacpp.maxBytes", "0");
        System.setProperty("org.bytedeco.javacpp.maxPhysicalBytes", "0");
        if (System.getProperty(CACHE) == null) {
            Path cache = cache();
            if (cache != null) {
                System.setProperty(CACHE, cache.toString());
            }
        }
        try {
            Loader.load(Loader.class);
        } catch (LinkageError e) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "the plugin's own library does not run on this machine: " + e.getMessage(),
                    "CUDA is supported on Linux, x86-64, with glibc");
        }
        for (String name : DRIVER) {
            String missing = open(name);
            if (missing != null) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "NVIDIA's driver is not there: " + missing,
                        "install the driver, or give the container the GPU and the driver's libraries");
            }
        }
        String missing = open(RUNTIME);
        for (String toolkit : TOOLKITS) {
            if (missing != null && Files.exists(Path.of(toolkit + RUNTIME))) {
                missing = open(toolkit + RUNTIME);
            }
        }
        if (missing != null) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "the CUDA runtime is not there: " + missing,
                    "install CUDA 13's runtime (package cuda-cudart-13-1), or add its folder to LD_LIBRARY_PATH");
        }
        try {
            Loader.load(cudart.class);
            Loader.load(nvml.class);
        } catch (LinkageError e) {
            Throwable cause = e.getCause();
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "CUDA's libraries cannot be used: " + (cause == null ? e : cause).getMessage(),
                    "use the driver and the runtime of CUDA 13");
        }
    }

    /** Opens a library by the search of the dynamic linker; returns its reason, or null when it is open. */
    private static @Nullable String open(String library) {
        try {
            Loader.loadGlobal(library);
            return null;
        } catch (LinkageError e) {
            return String.valueOf(e.getMessage());
        }
    }

    /**
     * A directory for the unpacked libraries that only this user can write to, or null. Code is loaded from it, so a
     * directory that others can write to is not used.
     */
    private static @Nullable Path cache() {
        String xdg = System.getenv("XDG_CACHE_HOME");
        Path root = xdg != null && xdg.startsWith("/")
                ? Path.of(xdg)
                : Path.of(System.getProperty("user.home", "?"), ".cache");
        if (!root.isAbsolute()) {
            return null;
        }
        Path directory = root.resolve("nereid").resolve("javacpp");
        try {
            Files.createDirectories(
                    directory, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS);
            if (permissions.contains(PosixFilePermission.OTHERS_WRITE)
                    || permissions.contains(PosixFilePermission.GROUP_WRITE)) {
                LOG.log(Level.WARNING, "native libraries are not cached: other users can write to " + directory);
                return null;
            }
            return Files.isWritable(directory) ? directory : null;
        } catch (IOException | UnsupportedOperationException e) {
            LOG.log(Level.DEBUG, "cannot use " + directory, e);
            return null;
        }
    }
}
