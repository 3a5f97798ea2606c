// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.protocols.v1.TfsMetrics.Api;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.Kind;
import java.util.List;
import java.util.concurrent.Executor;

/** TensorFlow Serving's gRPC services: PredictionService and ModelService. Thread-safe: holds nothing that changes. */
final class GrpcServices {
    private static final String PREDICTION = "/tensorflow.serving.PredictionService/";
    private static final String MODEL = "/tensorflow.serving.ModelService/";

    private final GrpcContext context;

    GrpcServices(
            InferenceEngine engine, ModelControl control, Executor codecPool, V1Options options, TfsMetrics metrics) {
        this.context = new GrpcContext(engine, control, codecPool, options, metrics);
    }

    List<GrpcMethod> grpcMethods() {
        GrpcModels models = new GrpcModels(context);
        GrpcReload reload = new GrpcReload(context);
        return List.of(
                new GrpcMethod(PREDICTION + "Predict", Kind.UNARY, call -> new GrpcPredict(context, call)),
                examples("Classify", Api.CLASSIFY),
                examples("Regress", Api.REGRESS),
                examples("MultiInference", Api.MULTI_INFERENCE),
                GrpcUnary.method(PREDICTION + "GetModelMetadata", models::metadata),
                GrpcUnary.method(MODEL + "GetModelStatus", models::status),
                GrpcUnary.method(MODEL + "HandleReloadConfigRequest", reload::reload));
    }

    private GrpcMethod examples(String name, Api api) {
        return new GrpcMethod(PREDICTION + name, Kind.UNARY, call -> new GrpcExamples(context, call, api));
    }
}
