// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Message;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.Threads;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeCall;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckRequest;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ServerReflectionRequest;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ServerReflectionResponse;
import io.nereid.protocols.v2.proto.ModelConfiguration;
import io.nereid.protocols.v2.proto.OpenInference.ModelConfigRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelConfigResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelRepositoryParameter;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryIndexRequest;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryIndexResponse;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelLoadRequest;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelLoadResponse;
import io.nereid.protocols.v2.proto.OpenInference.RepositoryModelUnloadRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyResponse;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import org.junit.jupiter.api.Test;

class GrpcManagementTest {
    private final FakeEngine engine = new FakeEngine();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), Runnable::run, V2Options.defaults("1.2.3", 1 << 20));

    private FakeCall call(String method, Message request) {
        String path = method.startsWith("/") ? method : "/inference.GRPCInferenceService/" + method;
        return new FakeCall(codec, path).start().message(request).halfClose();
    }

    @Test
    void serverAndModelsAreDescribed() throws Exception {
        FakeCall server = call("ServerMetadata", ServerMetadataRequest.getDefaultInstance());
        ServerMetadataResponse response = ServerMetadataResponse.parseFrom(server.sent.get(0));
        assertThat(response.getName()).isEqualTo("nereid");
        assertThat(response.getExtensionsList()).contains("binary_tensor_data");
        FakeCall model = call(
                "ModelMetadata",
                ModelMetadataRequest.newBuilder().setName("identity").build());
        ModelMetadataResponse metadata = ModelMetadataResponse.parseFrom(model.sent.get(0));
        assertThat(metadata.getVersionsList()).containsExactly("1");
        assertThat(metadata.getInputs(0).getShapeList()).containsExactly(-1L, 4L);
        engine.config = ModelConfig.builder("identity")
                .document(Map.of("name", "identity", "input", List.of(Map.of("name", "x", "data_type", "TYPE_FP32"))))
                .build();
        FakeCall config = call(
                "ModelConfig",
                ModelConfigRequest.newBuilder().setName("identity").build());
        assertThat(ModelConfigResponse.parseFrom(config.sent.get(0))
                        .getConfig()
                        .getInput(0)
                        .getDataType())
                .isEqualTo(ModelConfiguration.DataType.TYPE_FP32);
        assertThat(call(
                                "ModelMetadata",
                                ModelMetadataRequest.newBuilder()
                                        .setName("absent")
                                        .build())
                        .code)
                .isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void readinessIsReported() throws Exception {
        engine.ready = false;
        FakeCall server = call("ServerReady", ServerReadyRequest.getDefaultInstance());
        assertThat(ServerReadyResponse.parseFrom(server.sent.get(0)).getReady()).isFalse();
        FakeCall model = call(
                "ModelReady", ModelReadyRequest.newBuilder().setName("identity").build());
        assertThat(ModelReadyResponse.parseFrom(model.sent.get(0)).getReady()).isFalse();
        assertThat(model.code).isEqualTo(ErrorCode.OK);
        FakeCall unknown = call(
                "ModelReady", ModelReadyRequest.newBuilder().setName("absent").build());
        assertThat(ModelReadyResponse.parseFrom(unknown.sent.get(0)).getReady()).isFalse();
        assertThat(unknown.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void loadTakesTheNameFromTheFieldOfEitherFamily() throws Exception {
        call(
                "RepositoryModelLoad",
                RepositoryModelLoadRequest.newBuilder().setModelName("t").build());
        FakeCall kserve = call(
                "RepositoryModelLoad",
                RepositoryModelLoadRequest.newBuilder().setRepositoryName("k").build());
        RepositoryModelLoadResponse response = RepositoryModelLoadResponse.parseFrom(kserve.sent.get(0));
        assertThat(response.getModelName()).isEqualTo("k");
        assertThat(response.getIsLoaded()).isTrue();
        call(
                "RepositoryModelUnload",
                RepositoryModelUnloadRequest.newBuilder().setModelName("t").build());
        assertThat(engine.loads).containsExactly("load t", "load k", "unload t");
    }

    @Test
    void badLoadsAreRejected() {
        assertThat(call(
                                "RepositoryModelLoad",
                                RepositoryModelLoadRequest.newBuilder()
                                        .setRepositoryName("r")
                                        .setModelName("m")
                                        .build())
                        .code)
                .isEqualTo(ErrorCode.UNIMPLEMENTED);
        assertThat(call("RepositoryModelLoad", RepositoryModelLoadRequest.getDefaultInstance()).text)
                .contains("Model name cannot be empty");
        assertThat(call(
                                "RepositoryModelLoad",
                                RepositoryModelLoadRequest.newBuilder()
                                        .setModelName("../x")
                                        .build())
                        .text)
                .contains("must not contain path traversal characters");
        FakeCall file = call(
                "RepositoryModelLoad",
                RepositoryModelLoadRequest.newBuilder()
                        .setModelName("m")
                        .putParameters(
                                "x",
                                ModelRepositoryParameter.newBuilder()
                                        .setBytesParam(ByteString.EMPTY)
                                        .build())
                        .build());
        assertThat(file.text).isEqualTo("Unrecognized load parameter 'x' with type 'BYTES'");
        assertThat(engine.loads).isEmpty();
    }

    @Test
    void theIndexListsEveryModel() throws Exception {
        FakeCall index = call("RepositoryIndex", RepositoryIndexRequest.getDefaultInstance());
        RepositoryIndexResponse response = RepositoryIndexResponse.parseFrom(index.sent.get(0));
        assertThat(response.getModelsCount()).isEqualTo(3);
        assertThat(response.getModels(1).getReason()).isEqualTo("no such file");
    }

    @Test
    void malformedMessagesAreRejected() {
        FakeCall call = new FakeCall(codec, "/inference.GRPCInferenceService/ModelReady").start();
        assertThat(call.message(Wire.hex("0a05")).code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    private static HealthCheckRequest health(String service) {
        return HealthCheckRequest.newBuilder().setService(service).build();
    }

    private static HealthCheckResponse.ServingStatus status(byte[] bytes) throws Exception {
        return HealthCheckResponse.parseFrom(bytes).getStatus();
    }

    @Test
    void healthFollowsReadiness() throws Exception {
        String check = "/grpc.health.v1.Health/Check";
        assertThat(status(call(check, health("")).sent.get(0))).isEqualTo(HealthCheckResponse.ServingStatus.SERVING);
        engine.ready = false;
        assertThat(status(call(check, health("inference.GRPCInferenceService"))
                        .sent
                        .get(0)))
                .isEqualTo(HealthCheckResponse.ServingStatus.NOT_SERVING);
        assertThat(call(check, health("other")).code).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void watchersReceiveChangesAndNothingElse() throws Exception {
        List<ScheduledThreadPoolExecutor> timers = new ArrayList<>();
        GrpcHealthService service = new GrpcHealthService(engine, Set.of("PredictionService"), () -> {
            ScheduledThreadPoolExecutor timer = Threads.timer("test-health");
            timers.add(timer);
            return timer;
        });
        FakeCall call = new FakeCall(codec, "/grpc.health.v1.Health/Watch");
        call.start(service.methods().get(1)).message(health("PredictionService").toByteArray());
        call.halfClose();
        service.poll();
        assertThat(call.sent).hasSize(1);
        engine.ready = false;
        service.poll();
        service.poll();
        assertThat(call.sent).hasSize(2);
        assertThat(status(call.sent.get(1))).isEqualTo(HealthCheckResponse.ServingStatus.NOT_SERVING);
        call.cancel();
        assertThat(timers).hasSize(1);
        assertThat(timers.get(0).isShutdown()).isTrue();
    }

    @Test
    void reflectionServesDescriptorsWithWhatTheyImport() throws Exception {
        for (String version : List.of("v1", "v1alpha")) {
            FakeCall call =
                    new FakeCall(codec, "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo");
            call.start()
                    .message(ServerReflectionRequest.newBuilder()
                            .setListServices("")
                            .build())
                    .message(ServerReflectionRequest.newBuilder()
                            .setFileContainingSymbol("inference.ModelInferRequest.InferInputTensor")
                            .build())
                    .message(ServerReflectionRequest.newBuilder()
                            .setFileByFilename("nothing.proto")
                            .build())
                    .message(ServerReflectionRequest.newBuilder()
                            .setAllExtensionNumbersOfType("inference.ModelConfig")
                            .build())
                    .halfClose();
            assertThat(call.code).isEqualTo(ErrorCode.OK);
            ServerReflectionResponse list = ServerReflectionResponse.parseFrom(call.sent.get(0));
            assertThat(list.getListServicesResponse().getServiceList().stream().map(s -> s.getName()))
                    .containsExactlyInAnyOrder(
                            "inference.GRPCInferenceService",
                            "grpc.health.v1.Health",
                            "grpc.reflection.v1.ServerReflection",
                            "grpc.reflection.v1alpha.ServerReflection");
            List<String> files = new ArrayList<>();
            for (ByteString file : ServerReflectionResponse.parseFrom(call.sent.get(1))
                    .getFileDescriptorResponse()
                    .getFileDescriptorProtoList()) {
                files.add(FileDescriptorProto.parseFrom(file).getName());
            }
            assertThat(files).containsExactly("inference/open_inference.proto", "inference/model_config.proto");
            assertThat(ServerReflectionResponse.parseFrom(call.sent.get(2))
                            .getErrorResponse()
                            .getErrorCode())
                    .isEqualTo(5);
            assertThat(ServerReflectionResponse.parseFrom(call.sent.get(3)).hasAllExtensionNumbersResponse())
                    .isTrue();
        }
    }
}
