// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.transform.FakePredictor.Client;
import io.nereid.transform.Transformer.Settings;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JavaTransformerTest {
    private static final String STEPS = """
        package com.example;
        import io.nereid.transform.*;
        import java.nio.file.*;
        public class NAME implements Transformer {
            private Path directory;
            private float factor;
            public void start(Settings settings) {
                directory = settings.directory();
                factor = Float.parseFloat(settings.config().get("factor"));
            }
            public TensorMap preprocess(TensorMap request) {
                if (Thread.currentThread().getContextClassLoader() != getClass().getClassLoader()) {
                    throw new IllegalStateException("another loader");
                }
                return TensorMap.of("x", factor * request.floats("x")[0]);
            }
            public void close() throws Exception {
                Files.writeString(directory.resolve("closed"), "NAME");
            }
        }
        """;

    @TempDir
    Path directory;

    private Path jar(String offered, String... sources) throws IOException {
        Path classes = Files.createTempDirectory(directory, "classes");
        List<JavaFileObject> units = Stream.of(sources)
                .map(text -> (JavaFileObject)
                        new SimpleJavaFileObject(
                                URI.create("string:///com/example/"
                                        + text.replaceAll("(?s).*public class (\\w+).*", "$1") + ".java"),
                                JavaFileObject.Kind.SOURCE) {
                            @Override
                            public CharSequence getCharContent(boolean ignoreErrors) {
                                return text;
                            }
                        })
                .toList();
        List<String> options =
                List.of("-d", classes.toString(), "-classpath", System.getProperty("java.class.path"), "-proc:none");
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .getTask(null, null, null, options, null, units)
                        .call())
                .isTrue();
        Path jar = directory.resolve("steps.jar");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar));
                Stream<Path> walk = Files.walk(classes)) {
            for (Path file : walk.filter(Files::isRegularFile).toList()) {
                out.putNextEntry(new JarEntry(classes.relativize(file).toString()));
                out.write(Files.readAllBytes(file));
            }
            out.putNextEntry(new JarEntry("META-INF/services/" + Transformer.class.getName()));
            out.write(offered.getBytes(StandardCharsets.UTF_8));
        }
        return jar;
    }

    private JavaTransformer load(Path jar, String className, Map<String, String> config) {
        return JavaTransformer.load(
                jar, className, new Settings("m", directory, config), directory.resolve("scratch"), 2);
    }

    private static void doubled(JavaTransformer transformer) throws Exception {
        FakePredictor predictor = new FakePredictor();
        Client client = new Client();
        InferenceRequest request = new InferenceRequest(
                ModelRef.latest("m"), "", TensorMap.of("x", 3f).tensors(), List.of(), Map.of(), Long.MAX_VALUE, 0);
        InferenceEngine engine = transformer.around(predictor, predictor, Duration.ZERO, (e, control) -> e);
        InferenceCall unused = engine.infer(request, client);
        assertThat(until(predictor)).isTrue();
        assertThat(predictor.asked(0).x()).containsExactly(6f);
        predictor.asked(0).answer(true, 1);
        client.ended.get(10, TimeUnit.SECONDS);
        assertThat(client.received).hasSize(1);
    }

    private static boolean until(FakePredictor predictor) throws InterruptedException {
        for (int i = 0; i < 1000; i++) {
            synchronized (predictor) {
                if (!predictor.asked.isEmpty()) {
                    return true;
                }
                predictor.wait(10);
            }
        }
        return false;
    }

    @Test
    void runsTheTransformerOfAJarUntilClosed() throws Exception {
        Path jar = jar("com.example.One", STEPS.replace("NAME", "One"));
        try (JavaTransformer transformer = load(jar, "", Map.of("factor", "2"))) {
            Files.delete(jar); // it may be replaced while it is in use
            doubled(transformer);
        }
        ended("One");
    }

    /** Waits until the closed transformer has ended. */
    private void ended(String name) throws Exception {
        Path closed = directory.resolve("closed");
        for (int i = 0; i < 1000 && !(Files.exists(closed) && none(directory.resolve("scratch"))); i++) {
            assertThat(new Semaphore(0).tryAcquire(10, TimeUnit.MILLISECONDS)).isFalse();
        }
        assertThat(closed).hasContent(name);
        assertThat(directory.resolve("scratch")).isEmptyDirectory();
    }

    private static boolean none(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.findAny().isEmpty();
        }
    }

    @Test
    void aConfiguredClassNameSelectsTheTransformer() throws Exception {
        Path jar = jar("com.example.One\ncom.example.Two", STEPS.replace("NAME", "One"), STEPS.replace("NAME", "Two"));
        try (JavaTransformer transformer = load(jar, "com.example.Two", Map.of("factor", "2"))) {
            doubled(transformer);
            assertThat(transformer.ofJson()).isFalse();
        }
        ended("Two");
        assertThatThrownBy(() -> load(jar, "", Map.of("factor", "2")))
                .hasMessageContaining("offers more than one transformer: com.example.One and com.example.Two");
        assertThatThrownBy(() -> load(jar, "com.example.Three", Map.of()))
                .hasMessageContaining("there is no class 'com.example.Three'");
    }

    @Test
    void loadsAJsonTransformer() throws Exception {
        Path jar = jar("", """
            package com.example;
            import java.nio.file.*;
            import java.util.Map;
            public class Plain implements io.nereid.transform.JsonTransformer {
                private Path directory;
                public void start(io.nereid.transform.Transformer.Settings settings) { directory = settings.directory(); }
                public Object preprocess(Object payload, Map<String, String> headers) { return Map.of("instances", 1); }
                public void close() throws Exception { Files.writeString(directory.resolve("closed"), "Plain"); }
            }
            """);
        try (JavaTransformer transformer = load(jar, "com.example.Plain", Map.of())) {
            assertThat(transformer.ofJson()).isTrue();
            assertThat(transformer.json((m, t, h, b) -> null).httpRoutes()).hasSize(5);
        }
        ended("Plain");
    }

    @Test
    void aFailedStartReportsItsCauseAndReleasesTheJar() throws Exception {
        Path jar = jar("com.example.One", STEPS.replace("NAME", "One"));
        assertThatThrownBy(() -> load(jar, "", Map.of("factor", "two")))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("cannot load the transformer of model 'm'")
                .hasMessageContaining("For input string: \"two\"");
        assertThat(directory.resolve("closed")).hasContent("One");
        assertThat(directory.resolve("scratch")).isEmptyDirectory();
    }

    @Test
    void aJarSeesOnlyTheApiPackagesOfTheServer() throws Exception {
        String curious = """
            package com.example;
            public class Curious implements io.nereid.transform.Transformer {
                public void start(Settings settings) throws Exception {
                    Class.forName("org.slf4j.Logger");
                }
            }
            """;
        Path jar = jar("com.example.Curious", curious);
        assertThatThrownBy(() -> load(jar, "", Map.of())).hasMessageContaining("it needs class 'org.slf4j.Logger'");
    }

    @Test
    void rejectsAFileThatIsNotAJar() throws Exception {
        Path file = Files.writeString(directory.resolve("steps.jar"), "no jar");
        assertThatThrownBy(() -> load(file, "", Map.of())).hasMessageContaining("cannot read " + file);
        Path empty = jar("", STEPS.replace("NAME", "One"));
        assertThatThrownBy(() -> load(empty, "", Map.of())).hasMessageContaining("offers no transformer");
    }
}
