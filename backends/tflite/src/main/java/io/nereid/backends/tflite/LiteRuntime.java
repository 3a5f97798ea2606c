// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterCreate;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsCreate;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsDelete;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsSetErrorReporter;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteModelCreate;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteOk;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.Interpreter;
import org.bytedeco.tensorflowlite.InterpreterBuilder;
import org.bytedeco.tensorflowlite.OpResolver;
import org.bytedeco.tensorflowlite.TfLiteInterpreter;
import org.bytedeco.tensorflowlite.TfLiteInterpreterOptions;
import org.bytedeco.tensorflowlite.TfLiteModel;
import org.bytedeco.tensorflowlite.global.tensorflowlite;
import org.jspecify.annotations.Nullable;

/** TensorFlow Lite's native library, loaded once per process. Thread-safe. */
final class LiteRuntime {
    private static final Logger LOG = System.getLogger(LiteRuntime.class.getName());
    private static final String CACHE = "org.bytedeco.javacpp.cachedir";

    /** The only one; null before the first start that succeeds. Written by {@link #start} alone. */
    private static final AtomicReference<@Nullable LiteRuntime> STARTED = new AtomicReference<>();

    private final ErrorReporter reports = new ErrorReporter();
    private final CancellationCheck cancellations = new CancellationCheck();

    private LiteRuntime() {}

    /**
     * Loads the library. JavaCPP unpacks it to the cache directory first, unless that has been done. Every backend of
     * the process gets the same object: JavaCPP has native functions for ten objects of each callback class only.
     *
     * @throws LinkageError when the library is missing or does not run on this machine
     */
    static synchronized LiteRuntime start() {
        LiteRuntime runtime = STARTED.get();
        if (runtime == null) {
            runtime = load();
            STARTED.set(runtime);
        }
        return runtime;
    }

    private static LiteRuntime load() {
        // By default, JavaCPP frees native objects when they are garbage-collected, and runs System.gc() when it
        // believes that memory is short. This backend closes everything explicitly, and the server limits its memory
        // itself.
        System.setProperty("org.bytedeco.javacpp.nopointergc", "true");
        System.setProperty("org.bytedeco.javacpp.maxBytes", "0");
        System.setProperty("org.bytedeco.javacpp.maxPhysicalBytes", "0");
        if (System.getProperty(CACHE) == null) {
            Path cache = cache();
            if (cache != null) {
                System.setProperty(CACHE, cache.toString());
            }
        }
        Loader.load(tensorflowlite.class);
        return new LiteRuntime();
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

    ErrorReporter reports() {
        return reports;
    }

    CancellationCheck cancellations() {
        return cancellations;
    }

    /** Opens a model over bytes, which must stay allocated until it is deleted; null when they are damaged. */
    @Nullable TfLiteModel model(Pointer bytes, long size) {
        TfLiteModel model = TfLiteModelCreate(bytes, size);
        return model == null || model.isNull() ? null : model;
    }

    /**
     * Creates an interpreter by the C API, or returns null on a failure, whose reason {@link #reports()} has. It is not
     * for runs: see {@link #interpreter}.
     */
    @Nullable TfLiteInterpreter plain(TfLiteModel model) {
        TfLiteInterpreterOptions options = TfLiteInterpreterOptionsCreate();
        try {
            TfLiteInterpreterOptionsSetErrorReporter(options, reports, new NativePointer(0));
            TfLiteInterpreter made = TfLiteInterpreterCreate(model, options);
            return made == null || made.isNull() ? null : made;
        } finally {
            TfLiteInterpreterOptionsDelete(options);
        }
    }

    /**
     * Creates an interpreter, or returns null on a failure, whose reason {@link #reports()} has. The C++ classes do it,
     * because the C function {@code TfLiteInterpreterCreate} of this library never applies the delegates of the
     * operators: without XNNPACK a MobileNet takes seven times as long.
     *
     * @param operators the operators, which must stay allocated until the interpreter is freed
     */
    @Nullable Interpreter interpreter(LiteModelFile file, OpResolver operators, int threads) {
        try (InterpreterBuilder builder = file.builder(operators)) {
            Interpreter made = new Interpreter((Pointer) null);
            if (builder.SetNumThreads(threads) != kTfLiteOk || builder.apply(made) != kTfLiteOk || made.isNull()) {
                made.deallocate();
                return null;
            }
            made.SetCancellationFunction(new NativePointer(0), cancellations);
            return made;
        }
    }
}
