// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.LoadParameters;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.LogSettingsRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelConfigRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelConfigResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse.TensorMetadata;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelRepositoryParameter;
import io.nereid.protocols.v2.proto.OpenInference.ModelStatisticsRequest;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryIndexRequest;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryIndexResponse;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelLoadRequest;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelLoadResponse;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelUnloadRequest;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelUnloadResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerLiveRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerLiveResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.TraceSettingRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.GrpcMethod.Kind;
import io.nereid.transport.api.ResponseBody;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * The methods of {@code GRPCInferenceService}, and the handlers of health, metadata, model configuration and model
 * repository. These use the generated messages, as they are called rarely. Thread-safe.
 */
public final class GrpcManagement {
    public static final String SERVICE = "inference.GRPCInferenceService";

    private final CodecContext context;

    public GrpcManagement(CodecContext context) {
        this.context = context;
    }

    public List<GrpcMethod> methods() {
        List<GrpcMethod> methods = new ArrayList<>();
        methods.add(new GrpcMethod(
                path("ModelInfer"), Kind.UNARY, Operation.INFERENCE, call -> new GrpcInference(context, call)));
        methods.add(new GrpcMethod(
                path("ModelStreamInfer"),
                Kind.BIDI_STREAMING,
                Operation.INFERENCE,
                call -> new GrpcStreamInference(context, call)));
        methods.add(now(
                "ServerLive",
                ServerLiveRequest.parser(),
                request -> ServerLiveResponse.newBuilder()
                        .setLive(context.control.live())
                        .build()));
        methods.add(now(
                "ServerReady",
                ServerReadyRequest.parser(),
                request -> ServerReadyResponse.newBuilder()
                        .setReady(context.control.ready())
                        .build()));
        methods.add(now("ModelReady", ModelReadyRequest.parser(), (call, request) -> {
            call.require(Permission.HEALTH, request.getName());
            return ModelReadyResponse.newBuilder()
                    .setReady(modelReady(ModelReferences.reference(request.getName(), request.getVersion())))
                    .build();
        }));
        methods.add(now(
                "ServerMetadata",
                ServerMetadataRequest.parser(),
                request -> ServerMetadataResponse.newBuilder()
                        .setName(context.options.serverName())
                        .setVersion(context.options.serverVersion())
                        .addAllExtensions(RepositoryIndex.extensions(context))
                        .build()));
        methods.add(now("ModelMetadata", ModelMetadataRequest.parser(), this::metadata));
        methods.add(now("ModelConfig", ModelConfigRequest.parser(), (call, request) -> {
            call.require(Permission.METADATA, request.getName());
            return ModelConfigResponse.newBuilder()
                    .setConfig(DocumentProtoBuilder.of(
                            context.engine.config(ModelReferences.reference(request.getName(), request.getVersion()))))
                    .build();
        }));
        methods.add(now("RepositoryIndex", RepositoryIndexRequest.parser(), this::index));
        methods.add(later("RepositoryModelLoad", RepositoryModelLoadRequest.parser(), this::load));
        methods.add(later("RepositoryModelUnload", RepositoryModelUnloadRequest.parser(), this::unload));
        GrpcObservability observation = new GrpcObservability(context);
        methods.add(now("ModelStatistics", ModelStatisticsRequest.parser(), observation::statistics));
        methods.add(now("TraceSetting", TraceSettingRequest.parser(), observation::trace));
        methods.add(now("LogSettings", LogSettingsRequest.parser(), observation::log));
        GrpcSharedMemory memory = new GrpcSharedMemory(context);
        methods.add(now("SystemSharedMemoryStatus", SystemSharedMemoryStatusRequest.parser(), memory::status));
        methods.add(now("SystemSharedMemoryRegister", SystemSharedMemoryRegisterRequest.parser(), memory::register));
        methods.add(
                now("SystemSharedMemoryUnregister", SystemSharedMemoryUnregisterRequest.parser(), memory::unregister));
        methods.add(now("CudaSharedMemoryStatus", CudaSharedMemoryStatusRequest.parser(), memory::cudaStatus));
        methods.add(later("CudaSharedMemoryRegister", CudaSharedMemoryRegisterRequest.parser(), memory::cudaRegister));
        methods.add(later(
                "CudaSharedMemoryUnregister", CudaSharedMemoryUnregisterRequest.parser(), memory::cudaUnregister));
        return List.copyOf(methods);
    }

    /** Whether a model is ready; false for an unknown one too, since clients wait by asking until it is true. */
    private boolean modelReady(ModelRef model) {
        try {
            return context.control.ready(model);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
            return false;
        }
    }

    private static String path(String method) {
        return "/" + SERVICE + "/" + method;
    }

    private static <T extends Message> GrpcMethod now(String name, Parser<T> parser, Function<T, Message> answer) {
        return now(name, parser, (call, request) -> answer.apply(request));
    }

    private static <T extends Message> GrpcMethod now(
            String name, Parser<T> parser, BiFunction<GrpcCall, T, Message> answer) {
        return later(name, parser, (call, request) -> CompletableFuture.completedFuture(answer.apply(call, request)));
    }

    private static <T extends Message> GrpcMethod later(
            String name, Parser<T> parser, BiFunction<GrpcCall, T, CompletionStage<Message>> answer) {
        return unary(path(name), Operation.ofV2Method(name), parser, answer);
    }

    /** A unary method over generated messages. */
    static <T extends Message> GrpcMethod unary(
            String path,
            Operation operation,
            Parser<T> parser,
            BiFunction<GrpcCall, T, CompletionStage<Message>> answer) {
        return new GrpcMethod(path, Kind.UNARY, operation, call -> new GrpcListener() {
            private boolean started;

            @Override
            public void onMessage(MemoryRegion message) {
                started = true;
                answer.apply(call, parse(parser, message)).whenComplete((response, failure) -> {
                    if (failure != null) {
                        call.fail(RepositoryIndex.failure(failure));
                    } else {
                        call.sendAndClose(content(response));
                    }
                });
            }

            @Override
            public void onHalfClose() {
                if (!started) {
                    throw ServingException.invalidArgument("the call ended without a message");
                }
            }

            @Override
            public void onCancel() {
                // These calls cannot be cancelled; the response is dropped.
            }
        });
    }

    static <T extends Message> T parse(Parser<T> parser, MemoryRegion message) {
        byte[] bytes = new byte[message.size()];
        message.getBytes(0, bytes, 0, bytes.length);
        try {
            return parser.parseFrom(bytes);
        } catch (InvalidProtocolBufferException e) {
            throw ServingException.invalidArgument("malformed protobuf message: " + e.getMessage());
        }
    }

    static ResponseBody content(Message message) {
        byte[] bytes = message.toByteArray();
        return new ResponseBody(bytes, bytes.length);
    }

    private Message metadata(GrpcCall call, ModelMetadataRequest request) {
        call.require(Permission.METADATA, request.getName());
        ModelMetadata metadata =
                context.engine.metadata(ModelReferences.reference(request.getName(), request.getVersion()));
        String name = metadata.id().model();
        ModelMetadataResponse.Builder response = ModelMetadataResponse.newBuilder()
                .setName(name)
                .addAllVersions(RepositoryIndex.versions(context.control, name))
                .setPlatform(metadata.platform())
                .putAllProperties(metadata.properties());
        metadata.inputs().forEach(spec -> response.addInputs(tensor(spec)));
        metadata.outputs().forEach(spec -> response.addOutputs(tensor(spec)));
        return response.build();
    }

    private static TensorMetadata tensor(TensorSpec spec) {
        return TensorMetadata.newBuilder()
                .setName(spec.name())
                .setDatatype(spec.dataType().name())
                .addAllShape(Arrays.stream(spec.shape().dims()).boxed().toList())
                .build();
    }

    private Message index(GrpcCall call, RepositoryIndexRequest request) {
        RepositoryIndexResponse.Builder response = RepositoryIndexResponse.newBuilder();
        for (RepositoryIndex.IndexEntry entry :
                RepositoryIndex.index(context.control, request.getReady(), call.caller())) {
            response.addModelsBuilder()
                    .setName(entry.model())
                    .setVersion(entry.version())
                    .setState(entry.state())
                    .setReason(entry.reason());
        }
        return response.build();
    }

    private CompletionStage<Message> load(GrpcCall call, RepositoryModelLoadRequest request) {
        String model = modelName(request.getRepositoryName(), request.getModelName());
        call.require(Permission.MANAGE, model);
        LoadParameters parameters = new LoadParameters(context.options.modelUpload());
        request.getParametersMap().forEach((name, value) -> parameters.put(name, value(value)));
        return context.control
                .load(model, parameters.options())
                .thenApply(done -> RepositoryModelLoadResponse.newBuilder()
                        .setModelName(model)
                        .setIsLoaded(true)
                        .build());
    }

    private CompletionStage<Message> unload(GrpcCall call, RepositoryModelUnloadRequest request) {
        String model = modelName(request.getRepositoryName(), request.getModelName());
        call.require(Permission.MANAGE, model);
        ModelRepositoryParameter dependents = request.getParametersMap().get("unload_dependents");
        return context.control
                .unload(model, dependents != null && dependents.getBoolParam())
                .thenApply(done -> RepositoryModelUnloadResponse.newBuilder()
                        .setModelName(model)
                        .setIsUnloaded(true)
                        .build());
    }

    /** KServe's clients put the model's name into the first field, Triton's into the second. */
    private static String modelName(String first, String second) {
        if (!first.isEmpty() && !second.isEmpty()) {
            throw RepositoryIndex.repositoryName();
        }
        String model = second.isEmpty() ? first : second;
        ModelReferences.checkLoadable(model);
        return model;
    }

    private static Object value(ModelRepositoryParameter value) {
        return switch (value.getParameterChoiceCase()) {
            case BOOL_PARAM -> value.getBoolParam();
            case INT64_PARAM -> value.getInt64Param();
            case STRING_PARAM -> value.getStringParam();
            case BYTES_PARAM -> value.getBytesParam().toByteArray();
            case PARAMETERCHOICE_NOT_SET -> "";
        };
    }
}
