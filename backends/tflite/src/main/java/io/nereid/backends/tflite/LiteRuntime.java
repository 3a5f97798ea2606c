// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterCreate;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsCreate;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsDelete;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsEnableCancellation;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsSetErrorReporter;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterOptionsSetNumThreads;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteModelCreate;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.TfLiteInterpreter;
import org.bytedeco.tensorflowlite.TfLiteInterpreterOptions;
import org.bytedeco.tensorflowlite.TfLiteModel;
import org.bytedeco.tensorflowlite.global.tensorflowlite;
import org.jspecify.annotations.Nullable;

/** The engine's library, loaded once. Thread-safe. */
final class LiteRuntime {
    private static final Logger LOG = System.getLogger(LiteRuntime.class.getName());
    private static final String CACHE = "org.bytedeco.javacpp.cachedir";

    private final Reports reports = new Reports();

    private LiteRuntime() {}

    /**
     * Loads the library, which unpacks it first where that has not been done.
     *
     * @throws LinkageError when it is absent or does not fit this machine
     */
    static LiteRuntime start() {
        // The binding frees what the collector finds, and calls the collector when it believes that memory is short.
        // Everything is closed by hand here, and memory is the server's to count.
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

    /** A directory of this user's alone for the unpacked library, or null where there is none. */
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
                LOG.log(Level.WARNING, directory + " can be written by other users, so the library is not kept there");
                return null;
            }
            return Files.isWritable(directory) ? directory : null;
        } catch (IOException | UnsupportedOperationException e) {
            LOG.log(Level.DEBUG, "cannot use " + directory, e);
            return null;
        }
    }

    Reports reports() {
        return reports;
    }

    /** A model over bytes that must stay where they are; null when they are damaged. */
    @Nullable TfLiteModel model(Pointer bytes, long size) {
        TfLiteModel model = TfLiteModelCreate(bytes, size);
        return model == null || model.isNull() ? null : model;
    }

    /** An interpreter; null when there can be none, and the reports say why. */
    @Nullable TfLiteInterpreter interpreter(TfLiteModel model, int threads) {
        TfLiteInterpreterOptions options = TfLiteInterpreterOptionsCreate();
        try {
            TfLiteInterpreterOptionsSetNumThreads(options, threads);
            TfLiteInterpreterOptionsSetErrorReporter(options, reports, new Address(0));
            TfLiteInterpreterOptionsEnableCancellation(options, true);
            TfLiteInterpreter made = TfLiteInterpreterCreate(model, options);
            return made == null || made.isNull() ? null : made;
        } finally {
            TfLiteInterpreterOptionsDelete(options);
        }
    }
}
