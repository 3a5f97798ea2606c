// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Checks that the Java models in the documentation compile and can be served. */
class DocumentedModelsTest {
    private static final String IMPORTS = """
        import io.nereid.backend.*;
        import io.nereid.backends.java.*;
        import io.nereid.spi.*;
        import io.nereid.spi.config.*;
        import io.nereid.tensor.*;
        import java.nio.*;
        import java.nio.file.Path;
        import java.util.*;
        """;

    private static final Pattern CLASS = Pattern.compile("public (?:final )?class (\\w+) implements Java");

    @TempDir
    Path directory;

    private static List<String> blocks(String document, String heading, String language) throws IOException {
        Path here = Path.of("").toAbsolutePath();
        Path top = Files.isDirectory(here.resolve("docs"))
                ? here
                : here.resolve("../..").normalize();
        String text = Files.readString(top.resolve("docs").resolve(document));
        int from = text.indexOf(heading + "\n");
        assertThat(from).as("%s has the section '%s'", document, heading).isNotNegative();
        String mark = heading.substring(0, heading.indexOf(' ') + 1);
        int to = text.indexOf("\n" + mark, from + heading.length());
        Matcher block = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL)
                .matcher(to < 0 ? text.substring(from) : text.substring(from, to));
        List<String> found = new ArrayList<>();
        while (block.find()) {
            found.add(block.group(1));
        }
        return found;
    }

    /** Runs the command lines of the document with the JDK's tools in this process. */
    private void tool(String line) {
        List<String> words = new ArrayList<>();
        for (String word : line.split(" ")) {
            String plain = word.equals("\"$NEREID/lib/*\"") ? System.getProperty("java.class.path") : word;
            words.add(
                    plain.endsWith(".java") || plain.endsWith(".jar")
                            ? directory.resolve(plain).toString()
                            : plain);
        }
        if (words.get(0).equals("jar")) {
            int first = words.indexOf("Doubler.class");
            words.addAll(first, List.of("-C", directory.toString()));
            words.addAll(words.indexOf("META-INF"), List.of("-C", directory.toString()));
        }
        StringWriter said = new StringWriter();
        int code = ToolProvider.findFirst(words.get(0))
                .orElseThrow()
                .run(
                        new PrintWriter(said),
                        new PrintWriter(said),
                        words.subList(1, words.size()).toArray(String[]::new));
        assertThat(code).as("%s: %s", line, said).isZero();
    }

    @Test
    void theExampleIsCompiledPackedAndServedAsItIsWritten() throws Exception {
        String source = blocks("FORMATS.md", "## Java models", "java").get(0);
        Files.writeString(directory.resolve("Doubler.java"), source);
        for (String line :
                blocks("FORMATS.md", "## Java models", "sh").get(0).lines().toList()) {
            if (line.startsWith("mkdir -p ")) {
                for (String name : line.substring("mkdir -p ".length()).split(" ")) {
                    Files.createDirectories(directory.resolve(name));
                }
            } else if (line.startsWith("echo ")) {
                String[] parts = line.substring("echo ".length()).split(" > ");
                Files.writeString(directory.resolve(parts[1]), parts[0] + "\n");
            } else if (!line.startsWith("$NEREID/bin/nereid serve models")) {
                tool(line);
            }
        }
        ModelLocation at = new ModelLocation(
                new ServableId("doubler", 1),
                directory.resolve("models/doubler"),
                directory.resolve("models/doubler/1"));
        try (BackendModel model = new JavaBackend()
                        .load(
                                at,
                                ModelConfig.unspecified("doubler"),
                                new BackendContext(1, directory.resolve("scratch"), Map.of()));
                ModelInstance invocation = model.newInstance();
                Tensor x = Tensor.allocate("x", DataType.FP32, Shape.of(3))) {
            x.buffer().putFloat(0, 1).putFloat(4, -2.5f).putFloat(8, 4);
            try (Tensor y = invocation.run(List.of(x), List.of("y")).get(0)) {
                assertThat(y.buffer().getFloat(0)).isEqualTo(2);
                assertThat(y.buffer().getFloat(4)).isEqualTo(-5);
                assertThat(y.buffer().getFloat(8)).isEqualTo(8);
            }
        }
    }

    @Test
    void theExampleHasTenLines() throws IOException {
        String source = blocks("FORMATS.md", "## Java models", "java").get(0);
        assertThat(source.substring(source.indexOf("public class")).lines()).hasSizeLessThanOrEqualTo(10);
    }

    @Test
    void theOtherExamplesAreCompiled() throws IOException {
        List<String> blocks = blocks("CONFIGURATION.md", "### `java`", "java");
        assertThat(blocks).hasSizeGreaterThan(1);
        for (String block : blocks) {
            Matcher name = CLASS.matcher(block);
            assertThat(name.find()).as(block).isTrue();
            Path jar = Jars.jar(
                    directory.resolve(name.group(1)).resolve("1/model.jar"),
                    Map.of(name.group(1), IMPORTS + block),
                    List.of(name.group(1)));
            assertThat(jar).isNotEmptyFile();
        }
    }
}
