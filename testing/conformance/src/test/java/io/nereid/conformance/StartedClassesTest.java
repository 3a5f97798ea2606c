// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The classes that a start loads: each costs time and memory, of every server and for as long as it runs. */
class StartedClassesTest {
    /**
     * Classes of the project and its libraries, without the JDK's and without those that are made at run time, until one ONNX model is
     * served. A lower number is to be written down here; more than a twentieth above it fails.
     */
    private static final int CLASSES = 1_710;

    private static final Pattern LOADED = Pattern.compile(".*\\] ([\\w.$]+) source: .*");
    private static final Pattern OF_THE_JDK = Pattern.compile("(java|javax|jdk|sun|com\\.sun)\\..*");

    @TempDir
    Path directory;

    @Test
    void aStartLoadsNoMoreClassesThanBefore() throws Exception {
        Path distribution = BuiltDistribution.directory("the classes of a start");
        Path log = directory.resolve("classes.log");
        Map<String, String> environment = Map.of(
                "NEREID_CDS",
                "off",
                "NEREID_JAVA_OPTS",
                "-XX:TieredStopAtLevel=1 -Xlog:class+load:file=" + log + "::filecount=0",
                "JAVA_HOME",
                System.getProperty("java.home"));
        try (ServerProcess server = ServerProcess.serve(
                List.of(distribution.resolve("bin/nereid").toString()),
                environment,
                distribution.resolve("examples/models"),
                "--model-control-mode",
                "explicit",
                "--load-model",
                "simple")) {
            server.terminate();
            assertThat(server.ended(30)).isTrue();
        }
        Set<String> loaded = loaded(log);
        assertThat(loaded).contains("io.nereid.app.Main", "ai.onnxruntime.OrtSession");
        assertThat(loaded)
                .as("classes of subjects that a start does not touch")
                .noneMatch(name -> name.startsWith("com.google.protobuf.DescriptorProtos")
                        || name.startsWith("io.nereid.app.client.")
                        || name.startsWith("io.nereid.app.operator."));
        assertThat(loaded.size()).as("classes at start").isBetween(CLASSES / 2, CLASSES + CLASSES / 20);
    }

    private static Set<String> loaded(Path log) throws IOException {
        Set<String> names = new TreeSet<>();
        for (String line : Files.readAllLines(log)) {
            Matcher matcher = LOADED.matcher(line);
            if (matcher.matches() && !OF_THE_JDK.matcher(matcher.group(1)).matches()) {
                names.add(matcher.group(1));
            }
        }
        return names;
    }
}
