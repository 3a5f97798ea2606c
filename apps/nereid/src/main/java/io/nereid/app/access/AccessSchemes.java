// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.access;

import io.nereid.access.AccessControl;
import io.nereid.access.credential.SentCredentials;
import io.nereid.base.access.Operation;
import io.nereid.protocols.openapi.options.AccessDescription;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The credentials that a server takes, for its OpenAPI documents: API keys, tokens, and the headers of restricted APIs.
 * Client certificates are not among them, as OpenAPI 3.0 cannot express them. Thread-safe.
 */
public final class AccessSchemes implements AccessDescription {
    private static final String BEARER = "bearer";
    private static final String KEY = "apiKey";
    private static final String BASIC = "basic";

    private final AccessControl access;

    /** Describes the rules that are in force at the time of a call. */
    public AccessSchemes(AccessControl access) {
        this.access = access;
    }

    @Override
    public Map<String, Object> schemes() {
        Map<String, Object> schemes = new LinkedHashMap<>();
        if (access.hasCredentials()) {
            schemes.put(
                    BEARER, Map.of("type", "http", "scheme", "bearer", "description", "An API key or a token (JWT)"));
            schemes.put(KEY, Map.of("type", "apiKey", "in", "header", "name", SentCredentials.KEY_HEADER));
            schemes.put(
                    BASIC,
                    Map.of("type", "http", "scheme", "basic", "description", "An API key or a token as password"));
        }
        for (Operation operation : Operation.values()) {
            String header = access.restrictedHeader(operation);
            if (header != null) {
                schemes.put(name(header), Map.of("type", "apiKey", "in", "header", "name", header));
            }
        }
        return schemes;
    }

    /** The name of the scheme of a restricted API; a name of OpenAPI has letters, digits, dots, hyphens and underscores. */
    private static String name(String header) {
        return "restricted-" + header.replaceAll("[^A-Za-z0-9._-]", "_");
    }

    @Override
    public List<List<String>> alternatives(Operation operation) {
        List<List<String>> alternatives = new ArrayList<>();
        String header = access.restrictedHeader(operation);
        if (header != null) {
            alternatives.add(List.of(name(header)));
        } else if (access.hasCredentials() && access.anonymousMay(operation.permission())) {
            alternatives.add(List.of());
        }
        if (access.hasCredentials()) {
            alternatives.add(List.of(BEARER));
            alternatives.add(List.of(KEY));
            alternatives.add(List.of(BASIC));
        }
        return alternatives;
    }
}
