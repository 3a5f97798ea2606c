// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.backend.Backend;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.base.ApiVersion;
import io.nereid.base.ServingException;
import io.nereid.base.plugin.PluginApi;
import io.nereid.device.DeviceDriverProvider;
import io.nereid.storage.spi.StorageProvider;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Loads a plugin with its providers of all kinds. Stateless. */
final class PluginLoader {
    private static final Logger LOG = LoggerFactory.getLogger(PluginLoader.class);

    private PluginLoader() {}

    /**
     * Loads a plugin. Its class loader stays open for the lifetime of the process.
     *
     * @throws IOException when the plugin does not contain a provider of any kind
     * @throws ServingException FAILED_PRECONDITION when it was built for another version of the API
     */
    static LoadedPlugin load(PluginDirectories places, String name, Path directory) throws IOException {
        PluginManifest known = libraries(name);
        if (known != null) {
            String damage = PluginInstaller.damage(known, directory);
            if (damage != null) {
                throw new IOException(damage);
            }
            return new LoadedPlugin(name, Map.of(PluginKind.LIBRARIES, List.of()));
        }
        LoadedPlugin plugin = load(places, name, directory, List.of(PluginKind.values()));
        if (plugin.isEmpty()) {
            throw new IOException("it contains no backend, storage provider, response cache or driver of devices in "
                    + places.jars(name, directory).size() + " jar(s)"
                    + (PluginManifest.all().stream().anyMatch(p -> p.name().equals(name))
                            ? "; was the program started from its distribution?"
                            : ""));
        }
        return plugin;
    }

    /** The known plugin of this name if it has libraries for a backend of the distribution, and no provider; else null. */
    private static @Nullable PluginManifest libraries(String name) {
        for (PluginManifest plugin : PluginManifest.all()) {
            if (plugin.name().equals(name) && !plugin.libraries().isEmpty()) {
                return plugin;
            }
        }
        return null;
    }

    /**
     * Lets the backends of the distribution find the libraries of installed plugins. Called before the backends are made. A property that
     * is set already stays as it is, and a damaged plugin is left out: {@link #load(PluginDirectories, String, Path)} says why.
     */
    static void offerLibraries(PluginDirectories places) {
        places.installed().forEach((name, directory) -> {
            PluginManifest plugin = libraries(name);
            if (plugin != null
                    && System.getProperty(plugin.libraries()) == null
                    && PluginInstaller.damage(plugin, directory) == null) {
                System.setProperty(
                        plugin.libraries(), directory.toAbsolutePath().toString());
            }
        });
    }

    /** As {@link #load(PluginDirectories, String, Path)}, with the providers of some kinds, of which there may be none. */
    @SuppressWarnings("resource")
    static LoadedPlugin load(PluginDirectories places, String name, Path directory, List<PluginKind> kinds)
            throws IOException {
        if (libraries(name) != null) {
            return new LoadedPlugin(name, Map.of());
        }
        List<URL> jars = new ArrayList<>();
        Path unpacked = PluginDirectories.unpacked(directory);
        if (unpacked != null) {
            // Before the jars: a library that is in both is not unpacked again.
            jars.add(unpacked.toUri().toURL());
        }
        boolean versioned = false;
        for (Path jar : places.jars(name, directory)) {
            versioned |= PluginApi.check(jar);
            jars.add(jar.toUri().toURL());
        }
        ClassLoader loader = new PluginClassLoader(name, jars.toArray(URL[]::new));
        Map<PluginKind, List<?>> providers = new EnumMap<>(PluginKind.class);
        try {
            for (PluginKind kind : kinds) {
                List<Object> found = new ArrayList<>();
                Class<?> service = kind.service();
                if (service == null) {
                    continue;
                }
                for (Object provider : ServiceLoader.load(service, loader)) {
                    link(provider);
                    found.add(provider);
                }
                if (!found.isEmpty()) {
                    providers.put(kind, List.copyOf(found));
                }
            }
        } catch (LinkageError | ServiceConfigurationError e) {
            ServingException mismatch = PluginApi.mismatch("plugin '" + name + "'", e);
            if (mismatch != null) {
                throw mismatch;
            }
            throw e;
        }
        if (!versioned) {
            LOG.warn(
                    "plugin '{}' in {} does not say for which version of the plugin API it was built (expected: {} in"
                            + " the manifest of its jar)",
                    name,
                    directory,
                    ApiVersion.MANIFEST_ATTRIBUTE);
        }
        return new LoadedPlugin(name, providers);
    }

    /** Links what every provider must have, so that a plugin for another API fails here. */
    private static void link(Object provider) {
        if (provider instanceof Backend backend) {
            backend.name();
            backend.platforms();
            backend.defaultFiles();
        } else if (provider instanceof StorageProvider storage) {
            storage.name();
            storage.schemes();
            storage.identitySettings();
        } else if (provider instanceof CacheStoreProvider cache) {
            cache.name();
        } else if (provider instanceof DeviceDriverProvider device) {
            device.name();
        }
    }
}
