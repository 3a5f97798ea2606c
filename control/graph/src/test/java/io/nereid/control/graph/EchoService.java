// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * A service that speaks V2 over REST, as the server does, and returns its inputs as outputs. Confined to one thread.
 */
final class EchoService implements InferenceEngine, ModelControl {
    private static final List<UpstreamClient.Header> JSON =
            List.of(new UpstreamClient.Header("content-type", HttpReply.JSON));

    final List<InferenceRequest> requests = new ArrayList<>();
    private final HttpRoute infer;

    EchoService() {
        V2Codec codec = new V2Codec(
                this, this, Observability.NONE, Clock.system(), Runnable::run, V2Options.defaults("1", 64 << 20));
        infer = codec.httpRoutes().stream()
                .filter(route -> route.template().equals("/v2/models/{model}/infer"))
                .findFirst()
                .orElseThrow();
    }

    CompletionStage<UpstreamResponse> ask(byte[] body) {
        return new Exchange("POST", "/v2/models/echo/infer", JSON, MemoryRegion.copyOf(body, 0, body.length))
                .handledBy(infer);
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        requests.add(request);
        List<Tensor> outputs = new ArrayList<>();
        for (Tensor input : request.inputs()) {
            outputs.add(input.retainAs("out-" + input.name(), input.shape()));
        }
        request.release();
        sink.next(
                new InferenceResponse(
                        new ServableId(request.model().model(), 7), request.id(), outputs, request.parameters()),
                true);
        return () -> {};
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return new ModelMetadata(new ServableId(model.model(), 7), "echo", List.of(), List.of(), 0, Map.of());
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return ModelConfig.unspecified(model.model());
    }

    @Override
    public boolean live() {
        return true;
    }

    @Override
    public boolean ready() {
        return true;
    }

    @Override
    public boolean ready(ModelRef model) {
        return true;
    }

    @Override
    public List<ModelStatus> index() {
        return List.of();
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return CompletableFuture.failedStage(ServingException.of(ErrorCode.UNIMPLEMENTED, "no"));
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return CompletableFuture.failedStage(ServingException.of(ErrorCode.UNIMPLEMENTED, "no"));
    }
}
