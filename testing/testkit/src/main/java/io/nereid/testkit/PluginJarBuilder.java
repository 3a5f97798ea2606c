// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import io.nereid.base.ApiVersion;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/**
 * Compiles sources and packs them as the jar of a plugin, for tests of how plugins are loaded. Confined to one test.
 *
 * <pre>{@code
 * Path jar = new PluginJarBuilder()
 *         .source("com.example.MyBackend", "package com.example; public class MyBackend implements Backend { ... }")
 *         .service("io.nereid.backend.Backend", "com.example.MyBackend")
 *         .apiVersion("1.0")
 *         .build(directory.resolve("my.jar"));
 * }</pre>
 */
public final class PluginJarBuilder {
    private final Map<String, String> sources = new LinkedHashMap<>();
    private final Map<String, String> foreign = new LinkedHashMap<>();
    private final Map<String, List<String>> services = new LinkedHashMap<>();
    private String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    private @Nullable String apiVersion;

    /** Creates a builder of a jar without classes that are compiled against the class path of this process. */
    public PluginJarBuilder() {}

    /** Adds the source of a class. */
    public PluginJarBuilder source(String className, String source) {
        sources.put(className, source);
        return this;
    }

    /**
     * Adds the source of a class that the others are compiled against and that is not packed, such as an interface of the
     * server as it was in another version.
     */
    public PluginJarBuilder foreignSource(String className, String source) {
        foreign.put(className, source);
        return this;
    }

    /** Names a provider in {@code META-INF/services}. */
    public PluginJarBuilder service(String type, String provider) {
        services.computeIfAbsent(type, t -> new ArrayList<>()).add(provider);
        return this;
    }

    /** Sets the version of the API in the manifest. */
    public PluginJarBuilder apiVersion(String version) {
        apiVersion = version;
        return this;
    }

    /** Compiles against these jars and directories only. */
    public PluginJarBuilder classPath(List<Path> entries) {
        classPath = String.join(
                File.pathSeparator, entries.stream().map(Path::toString).toList());
        return this;
    }

    /**
     * Writes the jar.
     *
     * @return {@code jar}
     * @throws IllegalArgumentException when the sources do not compile; its message has the compiler's
     */
    public Path build(Path jar) {
        try {
            Path classes = Files.createTempDirectory("plugin-classes");
            try {
                compile(classes);
                pack(jar, classes);
            } finally {
                try (Stream<Path> all = Files.walk(classes)) {
                    for (Path path : all.sorted((a, b) -> b.compareTo(a)).toList()) {
                        Files.delete(path);
                    }
                }
            }
            return jar;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void compile(Path classes) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<JavaFileObject> units = new ArrayList<>();
        sources.forEach((name, text) -> units.add(new Source(name, text)));
        foreign.forEach((name, text) -> units.add(new Source(name, text)));
        StringWriter messages = new StringWriter();
        List<String> options = List.of("-d", classes.toString(), "-classpath", classPath, "-proc:none");
        if (!units.isEmpty()
                && !compiler.getTask(messages, null, null, options, null, units).call()) {
            throw new IllegalArgumentException(messages.toString());
        }
    }

    private void pack(Path jar, Path classes) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        if (apiVersion != null) {
            manifest.getMainAttributes().putValue(ApiVersion.MANIFEST_ATTRIBUTE, apiVersion);
        }
        Files.createDirectories(jar.toAbsolutePath().getParent());
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar), manifest);
                Stream<Path> walk = Files.walk(classes)) {
            for (Path file : walk.filter(Files::isRegularFile).sorted().toList()) {
                String name = classes.relativize(file).toString().replace(File.separatorChar, '/');
                if (!isForeign(name)) {
                    out.putNextEntry(new JarEntry(name));
                    out.write(Files.readAllBytes(file));
                }
            }
            for (Map.Entry<String, List<String>> service : services.entrySet()) {
                out.putNextEntry(new JarEntry("META-INF/services/" + service.getKey()));
                out.write(String.join("\n", service.getValue()).getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    private boolean isForeign(String file) {
        return foreign.keySet().stream()
                .map(name -> name.replace('.', '/'))
                .anyMatch(name -> file.equals(name + ".class") || file.startsWith(name + "$"));
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String className, String text) {
            super(URI.create("string:///" + className.replace('.', '/') + Kind.SOURCE.extension), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }
}
