// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelSource;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * Loads the model that a jar brings, through a class loader of its own over a copy of the jar, so that the jar may be
 * replaced while it serves. Immutable.
 */
final class JarModel {
    private JarModel() {}

    static BackendModel load(ModelSource source, ModelConfig config, BackendContext context) {
        String file = config.modelFile().isEmpty() ? JavaBackend.JAR : config.modelFile();
        Path jar = source.versionDirectory().resolve(file);
        if (!Files.isRegularFile(jar)) {
            throw ServingException.invalidArgument(
                    "version " + source.id().version() + " of model '" + config.name() + "' has no file '" + file
                            + "' in " + source.versionDirectory(),
                    "add it, or set the parameter 'model' to a built-in one: " + String.join(", ", BuiltIns.NAMES));
        }
        Jar opened = Jar.open(jar, context.scratch());
        try {
            JavaModel model = find(opened.loader, config, jar);
            return ready(model, source, config, opened);
        } catch (ServingException e) {
            opened.close();
            throw e;
        } catch (Exception | LinkageError | ServiceConfigurationError e) {
            opened.close();
            throw JarErrors.loading(config.name(), jar, e);
        }
    }

    private static BackendModel ready(JavaModel model, ModelSource source, ModelConfig config, Jar opened)
            throws Exception {
        try {
            model.load(source.versionDirectory(), config.parameters());
            return new LoadedJavaModel(
                    complete(config, model), "java", "java", model, Delays.read(config), opened::close);
        } catch (Exception | LinkageError e) {
            try {
                model.close();
            } catch (Exception | LinkageError alsoFailed) {
                e.addSuppressed(alsoFailed);
            }
            throw e;
        }
    }

    private static JavaModel find(ClassLoader loader, ModelConfig config, Path jar)
            throws ReflectiveOperationException {
        String name = config.parameters().getOrDefault("class", "");
        if (!name.isEmpty()) {
            Class<?> type;
            try {
                type = Class.forName(name, true, loader);
            } catch (ClassNotFoundException e) {
                throw ServingException.wrap(
                        Code.INVALID_ARGUMENT,
                        "there is no class '" + name + "' in " + jar,
                        "correct the parameter 'class'",
                        e);
            }
            if (!JavaModel.class.isAssignableFrom(type)) {
                throw ServingException.invalidArgument(
                        "class '" + name + "' in " + jar + " is no model",
                        "let it implement " + JavaModel.class.getName());
            }
            try {
                return (JavaModel) type.getConstructor().newInstance();
            } catch (NoSuchMethodException | IllegalAccessException | InstantiationException e) {
                throw ServingException.wrap(
                        Code.INVALID_ARGUMENT,
                        "class '" + name + "' in " + jar + " cannot be made a model of",
                        "let it be public, not abstract, and have a public constructor without arguments",
                        e);
            }
        }
        Iterator<JavaModel> models = ServiceLoader.load(JavaModel.class, loader).iterator();
        if (!models.hasNext()) {
            throw ServingException.invalidArgument(
                    jar + " offers no model",
                    "name the class in META-INF/services/" + JavaModel.class.getName()
                            + " or in the parameter 'class'");
        }
        JavaModel model = models.next();
        if (models.hasNext()) {
            throw ServingException.invalidArgument(
                    jar + " offers more than one model: "
                            + model.getClass().getName() + " and "
                            + models.next().getClass().getName(),
                    "name the one that is meant in the parameter 'class'");
        }
        return model;
    }

    private static ModelConfig complete(ModelConfig given, JavaModel model) {
        ModelConfig c = model instanceof JavaRequestModel own && own.decoupled()
                ? given.toBuilder().decoupled(true).build()
                : given;
        return c.completed(
                c.platform(),
                c.backend(),
                c.maxBatchSize() < 0 ? model.maxBatchSize() : c.maxBatchSize(),
                matched(c, "input", c.inputs(), model.inputs()),
                matched(c, "output", c.outputs(), model.outputs()),
                c.batching(),
                c.instances());
    }

    /** The model's tensors in its order, narrowed to what the configuration says of them. */
    private static List<TensorSpec> matched(
            ModelConfig c, String kind, List<TensorSpec> given, @Nullable List<TensorSpec> own) {
        if (own == null) {
            throw ServingException.invalidArgument(
                    "the class of model '" + c.name() + "' gives null for its " + kind + "s",
                    "let it give a list, which may be empty for inputs");
        }
        for (TensorSpec g : given) {
            TensorSpec o = named(own, g.name());
            if (o == null
                    || o.dataType() != g.dataType()
                    || o.shape().rank() != g.shape().rank()) {
                throw ServingException.invalidArgument(
                        "model '" + c.name() + "' is configured with " + kind + " '" + g.name() + "' " + g.dataType()
                                + g.shape() + " (expected: one of the model's, " + own + ")",
                        "correct its configuration, or leave '" + kind + "' out");
            }
        }
        List<TensorSpec> result = new ArrayList<>();
        for (TensorSpec o : own) {
            TensorSpec g = named(given, o.name());
            if (g == null && !given.isEmpty() && kind.equals("input") && !o.optional()) {
                throw ServingException.invalidArgument(
                        "model '" + c.name() + "' needs input '" + o.name() + "', which its configuration leaves out",
                        "add it, or leave 'input' out");
            }
            if (g != null || given.isEmpty()) {
                result.add(g == null ? o : g);
            }
        }
        return List.copyOf(result);
    }

    private static @Nullable TensorSpec named(List<TensorSpec> specs, String name) {
        for (TensorSpec s : specs) {
            if (s.name().equals(name)) {
                return s;
            }
        }
        return null;
    }

    /** An opened copy of a jar. */
    private record Jar(Path copy, URLClassLoader loader) {
        static Jar open(Path jar, Path scratch) {
            Path copy;
            try (ZipFile readable = new ZipFile(jar.toFile())) {
                readable.size();
            } catch (IOException e) {
                throw ServingException.wrap(
                        Code.INVALID_ARGUMENT,
                        "cannot read " + jar + ": " + e.getMessage(),
                        "put a complete jar there",
                        e);
            }
            try {
                Files.createDirectories(scratch);
                copy = Files.createTempFile(scratch, "model-", ".jar");
                Files.copy(jar, copy, StandardCopyOption.REPLACE_EXISTING);
                return new Jar(copy, new URLClassLoader("nereid-model", urls(copy), new InterfacesOnly()));
            } catch (IOException e) {
                throw ServingException.wrap(
                        Code.FAILED_PRECONDITION, "cannot copy " + jar + " to " + scratch + ": " + e.getMessage(), e);
            }
        }

        private static URL[] urls(Path file) throws MalformedURLException {
            return new URL[] {file.toUri().toURL()};
        }

        void close() {
            try {
                loader.close();
                Files.deleteIfExists(copy);
            } catch (IOException e) {
                throw ServingException.internal("cannot close " + copy, e);
            }
        }
    }

    /** Shows a jar the JDK and the interfaces it needs, nothing else of the server. */
    private static final class InterfacesOnly extends ClassLoader {
        private static final List<String> SHOWN =
                List.of("io.nereid.base.", "io.nereid.tensor.", "io.nereid.spi.", "io.nereid.backend.");

        InterfacesOnly() {
            super("nereid-model-interfaces", ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.equals(JavaModel.class.getName())) {
                return JavaModel.class;
            }
            if (name.equals(JavaRequestModel.class.getName())) {
                return JavaRequestModel.class;
            }
            if (SHOWN.stream().anyMatch(name::startsWith)) {
                return Class.forName(name, false, JavaModel.class.getClassLoader());
            }
            throw new ClassNotFoundException(name);
        }
    }
}
