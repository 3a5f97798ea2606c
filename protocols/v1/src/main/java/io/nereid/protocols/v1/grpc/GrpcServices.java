// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import io.nereid.base.access.Operation;
import io.nereid.protocols.v1.common.TfServingMetrics;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.Kind;
import java.util.List;
import java.util.concurrent.Executor;

/** TensorFlow Serving's gRPC services: PredictionService and ModelService. Thread-safe: immutable. */
public final class GrpcServices {
    private static final String PREDICTION = "/tensorflow.serving.PredictionService/";
    private static final String MODEL = "/tensorflow.serving.ModelService/";

    private final GrpcContext context;

    public GrpcServices(
            InferenceEngine engine,
            ModelControl control,
            Executor codecPool,
            V1Options options,
            TfServingMetrics metrics) {
        this.context = new GrpcContext(engine, control, codecPool, options, metrics);
    }

    public List<GrpcMethod> grpcMethods() {
        GrpcModelInfo models = new GrpcModelInfo(context);
        ReloadConfigHandler reload = new ReloadConfigHandler(context);
        return List.of(
                new GrpcMethod(
                        PREDICTION + "Predict",
                        Kind.UNARY,
                        Operation.INFERENCE,
                        call -> new GrpcPredict(context, call)),
                examples("Classify", Api.CLASSIFY),
                examples("Regress", Api.REGRESS),
                examples("MultiInference", Api.MULTI_INFERENCE),
                GrpcUnaryHandler.method(PREDICTION + "GetModelMetadata", Operation.METADATA, models::metadata),
                GrpcUnaryHandler.method(MODEL + "GetModelStatus", Operation.METADATA, models::status),
                GrpcUnaryHandler.method(MODEL + "HandleReloadConfigRequest", Operation.MODEL_CONTROL, reload::reload));
    }

    private GrpcMethod examples(String name, Api api) {
        return new GrpcMethod(
                PREDICTION + name,
                Kind.UNARY,
                Operation.INFERENCE,
                call -> new GrpcExampleInference(context, call, api));
    }
}
