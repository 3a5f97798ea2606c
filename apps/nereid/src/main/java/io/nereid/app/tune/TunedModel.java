// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.perf.load.InProcessTarget;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.ModelFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** A model whose configuration can be read and replaced. Confined to one thread. */
interface TunedModel {
    /** The file of a model's configuration. */
    String FILE = "config.pbtxt";

    /** The configuration that the model has now, with every default, in the field names of Triton's {@code ModelConfig}. */
    ObjectNode effective();

    /** The fields of the stored configuration; null where they cannot be read. */
    @Nullable ObjectNode written();

    /** The file on this machine that has, or would have, the configuration; null where there is none. */
    @Nullable Path file();

    /**
     * Loads the model.
     *
     * @param config the configuration as JSON; null for the stored one
     * @throws ServingException when it cannot be loaded
     */
    void load(@Nullable String config);

    /**
     * A model of a running server.
     *
     * @param here whether the server is on this machine, so that its files may be
     */
    static TunedModel of(ServerClient client, String name, boolean here) {
        String segment = ServerClient.segment(name);
        return new TunedModel() {
            private @Nullable JsonNode stored;

            // What the web console says; without it, or without its permission, nothing.
            private JsonNode stored() {
                JsonNode known = stored;
                if (known == null) {
                    try {
                        known = client.get("/console/api/models/" + segment);
                    } catch (ServingException e) {
                        known = ServerClient.JSON.createObjectNode();
                    }
                    stored = known;
                }
                return known;
            }

            @Override
            public ObjectNode effective() {
                JsonNode config = client.get("/v2/models/" + segment + "/config");
                if (config instanceof ObjectNode document) {
                    return document;
                }
                throw ServingException.of(
                        ErrorCode.UNKNOWN, "the configuration of model '" + name + "' is not a JSON object: " + config);
            }

            @Override
            public @Nullable ObjectNode written() {
                return stored().path("written") instanceof ObjectNode fields ? fields : null;
            }

            @Override
            public @Nullable Path file() {
                if (!here) {
                    return null;
                }
                String file = stored().path("configurationFile").asText("");
                String directory = stored().path("directory").asText("");
                return TunedModel.file(
                        file.isEmpty() ? null : Path.of(file), directory.isEmpty() ? null : Path.of(directory));
            }

            @Override
            public void load(@Nullable String config) {
                ObjectNode body = null;
                if (config != null) {
                    body = ServerClient.JSON.createObjectNode();
                    body.putObject("parameters").put("config", config);
                }
                var unused = client.post("/v2/repository/models/" + segment + "/load", body);
            }
        };
    }

    /** A model of this process. */
    static TunedModel of(InProcessTarget target) {
        ObjectMapper json = ServerClient.JSON;
        return new TunedModel() {
            @Override
            public ObjectNode effective() {
                return json.valueToTree(target.configuration());
            }

            @Override
            public @Nullable ObjectNode written() {
                ModelFiles files = target.files();
                return files == null ? null : json.valueToTree(files.written());
            }

            @Override
            public @Nullable Path file() {
                ModelFiles files = target.files();
                return files == null ? null : TunedModel.file(files.configuration(), files.place());
            }

            @Override
            public void load(@Nullable String config) {
                target.reload(config);
            }
        };
    }

    /** The file that is there, or the one in the model's directory; null for a model that is a single file. */
    private static @Nullable Path file(@Nullable Path configuration, @Nullable Path place) {
        if (configuration != null) {
            return configuration.getFileName().toString().endsWith(".pbtxt") && Files.isRegularFile(configuration)
                    ? configuration
                    : null;
        }
        return place != null && Files.isDirectory(place) ? place.resolve(FILE) : null;
    }
}
