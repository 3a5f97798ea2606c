// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.PluginJarBuilder;
import io.nereid.testkit.RecordingModelRequest;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JarModelLoaderTest {
    @TempDir
    Path directory;

    private Path version;
    private Path scratch;

    @BeforeEach
    void layout() throws IOException {
        version = Files.createDirectories(directory.resolve("m/1"));
        scratch = directory.resolve("scratch");
    }

    private BackendModel load(ModelConfig config) {
        return new JavaBackend()
                .load(
                        new ModelLocation(new ServableId("m", 1), directory.resolve("m"), version),
                        config,
                        new BackendContext(1, scratch, Map.of()));
    }

    private static ModelConfig config(Map<String, String> parameters) {
        ModelConfig c = ModelConfig.unspecified("m");
        return c.toBuilder().parameters(parameters).build();
    }

    private BackendModel load() {
        return load(config(Map.of()));
    }

    private void jar(List<String> services, String... sources) {
        Map<String, String> byName = new java.util.HashMap<>();
        for (int i = 0; i < sources.length; i += 2) {
            byName.put(sources[i], sources[i + 1]);
        }
        Jars.jar(version.resolve("model.jar"), byName, services);
    }

    private void doubler() {
        jar(List.of("com.example.Doubler"), "com.example.Doubler", Jars.DOUBLER);
    }

    private static float run(BackendModel model, float value) {
        try (ModelInstance invocation = model.newInstance();
                Tensor x = Tensor.allocate("x", DataType.FP32, Shape.of(1))) {
            x.buffer().putFloat(0, value);
            try (Tensor y = invocation.run(List.of(x), List.of("y")).get(0)) {
                return y.buffer().getFloat(0);
            }
        }
    }

    @Test
    void aJarAddsAModel() {
        doubler();
        try (BackendModel model = load()) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("x", DataType.FP32, Shape.of(-1)));
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().instances()).isEqualTo(1);
            assertThat(run(model, 21)).isEqualTo(42);
        }
    }

    @Test
    void aJarForAnotherVersionOfTheApiIsRejected() {
        new PluginJarBuilder()
                .source("com.example.Doubler", Jars.DOUBLER)
                .service(JavaModel.class.getName(), "com.example.Doubler")
                .apiVersion("99.0")
                .build(version.resolve("model.jar"));
        assertThatThrownBy(this::load).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
            assertThat(e).hasMessageContaining("model.jar was built for version 99.0 of Nereid's plugin API");
        });
        assertThat(scratch).doesNotExist();
    }

    @Test
    void aMethodThatThisVersionOfTheApiLacksIsNamed() {
        new PluginJarBuilder()
                .source(
                        "com.example.Doubler",
                        Jars.DOUBLER.replace(
                                "public class Doubler implements JavaModel {",
                                "public class Doubler implements JavaModel {"
                                        + " public Doubler() { io.nereid.base.Clock.utc(); }"))
                .foreignSource(
                        "io.nereid.base.Clock",
                        "package io.nereid.base; public interface Clock { static void utc() {} }")
                .service(JavaModel.class.getName(), "com.example.Doubler")
                .build(version.resolve("model.jar"));
        assertThatThrownBy(this::load)
                .isInstanceOf(ServingException.class)
                .hasMessageStartingWith("model 'm' in " + version.resolve("model.jar")
                        + " was compiled against another version of Nereid's plugin API")
                .hasMessageContaining("'void io.nereid.base.Clock.utc()'");
    }

    @Test
    void aClassIsFoundByTheParameterToo() {
        jar(List.of(), "com.example.Doubler", Jars.DOUBLER);
        try (BackendModel model = load(config(Map.of("class", "com.example.Doubler")))) {
            assertThat(run(model, 2)).isEqualTo(4);
        }
    }

    @Test
    void theJarMayBeReplacedWhileItServes() throws IOException {
        doubler();
        try (BackendModel old = load()) {
            Files.delete(version.resolve("model.jar"));
            jar(List.of("com.example.Doubler"), "com.example.Doubler", Jars.DOUBLER.replace("2 * ", "3 * "));
            try (BackendModel young = load()) {
                assertThat(run(old, 1)).isEqualTo(2);
                assertThat(run(young, 1)).isEqualTo(3);
            }
        }
    }

    @Test
    void closingLeavesNeitherFilesNorClasses() throws IOException {
        doubler();
        WeakReference<ClassLoader> loader = loadAndClose();
        for (int i = 0; i < 200 && loader.get() != null; i++) {
            System.gc();
            byte[] pressure = new byte[1 << 20];
            assertThat(pressure).hasSize(1 << 20);
        }
        assertThat(loader.get()).isNull();
        try (Stream<Path> left = Files.list(scratch)) {
            assertThat(left).isEmpty();
        }
    }

    private WeakReference<ClassLoader> loadAndClose() {
        jar(
                List.of("com.example.Failing"),
                "com.example.Failing",
                Jars.DOUBLER
                        .replace("Doubler", "Failing")
                        .replace("throws Exception {", "throws Exception { if (true) throw new Oops();")
                        .replace(
                                "return List.of(y);\n    }",
                                "return List.of(y);\n    } static class Oops extends Exception {}"));
        try (BackendModel model = load()) {
            try {
                run(model, 1);
                throw new AssertionError("the model fails");
            } catch (ServingException e) {
                assertThat(e).hasMessage("model 'm' failed: Oops");
                return new WeakReference<>(java.util.Objects.requireNonNull(e.getCause())
                        .getClass()
                        .getClassLoader());
            }
        }
    }

    @Test
    void aModelSeesTheInterfacesAndNothingElseOfTheServer() {
        jar(
                List.of("com.example.Doubler"),
                "com.example.Doubler",
                Jars.DOUBLER.replace(
                        "throws Exception {",
                        "throws Exception { for (String c : List.of(\"io.nereid.backends.java.JavaBackend\","
                                + " \"org.junit.jupiter.api.Test\", \"io.netty.buffer.ByteBuf\")) try { Class.forName(c);"
                                + " throw new Exception(c); } catch (ClassNotFoundException right) {}"));
        try (BackendModel model = load()) {
            assertThat(run(model, 1)).isEqualTo(2);
        }
    }

    @Test
    void aMissingJarIsReported() {
        assertThatThrownBy(this::load).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e).hasMessageContaining("has no file 'model.jar'");
            assertThat(e.remedy()).contains("the built-in one: pooling");
        });
    }

    @Test
    void aJarWithoutAModelIsRejected() {
        jar(List.of(), "com.example.Doubler", Jars.DOUBLER);
        assertThatThrownBy(this::load).hasMessageContaining("offers no model");
    }

    @Test
    void aJarWithTwoModelsWantsAChoice() {
        jar(
                List.of("com.example.Doubler", "com.example.Other"),
                "com.example.Doubler",
                Jars.DOUBLER,
                "com.example.Other",
                Jars.DOUBLER.replace("Doubler", "Other"));
        assertThatThrownBy(this::load)
                .hasMessageContaining("offers more than one model: com.example.Doubler and com.example.Other");
        try (BackendModel model = load(config(Map.of("class", "com.example.Other")))) {
            assertThat(run(model, 1)).isEqualTo(2);
        }
    }

    @Test
    void aClassThatIsNotThereOrNoModelIsRejected() {
        jar(List.of(), "com.example.Doubler", Jars.DOUBLER, "com.example.X", "package com.example; public class X {}");
        assertThatThrownBy(() -> load(config(Map.of("class", "com.example.Gone"))))
                .hasMessageContaining("there is no class");
        assertThatThrownBy(() -> load(config(Map.of("class", "com.example.X")))).hasMessageContaining("is not a model");
        assertThat(scratch).isEmptyDirectory();
    }

    private void assertRejected(String message, String remedy) {
        assertThatThrownBy(this::load).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e).hasMessageContaining("model.jar").hasMessageContaining(message);
            assertThat(e.remedy()).contains(remedy);
        });
        assertThat(scratch).isEmptyDirectory();
    }

    @Test
    void aConstructorThatCannotBeCalledIsReported() {
        String arguments = Jars.DOUBLER.replace(
                "public class Doubler implements JavaModel {",
                "public class Doubler implements JavaModel { public Doubler(int size) {}");
        jar(List.of("com.example.Doubler"), "com.example.Doubler", arguments);
        assertRejected("com.example.Doubler Unable to get public no-arg constructor", "constructor without arguments");
        String hidden = Jars.DOUBLER
                .replace("public class Doubler", "class Hidden")
                .replace("implements JavaModel {", "implements JavaModel { public Hidden() {}");
        jar(List.of(), "com.example.Doubler", arguments, "com.example.Hidden", hidden);
        for (String name : List.of("Doubler", "Hidden")) {
            assertThatThrownBy(() -> load(config(Map.of("class", "com.example." + name))))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e)
                                .hasMessageContaining("class 'com.example." + name + "' in "
                                        + version.resolve("model.jar") + " cannot be instantiated as a model");
                        assertThat(e.remedy()).contains("public, not abstract");
                    });
        }
        assertThat(scratch).isEmptyDirectory();
    }

    @Test
    void whatAConstructorThrowsIsReported() {
        String throwing = Jars.DOUBLER.replace(
                "implements JavaModel {",
                "implements JavaModel { public Doubler() { throw new IllegalStateException(\"no licence\"); }");
        jar(List.of("com.example.Doubler"), "com.example.Doubler", throwing);
        assertRejected("no licence", "META-INF/services");
        jar(
                List.of("com.example.Doubler"),
                "com.example.Doubler",
                Jars.DOUBLER.replace(
                        "implements JavaModel {",
                        "implements JavaModel { static final int N = Integer.parseInt(\"two\");"));
        assertRejected("For input string: \"two\"", "");
    }

    @Test
    void aClassThatTheJarOnlyPromisesIsReported() {
        jar(List.of("com.example.Gone"), "com.example.Doubler", Jars.DOUBLER);
        assertRejected("com.example.Gone", "META-INF/services/io.nereid.backends.java.JavaModel");
        jar(List.of("com.example.X"), "com.example.X", "package com.example; public class X {}");
        assertRejected("com.example.X", "implement it");
    }

    @Test
    void aLibraryThatIsNotInTheJarIsNamed() {
        Jars.jar(
                version.resolve("model.jar"),
                Map.of(
                        "com.example.Doubler",
                        Jars.DOUBLER.replace(
                                "implements JavaModel {", "implements JavaModel { private final Lib lib = new Lib();"),
                        "com.example.Lib",
                        "package com.example; class Lib {}"),
                List.of("com.example.Doubler"),
                List.of("com/example/Lib.class"));
        assertRejected(
                "it needs class 'com.example.Lib', which is not in it",
                "put the libraries that the model needs into its jar");
    }

    @Test
    void aClassForANewerJavaIsReported() throws IOException {
        Path jar = version.resolve("model.jar");
        doubler();
        Files.write(jar, Jars.forJava(jar, 99));
        assertRejected(
                "more recent version of the Java Runtime",
                "javac --release " + Runtime.version().feature());
    }

    @Test
    void aModelWithoutListsIsReported() {
        jar(
                List.of("com.example.Doubler"),
                "com.example.Doubler",
                Jars.DOUBLER.replace(
                        "return List.of(new TensorSpec(\"x\", DataType.FP32, Shape.of(-1)));", "return null;"));
        assertThatThrownBy(this::load)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage("the class of model 'm' returns null for its inputs");
        assertThat(scratch).isEmptyDirectory();
    }

    @Test
    void aModelThatFailsToLoadReportsItsReasonAndLeavesNothing() {
        jar(
                List.of("com.example.Doubler"),
                "com.example.Doubler",
                Jars.DOUBLER.replace(
                        "public List<TensorSpec> inputs",
                        "public void load(java.nio.file.Path v, java.util.Map<String, String> p) throws Exception {"
                                + " throw new java.io.IOException(\"no weights\"); } public List<TensorSpec> inputs"));
        assertThatThrownBy(this::load)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("no weights");
        assertThat(scratch).isEmptyDirectory();
    }

    @Test
    void aConfigurationMayNarrowTheModelButNotContradictIt() {
        doubler();
        ModelConfig c = config(Map.of());
        List<TensorSpec> four = List.of(new TensorSpec("x", DataType.FP32, Shape.of(4)));
        try (BackendModel model = load(c.completed("", "", 8, four, List.of(), null, 3))) {
            assertThat(model.config().inputs()).isEqualTo(four);
            assertThat(model.config().maxBatchSize()).isEqualTo(8);
            assertThat(model.config().instances()).isEqualTo(3);
        }
        List<TensorSpec> wrong = List.of(new TensorSpec("z", DataType.FP32, Shape.of(4)));
        assertThatThrownBy(() -> load(c.completed("", "", 8, wrong, List.of(), null, 3)))
                .hasMessageContaining("is configured with input 'z' FP32[4]");
    }

    @Test
    void aResponseWithTheWrongOutputsIsTheModelsFault() {
        jar(
                List.of("com.example.Doubler"),
                "com.example.Doubler",
                Jars.DOUBLER.replace("allocate(\"y\"", "allocate(\"q\""));
        try (BackendModel model = load()) {
            assertThatThrownBy(() -> run(model, 1))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                    .hasMessageContaining("expected: outputs [y]");
        }
    }

    @Test
    void aJarMayBringAModelThatTakesRequests() throws Exception {
        jar(List.of("com.example.CountTo"), "com.example.CountTo", """
            package com.example;
            import io.nereid.backend.ModelRequest;
            import io.nereid.backends.java.JavaRequestModel;
            import io.nereid.spi.config.TensorSpec;
            import io.nereid.tensor.*;
            import java.util.*;
            public class CountTo implements JavaRequestModel {
                public List<TensorSpec> inputs() { return List.of(new TensorSpec("n", DataType.INT32, Shape.of(1))); }
                public List<TensorSpec> outputs() { return List.of(new TensorSpec("i", DataType.INT32, Shape.of(1))); }
                public boolean decoupled() { return true; }
                public void execute(List<ModelRequest> requests) {
                    for (ModelRequest r : requests) {
                        int n = r.request().inputs().get(0).buffer().getInt();
                        if (n < 0) throw new IllegalStateException("below zero");
                        for (int i = 1; i <= n; i++) {
                            Tensor t = Tensor.allocate("i", DataType.INT32, Shape.of(1));
                            t.buffer().putInt(i);
                            r.respond(List.of(t), Map.of("of", (long) n));
                        }
                        r.finish();
                    }
                }
            }
            """);
        try (BackendModel model = load();
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest request = new RecordingModelRequest(List.of(number(3)), List.of("i"));
                RecordingModelRequest bad = new RecordingModelRequest(List.of(number(-1)), List.of("i"))) {
            assertThat(model.config().decoupled()).isTrue();
            assertThat(model.traits().takesRequests()).isTrue();
            invocation.execute(List.of(request));
            assertThat(request.ends()).containsExactly("finish");
            assertThat(request.answers())
                    .extracting(a -> a.outputs().get(0).buffer().getInt())
                    .containsExactly(1, 2, 3);
            assertThat(request.answers().get(0).parameters()).containsEntry("of", 3L);
            assertThatThrownBy(() -> invocation.execute(List.of(bad)))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                    .hasMessage("model 'm' failed: below zero");
        }
    }

    private static Tensor number(int n) {
        Tensor t = Tensor.allocate("n", DataType.INT32, Shape.of(1));
        t.buffer().putInt(n);
        return t;
    }
}
