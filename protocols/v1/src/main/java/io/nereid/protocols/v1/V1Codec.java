// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.protocols.v1.common.TfServingMetrics;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.protocols.v1.grpc.GrpcServices;
import io.nereid.protocols.v1.openai.OpenAiModels;
import io.nereid.protocols.v1.openai.OpenAiRoutes;
import io.nereid.protocols.v1.rest.RestApiHandler;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * TensorFlow Serving's REST and gRPC APIs, of which KServe's V1 protocol is a part: predict, classify, regress, model
 * status and metadata, and the reload of the model list. Below the same path are OpenAI's embeddings and the reranking of Cohere, Jina
 * and vLLM. Thread-safe.
 *
 * <pre>{@code
 * V1Options options = V1Options.builder(Clock.system()).cors(true).metricsPath("").build();
 * ProtocolCodec codec = new V1Codec(engine, control, codecPool, options);
 * }</pre>
 */
public final class V1Codec implements ProtocolCodec {
    private final RestApiHandler rest;
    private final OpenAiRoutes texts;
    private final GrpcServices grpc;

    /** Creates a codec for an engine; {@code codecPool} runs work that would block an event loop for too long. */
    public V1Codec(InferenceEngine engine, ModelControl control, Executor codecPool, V1Options options) {
        TfServingMetrics metrics = new TfServingMetrics(options);
        OpenAiModels models = new OpenAiModels(engine, control, options.clock().millis());
        this.rest = new RestApiHandler(engine, control, codecPool, options, metrics, models);
        this.texts = new OpenAiRoutes(engine, models, codecPool, options);
        this.grpc = new GrpcServices(engine, control, codecPool, options, metrics);
    }

    @Override
    public String name() {
        return "v1";
    }

    @Override
    public @Nullable URL openApi() {
        return V1Codec.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        List<HttpRoute> routes = new ArrayList<>(rest.routes());
        routes.addAll(texts.routes());
        return routes;
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return grpc.grpcMethods();
    }
}
