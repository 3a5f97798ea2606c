// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

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
 * The directories of installed plugins: a plugin is a directory of its name with jars in it. Immutable; reads the disk
 * on every call.
 *
 * @param own the directory of this user's plugins, which may not exist
 * @param home the distribution; null when the program does not run from one
 */
record PluginDirectories(Path own, @Nullable Path home) {
    static final String VARIABLE = "NEREID_PLUGIN_DIR";
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_-]*");

    /** Returns the directories that the environment configures. */
    static PluginDirectories ofUser() {
        return of(System.getenv(VARIABLE));
    }

    /** As {@link #ofUser}, with another user directory; null or empty for the default one. */
    static PluginDirectories of(@Nullable String directory) {
        String home = System.getProperty("nereid.home");
        return new PluginDirectories(
                directory == null || directory.isEmpty() ? defaultDirectory() : Path.of(directory),
                home == null ? null : Path.of(home));
    }

    /** {@code $XDG_DATA_HOME/nereid/plugins} or {@code ~/.local/share/nereid/plugins}. */
    private static Path defaultDirectory() {
        String data = System.getenv("XDG_DATA_HOME");
        return data != null && data.startsWith("/")
                ? Path.of(data, "nereid", "plugins")
                : Path.of(System.getProperty("user.home", "."), ".local", "share", "nereid", "plugins");
    }

    /** Returns the directories of the installed plugins by name; the user's take precedence over the distribution's. */
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

    /** Returns a plugin's jars: its own and, for a known plugin, the distribution's jars with the backend itself. */
    List<Path> jars(String name, Path directory) throws IOException {
        List<Path> jars = new ArrayList<>();
        Path calling = backendDirectory(name);
        if (calling != null) {
            jars.addAll(jars(calling));
        }
        jars.addAll(jars(directory));
        return jars;
    }

    /**
     * Returns the directory {@code native} of a plugin, or null. It has files of the plugin's jars, unpacked under the names that they
     * have in the jars: native libraries are then loaded from there, and nothing is unpacked at the first use.
     */
    static @Nullable Path unpacked(Path directory) {
        Path natives = directory.resolve("native");
        return Files.isDirectory(natives) ? natives : null;
    }

    /** Returns the distribution's directory with the backend of a plugin, or null. */
    private @Nullable Path backendDirectory(String name) {
        Path part = home == null ? null : home.resolve("lib").resolve("plugins").resolve(name);
        return part != null && Files.isDirectory(part) ? part : null;
    }

    private static List<Path> jars(Path directory) throws IOException {
        try (var inside = Files.list(directory)) {
            return inside.filter(p -> p.toString().endsWith(".jar")).sorted().toList();
        }
    }

    /** Deletes a directory recursively. */
    static void delete(Path directory) throws IOException {
        try (var all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
