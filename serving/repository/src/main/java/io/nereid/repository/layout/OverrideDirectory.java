// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.TextFiles;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A temporary directory with the files of a load request that overrides a model's files. It is deleted when it is
 * retired and all versions loaded from it are unloaded. Thread-safe: guarded by its monitor.
 */
public final class OverrideDirectory {
    private static final Logger LOG = LoggerFactory.getLogger(OverrideDirectory.class);
    private static final String PREFIX = "file:";
    /** The longest name of a file, in bytes, on the file systems of Linux. */
    private static final int LONGEST_NAME = 255;

    private final Path root;
    private final ModelEntry entry;

    @GuardedBy("this") private int loaded;

    @GuardedBy("this") private boolean retired;

    private OverrideDirectory(Path root, ModelEntry entry) {
        this.root = root;
        this.entry = entry;
    }

    /**
     * Writes the files into a new directory, which is deleted if that fails.
     *
     * @param files contents by path inside the model's directory, with or without a {@code file:} prefix
     * @throws ServingException INVALID_ARGUMENT for a path that leaves the model's directory or is also a directory
     */
    public static OverrideDirectory write(Path parent, String model, Map<String, byte[]> files) {
        Path root;
        try {
            Files.createDirectories(parent);
            root = Files.createTempDirectory(parent, "nereid-load-");
        } catch (IOException e) {
            throw unwritable(parent, e);
        }
        Path directory = root.resolve(model);
        OverrideDirectory scratch = new OverrideDirectory(root, new ModelEntry(model, root, directory, null, true));
        try {
            Files.createDirectories(directory);
            for (Map.Entry<String, byte[]> file : files.entrySet()) {
                write(directory, file.getKey(), file.getValue());
            }
            return scratch;
        } catch (IOException e) {
            scratch.delete();
            throw unwritable(root, e);
        } catch (RuntimeException e) {
            scratch.delete();
            throw e;
        }
    }

    private static ServingException unwritable(Path where, IOException e) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                "cannot write the model's files below " + where + ": " + TextFiles.reason(e),
                "let the server write there, or give it another scratch directory");
    }

    private static void write(Path directory, String key, byte[] content) throws IOException {
        // As in Triton, a leading slash is the model's directory.
        String name = (key.startsWith(PREFIX) ? key.substring(PREFIX.length()) : key).replaceFirst("^/+", "");
        Path file;
        try {
            file = directory.resolve(name).normalize();
        } catch (InvalidPathException e) {
            throw ServingException.invalidArgument("Invalid file parameter " + ProblemCollector.quote(PREFIX + name)
                    + ", it is not the name of a file");
        }
        if (name.indexOf('\\') >= 0 || !file.startsWith(directory) || file.equals(directory)) {
            throw ServingException.invalidArgument(
                    "Invalid file parameter " + ProblemCollector.quote(PREFIX + name) + " with normalized path '"
                            + directory.relativize(file) + "' must stay within model directory.",
                    "give a path like 'file:1/model.onnx'");
        }
        for (Path element : directory.relativize(file)) {
            int length = element.toString().getBytes(StandardCharsets.UTF_8).length;
            if (length > LONGEST_NAME) {
                throw ServingException.invalidArgument(
                        "Invalid file parameter " + ProblemCollector.quote(PREFIX + name) + ", a name in it has "
                                + length + " bytes (expected: at most " + LONGEST_NAME + ")",
                        "give it a shorter name");
            }
        }
        if (Files.isDirectory(file)) {
            throw ServingException.invalidArgument("Invalid file parameter " + ProblemCollector.quote(PREFIX + name)
                    + ", directory has been created as a file");
        }
        for (Path p = file.getParent(); p != null && !p.equals(directory); p = p.getParent()) {
            if (Files.isRegularFile(p)) {
                throw ServingException.invalidArgument("Invalid file parameter " + ProblemCollector.quote(PREFIX + name)
                        + ", directory has been created as a file");
            }
        }
        Path parent = file.getParent();
        if (parent != null) {
            Files.createDirectories(parent);
        }
        Files.write(file, content);
    }

    public ModelEntry entry() {
        return entry;
    }

    /** Deletes the files as soon as no loaded version uses them. */
    public synchronized void retire() {
        retired = true;
        removeIfUnused();
    }

    private synchronized void began() {
        loaded++;
    }

    private synchronized void ended() {
        loaded--;
        removeIfUnused();
    }

    @GuardedBy("this") private void removeIfUnused() {
        if (retired && loaded == 0) {
            delete();
        }
    }

    private void delete() {
        List<Path> paths;
        try (Stream<Path> walk = Files.walk(root)) {
            paths = walk.sorted(Comparator.reverseOrder()).toList();
        } catch (IOException e) {
            LOG.warn("cannot remove {}: {}", root, TextFiles.reason(e));
            return;
        }
        for (Path path : paths) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                LOG.warn("cannot remove {}: {}", path, TextFiles.reason(e));
            }
        }
    }

    /** Returns a loader that keeps the files from its first load until its unload. */
    public Loader guard(Loader loader) {
        return new Guarded(this, loader);
    }

    /** Delegates all calls and counts its use of the files. Like every loader, confined to one thread at a time. */
    private static final class Guarded implements Loader {
        private final OverrideDirectory scratch;
        private final Loader loader;
        private boolean began;

        Guarded(OverrideDirectory scratch, Loader loader) {
            this.scratch = scratch;
            this.loader = loader;
        }

        @Override
        public ServableId id() {
            return loader.id();
        }

        @Override
        public String fingerprint() {
            return loader.fingerprint();
        }

        @Override
        public String backend() {
            return loader.backend();
        }

        @Override
        public long estimateBytes() {
            return loader.estimateBytes();
        }

        @Override
        public List<String> dependencies() {
            return loader.dependencies();
        }

        @Override
        public boolean updateInPlace(Loader next) {
            return loader.updateInPlace(next instanceof Guarded g ? g.loader : next);
        }

        @Override
        public Loader newLoader() {
            return new Guarded(scratch, loader.newLoader());
        }

        @Override
        public Servable load() {
            if (!began) {
                began = true;
                scratch.began();
            }
            return loader.load();
        }

        @Override
        public void warm() {
            loader.warm();
        }

        @Override
        public void unload() {
            try {
                loader.unload();
            } finally {
                if (began) {
                    began = false;
                    scratch.ended();
                }
            }
        }
    }
}
