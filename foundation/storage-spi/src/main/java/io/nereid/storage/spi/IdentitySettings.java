// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import java.util.Set;

/**
 * For one kind of store, the settings that hold an identity, and those that name an endpoint or whom to trust. A request
 * that gives any of them does not inherit an identity from the server's environment. Immutable.
 *
 * @param identity names of the settings that hold an identity, such as keys, tokens and files with them
 * @param endpoints names of the settings that decide where an identity is sent
 */
public record IdentitySettings(Set<String> identity, Set<String> endpoints) {
    /** Of a kind of store without credentials. */
    public static final IdentitySettings NONE = new IdentitySettings(Set.of(), Set.of());

    /** Copies the sets. */
    public IdentitySettings {
        identity = Set.copyOf(identity);
        endpoints = Set.copyOf(endpoints);
    }
}
