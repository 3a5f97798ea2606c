// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.pytorch.engine.PtEngineProvider;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import ai.djl.pytorch.engine.PtSymbolBlock;
import ai.djl.pytorch.jni.IValue;
import ai.djl.pytorch.jni.JniUtils;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.URI;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * libtorch's native library, loaded once per process, and three small TorchScript modules (resources of this package)
 * that do what DJL's binding cannot:
 *
 * <ul>
 *   <li>{@code results}: reports the types of result tensors, and makes them contiguous, in types that the binding
 *       knows.
 *   <li>{@code typed}: converts an input to a type that the binding does not know.
 *   <li>{@code nothing}: returns None.
 * </ul>
 *
 * Thread-safe.
 */
final class PtRuntime {
    private static final Logger LOG = System.getLogger(PtRuntime.class.getName());
    private static final String CACHE = "DJL_CACHE_DIR";
    private static final String OFFLINE = "ai.djl.offline";

    private final PtNDManager manager;
    private final PtSymbolBlock results;
    private final PtSymbolBlock typed;
    private final PtSymbolBlock nothing;

    private PtRuntime(PtNDManager manager) throws IOException {
        this.manager = manager;
        results = bridge("results");
        typed = bridge("typed");
        nothing = bridge("nothing");
    }

    private PtSymbolBlock bridge(String name) throws IOException {
        try (InputStream in = PtRuntime.class.getResourceAsStream(name + ".pt")) {
            if (in == null) {
                throw new IOException("the plugin's jar does not contain " + name + ".pt");
            }
            PtSymbolBlock block = JniUtils.loadModule(manager, in, false, false);
            JniUtils.enableInferenceMode(block);
            return block;
        }
    }

    /**
     * Loads the library. DJL unpacks it to the cache directory first, unless that has been done, or the plugin's directory has it as
     * files. Nothing is downloaded.
     *
     * @throws LinkageError when the library does not run on this machine
     * @throws RuntimeException when it is missing or cannot be unpacked
     */
    static PtRuntime start(PtSettings settings, Path scratch) throws IOException {
        System.setProperty(OFFLINE, "true");
        System.setProperty("OPT_OUT_TRACKING", "true");
        // Of threads that set nothing else, see IntraOpThreads.
        System.setProperty("ai.djl.pytorch.num_threads", "1");
        System.setProperty("ai.djl.pytorch.num_interop_threads", Integer.toString(settings.interThreads()));
        if (System.getProperty(CACHE) == null && System.getenv(CACHE) == null) {
            Path cache = installedUnpacked();
            if (cache == null) {
                cache = cache();
            }
            if (cache == null) {
                cache = scratch.resolve("djl");
            }
            System.setProperty(CACHE, cache.toString());
            if (!Files.isDirectory(cache.resolve("pytorch"))) {
                LOG.log(Level.INFO, "unpacking PyTorch's library to {0}, once: 450 MB", cache);
            }
        }
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try {
            // DJL looks up its services through the context class loader.
            thread.setContextClassLoader(PtRuntime.class.getClassLoader());
            Engine engine = new PtEngineProvider().getEngine();
            if (engine == null) {
                throw new IllegalStateException("PyTorch did not start");
            }
            JniUtils.setGradMode(false);
            return new PtRuntime((PtNDManager) engine.newBaseManager(Device.cpu()));
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** The directory that an image has of DJL's cache, in the plugin's directory {@code native}; null without one. */
    private static @Nullable Path installedUnpacked() {
        URL libraries = PtRuntime.class.getClassLoader().getResource("djl/pytorch");
        if (libraries == null || !libraries.getProtocol().equals("file")) {
            return null;
        }
        return Path.of(URI.create(libraries.toString())).getParent();
    }

    /**
     * A directory for the unpacked library that only this user can write to, or null. Code is loaded from it, so a
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
        Path directory = root.resolve("nereid").resolve("djl");
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

    PtSymbolBlock load(String model, Path file) {
        PtSymbolBlock block = null;
        try {
            block = JniUtils.loadModule(manager, file, true, new String[0], new String[0], false);
            JniUtils.enableInferenceMode(block);
            return block;
        } catch (RuntimeException e) {
            if (block != null) {
                block.close();
            }
            throw PtErrors.loading(model, file, e);
        }
    }

    /** Creates a manager that owns the tensors of one run; the caller closes it. */
    PtNDManager newRequest() {
        return manager.newSubManager(Device.cpu());
    }

    /**
     * Makes a tensor over memory, which must outlive it. The binding ignores the buffer's position: it must be zero.
     */
    static PtNDArray wrap(PtNDManager request, ByteBuffer memory, long[] dims, DataType type) {
        return JniUtils.createNdFromByteBuffer(
                request, memory, new ai.djl.ndarray.types.Shape(dims), type, SparseFormat.DENSE, Device.cpu());
    }

    /** Makes a tensor with the same values in a type that the binding does not know. */
    PtNDArray typed(PtNDManager request, PtNDArray elements, TorchElementType type) {
        try (IValue in = IValue.from(elements);
                IValue number = IValue.from((long) type.number());
                IValue out = typed.forward(in, number)) {
            return out.toTensor(request);
        }
    }

    /** Creates a None, closed by the caller. */
    IValue nothing() {
        return nothing.forward();
    }

    /**
     * Result tensors in a form that the binding can read.
     *
     * @param types libtorch's type numbers of the original tensors
     * @param plain contiguous tensors in types that the binding knows, owned by the run's manager
     */
    record Results(long[] types, PtNDArray[] plain) {}

    Results results(PtNDManager request, PtNDArray... tensors) {
        try (IValue in = IValue.listFrom(tensors);
                IValue out = results.forward(in)) {
            IValue[] parts = out.toIValueTuple();
            try {
                return new Results(parts[0].toLongArray(), parts[1].toTensorArray(request));
            } finally {
                for (IValue part : parts) {
                    part.close();
                }
            }
        }
    }

    static ServingException missing(@Nullable String reason) {
        return ServingException.of(
                io.nereid.base.ErrorCode.FAILED_PRECONDITION,
                String.valueOf(reason),
                "libtorch needs Linux with glibc 2.29 or newer on x86-64, and 500 MB of disk in the user's cache"
                        + " directory; 'nereid plugins install pytorch' repairs a damaged installation");
    }
}
