// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.server.Server;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** grpc-java as client and as upstream server, with the proxy between the two. */
public class PooledUpstreamClientGrpcTest {
    private static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    };

    public static MethodDescriptor<byte[], byte[]> method(String name, MethodType type) {
        return MethodDescriptor.newBuilder(BYTES, BYTES)
                .setFullMethodName("t.T/" + name)
                .setType(type)
                .build();
    }

    private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
    private final AtomicReference<Metadata> metadata = new AtomicReference<>(new Metadata());
    private final AtomicInteger most = new AtomicInteger(Integer.MAX_VALUE);
    private final EventLoops loops = new EventLoops(1, true);
    private final PooledUpstreamClient relay = new PooledUpstreamClient(new PooledUpstreamClient.Options(
            loops, Duration.ofSeconds(5), Duration.ofSeconds(30), 4, Clock.system(), PooledUpstreamClient.Trust.JVM));
    private io.grpc.Server far = start(0);
    private ForwardOptions terms = new ForwardOptions(
            Duration.ofSeconds(20), 64 << 20, List.of(new UpstreamClient.Header("x-added", "by us")));
    private final Server near = new Server(
            ServerOptions.builder().listen("127.0.0.1", 0).loops(loops).build(), List.of(new ProtocolCodec() {
                @Override
                public String name() {
                    return "near";
                }

                @Override
                public List<GrpcMethod> grpcMethods() {
                    return List.of(new GrpcMethod(
                            "/*",
                            GrpcMethod.Kind.BIDI_STREAMING,
                            Operation.INFERENCE,
                            call -> relay.forward(
                                    call, new UpstreamClient.Address("127.0.0.1", far.getPort()), terms)));
                }
            }));
    private final int port = near.start().get(0).getPort();
    private final ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", port)
            .usePlaintext()
            .maxInboundMessageSize(100 << 20)
            .build();

    @AfterEach
    void stop() {
        channel.shutdownNow();
        near.close();
        relay.close();
        loops.close();
        far.shutdownNow();
    }

    private io.grpc.Server start(int at) {
        ServerServiceDefinition service = ServerServiceDefinition.builder("t.T")
                .addMethod(
                        method("Unary", MethodType.UNARY),
                        ServerCalls.asyncUnaryCall((byte[] m, StreamObserver<byte[]> o) -> {
                            o.onNext(m);
                            o.onCompleted();
                        }))
                .addMethod(
                        method("Fail", MethodType.UNARY),
                        ServerCalls.asyncUnaryCall((byte[] m, StreamObserver<byte[]> o) ->
                                o.onError(Status.FAILED_PRECONDITION
                                        .withDescription("no: 100% ✗\n" + new String(m, StandardCharsets.UTF_8))
                                        .asRuntimeException())))
                .addMethod(
                        method("Never", MethodType.UNARY),
                        ServerCalls.asyncUnaryCall((byte[] m, StreamObserver<byte[]> o) -> {
                            ((ServerCallStreamObserver<byte[]>) o).setOnCancelHandler(() -> events.add("cancelled"));
                            events.add("deadline " + (Context.current().getDeadline() != null));
                        }))
                .addMethod(
                        method("Repeat", MethodType.SERVER_STREAMING),
                        ServerCalls.asyncServerStreamingCall((byte[] m, StreamObserver<byte[]> o) -> {
                            ServerCallStreamObserver<byte[]> s = (ServerCallStreamObserver<byte[]>) o;
                            AtomicInteger sent = new AtomicInteger();
                            s.setOnCancelHandler(() -> events.add("cancelled"));
                            s.setOnReadyHandler(() -> {
                                while (s.isReady() && sent.get() < 200) {
                                    s.onNext(m);
                                    if (sent.incrementAndGet() == 200) {
                                        s.onCompleted();
                                    }
                                }
                                most.set(sent.get());
                            });
                        }))
                .addMethod(
                        method("Chat", MethodType.BIDI_STREAMING),
                        ServerCalls.asyncBidiStreamingCall((StreamObserver<byte[]> o) -> new StreamObserver<byte[]>() {
                            @Override
                            public void onNext(byte[] m) {
                                o.onNext(m);
                            }

                            @Override
                            public void onError(Throwable t) {
                                events.add("cancelled");
                            }

                            @Override
                            public void onCompleted() {
                                o.onCompleted();
                            }
                        }))
                .build();
        ServerInterceptor keep = new ServerInterceptor() {
            @Override
            public <A, B> ServerCall.Listener<A> interceptCall(
                    ServerCall<A, B> call, Metadata headers, ServerCallHandler<A, B> next) {
                metadata.set(headers);
                events.add("from " + call.getAttributes().get(io.grpc.Grpc.TRANSPORT_ATTR_REMOTE_ADDR));
                return Contexts.interceptCall(Context.current(), call, headers, next);
            }
        };
        try {
            return NettyServerBuilder.forAddress(new java.net.InetSocketAddress("127.0.0.1", at))
                    .maxInboundMessageSize(100 << 20)
                    .maxConcurrentCallsPerConnection(10)
                    .addService(ServerInterceptors.intercept(service, keep))
                    .build()
                    .start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static CallOptions soon() {
        return CallOptions.DEFAULT.withDeadlineAfter(20, TimeUnit.SECONDS);
    }

    private static byte[] ask(Channel channel, String name, byte[] message) {
        return ClientCalls.blockingUnaryCall(channel, method(name, MethodType.UNARY), soon(), message);
    }

    private static CompletableFuture<byte[]> start(ClientCall<byte[], byte[]> call) {
        CompletableFuture<byte[]> answer = new CompletableFuture<>();
        ClientCalls.asyncUnaryCall(call, new byte[1], new StreamObserver<byte[]>() {
            @Override
            public void onNext(byte[] m) {
                answer.complete(m);
            }

            @Override
            public void onError(Throwable t) {
                answer.completeExceptionally(t);
            }

            @Override
            public void onCompleted() {}
        });
        return answer;
    }

    private static byte[] random(int size) {
        byte[] b = new byte[size];
        new Random(size).nextBytes(b);
        return b;
    }

    private String event(String prefix) throws InterruptedException {
        for (String e = events.poll(10, TimeUnit.SECONDS); e != null; e = events.poll(10, TimeUnit.SECONDS)) {
            if (e.startsWith(prefix)) {
                return e;
            }
        }
        return "none";
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1000, 70_000, 5_000_000})
    void unaryCallsOfAnySizeAreRelayed(int size) {
        byte[] message = random(size);
        assertThat(ask(channel, "Unary", message)).isEqualTo(message);
    }

    @Test
    void callsShareOneConnection() throws InterruptedException {
        java.util.Set<String> connections = new java.util.HashSet<>();
        for (int i = 0; i < 300; i++) {
            ask(channel, "Unary", random(i));
            connections.add(event("from"));
        }
        assertThat(connections).hasSize(1);
    }

    @Test
    void moreCallsThanOneConnectionTakesGetFurtherOnes() throws InterruptedException {
        int calls = 35;
        CountDownLatch done = new CountDownLatch(calls);
        List<StreamObserver<byte[]>> open = new ArrayList<>();
        for (int i = 0; i < calls; i++) {
            StreamObserver<byte[]> to = ClientCalls.asyncBidiStreamingCall(
                    channel.newCall(method("Chat", MethodType.BIDI_STREAMING), soon()), new StreamObserver<byte[]>() {
                        @Override
                        public void onNext(byte[] m) {
                            done.countDown();
                        }

                        @Override
                        public void onError(Throwable t) {}

                        @Override
                        public void onCompleted() {}
                    });
            to.onNext(new byte[] {1});
            open.add(to);
        }
        assertThat(done.await(15, TimeUnit.SECONDS)).isTrue();
        open.forEach(StreamObserver::onCompleted);
        java.util.Set<String> connections = new java.util.HashSet<>();
        for (int i = 0; i < calls; i++) {
            connections.add(event("from"));
        }
        assertThat(connections.size()).isEqualTo(4);
    }

    @Test
    void metadataStatusAndTextAreRelayed() {
        Metadata sent = new Metadata();
        Metadata.Key<String> text = Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);
        Metadata.Key<byte[]> binary = Metadata.Key.of("x-bin", Metadata.BINARY_BYTE_MARSHALLER);
        sent.put(text, "00-ab");
        sent.put(binary, new byte[] {0, 1, -1});
        Channel with = ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(sent));
        assertThatThrownBy(() -> ask(with, "Fail", "å".getBytes(StandardCharsets.UTF_8)))
                .satisfies(t -> {
                    Status status = Status.fromThrowable(t);
                    assertThat(status.getCode()).isEqualTo(Status.Code.FAILED_PRECONDITION);
                    assertThat(status.getDescription()).isEqualTo("no: 100% ✗\nå");
                });
        assertThat(metadata.get().get(text)).isEqualTo("00-ab");
        assertThat(metadata.get().get(binary)).containsExactly(0, 1, -1);
        assertThat(metadata.get().get(Metadata.Key.of("x-added", Metadata.ASCII_STRING_MARSHALLER)))
                .isEqualTo("by us");
        assertThatThrownBy(() -> ask(channel, "Unknown", new byte[0]))
                .satisfies(t -> assertThat(Status.fromThrowable(t).getCode()).isEqualTo(Status.Code.UNIMPLEMENTED));
    }

    @Test
    void theDeadlineIsReportedAndEnforced() throws InterruptedException {
        assertThatThrownBy(() -> ClientCalls.blockingUnaryCall(
                        channel,
                        method("Never", MethodType.UNARY),
                        CallOptions.DEFAULT.withDeadlineAfter(300, TimeUnit.MILLISECONDS),
                        new byte[1]))
                .satisfies(t -> assertThat(Status.fromThrowable(t).getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED));
        assertThat(event("deadline")).isEqualTo("deadline true");
        assertThat(event("cancelled")).isEqualTo("cancelled");
        terms = new ForwardOptions(Duration.ofMillis(200), 1 << 20, List.of());
        assertThatThrownBy(() -> ask(channel, "Never", new byte[1])).satisfies(t -> {
            assertThat(Status.fromThrowable(t).getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
            assertThat(Status.fromThrowable(t).getDescription()).contains("after 200 ms");
        });
    }

    @Test
    void aClientThatCancelsEndsTheCall() throws Exception {
        ClientCall<byte[], byte[]> call = channel.newCall(method("Never", MethodType.UNARY), soon());
        CompletableFuture<byte[]> answer = start(call);
        event("deadline");
        call.cancel("enough", null);
        assertThat(answer).failsWithin(Duration.ofSeconds(10));
        assertThat(event("cancelled")).isEqualTo("cancelled");
    }

    @Test
    void aClientThatReadsSlowlyHoldsTheOtherServerBack() throws InterruptedException {
        Iterator<byte[]> answers = ClientCalls.blockingServerStreamingCall(
                channel, method("Repeat", MethodType.SERVER_STREAMING), soon(), random(1 << 20));
        assertThat(answers.next()).hasSize(1 << 20);
        int before = -1;
        while (most.get() != before) {
            before = most.get();
            new CountDownLatch(1).await(300, TimeUnit.MILLISECONDS);
        }
        assertThat(before).isLessThan(100);
        int n = 1;
        while (answers.hasNext()) {
            answers.next();
            n++;
        }
        assertThat(n).isEqualTo(200);
    }

    @Test
    void aServerThatGoesAwayIsConnectedAnewAndOneThatIsGoneIsUnavailable() throws Exception {
        assertThat(ask(channel, "Unary", new byte[] {7})).containsExactly(7);
        int at = far.getPort();
        far.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        far = start(at);
        assertThat(ask(channel, "Unary", new byte[] {8})).containsExactly(8);
        CompletableFuture<byte[]> pending = start(channel.newCall(method("Never", MethodType.UNARY), soon()));
        event("deadline");
        far.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        assertThatThrownBy(() -> pending.get(10, TimeUnit.SECONDS))
                .satisfies(t -> assertThat(Status.fromThrowable(t.getCause()).getCode())
                        .isIn(Status.Code.UNAVAILABLE, Status.Code.CANCELLED));
        // the port is remembered by the stopped server's object no longer
        far = start(at);
        assertThat(ask(channel, "Unary", new byte[] {9})).containsExactly(9);
    }
}
