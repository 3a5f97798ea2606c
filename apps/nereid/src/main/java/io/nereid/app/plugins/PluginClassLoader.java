// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;

/**
 * The class loader of one plugin. It exposes only the packages of the server that plugins are written against and the API of Java models,
 * so that the plugin's libraries cannot conflict with the server's. Thread-safe.
 */
final class PluginClassLoader extends URLClassLoader {
    /** The exposed packages; a dot at the end includes all subpackages. */
    private static final List<String> SHARED = List.of(
            "io.nereid.base",
            "io.nereid.tensor",
            "io.nereid.observe",
            "io.nereid.spi",
            "io.nereid.spi.config",
            "io.nereid.spi.management",
            "io.nereid.backend",
            "io.nereid.storage.spi",
            "io.nereid.device",
            "io.nereid.backends.java",
            "org.slf4j.",
            "org.jspecify.");

    static {
        registerAsParallelCapable();
    }

    PluginClassLoader(String name, URL[] jars) {
        super("plugin " + name, jars, new Shared(PluginClassLoader.class.getClassLoader()));
    }

    /** The parent loader: the exposed classes of the server, without its resources. */
    private static final class Shared extends ClassLoader {
        static {
            registerAsParallelCapable();
        }

        private final ClassLoader server;

        Shared(ClassLoader server) {
            super("shared", ClassLoader.getPlatformClassLoader());
            this.server = server;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            int dot = name.lastIndexOf('.');
            String inside = dot < 0 ? "" : name.substring(0, dot);
            for (String shared : SHARED) {
                if (shared.endsWith(".") ? name.startsWith(shared) : inside.equals(shared)) {
                    return server.loadClass(name);
                }
            }
            throw new ClassNotFoundException(name);
        }
    }
}
