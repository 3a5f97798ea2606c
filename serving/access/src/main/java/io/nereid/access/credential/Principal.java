// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import io.nereid.access.config.NamePattern;
import io.nereid.access.config.Quota;
import io.nereid.access.config.Role;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A caller whose roles are known. Immutable.
 */
public final class Principal implements Caller {
    private final String name;
    private final Map<Permission, List<NamePattern>> granted = new EnumMap<>(Permission.class);
    private final Quota quota;
    private final boolean credentials;
    private final long expiresMillis;

    /**
     * Creates a caller.
     *
     * @param name its name in audit logs and metrics
     * @param roles its roles
     * @param quota its quota
     * @param credentials whether it has shown valid credentials
     * @param expiresMillis when the credentials stop being valid, in milliseconds since 1970; {@link Long#MAX_VALUE} for
     *     never
     */
    public Principal(String name, Collection<Role> roles, Quota quota, boolean credentials, long expiresMillis) {
        this.name = name;
        this.quota = quota;
        this.credentials = credentials;
        this.expiresMillis = expiresMillis;
        for (Role role : roles) {
            for (Permission held : role.permissions()) {
                for (Permission permission : Permission.values()) {
                    if (held.includes(permission)) {
                        boolean resources = permission == Permission.CONTROL || permission == Permission.CONTROL_READ;
                        granted.computeIfAbsent(permission, p -> new ArrayList<>())
                                .addAll(resources ? role.namespaces() : role.models());
                    }
                }
            }
        }
        granted.replaceAll((permission, patterns) ->
                patterns.contains(NamePattern.ANY) ? List.of(NamePattern.ANY) : List.copyOf(patterns));
    }

    @Override
    public String name() {
        return name;
    }

    /** The caller's quota. */
    public Quota quota() {
        return quota;
    }

    /** Whether the caller has shown valid credentials. */
    public boolean hasCredentials() {
        return credentials;
    }

    /** When the credentials stop being valid, in milliseconds since 1970. */
    public long expiresMillis() {
        return expiresMillis;
    }

    @Override
    public boolean may(Permission permission, @Nullable String model) {
        List<NamePattern> patterns = granted.get(permission);
        if (patterns == null) {
            return false;
        }
        if (model == null) {
            return true;
        }
        for (int i = 0; i < patterns.size(); i++) {
            NamePattern pattern = patterns.get(i);
            if (pattern == NamePattern.ANY || pattern.matches(model)) {
                return true;
            }
        }
        return false;
    }
}
