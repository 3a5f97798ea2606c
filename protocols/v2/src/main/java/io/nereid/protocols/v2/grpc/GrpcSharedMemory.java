// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.protobuf.Message;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.memory.SharedRegion;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterResponse;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryUnregisterResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterResponse;
import io.nereid.transport.api.GrpcCall;
import java.util.concurrent.CompletionStage;

/** The gRPC handlers of Triton's shared memory extensions. Thread-safe. */
final class GrpcSharedMemory {
    private final CodecContext context;

    GrpcSharedMemory(CodecContext context) {
        this.context = context;
    }

    Message status(SystemSharedMemoryStatusRequest request) {
        SystemSharedMemoryStatusResponse.Builder response = SystemSharedMemoryStatusResponse.newBuilder();
        for (SharedRegion.SystemRegion region : context.sharedMemory.status(request.getName())) {
            response.putRegions(
                    region.name(),
                    SystemSharedMemoryStatusResponse.RegionStatus.newBuilder()
                            .setName(region.name())
                            .setKey(region.key())
                            .setOffset(region.offset())
                            .setByteSize(region.byteSize())
                            .build());
        }
        return response.build();
    }

    Message register(SystemSharedMemoryRegisterRequest request) {
        context.sharedMemory.register(request.getName(), request.getKey(), request.getOffset(), request.getByteSize());
        return SystemSharedMemoryRegisterResponse.getDefaultInstance();
    }

    Message unregister(SystemSharedMemoryUnregisterRequest request) {
        context.sharedMemory.unregister(request.getName());
        return SystemSharedMemoryUnregisterResponse.getDefaultInstance();
    }

    Message cudaStatus(CudaSharedMemoryStatusRequest request) {
        CudaSharedMemoryStatusResponse.Builder response = CudaSharedMemoryStatusResponse.newBuilder();
        for (SharedRegion.CudaRegion region : context.sharedMemory.cudaStatus(request.getName())) {
            response.putRegions(
                    region.name(),
                    CudaSharedMemoryStatusResponse.RegionStatus.newBuilder()
                            .setName(region.name())
                            .setDeviceId(region.device())
                            .setByteSize(region.byteSize())
                            .build());
        }
        return response.build();
    }

    CompletionStage<Message> cudaRegister(GrpcCall call, CudaSharedMemoryRegisterRequest request) {
        return context.sharedMemory
                .registerCuda(
                        request.getName(),
                        request.getRawHandle().toByteArray(),
                        request.getDeviceId(),
                        request.getByteSize())
                .thenApply(done -> CudaSharedMemoryRegisterResponse.getDefaultInstance());
    }

    CompletionStage<Message> cudaUnregister(GrpcCall call, CudaSharedMemoryUnregisterRequest request) {
        return context.sharedMemory
                .unregisterCuda(request.getName())
                .thenApply(done -> CudaSharedMemoryUnregisterResponse.getDefaultInstance());
    }
}
