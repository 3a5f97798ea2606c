// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.IsolatedJar;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.endpoint.Upstream;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.tensor.MemoryRegion;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The {@link Transformer} or {@link JsonTransformer} that a jar brings, with a class loader and threads of its own, until it is closed. Thread-safe; no
 * method but {@link #load} waits.
 */
public final class JavaTransformer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JavaTransformer.class);

    private static final List<String> SHOWN =
            List.of("io.nereid.base.", "io.nereid.tensor.", "io.nereid.spi.", "io.nereid.transform.");

    private static final IsolatedJar.Words WORDS = new IsolatedJar.Words(
            "transformer", "spec.transformer.nereid.class", "the packages io.nereid.base, tensor, spi and transform");

    private static final long END_SECONDS = 60;

    private static final Class<?>[] TYPES = {Transformer.class, JsonTransformer.class};

    private final IsolatedJar classes;
    private final Object transformer;
    private final String modelName;
    private final ThreadPoolExecutor pool;

    /** Where a transformer of JSON asks its predictor. Implementations are thread-safe and return at once. */
    @FunctionalInterface
    public interface Predictor {
        /**
         * Asks a route of the predictor.
         *
         * @param target path and query
         * @param headers names in lower case
         * @param body taken over, whatever happens
         * @return the whole answer; errors of the predictor are answers too
         */
        CompletionStage<Upstream.Answer> call(
                String method, String target, List<Upstream.Header> headers, MemoryRegion body);
    }

    private JavaTransformer(IsolatedJar classes, Object transformer, String modelName, ThreadPoolExecutor pool) {
        this.classes = classes;
        this.transformer = transformer;
        this.modelName = modelName;
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
        IsolatedJar classes = IsolatedJar.open(jar, scratch, SHOWN, Transformer.class.getClassLoader(), WORDS);
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(classes.loader());
        try {
            Object transformer = classes.make(className, TYPES);
            try {
                if (transformer instanceof JsonTransformer json) {
                    json.start(settings);
                } else {
                    ((Transformer) transformer).start(settings);
                }
            } catch (Exception | LinkageError e) {
                end(transformer, settings.modelName());
                throw e;
            }
            return new JavaTransformer(
                    classes,
                    transformer,
                    settings.modelName(),
                    Threads.pool("transform-" + settings.modelName(), threads));
        } catch (ServingException e) {
            classes.close();
            throw e;
        } catch (Exception | LinkageError | ServiceConfigurationError e) {
            classes.close();
            throw classes.failure("the transformer of model '" + settings.modelName() + "'", e, TYPES);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static void end(Object transformer, String model) {
        try {
            if (transformer instanceof JsonTransformer json) {
                json.close();
            } else {
                ((Transformer) transformer).close();
            }
        } catch (Exception | LinkageError e) {
            LOG.warn("the transformer of model '{}' could not be closed", model, e);
        }
    }

    /** Whether it works on JSON, {@link #json}; else on tensors, {@link #around}. */
    public boolean ofJson() {
        return transformer instanceof JsonTransformer;
    }

    /** The steps on JSON in front of a predictor, as a protocol. Only {@linkplain #ofJson of JSON}. */
    public ProtocolCodec json(Predictor predictor) {
        return new JsonCodec((JsonTransformer) transformer, new Faults(classes.loader(), modelName), pool, predictor);
    }

    /**
     * The steps on tensors around a predictor. Not {@linkplain #ofJson of JSON}.
     *
     * @param engine the predictor's models, under the names that clients use
     * @param control likewise
     * @param timeout most time from a request's arrival to the predictor's answer; zero for no limit
     * @param views takes the same models behind the steps
     */
    public <T> T around(
            InferenceEngine engine,
            ModelControl control,
            Duration timeout,
            BiFunction<InferenceEngine, ModelControl, T> views) {
        TransformedModels models = new TransformedModels(
                new Steps((Transformer) transformer, modelName), pool, engine, control, timeout.toNanos());
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
                LOG.warn("steps of the transformer of model '{}' still run", modelName);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        end(transformer, modelName);
        try {
            classes.close();
        } catch (ServingException e) {
            LOG.warn("{}", e.describe());
        }
    }
}
