// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * A plugin of the house's, whose libraries are fetched when somebody asks for it. Immutable.
 *
 * @param name the plugin's, which is also its backend's
 * @param description in one line
 * @param licence of its libraries
 * @param platforms of its backend
 * @param files by which its models are recognised
 * @param unpackedBytes what it puts into the user's cache directory when it is used first
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
     * One library, as repositories know it.
     *
     * @param classifier empty for none
     * @param sha256 in hexadecimal digits
     */
    record Artifact(String group, String artifact, String version, String classifier, long bytes, String sha256) {
        String fileName() {
            return artifact + "-" + version + (classifier.isEmpty() ? "" : "-" + classifier) + ".jar";
        }

        /** Its path in a repository. */
        String path() {
            return group.replace('.', '/') + "/" + artifact + "/" + version + "/" + fileName();
        }
    }

    long bytes() {
        return artifacts.stream().mapToLong(Artifact::bytes).sum();
    }

    /** All that there are. */
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
     * The one of a name.
     *
     * @throws ServingException INVALID_ARGUMENT when there is none
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
