// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Gives roles and a quota to callers. Immutable. Exactly one of {@code key}, {@code certificate} and {@code claim} says
 * to whom.
 *
 * @param key a pattern of names of API keys
 * @param certificate a pattern of subjects of client certificates, such as {@code CN=ops,*}
 * @param claim the name of a claim of a JSON Web Token
 * @param value a pattern of the claim's value, or of one of its values
 * @param roles the names of the roles
 * @param quota the quota of each such caller
 */
public record Binding(
        @Nullable NamePattern key,
        @Nullable NamePattern certificate,
        @Nullable String claim,
        @Nullable NamePattern value,
        List<String> roles,
        Quota quota) {
    /** Copies the list. */
    public Binding {
        roles = List.copyOf(roles);
    }
}
