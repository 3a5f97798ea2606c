// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.protocols.v1.common.ModelLookup;
import io.nereid.protocols.v1.common.TfServingMetrics;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.protocols.v1.common.TfServingMetrics.Entrypoint;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
import io.nereid.spi.management.ModelControl;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictMessageReader;
import io.nereid.transport.api.GrpcCall;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/** The dependencies that all gRPC handlers share. Thread-safe: its parts are, and each thread has tools of its own. */
final class GrpcContext {
    /** The largest buffer that a writer keeps after a message. */
    private static final int KEPT = 32 << 20;

    /** The number of bytes up to which conversion runs on the event loop. */
    private static final int SMALL = 64 << 10;

    final InferenceEngine engine;
    final ModelControl control;
    final V1Options options;
    final TfServingMetrics metrics;
    final ModelLookup models;
    private final Executor codecPool;
    private final ThreadLocal<Tools> tools = ThreadLocal.withInitial(Tools::new);

    GrpcContext(
            InferenceEngine engine,
            ModelControl control,
            Executor codecPool,
            V1Options options,
            TfServingMetrics metrics) {
        this.engine = engine;
        this.control = control;
        this.codecPool = codecPool;
        this.options = options;
        this.metrics = metrics;
        this.models = new ModelLookup(engine, control, options.methodCheck());
    }

    /** The readers and writers that one thread reuses for every message. Confined to that thread. */
    static final class Tools {
        final ProtobufReader wire = new ProtobufReader();
        final StringInterner names = new StringInterner();
        final PredictMessageReader predict = new PredictMessageReader(wire, names);
        private final ProtobufWriter writer = new ProtobufWriter();

        /** An empty writer; what it wrote is valid until the next call on this thread. */
        ProtobufWriter writer() {
            writer.reset(KEPT);
            return writer;
        }
    }

    /** The tools of the calling thread. */
    Tools tools() {
        return tools.get();
    }

    /** Whether work on so many bytes must move to the codec pool, as it would hold up the event loop. */
    static boolean mustOffload(GrpcCall call, long bytes) {
        return bytes > SMALL && call.inEventLoop();
    }

    /** Runs {@code task} on the codec pool; it must not throw. */
    void offload(Runnable task) {
        try {
            codecPool.execute(task);
        } catch (RejectedExecutionException e) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "retry at another server");
        }
    }

    /** The ModelSpec of a message, which must be present and name a model. */
    static ModelSpec required(@Nullable ModelSpec spec) {
        if (spec == null) {
            throw ServingException.invalidArgument("Missing ModelSpec");
        }
        if (spec.name().isEmpty()) {
            throw ServingException.invalidArgument("ModelSpec has no name specified.");
        }
        return spec;
    }

    /** The metadata of a model. */
    ModelMetadata metadata(ModelRef ref) {
        try {
            return engine.metadata(ref);
        } catch (ServingException e) {
            throw missing(ref, e);
        }
    }

    /** Converts NOT_FOUND to TensorFlow Serving's wording; other exceptions stay as they are. */
    static ServingException missing(ModelRef ref, ServingException e) {
        String text = e.getMessage();
        if (e.code() != ErrorCode.NOT_FOUND || text.startsWith("Servable not found for request: ")) {
            return e;
        }
        String remedy = e.remedy();
        return notFound(ref, remedy == null ? text : remedy);
    }

    private static ServingException notFound(ModelRef ref, String remedy) {
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                "Servable not found for request: "
                        + (ref.version() == ModelRef.ANY
                                ? "Latest(" + ref.model() + ")"
                                : "Specific(" + ref.model() + ", " + ref.version() + ")"),
                remedy);
    }

    /** The signature of a request with examples. */
    Signature signature(ModelMetadata metadata, String name, Api api) {
        return models.signature(metadata, name, api);
    }

    static boolean isDefault(String signature) {
        return signature.isEmpty() || signature.equals(ModelMetadata.DEFAULT_SIGNATURE);
    }

    /** The ModelSpec of a response: the version that served it. */
    static ModelSpec answered(String model, long version, String signature) {
        return ModelSpec.of(model, version, isDefault(signature) ? ModelMetadata.DEFAULT_SIGNATURE : signature);
    }

    /** The time for measurements; 0 when metrics are disabled. */
    long now() {
        return metrics.measuring() ? options.clock().nanos() : 0;
    }

    void finished(String model, Api api, ErrorCode code, GrpcCall call) {
        if (metrics.measuring()) {
            metrics.finished(model, api, Entrypoint.GRPC, code, options.clock().nanos() - call.arrivedNanos());
        }
    }
}
