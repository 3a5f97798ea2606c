// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.yaml;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ValidationErrors;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads manifests: files of resources in YAML or JSON. Stateless.
 *
 * <pre>{@code
 * for (ObjectNode resource : ManifestReader.parse(Files.readString(file), file.toString())) {
 *     ResourceKind kind = ResourceKinds.of(resource);
 * }
 * }</pre>
 */
public final class ManifestReader {
    /** The maximum length of a manifest in characters. */
    static final int MOST_CHARACTERS = 16 << 20;

    /** The maximum nesting depth. */
    static final int MOST_DEPTH = 100;

    private static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .streamReadConstraints(
                    StreamReadConstraints.builder().maxNestingDepth(MOST_DEPTH).build())
            .build());

    private ManifestReader() {}

    /**
     * Reads all documents of a YAML or JSON file. A {@code List} is expanded into its items, and empty documents are
     * skipped. Scalars are resolved as Kubernetes does, which is YAML 1.1: {@code yes} is true and {@code 0644} is
     * octal.
     *
     * @param where the file's name, for messages
     * @throws ServingException INVALID_ARGUMENT with the file's name and, for YAML, the line of the error
     */
    public static List<ObjectNode> parse(String text, String where) {
        if (text.length() > MOST_CHARACTERS) {
            throw ServingException.invalidArgument(where + ": " + text.length()
                    + " characters; files of resources have " + MOST_CHARACTERS + " at most");
        }
        List<JsonNode> documents = json(text);
        if (documents == null) {
            documents = new YamlReader(where).read(text);
        }
        List<ObjectNode> all = new ArrayList<>();
        int number = 0;
        for (JsonNode document : documents) {
            number++;
            if (document.isNull()) {
                continue;
            }
            if (!(document instanceof ObjectNode resource)) {
                throw ServingException.invalidArgument(
                        where + ": document " + number + " is " + ValidationErrors.shown(document) + ", not an object",
                        "a resource begins with apiVersion and kind");
            }
            addAll(resource, where + ": document " + number, all);
        }
        return List.copyOf(all);
    }

    private static void addAll(ObjectNode resource, String where, List<ObjectNode> all) {
        String kind = resource.path("kind").asText("");
        if (!kind.endsWith("List") || !(resource.get("items") instanceof ArrayNode items)) {
            all.add(resource);
            return;
        }
        for (int i = 0; i < items.size(); i++) {
            if (!(items.get(i) instanceof ObjectNode item)) {
                throw ServingException.invalidArgument(where + ": items[" + i + "]: expected an object, found "
                        + ValidationErrors.shown(items.get(i)));
            }
            if (!item.has("kind") && !kind.equals("List")) {
                item.put("kind", kind.substring(0, kind.length() - "List".length()));
                if (!item.has("apiVersion") && resource.has("apiVersion")) {
                    item.set("apiVersion", resource.get("apiVersion"));
                }
            }
            all.add(item);
        }
    }

    /** The text's JSON documents; null when it is not JSON, in which case it may still be YAML's flow style. */
    private static @Nullable List<JsonNode> json(String text) {
        if (!text.stripLeading().startsWith("{")) {
            return null;
        }
        List<JsonNode> all = new ArrayList<>();
        try (JsonParser parser = JSON.createParser(text)) {
            while (parser.nextToken() != null) {
                all.add(JSON.readTree(parser));
            }
            return all;
        } catch (JsonProcessingException e) {
            return null;
        } catch (IOException e) {
            throw ServingException.internal("a manifest could not be read", e);
        }
    }
}
