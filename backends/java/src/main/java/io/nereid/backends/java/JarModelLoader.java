// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ServingException;
import io.nereid.base.plugin.IsolatedJar;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceConfigurationError;
import org.jspecify.annotations.Nullable;

/**
 * Loads a {@link JavaModel} from a jar with a separate class loader. It reads a copy of the jar, so that the jar can be
 * replaced while the model is loaded. Has no state.
 */
final class JarModelLoader {
    private static final List<String> SHOWN = List.of(
            "io.nereid.base.",
            "io.nereid.tensor.",
            "io.nereid.spi.",
            "io.nereid.backend.",
            JavaModel.class.getName(),
            JavaRequestModel.class.getName());

    private static final IsolatedJar.Terms WORDS = new IsolatedJar.Terms(
            "model",
            "the parameter 'class'",
            "the packages io.nereid.base, tensor, spi and backend and the interface JavaModel");

    private JarModelLoader() {}

    static BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        String file = config.modelFile().isEmpty() ? JavaBackend.JAR : config.modelFile();
        Path jar = source.versionDirectory().resolve(file);
        if (!Files.isRegularFile(jar)) {
            throw ServingException.invalidArgument(
                    "version " + source.id().version() + " of model '" + config.name() + "' has no file '" + file
                            + "' in " + source.versionDirectory(),
                    "add it, or set the parameter 'model' to the built-in one: " + PoolingBackend.NAME);
        }
        IsolatedJar opened = IsolatedJar.open(jar, context.scratch(), SHOWN, JavaModel.class.getClassLoader(), WORDS);
        try {
            JavaModel model =
                    (JavaModel) opened.newInstance(config.parameters().getOrDefault("class", ""), JavaModel.class);
            return ready(model, source, config, opened);
        } catch (ServingException e) {
            opened.close();
            throw e;
        } catch (Exception | LinkageError | ServiceConfigurationError e) {
            opened.close();
            throw opened.failure("model '" + config.name() + "'", e, JavaModel.class);
        }
    }

    private static BackendModel ready(JavaModel model, ModelLocation source, ModelConfig config, IsolatedJar opened)
            throws Exception {
        try {
            model.load(source.versionDirectory(), config.parameters());
            return new LoadedJavaModel(
                    complete(config, model), "java", "java", model, SimulatedDelays.read(config), opened::close);
        } catch (Exception | LinkageError e) {
            try {
                model.close();
            } catch (Exception | LinkageError alsoFailed) {
                e.addSuppressed(alsoFailed);
            }
            throw e;
        }
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

    /** Returns the model's tensors in the model's order, with the shapes of the configuration where it has them. */
    private static List<TensorSpec> matched(
            ModelConfig c, String kind, List<TensorSpec> given, @Nullable List<TensorSpec> own) {
        if (own == null) {
            throw ServingException.invalidArgument(
                    "the class of model '" + c.name() + "' returns null for its " + kind + "s",
                    "return a list, which may be empty for inputs");
        }
        for (TensorSpec g : given) {
            TensorSpec o = named(own, g.name());
            if (o == null
                    || o.dataType() != g.dataType()
                    || o.shape().rank() != g.shape().rank()) {
                throw ServingException.invalidArgument(
                        "model '" + c.name() + "' is configured with " + kind + " '" + g.name() + "' " + g.dataType()
                                + g.shape() + " (expected: one of the model's, " + own + ")",
                        "correct its configuration, or omit '" + kind + "'");
            }
        }
        List<TensorSpec> result = new ArrayList<>();
        for (TensorSpec o : own) {
            TensorSpec g = named(given, o.name());
            if (g == null && !given.isEmpty() && kind.equals("input") && !o.optional()) {
                throw ServingException.invalidArgument(
                        "model '" + c.name() + "' needs input '" + o.name() + "', which its configuration lacks",
                        "add it, or omit 'input'");
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
}
