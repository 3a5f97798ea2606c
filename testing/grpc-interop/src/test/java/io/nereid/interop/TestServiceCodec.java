// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.interop;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import io.grpc.testing.integration.EmptyProtos.Empty;
import io.grpc.testing.integration.Messages.EchoStatus;
import io.grpc.testing.integration.Messages.Payload;
import io.grpc.testing.integration.Messages.ResponseParameters;
import io.grpc.testing.integration.Messages.SimpleRequest;
import io.grpc.testing.integration.Messages.SimpleResponse;
import io.grpc.testing.integration.Messages.StreamingInputCallRequest;
import io.grpc.testing.integration.Messages.StreamingInputCallResponse;
import io.grpc.testing.integration.Messages.StreamingOutputCallRequest;
import io.grpc.testing.integration.Messages.StreamingOutputCallResponse;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Operation;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.GrpcMethod.Kind;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * {@code grpc.testing.TestService}, the service of gRPC's interoperability tests, as methods of the transport. Left out
 * is {@code UnimplementedCall}, as the service demands. Thread-safe; responses with a delay are sent on a timer's
 * thread.
 */
final class TestServiceCodec implements ProtocolCodec, AutoCloseable {
    private static final String SERVICE = "/grpc.testing.TestService/";

    private final ScheduledExecutorService timer = Threads.timer("test-interop");

    @Override
    public String name() {
        return "grpc-interop";
    }

    @Override
    public List<GrpcMethod> grpcMethods() {
        return List.of(
                new GrpcMethod(SERVICE + "EmptyCall", Kind.UNARY, Operation.INFERENCE, EmptyCall::new),
                new GrpcMethod(SERVICE + "UnaryCall", Kind.UNARY, Operation.INFERENCE, UnaryCall::new),
                new GrpcMethod(
                        SERVICE + "StreamingInputCall",
                        Kind.CLIENT_STREAMING,
                        Operation.INFERENCE,
                        StreamingInputCall::new),
                new GrpcMethod(
                        SERVICE + "StreamingOutputCall",
                        Kind.SERVER_STREAMING,
                        Operation.INFERENCE,
                        call -> new OutputCall(call, false)),
                new GrpcMethod(
                        SERVICE + "FullDuplexCall",
                        Kind.BIDI_STREAMING,
                        Operation.INFERENCE,
                        call -> new OutputCall(call, false)),
                new GrpcMethod(
                        SERVICE + "HalfDuplexCall",
                        Kind.BIDI_STREAMING,
                        Operation.INFERENCE,
                        call -> new OutputCall(call, true)));
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }

    private static byte[] bytes(MemoryRegion message) {
        byte[] bytes = new byte[message.size()];
        message.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    private static ResponseBody body(MessageLite message) {
        byte[] bytes = message.toByteArray();
        return new ResponseBody(bytes, bytes.length);
    }

    private static ServingException malformed(InvalidProtocolBufferException e) {
        return ServingException.invalidArgument("malformed message: " + e.getMessage());
    }

    private static Payload zeros(int size) {
        return Payload.newBuilder().setBody(ByteString.copyFrom(new byte[size])).build();
    }

    /** Ends the call with the status that a request asks for; false when it asks for none. */
    private static boolean ended(GrpcCall call, EchoStatus status) {
        if (status.getCode() == 0) {
            return false;
        }
        ErrorCode code = Arrays.stream(ErrorCode.values())
                .filter(c -> c.number() == status.getCode())
                .findFirst()
                .orElse(ErrorCode.UNKNOWN);
        call.close(code, status.getMessage());
        return true;
    }

    private record EmptyCall(GrpcCall call) implements GrpcListener {
        @Override
        public void onMessage(MemoryRegion message) {}

        @Override
        public void onHalfClose() {
            call.sendAndClose(body(Empty.getDefaultInstance()));
        }

        @Override
        public void onCancel() {}
    }

    private static final class UnaryCall implements GrpcListener {
        private final GrpcCall call;
        private SimpleRequest request = SimpleRequest.getDefaultInstance();

        UnaryCall(GrpcCall call) {
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            try {
                request = SimpleRequest.parseFrom(bytes(message));
            } catch (InvalidProtocolBufferException e) {
                throw malformed(e);
            }
        }

        @Override
        public void onHalfClose() {
            if (!ended(call, request.getResponseStatus())) {
                call.sendAndClose(body(SimpleResponse.newBuilder()
                        .setPayload(zeros(request.getResponseSize()))
                        .build()));
            }
        }

        @Override
        public void onCancel() {}
    }

    private static final class StreamingInputCall implements GrpcListener {
        private final GrpcCall call;
        private int size;

        StreamingInputCall(GrpcCall call) {
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            try {
                size += StreamingInputCallRequest.parseFrom(bytes(message))
                        .getPayload()
                        .getBody()
                        .size();
            } catch (InvalidProtocolBufferException e) {
                throw malformed(e);
            }
        }

        @Override
        public void onHalfClose() {
            call.sendAndClose(body(StreamingInputCallResponse.newBuilder()
                    .setAggregatedPayloadSize(size)
                    .build()));
        }

        @Override
        public void onCancel() {}
    }

    /** Sends the responses that each request asks for, after its delays; all at the end when {@code half}. */
    private final class OutputCall implements GrpcListener {
        private final GrpcCall call;
        private final boolean half;
        private final ArrayDeque<ResponseParameters> due = new ArrayDeque<>();
        private boolean sending;
        private boolean halfClosed;
        private boolean over;

        OutputCall(GrpcCall call, boolean half) {
            this.call = call;
            this.half = half;
        }

        @Override
        public synchronized void onMessage(MemoryRegion message) {
            try {
                StreamingOutputCallRequest request = StreamingOutputCallRequest.parseFrom(bytes(message));
                if (ended(call, request.getResponseStatus())) {
                    over = true;
                    return;
                }
                due.addAll(request.getResponseParametersList());
            } catch (InvalidProtocolBufferException e) {
                throw malformed(e);
            }
            if (!half) {
                next();
            }
        }

        @Override
        public synchronized void onHalfClose() {
            halfClosed = true;
            next();
        }

        @Override
        public synchronized void onCancel() {
            over = true;
        }

        /** Schedules the next response, or ends the call after the last one. */
        private synchronized void next() {
            if (sending || over) {
                return;
            }
            ResponseParameters parameters = due.poll();
            if (parameters != null) {
                sending = true;
                timer.schedule(() -> send(parameters), parameters.getIntervalUs(), TimeUnit.MICROSECONDS);
            } else if (halfClosed) {
                over = true;
                call.close(ErrorCode.OK, null);
            }
        }

        private synchronized void send(ResponseParameters parameters) {
            sending = false;
            if (!over) {
                call.send(body(StreamingOutputCallResponse.newBuilder()
                        .setPayload(zeros(parameters.getSize()))
                        .build()));
                next();
            }
        }
    }
}
