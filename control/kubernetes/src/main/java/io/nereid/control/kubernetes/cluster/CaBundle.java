// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The certificate authorities of stores, as {@code storageInitializer.caBundleConfigMapName} names them. Init containers
 * mount them from a ConfigMap of their own namespace, which all its services share. Stateless.
 */
public final class CaBundle {
    public static final String NAME = "global-ca-bundle";
    private static final String KEY = "cabundle.crt";

    private CaBundle() {}

    /**
     * The ConfigMap that the services of a namespace need; null for none.
     *
     * @param configMaps reads a ConfigMap of the operator's namespace; null if it does not exist
     */
    public static @Nullable ObjectNode of(
            ClusterSettings settings, Function<String, @Nullable ObjectNode> configMaps, String namespace) {
        String name = settings.section("storageInitializer")
                .path("caBundleConfigMapName")
                .asText("");
        if (name.isEmpty() || namespace.equals("kserve")) {
            return null;
        }
        ObjectNode source = configMaps.apply(name);
        if (source == null) {
            return null;
        }
        ObjectNode map = Trees.object();
        map.put("apiVersion", "v1").put("kind", "ConfigMap");
        map.putObject("metadata").put("name", NAME).put("namespace", namespace);
        map.putObject("data").put(KEY, source.path("data").path(KEY).asText());
        return map;
    }
}
