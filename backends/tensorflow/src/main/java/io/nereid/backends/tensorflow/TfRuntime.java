// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.bytedeco.javacpp.Loader;
import org.jspecify.annotations.Nullable;
import org.tensorflow.internal.c_api.global.tensorflow;

/** TensorFlow's native library, loaded once per process. Immutable. */
final class TfRuntime {
    private static final Logger LOG = System.getLogger(TfRuntime.class.getName());
    private static final String CACHE = "org.bytedeco.javacpp.cachedir";

    private final String version;

    private TfRuntime(String version) {
        this.version = version;
    }

    /**
     * Loads the library. JavaCPP unpacks it to the cache directory first, unless that has been done, or the plugin's directory has it
     * as a file.
     *
     * @throws LinkageError when the library is missing or does not run on this machine
     */
    static TfRuntime start() {
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
                if (!installedUnpacked() && !unpacked(cache)) {
                    LOG.log(Level.INFO, "unpacking TensorFlow's library to {0}, once: 650 MB", cache);
                }
            }
        }
        Loader.load(tensorflow.class);
        return new TfRuntime(
                new String(tensorflow.TF_Version().getStringBytes(), java.nio.charset.StandardCharsets.UTF_8));
    }

    /** TensorFlow's version, such as 2.18.0. */
    String version() {
        return version;
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

    /** Whether the plugin's directory has the library as a file, as in an image. */
    private static boolean installedUnpacked() {
        URL library = tensorflow.class.getResource(
                "/org/tensorflow/internal/c_api/" + Loader.getPlatform() + "/libjnitensorflow.so");
        return library != null && library.getProtocol().equals("file");
    }

    private static boolean unpacked(Path cache) {
        try (var inside = Files.list(cache)) {
            return inside.anyMatch(p -> String.valueOf(p.getFileName()).startsWith("tensorflow-core-native"));
        } catch (IOException e) {
            return true;
        }
    }

    /** Loads a library of custom operators. It stays loaded until the process ends. */
    void loadOperators(String model, Path library) {
        try (TfStatus status = new TfStatus()) {
            tensorflow.TF_LoadLibrary(library.toString(), status.handle());
            // ALREADY_EXISTS: another model loaded the library before, so its operators are registered.
            if (status.failed() && status.code() != ErrorCode.ALREADY_EXISTS) {
                throw ServingException.invalidArgument(
                        "unable to load operator library '" + library + "' of model '" + model + "': " + status.text(),
                        "build it for TensorFlow " + version + " on this machine");
            }
        }
    }
}
