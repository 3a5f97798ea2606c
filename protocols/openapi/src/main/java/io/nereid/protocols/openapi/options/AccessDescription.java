// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.options;

import io.nereid.base.access.Operation;
import java.util.List;
import java.util.Map;

/**
 * How callers of a server identify themselves, and for which operations they must. Implementations are thread-safe; the
 * answers may change while the server runs.
 *
 * <pre>{@code
 * AccessDescription keys = new AccessDescription() {
 *     public Map<String, Object> schemes() {
 *         return Map.of("apiKey", Map.of("type", "apiKey", "in", "header", "name", "x-api-key"));
 *     }
 *
 *     public List<List<String>> alternatives(Operation operation) {
 *         return operation == Operation.HEALTH ? List.of() : List.of(List.of("apiKey"));
 *     }
 * };
 * }</pre>
 */
public interface AccessDescription {
    /** A server without credentials. */
    AccessDescription NONE = new AccessDescription() {
        @Override
        public Map<String, Object> schemes() {
            return Map.of();
        }

        @Override
        public List<List<String>> alternatives(Operation operation) {
            return List.of();
        }
    };

    /** The security schemes of OpenAPI by their names; the values are objects of JSON. */
    Map<String, Object> schemes();

    /**
     * The ways to be admitted to an operation, each a list of names of schemes that are needed together. An empty list among
     * them says that credentials are optional; no way at all, that they do not play a role.
     */
    List<List<String>> alternatives(Operation operation);
}
