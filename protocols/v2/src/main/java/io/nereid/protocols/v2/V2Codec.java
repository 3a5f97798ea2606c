// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.observe.Observability;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * The Open Inference Protocol, version 2, over REST and gRPC, with the binary tensor extension, classification, the
 * model repository and configuration extensions, gRPC health and server reflection. Thread-safe.
 *
 * <p>Small messages are decoded and encoded on the calling thread; JSON and typed contents beyond
 * {@link V2Options#offloadBytes()} are handed to the codec pool.
 */
public final class V2Codec implements ProtocolCodec {
    /** Where the system keeps objects of shared memory. */
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private final List<HttpRoute> httpRoutes;
    private final List<GrpcMethod> grpcMethods;

    /**
     * A codec in front of an engine.
     *
     * @param observation what the server tells about itself
     * @param codecPool runs the decoding and encoding of large texts; belongs to the caller
     */
    public V2Codec(
            InferenceEngine engine,
            ModelControl control,
            Observability observation,
            Clock clock,
            Executor codecPool,
            V2Options options) {
        this(new CodecContext(engine, control, observation, clock, codecPool, options, SHARED_MEMORY));
    }

    V2Codec(CodecContext context) {
        this.httpRoutes = RestRoutes.of(context);
        List<GrpcMethod> methods = new ArrayList<>(new GrpcControl(context).methods());
        methods.addAll(new GrpcHealthService(
                        context.control, context.options.furtherServices(), () -> Threads.timer("health-watch"))
                .methods());
        methods.addAll(GrpcReflectionService.ofV2().methods());
        this.grpcMethods = List.copyOf(methods);
    }

    @Override
    public String name() {
        return "v2";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return httpRoutes;
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return grpcMethods;
    }
}
