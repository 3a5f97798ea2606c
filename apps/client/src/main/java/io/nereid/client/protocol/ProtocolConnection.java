// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.protocol;

import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.ServerMetadata;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/**
 * The operations of a protocol, one attempt each. Futures fail with {@link InferenceException}, and cancelling one ends the
 * attempt. Operations that a protocol does not have are refused by name. Implementations are thread-safe.
 */
public interface ProtocolConnection extends AutoCloseable {
    /** The protocol as messages name it, such as {@code V1}. */
    String name();

    CompletableFuture<InferResult> infer(InferRequest request, CallContext call);

    /** Whether the server is live. */
    CompletableFuture<Boolean> live(CallContext call);

    /** Whether a model is ready. */
    CompletableFuture<Boolean> modelReady(String model, String version, CallContext call);

    /** Sends a request once the subscriber asks for a first result; {@code onSubscribe} is called at once. */
    default void stream(InferRequest request, CallContext call, Flow.Subscriber<? super InferResult> subscriber) {
        throw refused("streams of responses", "V2 over gRPC, or generateStream with V2 over REST");
    }

    /** Sends a JSON object to a route of a model, and returns the body of the response. */
    default CompletableFuture<String> postJson(
            String model, String version, String verb, String json, CallContext call) {
        throw refused("'" + verb + "'", "V2 over REST for 'generate', V1 for 'predict'");
    }

    /** Sends a JSON object to the generate_stream route of a model; each event is a JSON object. */
    default void generateStream(
            String model, String version, String json, CallContext call, Flow.Subscriber<? super String> subscriber) {
        throw refused("'generate_stream'", "V2 over REST");
    }

    default CompletableFuture<Boolean> ready(CallContext call) {
        throw refused("readiness of the server", "modelReady");
    }

    default CompletableFuture<ServerMetadata> serverMetadata(CallContext call) {
        throw refused("metadata of the server", "V2");
    }

    default CompletableFuture<ModelMetadataResponse> modelMetadata(String model, String version, CallContext call) {
        throw refused("metadata of models", "V2");
    }

    /** The configuration of a model as JSON. */
    default CompletableFuture<String> modelConfig(String model, String version, CallContext call) {
        throw refused("the configuration of a model", "V2");
    }

    default CompletableFuture<List<ModelStatisticsResponse>> statistics(
            String model, String version, CallContext call) {
        throw refused("statistics", "V2");
    }

    default CompletableFuture<List<RepositoryModel>> repositoryIndex(boolean readyOnly, CallContext call) {
        throw refused("the repository index", "V2");
    }

    default CompletableFuture<Void> load(String model, Map<String, String> parameters, CallContext call) {
        throw refused("loading models", "V2");
    }

    default CompletableFuture<Void> unload(String model, boolean dependents, CallContext call) {
        throw refused("unloading models", "V2");
    }

    /** The exception for an operation that this protocol does not have. */
    default InferenceException refused(String what, String instead) {
        return InferenceException.of(
                ErrorCode.UNIMPLEMENTED,
                what + ": " + name() + " does not have this operation (expected: " + instead + ")");
    }

    @Override
    void close();
}
