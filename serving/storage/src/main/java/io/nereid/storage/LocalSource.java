// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.archive.ArchiveExtractor;
import io.nereid.storage.archive.ContentManifest;
import io.nereid.storage.archive.ExtractionDirectory;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.cache.CacheReservation;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.object.ListingUtil;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Serves {@code file://} and {@code pvc://} URIs. A directory is used in place. For a single file or a selection by
 * patterns, a directory of symbolic links is made in the target; an archive is unpacked into the target. Thread-safe:
 * stateless except for the target.
 */
final class LocalSource {
    private final Download.DownloadContext context;
    private final boolean inPlace;

    /** @param inPlace whether a directory is used where it is; else links to its files are made, too */
    LocalSource(Download.DownloadContext context, boolean inPlace) {
        this.context = context;
        this.inPlace = inPlace;
    }

    private record Found(Path path, String name, long size, long modified) {}

    /**
     * Returns the local path of a {@code file://} or {@code pvc://} URI. A claim's path must not lead out of the claim.
     */
    static Path resolve(String uri, StorageUris.Kind kind, @Nullable Path pvcRoot) {
        try {
            if (kind == StorageUris.Kind.FILE) {
                return Path.of(uri.startsWith("/") ? uri : uri.substring("file://".length()))
                        .normalize();
            }
            String rest = ObjectPaths.safe(uri.substring("pvc://".length()), StorageUri.shown(uri));
            if (pvcRoot == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        StorageUri.shown(uri)
                                + " needs a directory of persistent volume claims, which is not configured",
                        "configure the directory whose sub-directories are the claims");
            }
            int slash = rest.indexOf('/');
            Path claim = pvcRoot.resolve(slash < 0 ? rest : rest.substring(0, slash));
            if (!Files.isDirectory(claim)) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND,
                        StorageUri.shown(uri) + ": there is no directory " + claim,
                        "create the claim's directory");
            }
            Path path = slash < 0 ? claim : claim.resolve(rest.substring(slash + 1));
            if (Files.exists(path) && !path.toRealPath().startsWith(claim.toRealPath())) {
                throw ServingException.of(
                        ErrorCode.PERMISSION_DENIED, StorageUri.shown(uri) + " leads out of the claim through a link");
            }
            return path;
        } catch (InvalidPathException e) {
            throw StorageUris.invalid(uri, "the path cannot be used");
        } catch (IOException e) {
            throw CacheFileSystem.failed(StorageUri.shown(uri) + " cannot be read", e);
        }
    }

    StorageLease open(String uri, Path path, GlobFilter patterns, CancellationToken cancel) {
        String shown = StorageUri.shown(uri);
        if (!Files.exists(path)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Local path " + shown + " does not exist.",
                    "check the path; this server must see it");
        }
        try {
            List<Found> found = new ArrayList<>();
            if (Files.isDirectory(path)) {
                walk(path, found, cancel);
            } else {
                found.add(found(
                        path,
                        ObjectPaths.last(path.toString()),
                        Files.readAttributes(path, BasicFileAttributes.class)));
            }
            boolean archive =
                    found.size() == 1 && ObjectPaths.archive(found.get(0).name());
            List<Found> wanted = archive
                    ? found
                    : found.stream().filter(f -> patterns.wants(f.name())).toList();
            if (wanted.isEmpty()) {
                throw ListingUtil.empty(uri);
            }
            ContentManifest listing = new ContentManifest();
            wanted.forEach(f -> listing.file(f.name(), f.size() + " " + f.modified(), f.size()));
            if (inPlace && Files.isDirectory(path) && !archive && patterns.isAll()) {
                return new InPlace(path, listing.digest(), listing.bytes());
            }
            String key = "local-" + ContentDigests.sha256(path + "\n" + listing.digest() + "\n" + patterns);
            StorageLease known = context.target().find(key, true).orElse(null);
            if (known != null) {
                return known;
            }
            StorageLease stored = make(shown, path, wanted, archive, listing, patterns, cancel);
            context.target().remember(key, stored.digest());
            return stored;
        } catch (IOException e) {
            throw CacheFileSystem.failed(shown + " cannot be read", e);
        }
    }

    private StorageLease make(
            String shown,
            Path path,
            List<Found> wanted,
            boolean archive,
            ContentManifest listing,
            GlobFilter patterns,
            CancellationToken cancel)
            throws IOException {
        Path stagingDirectory = context.target().stagingDirectory();
        try (CacheReservation space = context.target().space(shown)) {
            Path tree = Files.createDirectory(stagingDirectory.resolve("tree"));
            if (archive) {
                ContentManifest manifest = new ContentManifest();
                StorageOptions.Limits limits = context.options().limits();
                ExtractionDirectory into = new ExtractionDirectory(
                        tree, shown, limits, context.disk(), space, 0, cancel, manifest, patterns, null);
                new ArchiveExtractor(into, limits, shown)
                        .archive(wanted.get(0).path(), wanted.get(0).name());
                into.finish();
                manifest.requireFiles(shown);
                return context.target().publish(stagingDirectory, manifest.digest(), manifest.bytes(), shown);
            }
            for (Found file : wanted) {
                Path link = tree.resolve(file.name());
                Files.createDirectories(link.toAbsolutePath().getParent());
                Files.createSymbolicLink(link, file.path().toAbsolutePath());
            }
            // The target holds links only. Equal files may lie in two directories, so the path is part of the digest.
            listing.link(".", path.toString());
            return context.target().publish(stagingDirectory, listing.digest(), 0, shown);
        } finally {
            CacheFileSystem.deleteQuietly(stagingDirectory);
        }
    }

    private static void walk(Path root, List<Found> found, CancellationToken cancel) throws IOException {
        Files.walkFileTree(root, EnumSet.of(FileVisitOption.FOLLOW_LINKS), 64, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                cancel.check();
                if (attributes.isRegularFile()) {
                    found.add(found(file, root.relativize(file).toString(), attributes));
                }
                return FileVisitResult.CONTINUE;
            }
        });
    }

    private static Found found(Path file, String name, BasicFileAttributes attributes) {
        return new Found(
                file, name, attributes.size(), attributes.lastModifiedTime().toMillis());
    }

    /** A lease on a directory that is used in place. Immutable. */
    private static final class InPlace implements StorageLease {
        private final Path path;
        private final String digest;
        private final long bytes;

        InPlace(Path path, String digest, long bytes) {
            this.path = path;
            this.digest = digest;
            this.bytes = bytes;
        }

        @Override
        public Path path() {
            return path;
        }

        @Override
        public String digest() {
            return digest;
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public boolean current() {
            return true;
        }

        @Override
        public void close() {
            // The directory is not in the cache, so nothing protects or evicts it.
        }

        @Override
        public String toString() {
            return "StorageLease[" + path + "]";
        }
    }
}
