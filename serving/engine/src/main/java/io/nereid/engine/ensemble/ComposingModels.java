// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.engine.request.ResponseTimeListener;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Gives an ensemble access to the models that it is composed of. Implementations are thread-safe and never block. */
public interface ComposingModels {
    /**
     * Starts a request of a step, as {@link io.nereid.spi.InferenceEngine#infer} does. A sink that is a
     * {@link ResponseTimeListener} receives the latencies of the step before the last response.
     */
    InferenceCall infer(InferenceRequest request, ResponseSink sink);

    /**
     * Returns whether a model takes an input of a step in the memory of a GPU now. False on a server without GPUs.
     *
     * @param device the ordinal of the GPU
     */
    default boolean takesDeviceTensors(ModelRef member, int device) {
        return false;
    }

    /** Returns whether any model refuses requests because of overload: else {@link #refusal} need not be called. */
    boolean refuse();

    /**
     * Returns the error if a model would refuse a job now because of overload; null if it would accept the job, or is
     * not available.
     */
    @Nullable ServingException refusal(ModelRef member, InferenceJob job);

    /**
     * Returns the complete configuration of an available model.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND or UNAVAILABLE
     */
    ModelConfig config(ModelRef member);

    /** Returns the states of a model's versions; empty for an unknown model. */
    List<ServableState> states(String member);
}
