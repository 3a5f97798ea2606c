// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;

/**
 * The classes of one plugin. Of the server it sees what a backend is written against, and nothing else, so that its
 * libraries cannot meet the server's. Thread-safe.
 */
final class PluginClassLoader extends URLClassLoader {
    /** Packages; those with a dot at the end with all that are below. */
    private static final List<String> SHARED = List.of(
            "io.nereid.base",
            "io.nereid.tensor",
            "io.nereid.observe",
            "io.nereid.spi",
            "io.nereid.backend",
            "io.netty.buffer.",
            "io.netty.util.",
            "org.slf4j.",
            "org.jspecify.");

    static {
        registerAsParallelCapable();
    }

    PluginClassLoader(String name, URL[] jars) {
        super("plugin " + name, jars, new Shared(PluginClassLoader.class.getClassLoader()));
    }

    /** The server's classes that plugins see. Its resources they do not see. */
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
