// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.protobuf.Message;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.SharedMemoryManager;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterResponse;
import io.nereid.protocols.v2.rest.RestSharedMemory;

/** The gRPC handlers of Triton's shared memory extensions. CUDA shared memory is not supported. Thread-safe. */
final class GrpcSharedMemory {
    private final CodecContext context;

    GrpcSharedMemory(CodecContext context) {
        this.context = context;
    }

    Message status(SystemSharedMemoryStatusRequest request) {
        SystemSharedMemoryStatusResponse.Builder response = SystemSharedMemoryStatusResponse.newBuilder();
        for (SharedMemoryManager.Region region : context.sharedMemory.status(request.getName())) {
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

    /** An empty status, as no CUDA region is ever registered. */
    static Message cudaStatus(CudaSharedMemoryStatusRequest request) {
        if (!request.getName().isEmpty()) {
            throw RestSharedMemory.unknownCudaRegion(request.getName());
        }
        return CudaSharedMemoryStatusResponse.getDefaultInstance();
    }

    static Message cudaRegister(CudaSharedMemoryRegisterRequest request) {
        throw RestSharedMemory.noCuda(request.getName());
    }
}
