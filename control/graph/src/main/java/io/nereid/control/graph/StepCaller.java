// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Calls the service of a step, within this process where possible. Implementations are thread-safe and never block. */
@FunctionalInterface
public interface StepCaller {
    /**
     * Sends a body with POST.
     *
     * @param step has a {@code serviceName} or a {@code serviceUrl}
     * @param headers the propagated headers of the client, and {@code content-type}
     * @param timeout the longest time; zero for no limit
     * @return the whole response, whatever its status; fails with UNAVAILABLE or DEADLINE_EXCEEDED when no response
     *     arrives. Cancelling its future cancels the call
     */
    CompletionStage<UpstreamResponse> call(
            Step step, List<UpstreamClient.Header> headers, byte[] body, Duration timeout);
}
