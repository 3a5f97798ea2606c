// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.kubernetes.localmodel.CachedModels;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The folders of models in the volume of a group. {@code models/FOLDER} has a model as pods mount it,
 * {@code downloads/FOLDER} what is not complete, and {@code complete/FOLDER} the number of bytes and the URI of a complete
 * model. A download is moved to its place as a whole after that record has been written: a model counts as complete when
 * it has the bytes of its record, so that neither an interrupted download, nor a folder that the kubelet has made for a
 * pod, nor a damaged one does. Confined to one thread at a time.
 */
final class ModelFolders {
    private static final String DOWNLOADS = "downloads";
    private static final String COMPLETE = "complete";
    private static final Pattern FOLDER = Pattern.compile("[0-9a-f]{16}");

    private final Path root;

    ModelFolders(Path root) {
        this.root = root;
    }

    /** Makes what is missing. */
    void prepare() {
        try {
            for (String part : List.of(CachedModels.MODELS, DOWNLOADS, COMPLETE)) {
                Files.createDirectories(root.resolve(part));
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the directory of models " + root + " cannot be written to: " + e,
                    "let the group of the agent (localModel.fsGroup of inferenceservice-config) write to the folder on"
                            + " the node",
                    e);
        }
    }

    Path model(String folder) {
        return root.resolve(CachedModels.MODELS).resolve(folder);
    }

    Path download(String folder) {
        return root.resolve(DOWNLOADS).resolve(folder);
    }

    private Path record(String folder) {
        return root.resolve(COMPLETE).resolve(folder);
    }

    /** The bytes of a complete model; -1 when it is not complete. */
    long complete(String folder, String uri) {
        try {
            List<String> lines = Files.readAllLines(record(folder), StandardCharsets.UTF_8);
            if (lines.size() == 2 && lines.get(1).equals(uri) && Files.isDirectory(model(folder))) {
                long bytes = size(model(folder));
                return lines.get(0).equals(Long.toString(bytes)) ? bytes : -1;
            }
            return -1;
        } catch (NoSuchFileException e) {
            return -1;
        } catch (IOException e) {
            throw failed("the model in " + model(folder) + " cannot be read", e);
        }
    }

    /** Moves a download to its place. */
    void complete(String folder, String uri, long bytes) {
        try {
            readable(download(folder));
            Path written = record(folder + ".new");
            Files.writeString(written, bytes + "\n" + uri + "\n");
            try (FileChannel file = FileChannel.open(written, StandardOpenOption.WRITE)) {
                file.force(true);
            }
            delete(model(folder));
            Files.move(written, record(folder), StandardCopyOption.ATOMIC_MOVE);
            Files.move(download(folder), model(folder), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw failed("the model cannot be moved to " + model(folder), e);
        }
    }

    /** Pods run as other users. */
    private static void readable(Path directory) throws IOException {
        if (!Files.getFileStore(directory).supportsFileAttributeView("posix")) {
            return;
        }
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path one : all.filter(path -> !Files.isSymbolicLink(path)).toList()) {
                Set<PosixFilePermission> permissions = new HashSet<>(Files.getPosixFilePermissions(one));
                boolean changed = permissions.add(PosixFilePermission.GROUP_READ);
                changed |= permissions.add(PosixFilePermission.OTHERS_READ);
                if (Files.isDirectory(one)) {
                    changed |= permissions.add(PosixFilePermission.GROUP_EXECUTE);
                    changed |= permissions.add(PosixFilePermission.OTHERS_EXECUTE);
                }
                if (changed) {
                    Files.setPosixFilePermissions(one, permissions);
                }
            }
        }
    }

    /** Removes the models, downloads and records of folders that are not listed. */
    void retain(Set<String> folders) {
        for (String part : List.of(COMPLETE, CachedModels.MODELS, DOWNLOADS)) {
            for (Path one : list(root.resolve(part))) {
                String name = one.getFileName().toString();
                // Other files of the administrator stay, and so does what a newer form may have.
                if (FOLDER.matcher(name).matches() && !folders.contains(name)) {
                    remove(one);
                }
            }
        }
    }

    /** The bytes of everything but a download. */
    long usedBeside(String folder) {
        long bytes = 0;
        try {
            for (Path one : list(root.resolve(CachedModels.MODELS))) {
                bytes += one.equals(model(folder)) ? 0 : size(one);
            }
            for (Path one : list(root.resolve(DOWNLOADS))) {
                bytes += one.equals(download(folder)) ? 0 : size(one);
            }
            return bytes;
        } catch (IOException e) {
            throw failed("the sizes of the models in " + root + " cannot be read", e);
        }
    }

    /** Removes the parts of other models' downloads, which are downloaded again. */
    void removeDownloadsBeside(String folder) {
        for (Path one : list(root.resolve(DOWNLOADS))) {
            if (!one.equals(download(folder))) {
                remove(one);
            }
        }
    }

    /** Removes a model with its record, and its download. */
    void remove(String folder) {
        remove(record(folder));
        remove(model(folder));
        remove(download(folder));
    }

    private static List<Path> list(Path directory) {
        try (Stream<Path> all = Files.list(directory)) {
            return all.sorted().toList();
        } catch (IOException e) {
            throw failed(directory + " cannot be listed", e);
        }
    }

    /** The bytes of the files in a directory. */
    static long size(Path path) throws IOException {
        long[] bytes = {0};
        Files.walkFileTree(path, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                bytes[0] += attributes.isRegularFile() ? attributes.size() : 0;
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
                if (e instanceof NoSuchFileException) {
                    return FileVisitResult.CONTINUE; // a part of a download that was completed meanwhile
                }
                throw e;
            }
        });
        return bytes[0];
    }

    private static void remove(Path path) {
        try {
            delete(path);
        } catch (IOException e) {
            throw failed(path + " cannot be removed", e);
        }
    }

    private static void delete(Path path) throws IOException {
        if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        Files.walkFileTree(path, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException e) throws IOException {
                if (e != null) {
                    throw e;
                }
                Files.deleteIfExists(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    private static ServingException failed(String what, IOException e) {
        return ServingException.wrap(ErrorCode.INTERNAL, what + ": " + e, e);
    }
}
