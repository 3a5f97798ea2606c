// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.Backend;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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

/** The backends on the class path and of plugins, found once. */
final class Backends {
    private static final Logger LOG = LoggerFactory.getLogger(Backends.class);

    private Backends() {}

    /** By name; two of one name are an error of the installation. */
    static List<Backend> find() {
        return find(PluginPlaces.ofUser());
    }

    static List<Backend> find(PluginPlaces places) {
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
            } catch (IOException | LinkageError | ServiceConfigurationError e) {
                String why = reason(e);
                broken.put(name, why);
                LOG.error("plugin '{}' in {} is broken and left out: {}", name, directory, why);
            }
        });
        Set<String> names = new HashSet<>();
        found.forEach(b -> names.add(b.name()));
        for (PluginManifest plugin : PluginManifest.all()) {
            if (names.add(plugin.name())) {
                found.add(new AbsentBackend(plugin, broken.get(plugin.name())));
            }
        }
        found.sort(Comparator.comparing(Backend::name));
        return List.copyOf(found);
    }

    private static String reason(Throwable e) {
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
     * The backends of a plugin. Its class loader stays open as long as the process lives.
     *
     * @throws IOException when there are none
     */
    @SuppressWarnings("resource")
    static List<Backend> load(PluginPlaces places, String name, Path directory) throws IOException {
        List<URL> jars = new ArrayList<>();
        for (Path jar : places.jars(name, directory)) {
            jars.add(jar.toUri().toURL());
        }
        ClassLoader loader = new PluginClassLoader(name, jars.toArray(URL[]::new));
        List<Backend> backends = new ArrayList<>();
        ServiceLoader.load(Backend.class, loader).forEach(backends::add);
        if (backends.isEmpty()) {
            throw new IOException("it has no backend in " + jars.size() + " jar(s)"
                    + (PluginManifest.all().stream().anyMatch(p -> p.name().equals(name))
                            ? "; is the program started from its distribution?"
                            : ""));
        }
        return backends;
    }
}
