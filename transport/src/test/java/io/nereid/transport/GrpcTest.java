// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.ResponseBody;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** grpc-java as client of the gRPC side of the server. */
class GrpcTest {
    private static final Rig RIG = new Rig();
    private static final ManagedChannel CHANNEL = channel(RIG);

    private static ManagedChannel channel(Rig rig) {
        return NettyChannelBuilder.forAddress("127.0.0.1", rig.port)
                .usePlaintext()
                .maxInboundMessageSize(100 << 20)
                .flowControlWindow(1 << 20)
                .build();
    }

    @AfterAll
    static void stop() {
        CHANNEL.shutdownNow();
        RIG.close();
    }

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

    private static MethodDescriptor<byte[], byte[]> method(String name, MethodDescriptor.MethodType type) {
        return MethodDescriptor.newBuilder(BYTES, BYTES)
                .setFullMethodName("t.T/" + name)
                .setType(type)
                .build();
    }

    private static byte[] unary(Channel channel, String name, byte[] message) {
        return unary(channel, name, message, CallOptions.DEFAULT.withDeadlineAfter(20, TimeUnit.SECONDS));
    }

    private static byte[] unary(Channel channel, String name, byte[] message, CallOptions options) {
        return ClientCalls.blockingUnaryCall(
                channel, method(name, MethodDescriptor.MethodType.UNARY), options, message);
    }

    private static Status statusOf(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
        Throwable[] caught = {new IllegalStateException()};
        assertThatThrownBy(() -> {
                    try {
                        call.call();
                    } catch (Throwable t) {
                        caught[0] = t;
                        throw t;
                    }
                })
                .isInstanceOf(StatusRuntimeException.class);
        return Status.fromThrowable(caught[0]);
    }

    private static byte[] random(int size) {
        byte[] b = new byte[size];
        new Random(size).nextBytes(b);
        return b;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 100, 16_384, 100_000, 5_000_000, 40_000_000})
    void unaryMessagesOfAnySizeComeBack(int size) {
        byte[] message = random(size);
        assertThat(unary(CHANNEL, "Unary", message)).isEqualTo(message);
        assertThat(unary(CHANNEL, "Elsewhere", message)).isEqualTo(message);
    }

    @Test
    void manyCallsShareAConnection() throws InterruptedException {
        int calls = 2000;
        CountDownLatch done = new CountDownLatch(calls);
        AtomicInteger good = new AtomicInteger();
        for (int i = 0; i < calls; i++) {
            byte[] message = random(i);
            ClientCalls.asyncUnaryCall(
                    CHANNEL.newCall(
                            method(i % 2 == 0 ? "Unary" : "Elsewhere", MethodDescriptor.MethodType.UNARY),
                            CallOptions.DEFAULT),
                    message,
                    new Collect() {
                        @Override
                        public void onNext(byte[] value) {
                            if (java.util.Arrays.equals(value, message)) {
                                good.incrementAndGet();
                            }
                        }

                        @Override
                        public void onError(Throwable t) {
                            done.countDown();
                        }

                        @Override
                        public void onCompleted() {
                            done.countDown();
                        }
                    });
        }
        assertThat(done.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(good).hasValue(calls);
    }

    @Test
    void clientsStream() throws InterruptedException {
        Collect result = new Collect();
        StreamObserver<byte[]> requests = ClientCalls.asyncClientStreamingCall(
                CHANNEL.newCall(method("Sum", MethodDescriptor.MethodType.CLIENT_STREAMING), CallOptions.DEFAULT),
                result);
        for (int i = 0; i < 100; i++) {
            requests.onNext(new byte[i * 1000]);
        }
        requests.onCompleted();
        assertThat(result.next()).isEqualTo("4950000");
        assertThat(result.next()).isEqualTo("completed");
    }

    @Test
    void serversStream() {
        byte[] message = random(200_000);
        message[0] = 50;
        Iterator<byte[]> replies = ClientCalls.blockingServerStreamingCall(
                CHANNEL, method("Repeat", MethodDescriptor.MethodType.SERVER_STREAMING), CallOptions.DEFAULT, message);
        int n = 0;
        while (replies.hasNext()) {
            assertThat(replies.next()).isEqualTo(message);
            n++;
        }
        assertThat(n).isEqualTo(50);
    }

    @Test
    void bothSidesStream() throws InterruptedException {
        Collect replies = new Collect();
        StreamObserver<byte[]> requests = ClientCalls.asyncBidiStreamingCall(
                CHANNEL.newCall(method("Chat", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT),
                replies);
        for (int i = 0; i < 20; i++) {
            requests.onNext(("m" + i).getBytes(java.nio.charset.StandardCharsets.US_ASCII));
            assertThat(replies.next()).isEqualTo("m" + i);
        }
        byte[] large = random(3_000_000);
        requests.onNext(large);
        assertThat(replies.raw()).isEqualTo(large);
        requests.onCompleted();
        assertThat(replies.next()).isEqualTo("completed");
    }

    @Test
    void heldBackMessagesWaitAndThenComeInOrder() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            Collect replies = new Collect();
            StreamObserver<byte[]> requests = ClientCalls.asyncBidiStreamingCall(
                    channel.newCall(
                            method("HeldBack", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT),
                    replies);
            int count = 200;
            for (int i = 0; i < count; i++) {
                byte[] message = new byte[100_000];
                message[0] = (byte) i;
                requests.onNext(message);
            }
            requests.onCompleted();
            // other streams of the connection are not affected
            assertThat(unary(channel, "Unary", random(1_000_000))).hasSize(1_000_000);
            assertThat(replies.got).isEmpty();
            unary(channel, "Release", new byte[1]);
            for (int i = 0; i < count; i++) {
                assertThat(replies.raw()[0]).isEqualTo((byte) i);
            }
            assertThat(replies.next()).isEqualTo("completed");
            channel.shutdownNow();
        }
    }

    @Test
    void compressedRequestsAreInflated() {
        byte[] message = new byte[300_000];
        message[7] = 1;
        Channel gzip = ClientInterceptors.intercept(CHANNEL);
        assertThat(unary(gzip, "Unary", message, CallOptions.DEFAULT.withCompression("gzip")))
                .isEqualTo(message);
    }

    @Test
    void repliesAreCompressedWhenTheOptionIsOn() {
        try (Rig rig = new Rig(o -> o.compressMessages(true))) {
            ManagedChannel channel = channel(rig);
            Metadata headers = new Metadata();
            headers.put(Metadata.Key.of("x-test", Metadata.ASCII_STRING_MARSHALLER), "z".repeat(3000));
            Channel with = ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(headers));
            assertThat(unary(with, "Meta", new byte[1])).hasSize(3000);
            channel.shutdownNow();
        }
    }

    @Test
    void metadataIsFoundByName() {
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of("x-test", Metadata.ASCII_STRING_MARSHALLER), "value");
        Channel with = ClientInterceptors.intercept(CHANNEL, MetadataUtils.newAttachHeadersInterceptor(headers));
        assertThat(new String(unary(with, "Meta", new byte[1]), java.nio.charset.StandardCharsets.UTF_8))
                .isEqualTo("value");
    }

    @Test
    void unknownMethodsAreUnimplemented() {
        Status status = statusOf(() -> unary(CHANNEL, "Nope", new byte[1]));
        assertThat(status.getCode()).isEqualTo(Status.Code.UNIMPLEMENTED);
        assertThat(status.getDescription()).contains("/t.T/Nope");
    }

    @Test
    void statusAndTextReachTheClientWhateverTheirCharacters() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            Future<Status> status = rig.other.submit(() -> statusOf(() -> unary(channel, "Park", new byte[1])));
            GrpcCall call = rig.parkedCall();
            call.fail(ServingException.of(ErrorCode.NOT_FOUND, "kein Modell »ä%«\n", "lade es"));
            assertThat(status.get(10, TimeUnit.SECONDS).getCode()).isEqualTo(Status.Code.NOT_FOUND);
            assertThat(status.get().getDescription()).isEqualTo("kein Modell »ä%«\n (lade es)");
            channel.shutdownNow();
        }
    }

    @Test
    void anExceptionOfAHandlerIsReportedWithoutDetails() {
        Status status = statusOf(() -> unary(CHANNEL, "Throw", new byte[1]));
        assertThat(status.getCode()).isEqualTo(Status.Code.INTERNAL);
        assertThat(status.getDescription()).contains("error id").doesNotContain("secret");
    }

    @Test
    void messagesOverTheLimitAreRejectedWithSizeAndLimit() {
        ByteBudget budget = new ByteBudget(10_000_000);
        try (Rig rig = new Rig(o -> o.maxMessageBytes(1000).budget(budget))) {
            ManagedChannel channel = channel(rig);
            assertThat(unary(channel, "Unary", new byte[1000])).hasSize(1000);
            Status status = statusOf(() -> unary(channel, "Unary", new byte[8_000_000]));
            assertThat(status.getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
            assertThat(status.getDescription()).contains("8000000").contains("1000");
            status = statusOf(
                    () -> unary(channel, "Unary", new byte[1_000_000], CallOptions.DEFAULT.withCompression("gzip")));
            assertThat(status.getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
            assertThat(unary(channel, "Unary", new byte[1])).hasSize(1);
            Rig.released(budget);
            channel.shutdownNow();
        }
    }

    @Test
    void messagesBeyondTheBudgetAreRejected() {
        ByteBudget budget = new ByteBudget(1000);
        try (Rig rig = new Rig(o -> o.budget(budget))) {
            ManagedChannel channel = channel(rig);
            Status status = statusOf(() -> unary(channel, "Unary", new byte[1001]));
            assertThat(status.getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
            assertThat(status.getDescription()).contains("retry later");
            assertThat(unary(channel, "Unary", new byte[900])).hasSize(900);
            channel.shutdownNow();
        }
        Rig.released(budget);
    }

    /** The event loop counts a call as ended a moment after its handler or its client was notified of the end. */
    private static void untilIdle(Rig rig) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (rig.server.stats().inFlight() > 0) {
            assertThat(System.nanoTime() - end).as("calls are still counted").isNegative();
            Thread.onSpinWait();
        }
    }

    @Test
    void deadlinesCancelOnTheServerToo() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            Status status = statusOf(() -> unary(
                    channel, "Park", new byte[3], CallOptions.DEFAULT.withDeadlineAfter(150, TimeUnit.MILLISECONDS)));
            assertThat(status.getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
            assertThat(rig.event()).isEqualTo("message 3");
            assertThat(rig.event()).isEqualTo("half-close");
            assertThat(rig.event()).isEqualTo("cancel");
            GrpcCall call = rig.parkedCall();
            assertThat(call.deadlineNanos() - call.arrivedNanos()).isBetween(1_000_000L, 150_000_000L);
            call.close(ErrorCode.OK, null);
            call.send(new ResponseBody(new byte[1], 1));
            untilIdle(rig);
            channel.shutdownNow();
        }
    }

    @Test
    void aClientsCancellationIsReportedOnce() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            ClientCall<byte[], byte[]> call = channel.newCall(
                    method("ParkStream", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT);
            call.start(new ClientCall.Listener<>() {}, new Metadata());
            call.sendMessage(new byte[5]);
            assertThat(rig.event()).isEqualTo("message 5");
            call.cancel("enough", null);
            assertThat(rig.event()).isEqualTo("cancel");
            GrpcCall parked = rig.parkedCall();
            parked.send(new ResponseBody(new byte[10], 10));
            parked.close(ErrorCode.OK, null);
            assertThat(unary(channel, "Unary", new byte[1])).hasSize(1);
            assertThat(rig.events).isEmpty();
            channel.shutdownNow();
        }
    }

    @Test
    void aLostConnectionCancelsItsCalls() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            List<ClientCall<byte[], byte[]>> calls = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                ClientCall<byte[], byte[]> call = channel.newCall(
                        method("ParkStream", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT);
                call.start(new ClientCall.Listener<>() {}, new Metadata());
                call.sendMessage(new byte[1]);
                calls.add(call);
                assertThat(rig.event()).isEqualTo("message 1");
            }
            channel.shutdownNow();
            for (int i = 0; i < calls.size(); i++) {
                assertThat(rig.event()).isEqualTo("cancel");
            }
        }
    }

    @Test
    void answersAndCancellationsMayRace() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            for (int i = 0; i < 300; i++) {
                ClientCall<byte[], byte[]> call = channel.newCall(
                        method("ParkStream", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT);
                call.start(new ClientCall.Listener<>() {}, new Metadata());
                call.request(10);
                call.sendMessage(new byte[1]);
                GrpcCall parked = rig.parkedCall();
                rig.other.execute(() -> {
                    parked.send(new ResponseBody(new byte[10], 10));
                    parked.close(ErrorCode.OK, null);
                });
                call.cancel("race", null);
            }
            assertThat(unary(channel, "Elsewhere", new byte[1])).hasSize(1);
            long cancels = rig.events.stream().filter("cancel"::equals).count();
            assertThat(cancels).isLessThanOrEqualTo(300);
            untilIdle(rig);
            channel.shutdownNow();
        }
    }

    @Test
    void aSlowClientMakesACallNotReadyAndReadyAgain() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            ClientCall<byte[], byte[]> call = channel.newCall(
                    method("ParkStream", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT);
            BlockingQueue<Integer> sizes = new LinkedBlockingQueue<>();
            call.start(
                    new ClientCall.Listener<>() {
                        @Override
                        public void onMessage(byte[] message) {
                            sizes.add(message.length);
                        }
                    },
                    new Metadata());
            call.sendMessage(new byte[1]);
            GrpcCall parked = rig.parkedCall();
            assertThat(parked.isReady()).isTrue();
            int sent = 0;
            while (parked.isReady()) {
                parked.send(new ResponseBody(new byte[500_000], 500_000));
                sent++;
                if (sent % 10 == 0) { // lets the event loop write what it can
                    assertThat(unary(channel, "Unary", new byte[1])).hasSize(1);
                }
                assertThat(sent).isLessThan(1000);
            }
            call.request(sent);
            for (int i = 0; i < sent; i++) {
                assertThat(sizes.poll(10, TimeUnit.SECONDS)).isEqualTo(500_000);
            }
            assertThat(rig.ready.await(10, TimeUnit.SECONDS)).isTrue();
            assertThat(parked.isReady()).isTrue();
            call.cancel("done", null);
            channel.shutdownNow();
        }
    }

    @Test
    void keepAlivePingsAreAnswered() throws Exception {
        try (Rig rig = new Rig(o -> o.idleTimeout(Duration.ofMillis(100)))) {
            ManagedChannel channel = channel(rig);
            ClientCall<byte[], byte[]> call = channel.newCall(
                    method("ParkStream", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT);
            Collect end = new Collect();
            call.start(
                    new ClientCall.Listener<>() {
                        @Override
                        public void onClose(Status status, Metadata trailers) {
                            end.got.add(String.valueOf(status.getCode()));
                        }
                    },
                    new Metadata());
            call.request(1);
            call.sendMessage(new byte[1]);
            GrpcCall parked = rig.parkedCall();
            // several ping periods later the silent connection is still there
            assertThat(end.got.poll(600, TimeUnit.MILLISECONDS)).isNull();
            parked.close(ErrorCode.OK, null);
            assertThat(end.next()).isEqualTo("OK");
            channel.shutdownNow();
        }
    }

    @Test
    void drainingLetsCallsFinishAndSendsClientsAway() throws Exception {
        try (Rig rig = new Rig()) {
            ManagedChannel channel = channel(rig);
            Future<byte[]> answer = rig.other.submit(() -> unary(channel, "Park", new byte[1]));
            GrpcCall parked = rig.parkedCall();
            CountDownLatch drained = new CountDownLatch(1);
            Thread thread = io.nereid.base.Threads.named("drain").newThread(() -> {
                if (rig.server.drain(Duration.ofSeconds(10))) {
                    drained.countDown();
                }
            });
            thread.start();
            // the client receives GOAWAY, and the server no longer listens
            Status status = statusOf(() -> {
                while (true) {
                    unary(channel, "Unary", new byte[1]);
                }
            });
            assertThat(status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            byte[] b = {1, 2, 3};
            parked.sendAndClose(new ResponseBody(b, 3));
            assertThat(answer.get(10, TimeUnit.SECONDS)).isEqualTo(b);
            assertThat(drained.await(10, TimeUnit.SECONDS)).isTrue();
            channel.shutdownNow();
        }
    }

    @Test
    void allMemoryComesBack() throws Exception {
        long before = Rig.activeBuffers();
        ByteBudget budget = new ByteBudget(1 << 30);
        try (Rig rig = new Rig(o -> o.budget(budget))) {
            ManagedChannel channel = channel(rig);
            for (int i = 0; i < 20; i++) {
                assertThat(unary(channel, "Unary", random(1 + i * 20_000))).hasSize(1 + i * 20_000);
                statusOf(() -> unary(channel, "Throw", random(100_000)));
            }
            Collect replies = new Collect();
            StreamObserver<byte[]> requests = ClientCalls.asyncBidiStreamingCall(
                    channel.newCall(
                            method("HeldBack", MethodDescriptor.MethodType.BIDI_STREAMING), CallOptions.DEFAULT),
                    replies);
            for (int i = 0; i < 20; i++) {
                requests.onNext(random(100_000));
            }
            rig.parkedCall();
            assertThat(unary(channel, "Unary", random(10))).hasSize(10);
            requests.onError(Status.CANCELLED.asRuntimeException());
            assertThat(rig.event()).isEqualTo("cancel");
            channel.shutdownNow();
        }
        Rig.released(budget);
        assertThat(Rig.activeBuffers()).isLessThanOrEqualTo(before);
    }

    /** Collects the messages of a call, as text. */
    private static class Collect implements StreamObserver<byte[]> {
        final BlockingQueue<Object> got = new LinkedBlockingQueue<>();

        @Override
        public void onNext(byte[] value) {
            got.add(value);
        }

        @Override
        public void onError(Throwable t) {
            got.add("error " + t);
        }

        @Override
        public void onCompleted() {
            got.add("completed");
        }

        byte[] raw() throws InterruptedException {
            Object o = got.poll(10, TimeUnit.SECONDS);
            assertThat(o).isInstanceOf(byte[].class);
            return (byte[]) o;
        }

        String next() throws InterruptedException {
            Object o = got.poll(10, TimeUnit.SECONDS);
            return o instanceof byte[] b
                    ? new String(b, java.nio.charset.StandardCharsets.US_ASCII)
                    : String.valueOf(o);
        }
    }
}
