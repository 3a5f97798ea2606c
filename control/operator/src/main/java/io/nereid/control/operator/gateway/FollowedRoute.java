// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The route of a service that a gateway follows. Immutable.
 *
 * @param name the name of the InferenceService or InferenceGraph
 * @param digest the digest of the route's text; empty when the gateway follows none any more
 */
record FollowedRoute(String namespace, String name, String digest) {
    static final String NONE = "";

    /** A short digest of a route's text, as it is in the annotation of the Service. */
    static String digest(String text) {
        return Integer.toHexString(text.hashCode());
    }

    String key() {
        return namespace + "/" + name;
    }

    void write(ObjectNode tree) {
        tree.put("namespace", namespace).put("name", name).put("digest", digest);
    }

    static FollowedRoute read(JsonNode tree) {
        return new FollowedRoute(
                tree.path("namespace").asText(),
                tree.path("name").asText(),
                tree.path("digest").asText());
    }
}
