// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

import io.nereid.base.access.Permission;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Permissions under a name. Immutable.
 *
 * @param name the name of the role
 * @param permissions what its holders may do
 * @param models the models for which they may do it
 * @param namespaces the namespaces of the control plane in which they may do it
 */
public record Role(String name, Set<Permission> permissions, List<NamePattern> models, List<NamePattern> namespaces) {
    private static final List<NamePattern> ANY = List.of(NamePattern.ANY);

    /** Copies the collections. */
    public Role {
        permissions = Set.copyOf(permissions);
        models = List.copyOf(models);
        namespaces = List.copyOf(namespaces);
    }

    /** The roles that exist without a configuration, by name; a configuration may replace them. */
    public static Map<String, Role> builtIn() {
        Map<String, Role> roles = new LinkedHashMap<>();
        Set<Permission> read = EnumSet.of(
                Permission.METADATA, Permission.HEALTH, Permission.METRICS, Permission.OBSERVE, Permission.CONSOLE);
        Set<Permission> client = EnumSet.of(Permission.INFER, Permission.METADATA, Permission.HEALTH);
        Set<Permission> manager = EnumSet.copyOf(read);
        manager.addAll(client);
        manager.addAll(EnumSet.of(Permission.MANAGE, Permission.CONFIGURE_OBSERVE));
        for (Role role : List.of(
                new Role("client", client, ANY, ANY),
                new Role("viewer", read, ANY, ANY),
                new Role("manager", manager, ANY, ANY),
                new Role("admin", EnumSet.copyOf(Arrays.asList(Permission.values())), ANY, ANY))) {
            roles.put(role.name(), role);
        }
        return roles;
    }
}
