// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The metadata of a resource, as in Kubernetes' {@code meta/v1 ObjectMeta}. Immutable.
 *
 * @param name unique in its namespace, for its kind
 * @param namespace empty for cluster-scoped resources
 * @param labels in their order
 * @param annotations in their order
 * @param uid never reused; empty before the resource is stored
 * @param resourceVersion the store's version of the last change; empty before the resource is stored
 * @param generation counts changes of the specification; 0 before the resource is stored
 * @param creationTimestamp null before the resource is stored
 * @param deletionTimestamp null unless it is being deleted
 * @param finalizers controllers that must still finish before the resource is removed
 */
public record ObjectMeta(
        String name,
        String namespace,
        Map<String, String> labels,
        Map<String, String> annotations,
        String uid,
        String resourceVersion,
        long generation,
        @Nullable Instant creationTimestamp,
        @Nullable Instant deletionTimestamp,
        List<String> finalizers) {

    /**
     * Reads the {@code metadata} of a resource.
     *
     * @param resource the whole resource
     * @throws ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static ObjectMeta read(ObjectNode resource) {
        FieldReader meta = FieldReader.of(resource).object("metadata");
        return new ObjectMeta(
                meta.text("name", ""),
                meta.text("namespace", ""),
                meta.map("labels"),
                meta.map("annotations"),
                meta.text("uid", ""),
                meta.text("resourceVersion", ""),
                meta.number("generation", 0),
                instant(meta, "creationTimestamp"),
                instant(meta, "deletionTimestamp"),
                meta.texts("finalizers"));
    }

    /** The metadata as a JSON tree. */
    public static JsonNode tree(ObjectNode resource) {
        return FieldReader.of(resource).object("metadata").tree();
    }

    /** The annotation's value, or null. */
    public @Nullable String annotation(String key) {
        return annotations.get(key);
    }

    /** The label's value, or null. */
    public @Nullable String label(String key) {
        return labels.get(key);
    }

    private static @Nullable Instant instant(FieldReader meta, String name) {
        String text = meta.text(name);
        return text == null ? null : instant(meta.at(name), text);
    }

    public static Instant instant(String path, String text) {
        try {
            return OffsetDateTime.parse(text).toInstant();
        } catch (DateTimeException e) {
            throw ServingException.invalidArgument(
                    path + ": expected a time such as 2026-01-31T12:00:00Z, found " + ValidationErrors.clip(text));
        }
    }
}
