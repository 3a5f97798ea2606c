// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

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
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reads files of resources. Immutable. */
public final class ResourceTexts {
    /** The longest text that is read, in characters. */
    static final int MOST_CHARACTERS = 16 << 20;

    /** The deepest nesting that is read. */
    static final int MOST_DEPTH = 100;

    private static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .streamReadConstraints(
                    StreamReadConstraints.builder().maxNestingDepth(MOST_DEPTH).build())
            .build());

    private ResourceTexts() {}

    /**
     * Reads the documents of a YAML file, or of JSON; the items of a {@code List} one by one. Empty documents are left out.
     * Scalars mean what they mean to Kubernetes, so that {@code yes} is true and {@code 0644} is octal.
     *
     * @param where the file's name, for messages
     * @throws ServingException INVALID_ARGUMENT with the line of what is wrong
     */
    public static List<ObjectNode> parse(String text, String where) {
        if (text.length() > MOST_CHARACTERS) {
            throw ServingException.invalidArgument(where + ": " + text.length()
                    + " characters; files of resources have " + MOST_CHARACTERS + " at most");
        }
        List<JsonNode> documents = json(text);
        if (documents == null) {
            documents = new YamlTrees(where).read(text);
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
                        where + ": document " + number + " is " + Schema.shown(document) + ", not an object",
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
                throw ServingException.invalidArgument(
                        where + ": items[" + i + "]: expected an object, found " + Schema.shown(items.get(i)));
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

    /** The text's JSON documents; null when it is no JSON, in which case it may still be YAML in JSON's looks. */
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
            throw ServingException.internal("a text could not be read", e);
        }
    }
}
