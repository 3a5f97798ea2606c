// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.engine.request.ResponseTimeListener;
import io.nereid.spi.InferenceEngine.Call;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState;
import java.util.List;

/** Where an ensemble finds the models it is made of. Implementations are thread-safe and never block. */
public interface ComposingModels {
    /**
     * Starts a step, as {@link io.nereid.spi.InferenceEngine#infer} does. A sink that is a {@link ResponseTimeListener} is told, before
     * the last answer, how long the step took.
     */
    Call infer(InferenceRequest request, ResponseSink sink);

    /**
     * The complete configuration of an available member.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND or UNAVAILABLE
     */
    ModelConfig config(ModelRef member);

    /** How the versions of a member stand; empty when nobody knows it. */
    List<ServableState> states(String member);
}
