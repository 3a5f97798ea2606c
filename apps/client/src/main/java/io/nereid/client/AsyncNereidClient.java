// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.ServerMetadata;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.ProtocolConnection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * The calls of a {@link NereidClient} as futures. A future fails with {@link InferenceException}; cancelling it ends the call.
 * Futures complete on the client's executor. Thread-safe.
 *
 * <pre>{@code
 * client.async().infer(request).thenAccept(result -> …);
 * }</pre>
 */
public final class AsyncNereidClient {
    private final ProtocolConnection connection;
    private final CallRuntime runtime;
    private final Duration timeout;
    private final Map<String, String> headers;

    AsyncNereidClient(
            ProtocolConnection connection, CallRuntime runtime, Duration timeout, Map<String, String> headers) {
        this.connection = connection;
        this.runtime = runtime;
        this.timeout = timeout;
        this.headers = headers;
    }

    private <T> CompletableFuture<T> call(
            String operation, String model, boolean repeatable, Function<CallContext, CompletableFuture<T>> action) {
        return new RetryingCall<>(runtime, operation, model, repeatable, headers, timeout, action).start();
    }

    /** See {@link NereidClient#infer}. */
    public CompletableFuture<InferResult> infer(InferRequest request) {
        Duration time = request.timeout() == null ? timeout : request.timeout();
        return new RetryingCall<>(
                        runtime,
                        "infer",
                        request.model(),
                        !request.isSequence(),
                        NereidClient.merged(headers, request),
                        time,
                        context -> connection.infer(request, context))
                .start();
    }

    /** See {@link NereidClient#predictJson}. */
    public CompletableFuture<String> predictJson(String model, String version, String json) {
        return call("predict", model, true, c -> connection.postJson(model, version, "predict", json, c));
    }

    /** See {@link NereidClient#generate}. */
    public CompletableFuture<String> generate(String model, String version, String json) {
        return call("generate", model, true, c -> connection.postJson(model, version, "generate", json, c));
    }

    /** See {@link NereidClient#isLive}. */
    public CompletableFuture<Boolean> isLive() {
        return call("live", "", true, connection::live);
    }

    /** See {@link NereidClient#isReady}. */
    public CompletableFuture<Boolean> isReady() {
        return call("ready", "", true, connection::ready);
    }

    /** See {@link NereidClient#isModelReady}. */
    public CompletableFuture<Boolean> isModelReady(String model, String version) {
        return call("modelReady", model, true, c -> connection.modelReady(model, version, c));
    }

    /** See {@link NereidClient#serverMetadata}. */
    public CompletableFuture<ServerMetadata> serverMetadata() {
        return call("serverMetadata", "", true, connection::serverMetadata);
    }

    /** See {@link NereidClient#modelMetadata}. */
    public CompletableFuture<ModelMetadataResponse> modelMetadata(String model, String version) {
        return call("modelMetadata", model, true, c -> connection.modelMetadata(model, version, c));
    }

    /** See {@link NereidClient#modelConfig}. */
    public CompletableFuture<String> modelConfig(String model, String version) {
        return call("modelConfig", model, true, c -> connection.modelConfig(model, version, c));
    }

    /** See {@link NereidClient#statistics}. */
    public CompletableFuture<List<ModelStatisticsResponse>> statistics(String model, String version) {
        return call("statistics", model, true, c -> connection.statistics(model, version, c));
    }

    /** See {@link NereidClient#repositoryIndex}. */
    public CompletableFuture<List<RepositoryModel>> repositoryIndex(boolean readyOnly) {
        return call("repositoryIndex", "", true, c -> connection.repositoryIndex(readyOnly, c));
    }

    /** See {@link NereidClient#load}. */
    public CompletableFuture<Void> load(String model, Map<String, String> parameters) {
        boolean repeatable = runtime.retries().management();
        return call("load", model, repeatable, c -> connection.load(model, Map.copyOf(parameters), c));
    }

    /** See {@link NereidClient#unload}. */
    public CompletableFuture<Void> unload(String model, boolean dependents) {
        boolean repeatable = runtime.retries().management();
        return call("unload", model, repeatable, c -> connection.unload(model, dependents, c));
    }
}
