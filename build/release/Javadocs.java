// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import javax.tools.DocumentationTool;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Makes the Javadoc of several modules in one Java process, which is a few times faster than a process for each. Run as a source file by
 * build/release/maven.py with one line for each module on standard input: name, folder of the sources, class path and target, with tabs
 * between them.
 */
final class Javadocs {
    private Javadocs() {}

    public static void main(String[] arguments) throws IOException {
        Locale.setDefault(Locale.ENGLISH);
        List<String> lines = new String(System.in.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
        for (String line : lines) {
            String[] module = line.split("\t");
            if (module.length != 4) {
                System.err.println("Javadocs: a line has " + module.length + " fields, not 4: " + line);
                System.exit(2);
            }
            if (!document(module[0], Path.of(module[1]), module[2], module[3])) {
                System.exit(1);
            }
        }
    }

    private static boolean document(String name, Path sources, String classPath, String target) throws IOException {
        DocumentationTool tool = ToolProvider.getSystemDocumentationTool();
        List<Path> files;
        try (Stream<Path> all = Files.walk(sources)) {
            files = all.filter(f -> f.toString().endsWith(".java")).sorted().toList();
        }
        List<String> options = new ArrayList<>(List.of(
                "-d", target,
                "-sourcepath", sources.toString(),
                "-classpath", classPath,
                "--release", "17",
                "-encoding", "UTF-8",
                "-docencoding", "UTF-8",
                "-charset", "UTF-8",
                // The build checks what comments say.
                "-Xdoclint:none",
                "-notimestamp",
                "-quiet",
                "-windowtitle", name,
                "-doctitle", name));
        if (Runtime.version().feature() >= 23) {
            // Otherwise each jar has three megabytes of fonts.
            options.add("--no-fonts");
        }
        StringWriter messages = new StringWriter();
        try (StandardJavaFileManager manager = tool.getStandardFileManager(null, Locale.ENGLISH, null)) {
            Iterable<? extends JavaFileObject> units = manager.getJavaFileObjectsFromPaths(files);
            if (tool.getTask(messages, manager, null, null, options, units).call()) {
                return true;
            }
        }
        System.err.println("Javadocs: the documentation of " + name + " could not be made:\n" + messages);
        return false;
    }
}
