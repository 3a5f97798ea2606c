// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.ListingUtil;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/** The content of an artifact's directory: files with digests, links and directories. Thread-safe: one lock. */
public final class ContentManifest {
    private static final String DIRECTORY = "d";

    private record Line(String kind, long bytes) {}

    @GuardedBy("this") private final NavigableMap<String, Line> lines = new TreeMap<>();

    public synchronized void file(String path, String sha256, long bytes) {
        lines.put(path, new Line("f " + sha256, bytes));
    }

    public synchronized void link(String path, String target) {
        lines.put(path, new Line("l " + target, 0));
    }

    synchronized void directory(String path) {
        lines.put(path, new Line(DIRECTORY, 0));
    }

    /** Removes a path and all paths below it. */
    synchronized void remove(String path) {
        lines.remove(path);
        lines.subMap(path + "/", path + "0").clear();
    }

    synchronized int files() {
        return (int) lines.values().stream()
                .filter(line -> !line.kind().equals(DIRECTORY))
                .count();
    }

    public synchronized long bytes() {
        return lines.values().stream().mapToLong(Line::bytes).sum();
    }

    public synchronized void requireFiles(String uri) {
        if (files() == 0) {
            throw ListingUtil.empty(uri);
        }
    }

    /** The digest of all paths and file digests. Only empty directories count, since others follow from their files. */
    public synchronized String digest() {
        MessageDigest digest = ContentDigests.of("SHA-256");
        for (Map.Entry<String, Line> entry : lines.entrySet()) {
            String path = entry.getKey();
            String kind = entry.getValue().kind();
            String next = lines.higherKey(path + "/");
            boolean full = next != null && next.startsWith(path + "/");
            if (!kind.equals(DIRECTORY) || !full) {
                digest.update((path + "\0" + kind + "\n").getBytes(StandardCharsets.UTF_8));
            }
        }
        return "sha256:" + ContentDigests.hex(digest.digest());
    }

    static ServingException unsafe(String where, String why) {
        return ServingException.invalidArgument(where + " cannot be unpacked: " + why);
    }
}
