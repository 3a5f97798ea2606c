// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * A plugin that this program knows: its libraries are fetched by {@code nereid plugins install}. Immutable.
 *
 * @param name the name of the plugin and of its backend
 * @param description a description of one line
 * @param licence the licence of its libraries
 * @param platforms the platform names of its backend in model configurations
 * @param files the files by which its models are recognised
 * @param unpackedBytes size of the files that its first use unpacks into the user's cache directory
 * @param artifacts its libraries
 */
record PluginManifest(
        String name,
        String description,
        String licence,
        List<String> platforms,
        List<String> files,
        long unpackedBytes,
        List<Artifact> artifacts) {
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

    long bytes() {
        return artifacts.stream().mapToLong(Artifact::bytes).sum();
    }

    /** Returns all known plugins. */
    static List<PluginManifest> all() {
        List<PluginManifest> all = new ArrayList<>();
        try (InputStream in = PluginManifest.class.getResourceAsStream("/io/nereid/app/plugins.json")) {
            for (JsonNode plugin : new ObjectMapper().readTree(in)) {
                all.add(read(plugin));
            }
        } catch (IOException e) {
            throw ServingException.internal("the list of plugins cannot be read", e);
        }
        return List.copyOf(all);
    }

    private static PluginManifest read(JsonNode plugin) {
        List<Artifact> artifacts = new ArrayList<>();
        for (JsonNode a : plugin.path("artifacts")) {
            artifacts.add(new Artifact(
                    a.path("group").asText(),
                    a.path("artifact").asText(),
                    a.path("version").asText(),
                    a.path("classifier").asText(""),
                    a.path("bytes").asLong(),
                    a.path("sha256").asText()));
        }
        return new PluginManifest(
                plugin.path("name").asText(),
                plugin.path("description").asText(),
                plugin.path("licence").asText(),
                texts(plugin.path("platforms")),
                texts(plugin.path("files")),
                plugin.path("unpackedBytes").asLong(),
                List.copyOf(artifacts));
    }

    private static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(t -> texts.add(t.asText()));
        return List.copyOf(texts);
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
        }
        throw ServingException.invalidArgument(
                "there is no plugin called '" + name + "'",
                NameSuggestions.didYouMean(name, names, "there is " + String.join(", ", names)));
    }
}
