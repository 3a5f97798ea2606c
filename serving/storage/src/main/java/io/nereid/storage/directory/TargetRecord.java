// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.directory;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.request.StorageJson;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What was fetched into a directory: the file {@value #NAME} in it, JSON. Immutable.
 *
 * @param sources what each source has put there
 */
record TargetRecord(List<Source> sources) {
    /** The name has no extension: servers choose the model's file by its extension. */
    static final String NAME = ".nereid-fetch";

    private static final Logger LOG = LoggerFactory.getLogger(TargetRecord.class);
    private static final int FORMAT = 1;

    TargetRecord {
        sources = List.copyOf(sources);
    }

    /**
     * The content of one source. Immutable.
     *
     * @param id digest of the URI
     * @param uri without secrets
     * @param digest of the content
     * @param names of the content; none while it may be incomplete
     * @param files of the content; while it may be incomplete, those of the earlier content too
     */
    record Source(String id, String uri, String digest, List<String> names, List<TargetFile> files) {
        Source {
            names = List.copyOf(names);
            files = List.copyOf(files);
        }

        long bytes() {
            return files.stream().mapToLong(TargetFile::size).sum();
        }

        Source withNames(List<String> all) {
            return new Source(id, uri, digest, all, files);
        }
    }

    /**
     * A file or a symbolic link. Immutable.
     *
     * @param path relative to the directory
     * @param modified in milliseconds; 0 for a link
     * @param link the target of a link, or null
     */
    record TargetFile(
            String path, long size, long modified, @Nullable String link) {}

    /** Reads the record of a directory; empty when there is none, or a damaged one. */
    static TargetRecord read(Path directory) {
        Path file = directory.resolve(NAME);
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            return new TargetRecord(List.of());
        }
        try {
            JsonNode tree = StorageJson.read(Files.readString(file), NAME);
            if (tree.path("format").asInt() != FORMAT) {
                throw new IOException("its format is " + tree.path("format") + ", not " + FORMAT);
            }
            List<Source> sources = new ArrayList<>();
            for (JsonNode source : tree.path("sources")) {
                sources.add(source(source));
            }
            return new TargetRecord(sources);
        } catch (IOException | ServingException e) {
            LOG.warn("{} is ignored: {}", file, e.getMessage());
            return new TargetRecord(List.of());
        }
    }

    private static Source source(JsonNode tree) {
        List<String> names = new ArrayList<>();
        tree.path("names").forEach(name -> names.add(name.asText()));
        List<TargetFile> files = new ArrayList<>();
        for (JsonNode file : tree.path("files")) {
            files.add(new TargetFile(
                    file.path("path").asText(),
                    file.path("size").asLong(),
                    file.path("modified").asLong(),
                    file.has("link") ? file.path("link").asText() : null));
        }
        return new Source(
                tree.path("id").asText(),
                tree.path("uri").asText(),
                tree.path("digest").asText(),
                names,
                files);
    }

    void write(Path directory) throws IOException {
        ObjectNode tree = StorageJson.object();
        tree.put("format", FORMAT);
        ArrayNode all = tree.putArray("sources");
        for (Source source : sources) {
            ObjectNode node = all.addObject();
            node.put("id", source.id());
            node.put("uri", source.uri());
            node.put("digest", source.digest());
            ArrayNode names = node.putArray("names");
            source.names().forEach(names::add);
            ArrayNode files = node.putArray("files");
            for (TargetFile file : source.files()) {
                ObjectNode entry = files.addObject().put("path", file.path());
                if (file.link() != null) {
                    entry.put("link", file.link());
                } else {
                    entry.put("size", file.size()).put("modified", file.modified());
                }
            }
        }
        Path file = directory.resolve(NAME);
        CacheFileSystem.replace(file, tree.toString().getBytes(StandardCharsets.UTF_8));
        try {
            // Another container may have another user.
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        } catch (UnsupportedOperationException e) {
            LOG.debug("{} keeps its mode: the file system has none", file);
        }
    }

    @Nullable Source source(String id) {
        return sources.stream().filter(s -> s.id().equals(id)).findFirst().orElse(null);
    }

    /** This record with another content of one source. */
    TargetRecord with(Source source) {
        List<Source> all = new ArrayList<>(without(source.id()).sources());
        all.add(source);
        return new TargetRecord(all);
    }

    TargetRecord without(String id) {
        return new TargetRecord(sources.stream().filter(s -> !s.id().equals(id)).toList());
    }

    /** The paths of all files. */
    Set<String> paths() {
        Set<String> paths = new HashSet<>();
        sources.forEach(source -> source.files().forEach(file -> paths.add(file.path())));
        return paths;
    }
}
