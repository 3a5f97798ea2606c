// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.grpc.HandlerRegistry;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerMethodDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.nereid.base.ErrorCode;
import io.nereid.client.NereidClient;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.TensorDataType;
import io.nereid.client.options.RequestRetryPolicy;
import io.nereid.protobuf.ProtobufWriter;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The client with a gRPC server whose responses are scripted. */
class GrpcConnectionTest {
    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);
    private static final InferRequest REQUEST =
            InferRequest.builder("m").input("x", new float[] {1}).build();

    /** A response: a message or none, and the status that follows. */
    private record Reply(byte[] message, Status status, Metadata trailers) {}

    private final LinkedBlockingQueue<Reply> replies = new LinkedBlockingQueue<>();
    private final List<byte[]> received = new CopyOnWriteArrayList<>();
    private Server server;
    private NereidClient client;

    @BeforeEach
    void start() throws Exception {
        server = NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .fallbackHandlerRegistry(new HandlerRegistry() {
                    @Override
                    public ServerMethodDefinition<?, ?> lookupMethod(String name, String authority) {
                        return method(name);
                    }
                })
                .build()
                .start();
        client = NereidClient.builder("grpc://127.0.0.1:" + server.getPort())
                .timeout(Duration.ofSeconds(60))
                .retries(RequestRetryPolicy.ofAttempts(3).withDelays(Duration.ofMillis(1), Duration.ofMillis(2)))
                .build();
    }

    @AfterEach
    void stop() {
        client.close();
        server.shutdownNow();
    }

    private ServerMethodDefinition<byte[], byte[]> method(String name) {
        MethodDescriptor.Marshaller<byte[]> bytes = new MethodDescriptor.Marshaller<>() {
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
        };
        MethodDescriptor<byte[], byte[]> method = MethodDescriptor.newBuilder(bytes, bytes)
                .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
                .setFullMethodName(name)
                .build();
        return ServerMethodDefinition.create(method, (call, headers) -> {
            call.request(1);
            return new ServerCall.Listener<byte[]>() {
                @Override
                public void onMessage(byte[] message) {
                    received.add(message);
                    Reply reply = replies.remove();
                    if (reply.message.length > 0) {
                        call.sendHeaders(new Metadata());
                        call.sendMessage(reply.message);
                    }
                    call.close(reply.status, reply.trailers);
                }
            };
        });
    }

    private void reply(ProtobufWriter message) {
        replies.add(new Reply(message.toByteArray(), Status.OK, new Metadata()));
    }

    private void fail(Status status, String... pushback) {
        Metadata trailers = new Metadata();
        for (String millis : pushback) {
            trailers.put(PUSHBACK, millis);
        }
        replies.add(new Reply(new byte[0], status, trailers));
    }

    private static ProtobufWriter empty() {
        ProtobufWriter response = new ProtobufWriter();
        response.textField(1, "m");
        return response;
    }

    private InferenceException fails(InferRequest request) {
        return catchThrowableOfType(InferenceException.class, () -> client.infer(request));
    }

    @Test
    void aServerThatIsNotAvailableIsAskedAgain() {
        fail(Status.UNAVAILABLE.withDescription("starting"));
        reply(empty());
        assertThat(client.infer(REQUEST).modelName()).isEqualTo("m");
        assertThat(received).hasSize(2);
    }

    @Test
    void aStatusOfTheServerIsNotAFailureOfTheConnection() {
        fail(Status.UNAVAILABLE.withDescription("draining"));
        InferenceException failure = fails(InferRequest.builder("m")
                .input("x", new float[] {1})
                .sequence(5, true, true)
                .build());
        assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(failure.isConnectionFailure()).isFalse();
        assertThat(failure).hasMessage("draining");
        assertThat(received).hasSize(1);
    }

    @Test
    void overloadIsAskedAgainOnlyWhenTheServerSaysWhen() {
        fail(Status.RESOURCE_EXHAUSTED, "1");
        reply(empty());
        assertThat(client.infer(REQUEST).modelName()).isEqualTo("m");
        fail(Status.RESOURCE_EXHAUSTED.withDescription("full"));
        assertThat(fails(REQUEST).attempts()).isEqualTo(1);
        fail(Status.INTERNAL);
        assertThat(fails(REQUEST).code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(received).hasSize(4);
    }

    @Test
    void typedContentsOfEveryTypeAreRead() {
        ProtobufWriter response = empty();
        typed(response, "bools", "BOOL", 1, 1, 0);
        typed(response, "bytes", "INT8", 2, -1, 5);
        typed(response, "longs", "INT64", 3, Long.MIN_VALUE, 5);
        typed(response, "unsigned", "UINT16", 4, 65535, 5);
        int output = output(response, "floats", "FP32");
        int contents = response.begin(5);
        int packed = response.begin(6);
        response.fixed32(Float.floatToRawIntBits(1.5f));
        response.fixed32(Float.floatToRawIntBits(-2f));
        response.end(packed);
        response.end(contents);
        response.end(output);
        output = output(response, "texts", "BYTES");
        contents = response.begin(5);
        response.bytesField(8, new byte[] {'a'});
        response.bytesField(8, new byte[0]);
        response.end(contents);
        response.end(output);
        output = output(response, "doubles", "FP64");
        contents = response.begin(5);
        response.doubleField(7, 0.1);
        response.doubleField(7, 0.2);
        response.end(contents);
        response.end(output);
        reply(response);
        InferResult result = client.infer(REQUEST);
        assertThat(result.output("bools").asBooleans()).containsExactly(true, false);
        assertThat(result.output("bytes").asInts()).containsExactly(-1, 5);
        assertThat(result.output("longs").asLongs()).containsExactly(Long.MIN_VALUE, 5);
        assertThat(result.output("unsigned").asInts()).containsExactly(65535, 5);
        assertThat(result.output("floats").asFloats()).containsExactly(1.5f, -2f);
        assertThat(result.output("texts").asStrings()).containsExactly("a", "");
        assertThat(result.output("doubles").asDoubles()).containsExactly(0.1, 0.2);
    }

    private static int output(ProtobufWriter response, String name, String type) {
        int mark = response.begin(5);
        response.textField(1, name);
        response.textField(2, type);
        response.varintField(3, 2);
        return mark;
    }

    private static void typed(ProtobufWriter response, String name, String type, int field, long... values) {
        int output = output(response, name, type);
        int contents = response.begin(5);
        int packed = response.begin(field);
        for (long value : values) {
            response.varint(value);
        }
        response.end(packed);
        response.end(contents);
        response.end(output);
    }

    @Test
    void aMessageThatIsNotTheProtocolsIsAnErrorWithAReason() {
        ProtobufWriter wrong = empty();
        int output = output(wrong, "y", "FP32");
        wrong.end(output);
        wrong.bytesField(6, new byte[] {1, 2, 3});
        reply(wrong);
        assertThat(fails(REQUEST)).hasMessageContaining("has 3 bytes (expected: 8");
        replies.add(new Reply(new byte[] {0x0a, 0x7f, 1}, Status.OK, new Metadata()));
        InferenceException failure = fails(REQUEST);
        assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(failure).hasMessageContaining("malformed protobuf message");
    }

    @Test
    void theModelsConfigurationHasItsNamesAndValues() {
        ProtobufWriter response = new ProtobufWriter();
        int config = response.begin(1);
        response.textField(1, "m");
        response.varintField(4, 8);
        int input = response.begin(5);
        response.textField(1, "x");
        response.varintField(2, 11);
        int dims = response.begin(4);
        response.varint(-1);
        response.varint(3);
        response.end(dims);
        response.end(input);
        int entry = response.begin(14);
        response.textField(1, "key");
        int value = response.begin(2);
        response.textField(1, "text");
        response.end(value);
        response.end(entry);
        response.end(response.begin(19));
        response.end(config);
        reply(response);
        assertThat(client.modelConfig("m", "1"))
                .isEqualTo(
                        "{\"name\":\"m\",\"max_batch_size\":8,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\","
                                + "\"dims\":[-1,3]}],\"parameters\":{\"key\":{\"string_value\":\"text\"}},"
                                + "\"model_transaction_policy\":{}}");
    }

    @Test
    void aRequestIsSentRaw() {
        reply(empty());
        client.infer(InferRequest.builder("m")
                .version("2")
                .id("i")
                .parameter("flag", true)
                .input(
                        "x",
                        InferTensor.raw(
                                TensorDataType.UINT8,
                                InferTensor.of(new boolean[] {true, false}).bytes(),
                                2))
                .build());
        assertThat(received.get(0))
                .containsExactly(
                        0x0a, 1, 'm', 0x12, 1, '2', 0x1a, 1, 'i', // model, version, id
                        0x22, 10, 0x0a, 4, 'f', 'l', 'a', 'g', 0x12, 2, 0x08, 1, // a parameter
                        0x2a, 13, 0x0a, 1, 'x', 0x12, 5, 'U', 'I', 'N', 'T', '8', 0x1a, 1, 2, // an input
                        0x3a, 2, 1, 0); // its data
    }
}
