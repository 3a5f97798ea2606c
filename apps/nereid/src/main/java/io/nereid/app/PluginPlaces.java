// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Where plugins lie: each in a directory of its name with its jars. Immutable; reads the disk on every call.
 *
 * @param own the directory of this user's plugins, which may not exist
 * @param home the distribution, or null when the program runs from somewhere else
 */
record PluginPlaces(Path own, @Nullable Path home) {
    static final String VARIABLE = "NEREID_PLUGIN_DIR";
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_-]*");

    /** Those that the environment names. */
    static PluginPlaces ofUser() {
        return of(System.getenv(VARIABLE));
    }

    /** As {@link #ofUser}, with another directory of the user's; null or empty for the usual one. */
    static PluginPlaces of(@Nullable String directory) {
        String home = System.getProperty("nereid.home");
        return new PluginPlaces(
                directory == null || directory.isEmpty() ? usual() : Path.of(directory),
                home == null ? null : Path.of(home));
    }

    /** {@code $XDG_DATA_HOME/nereid/plugins} or {@code ~/.local/share/nereid/plugins}. */
    private static Path usual() {
        String data = System.getenv("XDG_DATA_HOME");
        return data != null && data.startsWith("/")
                ? Path.of(data, "nereid", "plugins")
                : Path.of(System.getProperty("user.home", "."), ".local", "share", "nereid", "plugins");
    }

    /** The plugins by name with their directories; the user's before those of the distribution. */
    Map<String, Path> installed() {
        Map<String, Path> found = new TreeMap<>();
        List<Path> roots = new ArrayList<>(List.of(own));
        if (home != null) {
            roots.add(home.resolve("plugins"));
        }
        for (Path root : roots) {
            if (!Files.isDirectory(root)) {
                continue;
            }
            try (var inside = Files.list(root)) {
                inside.filter(Files::isDirectory)
                        .filter(p ->
                                NAME.matcher(String.valueOf(p.getFileName())).matches())
                        .forEach(p -> found.putIfAbsent(String.valueOf(p.getFileName()), p));
            } catch (IOException e) {
                throw ServingException.wrap(
                        ErrorCode.FAILED_PRECONDITION,
                        "cannot read the plugins in " + root,
                        "make the directory readable, or name another with " + VARIABLE,
                        e);
            }
        }
        return found;
    }

    /** The jars that a plugin is made of: its own and, for one of the house's, those that call them. */
    List<Path> jars(String name, Path directory) throws IOException {
        List<Path> jars = new ArrayList<>();
        Path calling = calling(name);
        if (calling != null) {
            jars.addAll(jars(calling));
        }
        jars.addAll(jars(directory));
        return jars;
    }

    /** The distribution's part of a plugin, or null. */
    private @Nullable Path calling(String name) {
        Path part = home == null ? null : home.resolve("lib").resolve("plugins").resolve(name);
        return part != null && Files.isDirectory(part) ? part : null;
    }

    private static List<Path> jars(Path directory) throws IOException {
        try (var inside = Files.list(directory)) {
            return inside.filter(p -> p.toString().endsWith(".jar")).sorted().toList();
        }
    }

    /** Removes a directory and what is in it. */
    static void delete(Path directory) throws IOException {
        try (var all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
