// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.TreeMap;

/** Loads each installed plugin by itself, to tell which are usable. Stateless. */
public final class PluginChecks {
    private PluginChecks() {}

    /** The names of the installed plugins that can be loaded. */
    public static List<String> usable() {
        PluginDirectories places = PluginDirectories.ofUser();
        List<String> names = new ArrayList<>(places.installed().keySet());
        names.removeAll(broken(places).keySet());
        return names;
    }

    /** Why installed plugins cannot be loaded, by name; a plugin of another API version is one of them. */
    public static Map<String, String> broken() {
        return broken(PluginDirectories.ofUser());
    }

    private static Map<String, String> broken(PluginDirectories places) {
        Map<String, String> broken = new TreeMap<>();
        places.installed().forEach((name, directory) -> {
            try {
                LoadedPlugin unused = PluginLoader.load(places, name, directory);
            } catch (IOException | ServingException | LinkageError | ServiceConfigurationError e) {
                broken.put(name, InstalledPlugins.reason(e));
            }
        });
        return broken;
    }
}
