// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.endpoint.Upstream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Calls the service that a step names, in this process where it can. Implementations are thread-safe and never block. */
@FunctionalInterface
public interface StepCaller {
    /**
     * Sends a body with POST.
     *
     * @param step has a {@code serviceName} or a {@code serviceUrl}
     * @param headers those of the client that are passed on, and {@code content-type}
     * @param timeout most time; zero for no limit
     * @return the whole answer, whatever its status; fails when there is none, with UNAVAILABLE or DEADLINE_EXCEEDED.
     *     Cancelling its future ends the call
     */
    CompletionStage<Upstream.Answer> call(Step step, List<Upstream.Header> headers, byte[] body, Duration timeout);
}
