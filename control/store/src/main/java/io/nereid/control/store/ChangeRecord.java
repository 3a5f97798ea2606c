// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** One change of a resource: the record type of the write-ahead log. Immutable: its tree is never modified. */
record ChangeRecord(ResourceStore.Key key, Change.Kind kind, long version, ObjectNode resource) {
    static final ObjectMapper JSON = new ObjectMapper();

    /** Serializes changes as the payload of one log record. */
    static byte[] write(List<ChangeRecord> entries) {
        ArrayNode list = JSON.createArrayNode();
        for (ChangeRecord entry : entries) {
            ObjectNode node = list.addObject();
            node.put("v", entry.version);
            node.put("k", entry.kind.name().substring(0, 1));
            node.put("g", entry.key.type().group());
            node.put("p", entry.key.type().plural());
            node.put("s", entry.key.namespace());
            node.put("n", entry.key.name());
            node.set("r", entry.resource);
        }
        try {
            return JSON.writeValueAsBytes(list);
        } catch (JsonProcessingException e) {
            throw ServingException.internal("a resource cannot be written", e);
        }
    }

    /**
     * Reads the changes of a log record.
     *
     * @throws IOException when the record does not describe changes, which a valid checksum does not exclude
     */
    static List<ChangeRecord> read(byte[] payload) throws IOException {
        JsonNode list = JSON.readTree(payload);
        if (!list.isArray()) {
            throw new IOException("a record is not a list of changes");
        }
        List<ChangeRecord> entries = new ArrayList<>(list.size());
        for (JsonNode node : list) {
            if (!(node.path("r") instanceof ObjectNode resource)) {
                throw new IOException("a change has no resource");
            }
            ResourceStore.Type type = new ResourceStore.Type(
                    node.path("g").asText(), node.path("p").asText());
            Change.Kind kind = switch (node.path("k").asText()) {
                case "A" -> Change.Kind.ADDED;
                case "D" -> Change.Kind.DELETED;
                default -> Change.Kind.MODIFIED;
            };
            entries.add(new ChangeRecord(
                    new ResourceStore.Key(
                            type, node.path("s").asText(), node.path("n").asText()),
                    kind,
                    node.path("v").asLong(),
                    resource));
        }
        return entries;
    }
}
