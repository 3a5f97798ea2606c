// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.JarClasses;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import java.nio.file.Path;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The {@link Transformer} that a jar brings, with a class loader and threads of its own, until it is closed. Thread-safe; no
 * method but {@link #load} waits.
 */
public final class JavaTransformer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JavaTransformer.class);

    private static final List<String> SHOWN =
            List.of("io.nereid.base.", "io.nereid.tensor.", "io.nereid.spi.", "io.nereid.transform.");

    private static final JarClasses.Words WORDS = new JarClasses.Words(
            "transformer",
            "spec.transformer.nereid.class",
            "the packages io.nereid.base, tensor, spi and transform");

    private static final long END_SECONDS = 60;

    private final JarClasses classes;
    private final Steps steps;
    private final ThreadPoolExecutor pool;

    private JavaTransformer(JarClasses classes, Steps steps, ThreadPoolExecutor pool) {
        this.classes = classes;
        this.steps = steps;
        this.pool = pool;
    }

    /**
     * Opens a jar and starts its transformer; takes as long as that does.
     *
     * @param className the transformer's class; empty for the one that the jar offers
     * @param scratch where the jar is copied to
     * @param threads most steps that run at once
     * @throws ServingException INVALID_ARGUMENT for a jar without a transformer, or one that cannot start
     */
    public static JavaTransformer load(
            Path jar, String className, Transformer.Settings settings, Path scratch, int threads) {
        JarClasses classes =
                JarClasses.open(jar, scratch, SHOWN, Transformer.class.getClassLoader(), WORDS);
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(classes.loader());
        try {
            Transformer transformer = (Transformer) classes.make(className, Transformer.class);
            try {
                transformer.start(settings);
            } catch (Exception | LinkageError e) {
                end(transformer, settings.modelName());
                throw e;
            }
            return new JavaTransformer(
                    classes,
                    new Steps(transformer, settings.modelName()),
                    Threads.pool("transform-" + settings.modelName(), threads));
        } catch (ServingException e) {
            classes.close();
            throw e;
        } catch (Exception | LinkageError | ServiceConfigurationError e) {
            classes.close();
            throw classes.failure("the transformer of model '" + settings.modelName() + "'", e, Transformer.class);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static void end(Transformer transformer, String model) {
        try {
            transformer.close();
        } catch (Exception | LinkageError e) {
            LOG.warn("the transformer of model '{}' could not be closed", model, e);
        }
    }

    /**
     * The steps around a predictor.
     *
     * @param engine the predictor's models, under the names that clients use
     * @param control likewise
     * @param views takes the same models behind the steps
     */
    public <T> T around(
            InferenceEngine engine, ModelControl control, BiFunction<InferenceEngine, ModelControl, T> views) {
        TransformedModels models = new TransformedModels(steps, pool, engine, control);
        return views.apply(models, models);
    }

    /** Lets the steps that run finish, refuses others, and then lets go of the jar. Returns at once. */
    @Override
    public void close() {
        pool.shutdown();
        Threads.named("transform-end").newThread(this::end).start();
    }

    private void end() {
        try {
            if (!pool.awaitTermination(END_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("steps of the transformer of model '{}' still run", steps.modelName);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        end(steps.transformer, steps.modelName);
        try {
            classes.close();
        } catch (ServingException e) {
            LOG.warn("{}", e.describe());
        }
    }
}
