// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NegotiationType;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.handler.ssl.ApplicationProtocolConfig;
import io.grpc.netty.shaded.io.netty.handler.ssl.ClientAuth;
import io.grpc.netty.shaded.io.netty.handler.ssl.IdentityCipherSuiteFilter;
import io.grpc.netty.shaded.io.netty.handler.ssl.JdkSslContext;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.ServerMetadata;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.Futures;
import io.nereid.client.protocol.ProtocolConnection;
import io.nereid.protobuf.ProtobufWriter;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** Open Inference V2 over gRPC. Calls take the channels, one connection each, in turn. Thread-safe. */
public final class GrpcConnection implements ProtocolConnection {
    private static final String SERVICE = "inference.GRPCInferenceService/";
    private static final MethodDescriptor.Marshaller<ProtobufWriter> REQUEST = new RequestMarshaller();
    private static final MethodDescriptor.Marshaller<byte[]> RESPONSE = new ResponseMarshaller();
    private static final MethodDescriptor<ProtobufWriter, byte[]> INFER = unary("ModelInfer");
    private static final MethodDescriptor<ProtobufWriter, byte[]> LIVE = unary("ServerLive");
    private static final MethodDescriptor<ProtobufWriter, byte[]> READY = unary("ServerReady");
    private static final MethodDescriptor<ProtobufWriter, byte[]> MODEL_READY = unary("ModelReady");
    private static final MethodDescriptor<ProtobufWriter, byte[]> SERVER_METADATA = unary("ServerMetadata");
    private static final MethodDescriptor<ProtobufWriter, byte[]> MODEL_METADATA = unary("ModelMetadata");
    private static final MethodDescriptor<ProtobufWriter, byte[]> MODEL_CONFIG = unary("ModelConfig");
    private static final MethodDescriptor<ProtobufWriter, byte[]> STATISTICS = unary("ModelStatistics");
    private static final MethodDescriptor<ProtobufWriter, byte[]> INDEX = unary("RepositoryIndex");
    private static final MethodDescriptor<ProtobufWriter, byte[]> LOAD = unary("RepositoryModelLoad");
    private static final MethodDescriptor<ProtobufWriter, byte[]> UNLOAD = unary("RepositoryModelUnload");
    private static final MethodDescriptor<ProtobufWriter, byte[]> STREAM =
            method("ModelStreamInfer", MethodDescriptor.MethodType.BIDI_STREAMING);

    private final List<ManagedChannel> channels = new ArrayList<>();
    private final AtomicInteger next = new AtomicInteger();
    private final Clock clock;

    /** Makes the channels of a server, which connect with the first call. */
    public GrpcConnection(
            URI server,
            int connections,
            Duration connectTimeout,
            @Nullable SSLContext tls,
            Executor executor,
            Clock clock) {
        this.clock = clock;
        for (int i = 0; i < connections; i++) {
            NettyChannelBuilder builder = NettyChannelBuilder.forAddress(server.getHost(), server.getPort())
                    .executor(executor)
                    .disableServiceConfigLookUp()
                    .maxInboundMessageSize(Integer.MAX_VALUE)
                    .withOption(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int)
                            Math.min(Integer.MAX_VALUE, connectTimeout.toMillis()));
            if (tls == null) {
                builder.negotiationType(NegotiationType.PLAINTEXT);
            } else {
                builder.negotiationType(NegotiationType.TLS).sslContext(sslContext(tls));
            }
            channels.add(builder.build());
        }
    }

    private static JdkSslContext sslContext(SSLContext tls) {
        ApplicationProtocolConfig alpn = new ApplicationProtocolConfig(
                ApplicationProtocolConfig.Protocol.ALPN,
                ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE,
                ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
                "h2");
        return new JdkSslContext(
                tls, true, null, IdentityCipherSuiteFilter.INSTANCE, alpn, ClientAuth.NONE, null, false);
    }

    private static MethodDescriptor<ProtobufWriter, byte[]> unary(String name) {
        return method(name, MethodDescriptor.MethodType.UNARY);
    }

    private static MethodDescriptor<ProtobufWriter, byte[]> method(String name, MethodDescriptor.MethodType type) {
        return MethodDescriptor.newBuilder(REQUEST, RESPONSE)
                .setType(type)
                .setFullMethodName(SERVICE + name)
                .build();
    }

    @Override
    public String name() {
        return "V2 over gRPC";
    }

    private ClientCall<ProtobufWriter, byte[]> open(
            MethodDescriptor<ProtobufWriter, byte[]> method, CallContext context) {
        CallOptions options = CallOptions.DEFAULT;
        if (context.deadlineNanos() != CallContext.NONE) {
            options = options.withDeadlineAfter(context.deadlineNanos() - clock.nanos(), TimeUnit.NANOSECONDS);
        }
        ManagedChannel channel = channels.get(Math.floorMod(next.getAndIncrement(), channels.size()));
        return channel.newCall(method, options);
    }

    private static Metadata metadata(CallContext context) {
        Metadata headers = new Metadata();
        try {
            context.headers()
                    .forEach((name, value) ->
                            headers.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value));
        } catch (IllegalArgumentException e) {
            throw InferenceException.of(ErrorCode.INVALID_ARGUMENT, "a header cannot be sent: " + e.getMessage(), e);
        }
        return headers;
    }

    private <T> CompletableFuture<T> call(
            MethodDescriptor<ProtobufWriter, byte[]> method,
            ProtobufWriter request,
            CallContext context,
            Function<byte[], T> read) {
        ClientCall<ProtobufWriter, byte[]> call = open(method, context);
        CompletableFuture<T> result = new CompletableFuture<>();
        Futures.whenDone(result, (v, e) -> {
            if (result.isCancelled()) {
                call.cancel("the call was cancelled", null);
            }
        });
        call.start(new UnaryListener<>(read, result), metadata(context));
        call.request(2);
        call.sendMessage(request);
        call.halfClose();
        return result;
    }

    /** Completes a future with the one response of a call. */
    private static final class UnaryListener<T> extends ClientCall.Listener<byte[]> {
        private final Function<byte[], T> read;
        private final CompletableFuture<T> result;
        private byte @Nullable [] message;
        private boolean began;

        UnaryListener(Function<byte[], T> read, CompletableFuture<T> result) {
            this.read = read;
            this.result = result;
        }

        @Override
        public void onHeaders(Metadata headers) {
            began = true;
        }

        @Override
        public void onMessage(byte[] bytes) {
            message = bytes;
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            byte[] bytes = message;
            if (!status.isOk()) {
                result.completeExceptionally(GrpcStatuses.failure(status, trailers, began));
            } else if (bytes == null) {
                result.completeExceptionally(
                        InferenceException.of(ErrorCode.INTERNAL, "the response of the server has no message"));
            } else {
                try {
                    result.complete(read.apply(bytes));
                } catch (RuntimeException e) {
                    result.completeExceptionally(GrpcStatuses.unreadable(e));
                }
            }
        }
    }

    @Override
    public CompletableFuture<InferResult> infer(InferRequest request, CallContext context) {
        return call(INFER, InferMessages.request(request), context, InferMessages::response);
    }

    @Override
    public void stream(InferRequest request, CallContext context, Flow.Subscriber<? super InferResult> subscriber) {
        subscriber.onSubscribe(new GrpcStream(
                () -> open(STREAM, context), InferMessages.request(request), metadata(context), subscriber));
    }

    @Override
    public CompletableFuture<Boolean> live(CallContext context) {
        return call(LIVE, new ProtobufWriter(), context, ManagementMessages::isTrue);
    }

    @Override
    public CompletableFuture<Boolean> ready(CallContext context) {
        return call(READY, new ProtobufWriter(), context, ManagementMessages::isTrue);
    }

    @Override
    public CompletableFuture<Boolean> modelReady(String model, String version, CallContext context) {
        CompletableFuture<Boolean> asked =
                call(MODEL_READY, ManagementMessages.model(model, version), context, ManagementMessages::isTrue);
        CompletableFuture<Boolean> ready = new CompletableFuture<>();
        Futures.cancelWith(ready, asked);
        Futures.whenDone(asked, (value, e) -> {
            if (e == null) {
                ready.complete(value);
            } else if (e instanceof InferenceException known && known.code() == ErrorCode.NOT_FOUND) {
                ready.complete(false);
            } else {
                ready.completeExceptionally(e);
            }
        });
        return ready;
    }

    @Override
    public CompletableFuture<ServerMetadata> serverMetadata(CallContext context) {
        return call(SERVER_METADATA, new ProtobufWriter(), context, ManagementMessages::serverMetadata);
    }

    @Override
    public CompletableFuture<ModelMetadataResponse> modelMetadata(String model, String version, CallContext context) {
        return call(
                MODEL_METADATA, ManagementMessages.model(model, version), context, ManagementMessages::modelMetadata);
    }

    @Override
    public CompletableFuture<String> modelConfig(String model, String version, CallContext context) {
        return call(MODEL_CONFIG, ManagementMessages.model(model, version), context, ModelConfigJson::response);
    }

    @Override
    public CompletableFuture<List<ModelStatisticsResponse>> statistics(
            String model, String version, CallContext context) {
        return call(STATISTICS, ManagementMessages.model(model, version), context, ManagementMessages::statistics);
    }

    @Override
    public CompletableFuture<List<RepositoryModel>> repositoryIndex(boolean readyOnly, CallContext context) {
        return call(INDEX, ManagementMessages.index(readyOnly), context, ManagementMessages::models);
    }

    @Override
    @SuppressWarnings("NullAway") // a future of Void has null as its value
    public CompletableFuture<Void> load(String model, Map<String, String> parameters, CallContext context) {
        return call(LOAD, ManagementMessages.load(model, parameters), context, bytes -> null);
    }

    @Override
    @SuppressWarnings("NullAway") // a future of Void has null as its value
    public CompletableFuture<Void> unload(String model, boolean dependents, CallContext context) {
        return call(UNLOAD, ManagementMessages.unload(model, dependents), context, bytes -> null);
    }

    @Override
    public void close() {
        channels.forEach(ManagedChannel::shutdownNow);
    }

    private static final class RequestMarshaller implements MethodDescriptor.Marshaller<ProtobufWriter> {
        @Override
        public InputStream stream(ProtobufWriter message) {
            return new ByteArrayInputStream(message.array(), 0, message.length());
        }

        @Override
        public ProtobufWriter parse(InputStream stream) {
            throw new UnsupportedOperationException("requests are only written here");
        }
    }

    private static final class ResponseMarshaller implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] message) {
            return new ByteArrayInputStream(message);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
