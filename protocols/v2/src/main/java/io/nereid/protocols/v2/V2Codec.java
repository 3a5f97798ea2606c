// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.device.Devices;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.grpc.GrpcHealthService;
import io.nereid.protocols.v2.grpc.GrpcManagement;
import io.nereid.protocols.v2.grpc.GrpcReflectionService;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.rest.RestRoutes;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The Open Inference Protocol, version 2 (KServe V2), over REST and gRPC, with Triton's extensions: binary tensor data,
 * classification, generate, model repository, model configuration, statistics, trace, logging, system shared memory and,
 * on a machine with a GPU, CUDA shared memory.
 * Also serves gRPC health and server reflection. Thread-safe.
 *
 * <p>Small messages are decoded and encoded on the calling thread; JSON and typed contents beyond
 * {@link V2Options#offloadBytes()} are handed to the codec pool.
 *
 * <pre>{@code
 * V2Options options = V2Options.builder(serverVersion, maxBodyBytes).serverName("triton").build();
 * ProtocolCodec codec = new V2Codec(engine, control, observability, Clock.system(), codecPool, options);
 * }</pre>
 */
public final class V2Codec implements ProtocolCodec {
    /** The directory of POSIX shared memory objects on Linux. */
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private final List<HttpRoute> httpRoutes;
    private final List<GrpcMethod> grpcMethods;

    /**
     * Creates a codec for an engine.
     *
     * @param observation statistics, traces and log settings of the server
     * @param codecPool runs the decoding and encoding of large texts; owned by the caller
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

    /**
     * Creates a codec for an engine, whose clients may share memory of GPUs if the options allow shared memory.
     *
     * @param observation statistics, traces and log settings of the server
     * @param codecPool runs the decoding and encoding of large texts; owned by the caller
     * @param devices the GPUs, owned by the caller; null for none
     */
    public V2Codec(
            InferenceEngine engine,
            ModelControl control,
            Observability observation,
            Clock clock,
            Executor codecPool,
            V2Options options,
            @Nullable Devices devices) {
        this(new CodecContext(engine, control, observation, clock, codecPool, options, SHARED_MEMORY, devices));
    }

    public V2Codec(CodecContext context) {
        this.httpRoutes = RestRoutes.of(context);
        List<GrpcMethod> methods = new ArrayList<>(new GrpcManagement(context).methods());
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
    public @Nullable URL openApi() {
        return V2Codec.class.getResource("openapi.json");
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
