// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarInputStream;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Compiles sources into a jar. */
public final class Jars {
    public static final String DOUBLER = """
        package com.example;
        import io.nereid.backends.java.JavaModel;
        import io.nereid.spi.config.TensorSpec;
        import io.nereid.tensor.*;
        import java.nio.FloatBuffer;
        import java.util.List;
        public class Doubler implements JavaModel {
            public List<TensorSpec> inputs() { return List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))); }
            public List<TensorSpec> outputs() { return List.of(new TensorSpec("y", DataType.FP32, Shape.of(-1))); }
            public List<Tensor> run(List<Tensor> inputs, List<String> outputs) throws Exception {
                Tensor y = Tensor.allocate("y", DataType.FP32, inputs.get(0).shape());
                FloatBuffer from = inputs.get(0).buffer().asFloatBuffer(), to = y.buffer().asFloatBuffer();
                while (from.hasRemaining()) to.put(2 * from.get());
                return List.of(y);
            }
        }
        """;

    private Jars() {}

    /** Creates a jar of classes by their full names, which provides {@code services} as models. */
    public static Path jar(Path target, Map<String, String> sources, List<String> services) {
        return jar(target, sources, services, List.of());
    }

    /** As {@link #jar(Path, Map, List)}, without some of the compiled files. */
    public static Path jar(Path target, Map<String, String> sources, List<String> services, List<String> without) {
        try {
            Files.createDirectories(target.toAbsolutePath().getParent());
            Path classes = Files.createTempDirectory(
                    target.toAbsolutePath().getParent().getParent(), "classes");
            JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
            List<JavaFileObject> units = sources.entrySet().stream()
                    .map(e -> (JavaFileObject) new Source(e.getKey(), e.getValue()))
                    .toList();
            List<String> options = List.of(
                    "-d", classes.toString(), "-classpath", System.getProperty("java.class.path"), "-proc:none");
            assertThat(compiler.getTask(null, null, null, options, null, units).call())
                    .isTrue();
            try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(target));
                    Stream<Path> walk = Files.walk(classes)) {
                for (Path file : walk.filter(Files::isRegularFile).toList()) {
                    String name = classes.relativize(file).toString().replace('\\', '/');
                    if (without.contains(name)) {
                        continue;
                    }
                    out.putNextEntry(new JarEntry(name));
                    out.write(Files.readAllBytes(file));
                }
                out.putNextEntry(new JarEntry("META-INF/services/" + JavaModel.class.getName()));
                out.write(String.join("\n", services).getBytes(StandardCharsets.UTF_8));
            }
            return target;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the bytes of a jar whose classes have this class file version. */
    public static byte[] forJava(Path jar, int major) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JarInputStream in = new JarInputStream(Files.newInputStream(jar));
                JarOutputStream out = new JarOutputStream(bytes)) {
            for (JarEntry entry = in.getNextJarEntry(); entry != null; entry = in.getNextJarEntry()) {
                byte[] content = in.readAllBytes();
                if (entry.getName().endsWith(".class")) {
                    content[6] = (byte) (major >> 8);
                    content[7] = (byte) major;
                }
                out.putNextEntry(new JarEntry(entry.getName()));
                out.write(content);
            }
        }
        return bytes.toByteArray();
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String name, String text) {
            super(URI.create("string:///" + name.replace('.', '/') + ".java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }
}
