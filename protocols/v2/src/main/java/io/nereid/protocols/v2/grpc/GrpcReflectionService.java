// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import io.nereid.base.ErrorCode;
import io.nereid.base.access.Operation;
import io.nereid.protocols.v2.proto.GrpcHealth;
import io.nereid.protocols.v2.proto.GrpcReflectionV1;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ErrorResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ExtensionNumberResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.FileDescriptorResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ListServiceResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ServerReflectionRequest;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ServerReflectionResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1.ServiceResponse;
import io.nereid.protocols.v2.proto.GrpcReflectionV1alpha;
import io.nereid.protocols.v2.proto.OpenInference;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.GrpcMethod.Kind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * gRPC server reflection, in versions {@code v1} and {@code v1alpha}, which differ in their package only. Immutable;
 * each call has a listener of its own.
 */
public final class GrpcReflectionService {
    private static final String V1 = "grpc.reflection.v1.ServerReflection";
    private static final String V1_ALPHA = "grpc.reflection.v1alpha.ServerReflection";

    private GrpcReflectionService() {}

    /** Reflection of the inference, health and reflection services. */
    public static GrpcReflectionService ofV2() {
        return new GrpcReflectionService();
    }

    public List<GrpcMethod> methods() {
        return List.of(method(V1), method(V1_ALPHA));
    }

    private GrpcMethod method(String service) {
        return new GrpcMethod(
                "/" + service + "/ServerReflectionInfo", Kind.BIDI_STREAMING, Operation.REFLECTION, Listener::new);
    }

    private ServerReflectionResponse answer(ServerReflectionRequest request) {
        ServerReflectionResponse.Builder response = ServerReflectionResponse.newBuilder()
                .setValidHost(request.getHost())
                .setOriginalRequest(request);
        switch (request.getMessageRequestCase()) {
            case FILE_BY_FILENAME ->
                file(
                        response,
                        SymbolIndex.OF_V2.files.get(request.getFileByFilename()),
                        "file '" + request.getFileByFilename() + "'");
            case FILE_CONTAINING_SYMBOL ->
                file(
                        response,
                        SymbolIndex.OF_V2.fileOfSymbol.get(request.getFileContainingSymbol()),
                        "symbol '" + request.getFileContainingSymbol() + "'");
            case FILE_CONTAINING_EXTENSION -> error(response, ErrorCode.NOT_FOUND, "there are no extensions");
            case ALL_EXTENSION_NUMBERS_OF_TYPE -> {
                String type = request.getAllExtensionNumbersOfType();
                if (SymbolIndex.OF_V2.messages.contains(type)) {
                    response.setAllExtensionNumbersResponse(
                            ExtensionNumberResponse.newBuilder().setBaseTypeName(type));
                } else {
                    error(response, ErrorCode.NOT_FOUND, "unknown type '" + type + "'");
                }
            }
            case LIST_SERVICES -> {
                ListServiceResponse.Builder list = ListServiceResponse.newBuilder();
                SymbolIndex.OF_V2.services.forEach(
                        name -> list.addService(ServiceResponse.newBuilder().setName(name)));
                response.setListServicesResponse(list);
            }
            case MESSAGEREQUEST_NOT_SET -> error(response, ErrorCode.INVALID_ARGUMENT, "the request is empty");
        }
        return response.build();
    }

    private static void file(ServerReflectionResponse.Builder response, @Nullable FileDescriptor file, String what) {
        if (file == null) {
            error(response, ErrorCode.NOT_FOUND, "unknown " + what);
            return;
        }
        Set<FileDescriptor> all = new LinkedHashSet<>();
        List<FileDescriptor> todo = new ArrayList<>(List.of(file));
        while (!todo.isEmpty()) {
            FileDescriptor next = todo.remove(0);
            if (all.add(next)) {
                todo.addAll(next.getDependencies());
            }
        }
        FileDescriptorResponse.Builder list = FileDescriptorResponse.newBuilder();
        all.forEach(each -> list.addFileDescriptorProto(each.toProto().toByteString()));
        response.setFileDescriptorResponse(list);
    }

    private static void error(ServerReflectionResponse.Builder response, ErrorCode code, String text) {
        response.setErrorResponse(
                ErrorResponse.newBuilder().setErrorCode(code.number()).setErrorMessage(text));
    }

    /** One call. Confined to its event loop. */
    private final class Listener implements GrpcListener {
        private final GrpcCall call;

        Listener(GrpcCall call) {
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            call.send(GrpcManagement.content(answer(GrpcManagement.parse(ServerReflectionRequest.parser(), message))));
        }

        @Override
        public void onHalfClose() {
            call.close(ErrorCode.OK, null);
        }

        @Override
        public void onCancel() {
            // There is no state to release.
        }
    }

    /**
     * What the services describe, made on the first call: the descriptors take 25 ms, and most servers are never
     * asked for them. Immutable.
     */
    private static final class SymbolIndex {
        static final SymbolIndex OF_V2 = new SymbolIndex(List.of(
                OpenInference.getDescriptor(),
                GrpcHealth.getDescriptor(),
                GrpcReflectionV1.getDescriptor(),
                GrpcReflectionV1alpha.getDescriptor()));

        private final Map<String, FileDescriptor> files = new LinkedHashMap<>();
        private final Map<String, FileDescriptor> fileOfSymbol = new LinkedHashMap<>();
        private final Set<String> messages = new LinkedHashSet<>();
        private final Set<String> services = new LinkedHashSet<>();

        SymbolIndex(List<FileDescriptor> served) {
            served.forEach(this::add);
        }

        private void add(FileDescriptor file) {
            if (files.put(file.getName(), file) != null) {
                return;
            }
            file.getDependencies().forEach(this::add);
            file.getMessageTypes().forEach(message -> add(file, message));
            file.getEnumTypes().forEach(type -> add(file, type));
            for (ServiceDescriptor service : file.getServices()) {
                services.add(service.getFullName());
                fileOfSymbol.put(service.getFullName(), file);
                for (MethodDescriptor method : service.getMethods()) {
                    fileOfSymbol.put(method.getFullName(), file);
                }
            }
        }

        private void add(FileDescriptor file, Descriptor message) {
            messages.add(message.getFullName());
            fileOfSymbol.put(message.getFullName(), file);
            for (FieldDescriptor field : message.getFields()) {
                fileOfSymbol.put(field.getFullName(), file);
            }
            message.getOneofs().forEach(oneof -> fileOfSymbol.put(oneof.getFullName(), file));
            message.getNestedTypes().forEach(nested -> add(file, nested));
            message.getEnumTypes().forEach(type -> add(file, type));
        }

        private void add(FileDescriptor file, EnumDescriptor type) {
            fileOfSymbol.put(type.getFullName(), file);
            type.getValues().forEach(value -> fileOfSymbol.put(value.getFullName(), file));
        }
    }
}
