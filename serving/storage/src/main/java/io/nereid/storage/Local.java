// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
 * What is on this machine already: a directory is used where it is; for a single file, an archive or a choice by
 * patterns a tree is made in the cache, of links or of what the archive holds. Stateless but for the cache.
 */
final class Local {
    private final Download.Shop shop;

    Local(Download.Shop shop) {
        this.shop = shop;
    }

    private record Found(Path path, String name, long size, long modified) {}

    /** Where a URI of the families file and pvc leads. */
    static Path resolve(String uri, Uris.Kind kind, @Nullable Path pvcRoot) {
        try {
            if (kind == Uris.Kind.FILE) {
                return Path.of(uri.startsWith("/") ? uri : uri.substring("file://".length()))
                        .normalize();
            }
            String rest = Paths.safe(uri.substring("pvc://".length()), Uris.shown(uri));
            if (pvcRoot == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        Uris.shown(uri) + " needs a directory of claims, and none is configured",
                        "configure the directory whose sub-directories are the claims");
            }
            int slash = rest.indexOf('/');
            Path claim = pvcRoot.resolve(slash < 0 ? rest : rest.substring(0, slash));
            if (!Files.isDirectory(claim)) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND,
                        Uris.shown(uri) + ": there is no directory " + claim,
                        "make the claim's directory");
            }
            Path path = slash < 0 ? claim : claim.resolve(rest.substring(slash + 1));
            if (Files.exists(path) && !path.toRealPath().startsWith(claim.toRealPath())) {
                throw ServingException.of(
                        ErrorCode.PERMISSION_DENIED, Uris.shown(uri) + " leads out of the claim through a link");
            }
            return path;
        } catch (InvalidPathException e) {
            throw Uris.refused(uri, "the path cannot be used");
        } catch (IOException e) {
            throw Disk.failed(Uris.shown(uri) + " cannot be read", e);
        }
    }

    Stored open(String uri, Path path, Patterns patterns, Cancel cancel) {
        String shown = Uris.shown(uri);
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
                        path, Paths.last(path.toString()), Files.readAttributes(path, BasicFileAttributes.class)));
            }
            boolean archive = found.size() == 1 && Paths.archive(found.get(0).name());
            List<Found> wanted = archive
                    ? found
                    : found.stream().filter(f -> patterns.wants(f.name())).toList();
            if (wanted.isEmpty()) {
                throw Listings.empty(uri);
            }
            Manifest listing = new Manifest();
            wanted.forEach(f -> listing.file(f.name(), f.size() + " " + f.modified(), f.size()));
            if (Files.isDirectory(path) && !archive && patterns.isAll()) {
                return new InPlace(path, listing.digest(), listing.bytes());
            }
            String key = "local-" + Digests.sha256(path + "\n" + listing.digest() + "\n" + patterns);
            Stored known = shop.cache().find(key, true).orElse(null);
            if (known != null) {
                return known;
            }
            Stored stored = make(shown, path, wanted, archive, listing, patterns, cancel);
            shop.cache().remember(key, stored.digest());
            return stored;
        } catch (IOException e) {
            throw Disk.failed(shown + " cannot be read", e);
        }
    }

    private Stored make(
            String shown,
            Path path,
            List<Found> wanted,
            boolean archive,
            Manifest listing,
            Patterns patterns,
            Cancel cancel)
            throws IOException {
        Path workshop = shop.cache().workshop();
        try (Space space = shop.cache().space(shown)) {
            Path tree = Files.createDirectory(workshop.resolve("tree"));
            if (archive) {
                Manifest manifest = new Manifest();
                StorageOptions.Limits limits = shop.options().limits();
                Tree into = new Tree(tree, shown, limits, shop.disk(), space, 0, cancel, manifest, patterns, null);
                new Unpack(into, limits, shown)
                        .archive(wanted.get(0).path(), wanted.get(0).name());
                into.finish();
                manifest.requireFiles(shown);
                Download.settle(tree);
                return shop.cache().publish(workshop, manifest.digest(), manifest.bytes(), shown);
            }
            for (Found file : wanted) {
                Path link = tree.resolve(file.name());
                Files.createDirectories(link.toAbsolutePath().getParent());
                Files.createSymbolicLink(link, file.path().toAbsolutePath());
            }
            // The links are what is kept; the place is in the digest, for equal files may be in two places.
            listing.link(".", path.toString());
            return shop.cache().publish(workshop, listing.digest(), 0, shown);
        } finally {
            Disk.deleteQuietly(workshop);
        }
    }

    private static void walk(Path root, List<Found> found, Cancel cancel) throws IOException {
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

    /** A directory used where it is. */
    private static final class InPlace implements Stored {
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
            // Nothing is held.
        }

        @Override
        public String toString() {
            return "Stored[" + path + "]";
        }
    }
}
