// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.Message;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.CudaSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryRegisterResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryStatusResponse;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterRequest;
import io.nereid.protocols.v2.proto.OpenInference.SystemSharedMemoryUnregisterResponse;

/** The gRPC calls about shared memory. Thread-safe. */
final class GrpcSharedMemory {
    private final CodecContext context;

    GrpcSharedMemory(CodecContext context) {
        this.context = context;
    }

    Message status(SystemSharedMemoryStatusRequest request) {
        SystemSharedMemoryStatusResponse.Builder response = SystemSharedMemoryStatusResponse.newBuilder();
        for (SharedMemory.Region region : context.sharedMemory.status(request.getName())) {
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

    /** There is never one. */
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
