// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload.Component;
import java.time.DateTimeException;
import java.time.Instant;

/**
 * A revision as in Knative: a snapshot of a component's specification, kept so that traffic can be rolled back to it.
 * Immutable.
 *
 * @param component the component
 * @param number the sequence number in the component, from 1
 * @param name such as {@code iris-predictor-00001}
 * @param fingerprint a digest of everything that affects the running workload; a different one makes a new revision
 * @param workload the workload as a JSON tree
 * @param created the time at which it was first planned
 */
public record Revision(
        Component component, int number, String name, String fingerprint, JsonNode workload, Instant created) {
    /** The revision as a JSON tree to store. */
    public ObjectNode toTree() {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("component", component.name());
        tree.put("number", number);
        tree.put("name", name);
        tree.put("fingerprint", fingerprint);
        tree.set("workload", workload);
        tree.put("created", created.toString());
        return tree;
    }

    /**
     * Reads a revision that {@link #toTree} wrote.
     *
     * @throws ServingException INTERNAL when the tree is not a revision
     */
    public static Revision read(JsonNode tree) {
        try {
            return new Revision(
                    Component.valueOf(tree.path("component").asText()),
                    tree.path("number").asInt(),
                    tree.path("name").asText(),
                    tree.path("fingerprint").asText(),
                    tree.path("workload"),
                    Instant.parse(tree.path("created").asText()));
        } catch (IllegalArgumentException | DateTimeException e) {
            throw ServingException.internal("a stored revision cannot be read", e);
        }
    }
}
