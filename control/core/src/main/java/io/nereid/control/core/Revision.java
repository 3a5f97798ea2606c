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
 * One state of a component's specification, kept so that traffic can go back to it. Immutable.
 *
 * @param component the component
 * @param number counts up from 1 for each component
 * @param name such as {@code iris-predictor-00001}
 * @param fingerprint of all that makes a difference to what runs
 * @param workload what runs, as a tree that {@link Planner} reads
 * @param created when it was first planned
 */
public record Revision(
        Component component, int number, String name, String fingerprint, JsonNode workload, Instant created) {
    /** The revision as a tree, for keeping. */
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
     * The revision that {@link #toTree} has made this tree of.
     *
     * @throws ServingException INTERNAL when it is no such tree
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
            throw ServingException.internal("a revision that was kept cannot be read", e);
        }
    }
}
