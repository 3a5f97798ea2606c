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
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The engine's library, loaded once, and the small modules that bridge what its binding cannot do. Thread-safe. */
final class PtRuntime {
    private static final Logger LOG = System.getLogger(PtRuntime.class.getName());
    private static final String CACHE = "DJL_CACHE_DIR";
    private static final String OFFLINE = "ai.djl.offline";

    private final PtNDManager manager;
    private final PtSymbolBlock results;
    private final PtSymbolBlock typed;
    private final PtSymbolBlock nothing;

    private int intraThreads;

    private PtRuntime(PtNDManager manager, int intraThreads) throws IOException {
        this.manager = manager;
        this.intraThreads = intraThreads;
        results = bridge("results");
        typed = bridge("typed");
        nothing = bridge("nothing");
    }

    private PtSymbolBlock bridge(String name) throws IOException {
        try (InputStream in = PtRuntime.class.getResourceAsStream(name + ".pt")) {
            if (in == null) {
                throw new IOException("the plugin's jar lacks " + name + ".pt");
            }
            PtSymbolBlock block = JniUtils.loadModule(manager, in, false, false);
            JniUtils.enableInferenceMode(block);
            return block;
        }
    }

    /**
     * Loads the library, which unpacks it first where that has not been done. Nothing is fetched from anywhere.
     *
     * @throws LinkageError when it does not fit this machine
     * @throws RuntimeException when it is absent, or cannot be unpacked
     */
    static PtRuntime start(PtSettings settings, Path scratch) throws IOException {
        System.setProperty(OFFLINE, "true");
        System.setProperty("OPT_OUT_TRACKING", "true");
        int intra = Math.max(1, settings.intraThreads());
        System.setProperty("ai.djl.pytorch.num_threads", Integer.toString(intra));
        System.setProperty("ai.djl.pytorch.num_interop_threads", Integer.toString(settings.interThreads()));
        if (System.getProperty(CACHE) == null && System.getenv(CACHE) == null) {
            Path cache = cache();
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
            // The binding looks for its parts through this one.
            thread.setContextClassLoader(PtRuntime.class.getClassLoader());
            Engine engine = new PtEngineProvider().getEngine();
            if (engine == null) {
                throw new IllegalStateException("the engine did not start");
            }
            JniUtils.setGradMode(false);
            return new PtRuntime((PtNDManager) engine.newBaseManager(Device.cpu()), intra);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** A directory of this user's alone for the unpacked library, or null where there is none. */
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
                LOG.log(Level.WARNING, directory + " can be written by other users, so the library is not kept there");
                return null;
            }
            return Files.isWritable(directory) ? directory : null;
        } catch (IOException | UnsupportedOperationException e) {
            LOG.log(Level.DEBUG, "cannot use " + directory, e);
            return null;
        }
    }

    /** The threads of one operation, for the whole process: the last model that says something is heard. */
    synchronized void threads(String model, int wanted) {
        if (wanted > 0 && wanted != intraThreads) {
            LOG.log(
                    Level.WARNING,
                    "model ''{0}'' sets the threads of one operation to {1} for every PyTorch model (they were {2})",
                    model,
                    wanted,
                    intraThreads);
            JniUtils.setNumThreads(wanted);
            intraThreads = wanted;
        }
    }

    synchronized int threads() {
        return intraThreads;
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

    /** Where the tensors of one request live; the caller closes it. */
    PtNDManager newRequest() {
        return manager.newSubManager(Device.cpu());
    }

    /** A tensor over memory; its position is ignored, so it must be zero. */
    static PtNDArray wrap(PtNDManager request, ByteBuffer memory, long[] dims, DataType type) {
        return JniUtils.createNdFromByteBuffer(
                request, memory, new ai.djl.ndarray.types.Shape(dims), type, SparseFormat.DENSE, Device.cpu());
    }

    /** A tensor with the same values in a type that the binding does not know. */
    PtNDArray typed(PtNDManager request, PtNDArray elements, ElementType type) {
        try (IValue in = IValue.from(elements);
                IValue number = IValue.from((long) type.number());
                IValue out = typed.forward(in, number)) {
            return out.toTensor(request);
        }
    }

    /** None. The caller closes it. */
    IValue nothing() {
        return nothing.forward();
    }

    /**
     * Types, and elements in order in types that the binding knows.
     *
     * @param types numbers in libtorch
     * @param plain in the request's manager
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
                "the engine needs Linux with glibc 2.29 or newer on x86-64, and 500 MB of disk in the user's cache"
                        + " directory; 'nereid plugins install pytorch' mends a damaged installation");
    }
}
