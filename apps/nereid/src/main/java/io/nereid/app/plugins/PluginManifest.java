// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A plugin that this program knows: its libraries are fetched by {@code nereid plugins install}. Immutable.
 *
 * @param name the name of the plugin
 * @param description a description of one line
 * @param licence the licence of its libraries
 * @param backends its backends
 * @param storage the schemes of its storage providers
 * @param caches the names of its response caches
 * @param devices the names of its drivers of devices
 * @param libraries for {@link PluginKind#LIBRARIES}, the system property that gets the directory of the plugin, by which the backend
 *     of the distribution finds the libraries; else empty
 * @param needs what the plugin needs of the machine that it does not fetch; empty for nothing
 * @param unpackedBytes size of the files that its first use unpacks into the user's cache directory
 * @param artifacts its libraries; none when everything that it needs comes with the distribution
 */
record PluginManifest(
        String name,
        String description,
        String licence,
        List<KnownBackend> backends,
        List<String> storage,
        List<String> caches,
        List<String> devices,
        String libraries,
        String needs,
        long unpackedBytes,
        List<Artifact> artifacts) {
    /**
     * What this program knows of a backend without its plugin.
     *
     * @param name the name of the backend
     * @param platforms its platform names in model configurations
     * @param files the files by which its models are recognised
     * @param recognised which of the files of these names and extensions are its models; all of them when empty
     */
    record KnownBackend(String name, List<String> platforms, List<String> files, List<FilePattern> recognised) {
        boolean recognises(Path file) {
            return recognised.isEmpty() || recognised.stream().anyMatch(p -> p.matches(file));
        }
    }

    /**
     * A description of model files.
     *
     * @param name matches the whole file name
     * @param head is found in the first bytes of the file; null when the name decides
     */
    record FilePattern(Pattern name, @Nullable Pattern head) {
        private static final int HEAD_BYTES = 4096;

        boolean matches(Path file) {
            if (!name.matcher(String.valueOf(file.getFileName())).matches()) {
                return false;
            }
            if (head == null) {
                return true;
            }
            try (InputStream in = Files.newInputStream(file)) {
                return head.matcher(new String(in.readNBytes(HEAD_BYTES), StandardCharsets.ISO_8859_1))
                        .find();
            } catch (IOException e) {
                return false;
            }
        }
    }

    /**
     * A library by its Maven coordinates.
     *
     * @param classifier the classifier; empty without one
     * @param sha256 the checksum in hexadecimal digits
     */
    record Artifact(String group, String artifact, String version, String classifier, long bytes, String sha256) {
        String fileName() {
            return artifact + "-" + version + (classifier.isEmpty() ? "" : "-" + classifier) + ".jar";
        }

        /** The path in a Maven repository. */
        String path() {
            return group.replace('.', '/') + "/" + artifact + "/" + version + "/" + fileName();
        }
    }

    /** The kinds of its providers. */
    Set<PluginKind> kinds() {
        Set<PluginKind> kinds = EnumSet.noneOf(PluginKind.class);
        if (!backends.isEmpty()) {
            kinds.add(PluginKind.BACKEND);
        }
        if (!storage.isEmpty()) {
            kinds.add(PluginKind.STORAGE);
        }
        if (!caches.isEmpty()) {
            kinds.add(PluginKind.CACHE);
        }
        if (!devices.isEmpty()) {
            kinds.add(PluginKind.DEVICE);
        }
        if (!libraries.isEmpty()) {
            kinds.add(PluginKind.LIBRARIES);
        }
        return kinds;
    }

    long bytes() {
        return artifacts.stream().mapToLong(Artifact::bytes).sum();
    }

    /** Returns all known plugins. */
    static List<PluginManifest> all() {
        // Every start reads it: with Jackson's tree it would take a tenth of a second of processor time, for 480
        // classes.
        try (InputStream in = PluginManifest.class.getResourceAsStream("/io/nereid/app/plugins.json")) {
            List<?> plugins = (List<?>) Objects.requireNonNull(JsonValues.read(in.readAllBytes()));
            return plugins.stream().map(plugin -> read((Map<?, ?>) plugin)).toList();
        } catch (IOException e) {
            throw ServingException.internal("the list of plugins cannot be read", e);
        }
    }

    private static PluginManifest read(Map<?, ?> plugin) {
        return new PluginManifest(
                text(plugin, "name"),
                text(plugin, "description"),
                text(plugin, "licence"),
                fields(plugin, "backends").stream().map(PluginManifest::backend).toList(),
                texts(plugin, "storage"),
                texts(plugin, "caches"),
                texts(plugin, "devices"),
                text(plugin, "libraries"),
                text(plugin, "needs"),
                number(plugin, "unpackedBytes"),
                fields(plugin, "artifacts").stream()
                        .map(PluginManifest::artifact)
                        .toList());
    }

    private static Artifact artifact(Map<?, ?> artifact) {
        return new Artifact(
                text(artifact, "group"),
                text(artifact, "artifact"),
                text(artifact, "version"),
                text(artifact, "classifier"),
                number(artifact, "bytes"),
                text(artifact, "sha256"));
    }

    private static KnownBackend backend(Map<?, ?> backend) {
        List<FilePattern> recognised = new ArrayList<>();
        for (Map<?, ?> file : fields(backend, "recognised")) {
            String head = text(file, "head");
            recognised.add(new FilePattern(
                    Pattern.compile(text(file, "name")),
                    head.isEmpty() ? null : Pattern.compile(head, Pattern.DOTALL)));
        }
        return new KnownBackend(
                text(backend, "name"), texts(backend, "platforms"), texts(backend, "files"), List.copyOf(recognised));
    }

    private static String text(Map<?, ?> from, String name) {
        return from.get(name) instanceof String text ? text : "";
    }

    private static long number(Map<?, ?> from, String name) {
        return from.get(name) instanceof Long number ? number : 0;
    }

    private static List<String> texts(Map<?, ?> from, String name) {
        return from.get(name) instanceof List<?> list
                ? list.stream().map(String::valueOf).toList()
                : List.of();
    }

    private static List<Map<?, ?>> fields(Map<?, ?> from, String name) {
        List<Map<?, ?>> maps = new ArrayList<>();
        if (from.get(name) instanceof List<?> list) {
            list.forEach(entry -> maps.add((Map<?, ?>) entry));
        }
        return maps;
    }

    /**
     * Returns the plugin of a name.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown name
     */
    static PluginManifest named(String name) {
        List<String> names = new ArrayList<>();
        for (PluginManifest plugin : all()) {
            if (plugin.name.equals(name)) {
                return plugin;
            }
            names.add(plugin.name);
            if (plugin.backends.stream().anyMatch(b -> b.name().equals(name))) {
                throw ServingException.invalidArgument(
                        "there is no plugin called '" + name + "'",
                        "the backend '" + name + "' is in the plugin '" + plugin.name + "'");
            }
        }
        throw ServingException.invalidArgument(
                "there is no plugin called '" + name + "'",
                NameSuggestions.didYouMean(name, names, "there is " + String.join(", ", names)));
    }
}
