// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

/**
 * What the engine may assume about the runs of a model. Immutable.
 *
 * @param alignment the byte boundary on which each input tensor must start; 1 for none. The engine copies tensors that
 *     are not aligned
 * @param cancel whether {@link ModelInstance#cancel} interrupts a run
 * @param inline whether a run is known to take at most a few tens of microseconds, so that the thread that received
 *     the request may execute it; when false the engine measures the run time and decides
 * @param requests whether the model takes single requests rather than batches of tensors: the engine calls
 *     {@link ModelInstance#execute} instead of {@link ModelInstance#run}. Required for decoupled models and for models
 *     that read a request's parameters
 * @param tabular whether the model takes tables, which clients may send in any of the common forms: numbers of any
 *     type for FP32 and FP64; the only input under any name; one input for each named column ({@code feature_names})
 *     instead of one matrix; columns of shape {@code [n]} or {@code [n,1]}. The engine converts them to the configured
 *     inputs
 * @param waits whether a run spends its time waiting for another process or for other models of this server. Such runs
 *     have threads of their own, as many as there are instances, so that they cannot keep the models that they wait
 *     for from running
 */
public record ModelTraits(
        int alignment, boolean cancel, boolean inline, boolean requests, boolean tabular, boolean waits) {
    /** A model that computes by itself and does not wait. */
    public ModelTraits(int alignment, boolean cancel, boolean inline, boolean requests, boolean tabular) {
        this(alignment, cancel, inline, requests, tabular, false);
    }

    /** A model that takes its inputs exactly as configured. */
    public ModelTraits(int alignment, boolean cancel, boolean inline, boolean requests) {
        this(alignment, cancel, inline, requests, false, false);
    }

    /** A model that takes batches of tensors. */
    public ModelTraits(int alignment, boolean cancel, boolean inline) {
        this(alignment, cancel, inline, false, false, false);
    }
}
