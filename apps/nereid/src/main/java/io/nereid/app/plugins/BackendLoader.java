// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.backend.Backend;
import io.nereid.base.ApiVersion;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.plugin.PluginApi;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds the backends on the class path and in plugins. Stateless. */
public final class BackendLoader {
    private static final Logger LOG = LoggerFactory.getLogger(BackendLoader.class);

    private BackendLoader() {}

    /** Returns all backends by name. Two backends with one name are an installation error. */
    public static List<Backend> find() {
        return find(PluginDirectories.ofUser());
    }

    static List<Backend> find(PluginDirectories places) {
        List<Backend> found = new ArrayList<>();
        for (Backend backend : ServiceLoader.load(Backend.class)) {
            add(found, backend, "remove one of them from the class path");
        }
        Map<String, String> broken = new HashMap<>();
        places.installed().forEach((name, directory) -> {
            try {
                for (Backend backend : load(places, name, directory)) {
                    add(found, backend, "remove the plugin: nereid plugins remove " + name);
                }
            } catch (IOException | ServingException | LinkageError | ServiceConfigurationError e) {
                String why = reason(e);
                broken.put(name, why);
                LOG.error("plugin '{}' in {} is broken and skipped: {}", name, directory, why);
            }
        });
        Set<String> names = new HashSet<>();
        found.forEach(b -> names.add(b.name()));
        for (PluginManifest plugin : PluginManifest.all()) {
            for (PluginManifest.KnownBackend backend : plugin.backends()) {
                if (names.add(backend.name())) {
                    found.add(new MissingPluginBackend(plugin.name(), backend, broken.get(plugin.name())));
                }
            }
        }
        found.sort(Comparator.comparing(Backend::name));
        return List.copyOf(found);
    }

    private static String reason(Throwable e) {
        if (e instanceof ServingException s) {
            return s.describe();
        }
        String message = e.getMessage();
        Throwable cause = e.getCause();
        return (message == null ? e.getClass().getSimpleName() : message)
                + (cause == null || cause == e ? "" : " (" + reason(cause) + ")");
    }

    private static void add(List<Backend> found, Backend backend, String remedy) {
        for (Backend other : found) {
            if (other.name().equals(backend.name())) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "two backends are called '" + backend.name() + "': "
                                + other.getClass().getName() + " and "
                                + backend.getClass().getName(),
                        remedy);
            }
        }
        found.add(backend);
    }

    /**
     * Loads the backends of a plugin. Its class loader stays open for the lifetime of the process.
     *
     * @throws IOException when the plugin does not contain a backend
     * @throws ServingException FAILED_PRECONDITION when it was built for another version of the API
     */
    @SuppressWarnings("resource")
    static List<Backend> load(PluginDirectories places, String name, Path directory) throws IOException {
        List<URL> jars = new ArrayList<>();
        boolean versioned = false;
        for (Path jar : places.jars(name, directory)) {
            versioned |= PluginApi.check(jar);
            jars.add(jar.toUri().toURL());
        }
        ClassLoader loader = new PluginClassLoader(name, jars.toArray(URL[]::new));
        List<Backend> backends = new ArrayList<>();
        try {
            for (Backend backend : ServiceLoader.load(Backend.class, loader)) {
                // Links what every backend must have, so that a plugin for another API fails here.
                backend.name();
                backend.platforms();
                backend.defaultFiles();
                backends.add(backend);
            }
        } catch (LinkageError | ServiceConfigurationError e) {
            ServingException mismatch = PluginApi.mismatch("plugin '" + name + "'", e);
            if (mismatch != null) {
                throw mismatch;
            }
            throw e;
        }
        if (backends.isEmpty()) {
            throw new IOException("it contains no backend in " + jars.size() + " jar(s)"
                    + (PluginManifest.all().stream().anyMatch(p -> p.name().equals(name))
                            ? "; was the program started from its distribution?"
                            : ""));
        }
        if (!versioned) {
            LOG.warn(
                    "plugin '{}' in {} does not say for which version of the plugin API it was built (expected: {} in"
                            + " the manifest of its jar)",
                    name,
                    directory,
                    ApiVersion.MANIFEST_ATTRIBUTE);
        }
        return backends;
    }
}
