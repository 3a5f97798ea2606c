// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.WeakReference;
import java.util.Arrays;

/**
 * An object of a cluster as JSON text, which takes a tenth of the memory of its tree: the caches of an operator hold every
 * object of every service, and read each of them seldom. Thread-safe.
 */
final class PackedObject {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final String VERSION = "resourceVersion";

    /** Without the version, so that objects that differ in nothing else have the same text. */
    private final byte[] json;

    private final String resourceVersion;
    private final long version;
    private final String uid;

    /** The tree as long as the collector lets it live, which is about one reconciliation. */
    private volatile WeakReference<ObjectNode> tree;

    private PackedObject(ObjectNode tree, byte[] json, String resourceVersion, String uid) {
        this.tree = new WeakReference<>(tree);
        this.json = json;
        this.resourceVersion = resourceVersion;
        this.version = version(resourceVersion);
        this.uid = uid;
    }

    /** @param tree must not be changed any more; others may read it at this time */
    static PackedObject of(ObjectNode tree) {
        ObjectNode metadata = JsonNodeFactory.instance.objectNode();
        tree.path("metadata").properties().forEach(field -> {
            if (!field.getKey().equals(VERSION)) {
                metadata.set(field.getKey(), field.getValue());
            }
        });
        ObjectNode text = JsonNodeFactory.instance.objectNode();
        tree.properties()
                .forEach(field ->
                        text.set(field.getKey(), field.getKey().equals("metadata") ? metadata : field.getValue()));
        try {
            return new PackedObject(
                    tree,
                    JSON.writeValueAsBytes(text),
                    tree.path("metadata").path(VERSION).asText(""),
                    metadata.path("uid").asText());
        } catch (IOException e) {
            throw new UncheckedIOException("a tree cannot be written", e);
        }
    }

    /** Whether two objects differ in nothing but their version. */
    boolean isLike(PackedObject other) {
        return Arrays.equals(json, other.json);
    }

    /** The tree, which others have as well: it must not be changed. */
    ObjectNode tree() {
        ObjectNode known = tree.get();
        if (known == null) {
            known = read();
            tree = new WeakReference<>(known);
        }
        return known;
    }

    private ObjectNode read() {
        try {
            ObjectNode read = (ObjectNode) JSON.readTree(json);
            if (!resourceVersion.isEmpty()) {
                read.withObjectProperty("metadata").put(VERSION, resourceVersion);
            }
            return read;
        } catch (IOException e) {
            throw new UncheckedIOException("a tree that was written cannot be read", e);
        }
    }

    long version() {
        return version;
    }

    String uid() {
        return uid;
    }

    static long version(ObjectNode object) {
        return version(object.path("metadata").path(VERSION).asText("0"));
    }

    /** Versions of an API server grow; since Kubernetes 1.35 clients may compare them. */
    static long version(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            return 0;
        }
    }
}
