// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.access;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * A right that a caller may hold. Every route and every gRPC method needs exactly one; see {@link Operation}. The names
 * in lower case with hyphens are those of roles in {@code access.yaml}.
 */
public enum Permission {
    /** Run models. */
    INFER(false),
    /** Read which models and versions there are, with their metadata and configurations. */
    METADATA(false),
    /** Read liveness and readiness. */
    HEALTH(false),
    /** Read the metrics. */
    METRICS(false),
    /** Read statistics, trace settings and log settings. */
    OBSERVE(false),
    /** Change trace settings and log settings. */
    CONFIGURE_OBSERVE(true),
    /** See the live data, the log and the settings of the web console. */
    CONSOLE(true),
    /** Load, unload and configure models. */
    MANAGE(true),
    /** Register and unregister shared memory. */
    SHARE_MEMORY(true),
    /** Read the resources of the control plane. */
    CONTROL_READ(true),
    /** Read and write the resources of the control plane. */
    CONTROL(true);

    private final boolean guarded;

    Permission(boolean guarded) {
        this.guarded = guarded;
    }

    /**
     * Whether the permission lets a caller change something or run something of its own. Without a configuration of
     * access, such a permission is for local callers only.
     */
    public boolean guarded() {
        return guarded;
    }

    /** Whether holding this permission includes another one: who may change something may also read it. */
    public boolean includes(Permission other) {
        return this == other
                || this == CONTROL && other == CONTROL_READ
                || this == CONFIGURE_OBSERVE && other == OBSERVE;
    }

    /** The name in configurations, such as {@code share-memory}. */
    public String configName() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * Returns the permission of a name in a configuration.
     *
     * @throws ServingException INVALID_ARGUMENT for another name
     */
    public static Permission of(String configName) {
        for (Permission permission : values()) {
            if (permission.configName().equals(configName)) {
                return permission;
            }
        }
        throw ServingException.invalidArgument("unknown permission '" + configName + "' (expected one of "
                + Arrays.stream(values()).map(Permission::configName).collect(Collectors.joining(", ")) + ")");
    }
}
