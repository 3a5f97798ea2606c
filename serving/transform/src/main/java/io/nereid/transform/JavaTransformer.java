// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.plugin.IsolatedJar;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
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
 * The {@link Transformer} or {@link JsonTransformer} of a user's jar, with its own class loader and thread pool, until
 * it is closed. Thread-safe; only {@link #load} blocks.
 *
 * <pre>{@code
 * JavaTransformer transformer = JavaTransformer.load(
 *         jar, "", new Transformer.Settings("flowers", directory, Map.of()), scratch, 8);
 * List<ProtocolCodec> codecs = transformer.ofJson()
 *         ? List.of(transformer.json(predictor))
 *         : transformer.around(engine, control, Duration.ofMinutes(5), codecFactory::build);
 * }</pre>
 */
public final class JavaTransformer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JavaTransformer.class);

    private static final List<String> SHOWN =
            List.of("io.nereid.base.", "io.nereid.tensor.", "io.nereid.spi.", "io.nereid.transform.");

    private static final IsolatedJar.Terms WORDS = new IsolatedJar.Terms(
            "transformer", "spec.transformer.nereid.class", "the packages io.nereid.base, tensor, spi and transform");

    private static final long END_SECONDS = 60;

    private static final Class<?>[] TYPES = {Transformer.class, JsonTransformer.class};

    private final IsolatedJar classes;
    private final Object transformer;
    private final String modelName;
    private final ThreadPoolExecutor pool;

    /** The predictor behind a JSON transformer. Implementations are thread-safe and return at once. */
    @FunctionalInterface
    public interface Predictor {
        /**
         * Sends a request to a route of the predictor.
         *
         * @param target path and query
         * @param headers names in lower case
         * @param body ownership passes to the predictor, also when the call fails
         * @return the whole response; error statuses of the predictor are responses too
         */
        CompletionStage<UpstreamResponse> call(
                String method, String target, List<UpstreamClient.Header> headers, MemoryRegion body);
    }

    private JavaTransformer(IsolatedJar classes, Object transformer, String modelName, ThreadPoolExecutor pool) {
        this.classes = classes;
        this.transformer = transformer;
        this.modelName = modelName;
        this.pool = pool;
    }

    /**
     * Opens a jar and starts its transformer. Blocks until {@code start} of the transformer has returned.
     *
     * @param className the transformer's class; empty for the one that {@code META-INF/services} names
     * @param scratch the directory that the jar is copied to
     * @param threads most steps that run at once
     * @throws ServingException INVALID_ARGUMENT for a jar without a transformer, or one that cannot start
     */
    public static JavaTransformer load(
            Path jar, String className, Transformer.Settings settings, Path scratch, int threads) {
        IsolatedJar classes = IsolatedJar.open(jar, scratch, SHOWN, Transformer.class.getClassLoader(), WORDS);
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(classes.classLoader());
        try {
            Object transformer = classes.newInstance(className, TYPES);
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

    /**
     * Whether this transformer works on JSON, for {@link #json}; otherwise it works on tensors, for {@link #around}.
     */
    public boolean ofJson() {
        return transformer instanceof JsonTransformer;
    }

    /** The endpoint of a JSON transformer in front of a predictor. Requires {@link #ofJson}. */
    public ProtocolCodec json(Predictor predictor) {
        return new JsonTransformerCodec(
                (JsonTransformer) transformer, new UserCodeErrors(classes.classLoader(), modelName), pool, predictor);
    }

    /**
     * Wraps a predictor's models with the steps of a tensor transformer. Requires that {@link #ofJson} is false.
     *
     * @param engine the predictor's models, under the names that clients use
     * @param control the control of the same models
     * @param timeout the longest time from a request's arrival to the predictor's response; zero for no limit
     * @param views receives the wrapped engine and control, and returns the result
     */
    public <T> T around(
            InferenceEngine engine,
            ModelControl control,
            Duration timeout,
            BiFunction<InferenceEngine, ModelControl, T> views) {
        TransformedModels models = new TransformedModels(
                new TransformerSteps((Transformer) transformer, modelName), pool, engine, control, timeout.toNanos());
        return views.apply(models, models);
    }

    /** Stops accepting steps, lets running ones finish, then closes the transformer and its jar. Returns at once. */
    @Override
    public void close() {
        pool.shutdown();
        Threads.named("transform-end").newThread(this::end).start();
    }

    private void end() {
        try {
            if (!pool.awaitTermination(END_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("the transformer of model '{}' is closed while steps are still running", modelName);
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
