// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance.api;

import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** The modules of the published API and their classes, as {@code build/api/packages.txt} lists them. Has no state. */
final class ApiModules {
    private ApiModules() {}

    /** The directory of the list and the baselines. */
    static Path directory() {
        return root().resolve("build/api");
    }

    /** The root of the source tree. */
    static Path root() {
        Path here = Path.of("").toAbsolutePath();
        while (!Files.isDirectory(here.resolve("build/api"))) {
            here = here.getParent();
            if (here == null) {
                throw new IllegalStateException(
                        "build/api is in no directory above " + Path.of("").toAbsolutePath());
            }
        }
        return here;
    }

    /** The listed top-level classes by module. */
    static Map<String, List<Class<?>>> load() throws IOException, ReflectiveOperationException {
        Map<String, List<Class<?>>> modules = new LinkedHashMap<>();
        for (String line : Files.readAllLines(directory().resolve("packages.txt"))) {
            if (!line.isBlank() && !line.startsWith("#")) {
                String[] parts = line.split(":");
                modules.put(parts[0].strip(), classes(parts[1].strip().split("\\s+")));
            }
        }
        return modules;
    }

    private static List<Class<?>> classes(String... names) throws IOException, ReflectiveOperationException {
        List<String> found = new ArrayList<>();
        for (String name : names) {
            if (name.startsWith("-")) {
                if (!found.remove(name.substring(1))) {
                    throw new IllegalStateException(
                            "packages.txt leaves out " + name.substring(1) + ", which is not there");
                }
            } else if (Character.isUpperCase(name.charAt(name.lastIndexOf('.') + 1))) {
                found.add(name);
            } else {
                found.addAll(inPackage(name));
            }
        }
        List<Class<?>> classes = new ArrayList<>();
        for (String name : found) {
            classes.add(Class.forName(name, false, ApiModules.class.getClassLoader()));
        }
        return classes;
    }

    /** The top-level classes of a package's main code. */
    private static List<String> inPackage(String name) throws IOException {
        List<String> classes = new ArrayList<>();
        String path = name.replace('.', '/');
        for (URL url : Collections.list(ApiModules.class.getClassLoader().getResources(path))) {
            if (url.getPath().contains("/test-classes/")) {
                continue;
            }
            if (url.getProtocol().equals("jar")) {
                String jar = url.toString().substring(0, url.toString().indexOf("!/"));
                try (FileSystem files = FileSystems.newFileSystem(URI.create(jar), Map.of())) {
                    classes.addAll(inDirectory(name, files.getPath(path)));
                }
            } else {
                classes.addAll(inDirectory(name, Path.of(URI.create(url.toString()))));
            }
        }
        if (classes.isEmpty()) {
            throw new IllegalStateException("packages.txt lists package " + name + ", which is not on the class path");
        }
        return classes;
    }

    private static List<String> inDirectory(String name, Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(p -> String.valueOf(p.getFileName()))
                    .filter(f -> f.endsWith(".class") && !f.contains("$") && !f.equals("package-info.class"))
                    .map(f -> name + '.' + f.substring(0, f.length() - ".class".length()))
                    .sorted()
                    .toList();
        }
    }
}
