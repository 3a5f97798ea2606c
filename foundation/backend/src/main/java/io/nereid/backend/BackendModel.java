// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;

/**
 * A loaded model version: the weights, shared by all its instances. Returned by {@link Backend#load} and owned by the
 * engine, which creates the instances, runs batches on them and closes them before it calls {@link #close}; that call
 * must return the model's memory to the operating system. Thread-safe: the describing methods may be called on any
 * thread at any time, and {@link #newInstance()} concurrently with runs of other instances.
 *
 * <p>Shapes in {@link #config} and {@link #signatures} exclude the batch dimension where {@code maxBatchSize > 0}; the
 * tensors of runs include it.
 */
public interface BackendModel extends AutoCloseable {
    /**
     * The complete configuration: platform, backend, inputs and outputs in the model's order,
     * {@code maxBatchSize >= 0}, batching and {@code instances >= 1} are all set. Where {@code maxBatchSize > 0}, the
     * shapes of inputs and outputs exclude the batch dimension.
     */
    ModelConfig config();

    /** What the engine may assume about the runs of this model. Called with every batch. */
    default ModelTraits traits() {
        return ModelTraits.DEFAULT;
    }

    /**
     * The signatures of a model that has more than the default one, by name. The map may also contain
     * {@code serving_default} in order to describe the default signature in more detail than {@link #config} does; its
     * inputs and outputs must then equal those of the configuration. Shapes exclude the batch dimension where the
     * model is batched.
     */
    default Map<String, Signature> signatures() {
        return Map.of();
    }

    /**
     * Selects the signature for a request that names none but has parameters: one of {@link #signatures}, or empty for
     * the default one. Used by models whose clients choose the kind of output by a parameter, such as
     * {@code output_margin} of tree models. Called on the request path, on any thread: must return quickly.
     *
     * @param parameters the request's parameters; values are Boolean, Long, Double or String
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an invalid parameter value
     */
    default String signature(Map<String, Object> parameters) {
        return "";
    }

    /**
     * Selects the signature for a request that names none and asks for an output that the default one does not have: one
     * of {@link #signatures} with all these outputs, or empty when there is none. Used by models of which clients choose
     * what is computed by the names of outputs, such as {@code predict_proba} of classifiers. Called on the request path,
     * on any thread: must return quickly.
     *
     * @param outputs the names of the requested outputs
     */
    default String signatureWith(List<String> outputs) {
        return "";
    }

    /**
     * Creates an instance for one signature.
     *
     * @param signature a key of {@link #signatures} other than {@code serving_default}. Runs of the instance get the
     *     signature's inputs, in its order and with the batch dimension where the model is batched, and are asked for
     *     its outputs
     */
    default ModelInstance newInstance(String signature) {
        throw new UnsupportedOperationException("this model has one signature");
    }

    /**
     * Creates an instance for the default signature. The engine creates at most {@code config().instances()} of them.
     */
    ModelInstance newInstance();

    /**
     * Creates an instance for the default signature at the place that the engine has chosen. A model of a backend that can
     * run on GPUs ({@link Backend#gpuUnavailableReason}) overrides it: by default the place of an instance on processors
     * does not matter. Called on a thread that may block.
     *
     * @param placement the kind of the instance and its device; a GPU only where the backend can run on one
     * @throws io.nereid.base.ServingException RESOURCE_EXHAUSTED when the memory of the device does not suffice,
     *     UNAVAILABLE when the device is lost
     */
    default ModelInstance newInstance(InstancePlacement placement) {
        if (placement.onGpu()) {
            throw new UnsupportedOperationException("this model runs on processors");
        }
        return newInstance();
    }

    /** As {@link #newInstance(InstancePlacement)}, for one signature; see {@link #newInstance(String)}. */
    default ModelInstance newInstance(String signature, InstancePlacement placement) {
        if (placement.onGpu()) {
            throw new UnsupportedOperationException("this model runs on processors");
        }
        return newInstance(signature);
    }

    /**
     * Whether the loaded model can go on with another {@code max_batch_size}, so that the change needs no reload: the weights,
     * instances and traits that it has must serve batches of up to so many rows, and {@link #config} need not follow. The
     * default, false, is correct for every model; the engine then loads the model again. Called on any thread, also while
     * instances run.
     *
     * @param rows the new maximum, at least 1; the model is batched now, and stays so
     */
    default boolean acceptsMaxBatchSize(int rows) {
        return false;
    }

    /**
     * Whether the model can take requests now; false makes the readiness endpoints report the model as not ready.
     * Called on any thread: must return quickly.
     */
    default boolean ready() {
        return true;
    }

    /** The current values of the model's own metrics. Called on any thread, at every scrape: must return quickly. */
    default List<ModelMetric> metrics() {
        return List.of();
    }

    /** The best available estimate of the memory held outside the Java heap, in bytes; -1, the default, when unknown. */
    default long memoryBytes() {
        return -1;
    }

    /** Frees the model. Called once, after all instances have been closed. */
    @Override
    void close();
}
