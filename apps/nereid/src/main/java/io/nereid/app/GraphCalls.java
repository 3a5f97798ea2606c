// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.graph.StepCaller;
import io.nereid.endpoint.Upstream;
import io.nereid.endpoint.Upstream.Answer;
import io.nereid.tensor.MemoryRegion;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Calls the services of a graph's steps: those of this server without a socket, whatever else over the network. Thread-safe.
 */
final class GraphCalls implements StepCaller {
    private static final long MOST_BYTES = 1L << 30;

    private final String namespace;
    private final Gateway gateway;
    private final Upstream upstream;

    /** @param namespace the graph's, where the services are that its steps name */
    GraphCalls(String namespace, Gateway gateway, Upstream upstream) {
        this.namespace = namespace;
        this.gateway = gateway;
        this.upstream = upstream;
    }

    @Override
    public CompletionStage<Answer> call(Step step, List<Upstream.Header> headers, byte[] body, Duration timeout) {
        String url = step.serviceUrl();
        if (url == null) {
            return CompletableFuture.failedStage(ServingException.of(
                    Code.UNAVAILABLE, "the service '" + step.serviceName() + "' has no address yet"));
        }
        if (step.serviceName() == null || step.serviceName().isEmpty()) {
            return upstream.send("POST", url, headers, body, new Upstream.Terms(timeout, MOST_BYTES, List.of()));
        }
        URI address = URI.create(url);
        String target = address.getRawQuery() == null
                ? address.getRawPath()
                : address.getRawPath() + "?" + address.getRawQuery();
        CompletableFuture<Answer> answer = gateway.call(
                        namespace, step.serviceName(), null, target, headers, MemoryRegion.copyOf(body, 0, body.length))
                .toCompletableFuture();
        return timeout.isZero() ? answer : bounded(step.serviceName(), answer, timeout);
    }

    /** Gives up at the limit, or when the result is cancelled: then the call is ended. */
    private static CompletionStage<Answer> bounded(String service, CompletableFuture<Answer> answer, Duration timeout) {
        CompletableFuture<Answer> limited = new CompletableFuture<>();
        CompletableFuture<Answer> timed = new CompletableFuture<Answer>().orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS);
        timed.whenComplete((never, late) -> {
            if (late instanceof TimeoutException) {
                limited.completeExceptionally(ServingException.of(
                        Code.DEADLINE_EXCEEDED,
                        "the service '" + service + "' did not answer within "
                                + Math.max(1, timeout.toMillis()) + " ms"));
            }
        });
        answer.whenComplete((value, failure) -> {
            if (failure != null) {
                limited.completeExceptionally(failure);
            } else if (!limited.complete(value)) {
                value.body().release();
            }
        });
        limited.whenComplete((value, failure) -> {
            timed.cancel(false);
            if (failure != null) {
                answer.cancel(true);
            }
        });
        return limited;
    }
}
