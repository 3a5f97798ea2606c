// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.arrow.ArrowMediaType;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.protocols.v2.grpc.GrpcManagement;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerLiveRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerLiveResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerMetadataResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyResponse;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamClient.UnaryCalls;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Serves V2 REST requests by calling a service that supports only gRPC: inference, readiness and metadata. Requests
 * that have no equivalent in gRPC, such as those of V1, get 501. Thread-safe: immutable.
 */
public final class RestToGrpcTranscoder {
    private static final String SERVICE = "/" + GrpcManagement.SERVICE + "/";
    private static final Pattern MODEL = Pattern.compile("/v2/models/([^/]+)(?:/versions/([^/]+))?(/infer|/ready|)");

    private final CodecExecutor codec;

    /** @param pool runs the conversion of large messages; owned by the caller */
    public RestToGrpcTranscoder(Executor pool) {
        this.codec = new CodecExecutor(pool);
    }

    /**
     * Serves an exchange; the response is sent now or later, on any thread.
     *
     * @param grpc calls the service
     */
    public void answer(HttpExchange x, UnaryCalls grpc) {
        GrpcRequest grpcRequest;
        try {
            grpcRequest = grpcRequest(x);
        } catch (ServingException e) {
            x.fail(e);
            return;
        }
        ForwardedCall forwarded = new ForwardedCall(x, grpc, grpcRequest);
        x.onCancel(forwarded::cancel);
        codec.run(x.body().size(), forwarded::send, x::fail);
    }

    // ---- the gRPC call of a request ----

    /** Converts a response message to a response. */
    @FunctionalInterface
    private interface Reader {
        HttpReply read(byte[] message) throws InvalidProtocolBufferException;
    }

    /** Converts a request body to a message. */
    @FunctionalInterface
    private interface Writer {
        byte[] write(byte[] body);
    }

    /** The gRPC call for a REST request. Immutable. */
    private record GrpcRequest(String method, Writer message, Reader reply) {}

    private static GrpcRequest grpcRequest(HttpExchange x) {
        String path = x.path();
        Matcher model = MODEL.matcher(path);
        if (model.matches()) {
            String name = decoded(model.group(1));
            String version = model.group(2) == null ? "" : decoded(model.group(2));
            switch (model.group(3)) {
                case "/infer" -> {
                    if (x.method().equals("POST")) {
                        return infer(x, name, version);
                    }
                }
                case "/ready" -> {
                    return get(
                            "ModelReady",
                            ModelReadyRequest.newBuilder()
                                    .setName(name)
                                    .setVersion(version)
                                    .build(),
                            m -> yes(ModelReadyResponse.parseFrom(m).getReady()));
                }
                default -> {
                    return get(
                            "ModelMetadata",
                            ModelMetadataRequest.newBuilder()
                                    .setName(name)
                                    .setVersion(version)
                                    .build(),
                            m -> json(RestMetadata.text(ModelMetadataResponse.parseFrom(m))));
                }
            }
        }
        return switch (path) {
            case "/v2" ->
                get(
                        "ServerMetadata",
                        ServerMetadataRequest.getDefaultInstance(),
                        m -> json(RestMetadata.text(ServerMetadataResponse.parseFrom(m))));
            case "/v2/health/ready" ->
                get(
                        "ServerReady",
                        ServerReadyRequest.getDefaultInstance(),
                        m -> yes(ServerReadyResponse.parseFrom(m).getReady()));
            case "/v2/health/live" ->
                get(
                        "ServerLive",
                        ServerLiveRequest.getDefaultInstance(),
                        m -> yes(ServerLiveResponse.parseFrom(m).getLive()));
            default ->
                throw ServingException.of(
                        ErrorCode.UNIMPLEMENTED,
                        "the service supports only gRPC, and " + x.method() + " " + path + " has no equivalent there",
                        "use /v2/models/MODEL/infer, or call it over gRPC");
        };
    }

    private static GrpcRequest infer(HttpExchange x, String model, String version) {
        if (x.header("inference-header-content-length") != null) {
            throw ServingException.invalidArgument(
                    "the service supports only gRPC, and requests are converted from JSON without binary tensor data",
                    "send the inputs' data as JSON, or call it over gRPC");
        }
        if (ArrowMediaType.isStream(x.header("content-type"))) {
            throw ServingException.invalidArgument(
                    "the service supports only gRPC, and requests are converted from JSON, not from Arrow streams",
                    "send the inputs' data as JSON, or call it over gRPC");
        }
        return new GrpcRequest(
                "ModelInfer",
                body -> MessageTranscoder.request(model, version, body),
                message -> json(MessageTranscoder.answer(message)));
    }

    private static GrpcRequest get(String method, MessageLite message, Reader reply) {
        return new GrpcRequest(method, body -> message.toByteArray(), reply);
    }

    private static HttpReply yes(boolean is) {
        return HttpReply.text(is ? 200 : 503, "text/plain; charset=utf-8", "");
    }

    private static HttpReply json(byte[] text) {
        return HttpReply.json(200, text, text.length);
    }

    private static String decoded(String name) {
        return URLDecoder.decode(name.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    /** One request. Thread-safe: its steps run one after the other; only {@link #cancel} runs concurrently. */
    private final class ForwardedCall {
        private final HttpExchange x;
        private final UnaryCalls grpc;
        private final GrpcRequest grpcRequest;
        private volatile boolean cancelled;
        private volatile @Nullable CompletableFuture<MemoryRegion> inFlight;

        ForwardedCall(HttpExchange x, UnaryCalls grpc, GrpcRequest grpcRequest) {
            this.x = x;
            this.grpc = grpc;
            this.grpcRequest = grpcRequest;
        }

        void cancel() {
            cancelled = true;
            CompletableFuture<MemoryRegion> now = inFlight;
            if (now != null) {
                now.cancel(true);
            }
        }

        void send() {
            byte[] body = GrpcToRestTranscoder.bytes(x.body());
            byte[] message = grpcRequest.message.write(body);
            List<Header> metadata = new ArrayList<>();
            x.headers((name, value) -> {
                if (ForwardedHeaders.passes(name)) {
                    metadata.add(new Header(name, value));
                }
            });
            CompletableFuture<MemoryRegion> answer = grpc.call(
                            SERVICE + grpcRequest.method, metadata, MemoryRegion.copyOf(message, 0, message.length))
                    .toCompletableFuture();
            inFlight = answer;
            if (cancelled) {
                answer.cancel(true);
            }
            Object unused = answer.whenComplete((got, failure) -> {
                if (got == null) {
                    x.fail(RepositoryIndex.failure(
                            failure == null ? new IllegalStateException("no response") : failure));
                    return;
                }
                byte[] bytes = GrpcToRestTranscoder.bytes(got);
                got.release();
                codec.run(bytes.length, () -> end(bytes), x::fail);
            });
        }

        private void end(byte[] message) {
            HttpReply reply;
            try {
                reply = grpcRequest.reply.read(message);
            } catch (InvalidProtocolBufferException e) {
                throw ServingException.wrap(
                        ErrorCode.INTERNAL, "the service's response to " + grpcRequest.method + " is malformed", e);
            }
            x.reply(reply);
        }
    }
}
