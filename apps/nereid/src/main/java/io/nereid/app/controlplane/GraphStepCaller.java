// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.graph.StepCaller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Calls the services of a graph's steps: services of this server in process, all others over the network. Immutable and
 * thread-safe.
 */
final class GraphStepCaller implements StepCaller {
    private static final long MOST_BYTES = 1L << 30;

    private final String namespace;
    private final Gateway gateway;
    private final UpstreamClient upstream;
    private final boolean elsewhere;

    /**
     * @param namespace the graph's namespace, which is also that of the services in its steps
     * @param elsewhere whether services that this gateway has no route for may be served elsewhere, so that they are
     *     called at their URL
     */
    GraphStepCaller(String namespace, Gateway gateway, UpstreamClient upstream, boolean elsewhere) {
        this.namespace = namespace;
        this.gateway = gateway;
        this.upstream = upstream;
        this.elsewhere = elsewhere;
    }

    @Override
    public CompletionStage<UpstreamResponse> call(Step step, List<Header> headers, byte[] body, Duration timeout) {
        String url = step.serviceUrl();
        if (url == null) {
            return CompletableFuture.failedStage(ServingException.of(
                    ErrorCode.UNAVAILABLE, "the service '" + step.serviceName() + "' has no address yet"));
        }
        String service = step.serviceName();
        if (service == null || service.isEmpty() || elsewhere && !gateway.serves(namespace, service)) {
            return upstream.send("POST", url, headers, body, new ForwardOptions(timeout, MOST_BYTES, List.of()));
        }
        URI address = URI.create(url);
        String target = address.getRawQuery() == null
                ? address.getRawPath()
                : address.getRawPath() + "?" + address.getRawQuery();
        return local(service, target, headers, body, timeout);
    }

    /** Calls a service of this server. A result that is cancelled or times out cancels the call. */
    private CompletableFuture<UpstreamResponse> local(
            String service, String target, List<Header> headers, byte[] body, Duration timeout) {
        CompletableFuture<UpstreamResponse> result = new CompletableFuture<>();
        CompletableFuture<UpstreamResponse> call = gateway.call(
                        namespace, service, null, target, headers, MemoryRegion.copyOf(body, 0, body.length))
                .toCompletableFuture();
        Object unusedAnswer = call.whenComplete((answer, failure) -> {
            if (answer == null) {
                result.completeExceptionally(
                        failure instanceof CompletionException && failure.getCause() != null
                                ? failure.getCause()
                                : failure);
            } else if (!result.complete(answer)) {
                answer.body().release();
            }
        });
        Object unusedEnd = result.whenComplete((answer, failure) -> {
            if (failure != null) {
                call.cancel(true);
            }
        });
        if (!timeout.isZero()) {
            limit(result, service, timeout);
        }
        return result;
    }

    private static void limit(CompletableFuture<UpstreamResponse> result, String service, Duration timeout) {
        CompletableFuture<Void> timer =
                new CompletableFuture<Void>().orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS);
        Object unusedLimit = timer.whenComplete((never, late) -> {
            if (late instanceof TimeoutException) {
                result.completeExceptionally(ServingException.of(
                        ErrorCode.DEADLINE_EXCEEDED,
                        "the service '" + service + "' did not respond within " + Math.max(1, timeout.toMillis())
                                + " ms"));
            }
        });
        Object unusedStop = result.whenComplete((got, failure) -> timer.cancel(false));
    }
}
