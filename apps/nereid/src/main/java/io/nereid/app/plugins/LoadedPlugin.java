// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import java.util.List;
import java.util.Map;

/**
 * The providers of one plugin, of all kinds, from one class loader. Immutable.
 *
 * @param name the name of the plugin
 * @param providers its providers by kind; kinds that it does not have are absent
 */
record LoadedPlugin(String name, Map<PluginKind, List<?>> providers) {
    boolean isEmpty() {
        return providers.isEmpty();
    }

    /** The providers of a kind. */
    <T> List<T> of(PluginKind kind, Class<T> service) {
        return providers.getOrDefault(kind, List.of()).stream()
                .<T>map(service::cast)
                .toList();
    }
}
