// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The content of {@code access.yaml}. Immutable.
 *
 * @param roles all roles by name, the built-in ones included
 * @param anonymous the roles of callers without credentials
 * @param local the roles of local callers without credentials, where the server recognises them
 * @param bindings who has which roles and quotas
 * @param tokens the issuers whose tokens are accepted
 * @param modelQuotas the quotas of models, by pattern of their names, in the order of the file
 */
public record AccessConfig(
        Map<String, Role> roles,
        List<String> anonymous,
        List<String> local,
        List<Binding> bindings,
        List<JwtConfig> tokens,
        Map<NamePattern, Quota> modelQuotas) {
    /** The name of the role that callers without credentials have when a configuration says nothing about them. */
    public static final String HEALTH = "health";

    /** The configuration of a server with API keys and without {@code access.yaml}. */
    public static final AccessConfig DEFAULT = AccessConfigReader.defaults();

    /** The quota of a model: that of the first pattern that matches; null when none does. */
    public @Nullable Quota modelQuota(String model) {
        for (Map.Entry<NamePattern, Quota> entry : modelQuotas.entrySet()) {
            if (entry.getKey().matches(model)) {
                return entry.getValue();
            }
        }
        return null;
    }
}
