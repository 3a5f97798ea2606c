// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * TensorFlow Serving's APIs, of which KServe's V1 protocol is a part: models listed, their status and signatures told,
 * and requests in tensors or in examples answered. Thread-safe.
 */
public final class V1Codec implements ProtocolCodec {
    private final RestApi rest;
    private final GrpcServices grpc;

    /** A codec around the engine's two doors; {@code codecPool} runs what would hold an event loop up. */
    public V1Codec(InferenceEngine engine, ModelControl control, Executor codecPool, V1Options options) {
        TfsMetrics metrics = new TfsMetrics(options);
        this.rest = new RestApi(engine, control, codecPool, options, metrics);
        this.grpc = new GrpcServices(engine, control, codecPool, options, metrics);
    }

    @Override
    public String name() {
        return "v1";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return rest.routes();
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return grpc.grpcMethods();
    }
}
