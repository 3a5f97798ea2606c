// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
 * Answers requests of V2 in JSON for a server that speaks gRPC alone: inference, readiness and metadata. What gRPC has
 * no method for, requests of V1 among it, is answered with 501. Thread-safe: fixed.
 */
public final class RestOverGrpc {
    private static final String SERVICE = "/" + GrpcControl.SERVICE + "/";
    private static final Pattern MODEL = Pattern.compile("/v2/models/([^/]+)(?:/versions/([^/]+))?(/infer|/ready|)");

    private final Elsewhere elsewhere;

    /** @param pool turns large JSON into messages, and back */
    public RestOverGrpc(Executor pool) {
        this.elsewhere = new Elsewhere(pool);
    }

    /**
     * Answers an exchange, sooner or later; on any thread.
     *
     * @param grpc asked over gRPC
     */
    public void answer(HttpExchange x, UnaryCalls grpc) {
        Question question;
        try {
            question = question(x);
        } catch (ServingException e) {
            x.fail(e);
            return;
        }
        Asking asking = new Asking(x, grpc, question);
        x.onCancel(asking::cancel);
        elsewhere.run(x.body().size(), asking::ask, x::fail);
    }

    // ---- what is asked ----

    /** Makes the reply of a message. */
    @FunctionalInterface
    private interface Reader {
        HttpReply read(byte[] message) throws InvalidProtocolBufferException;
    }

    /** Makes the message of a body. */
    @FunctionalInterface
    private interface Writer {
        byte[] write(byte[] body);
    }

    /** One call in the place of a request. */
    private record Question(String method, Writer message, Reader reply) {}

    private static Question question(HttpExchange x) {
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
                            m -> json(RestFacts.text(ModelMetadataResponse.parseFrom(m))));
                }
            }
        }
        return switch (path) {
            case "/v2" ->
                get(
                        "ServerMetadata",
                        ServerMetadataRequest.getDefaultInstance(),
                        m -> json(RestFacts.text(ServerMetadataResponse.parseFrom(m))));
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
                        "the service speaks gRPC alone, and " + x.method() + " " + path + " has no like there",
                        "ask /v2/models/MODEL/infer, or call it over gRPC");
        };
    }

    private static Question infer(HttpExchange x, String model, String version) {
        if (x.header("inference-header-content-length") != null) {
            throw ServingException.invalidArgument(
                    "the service speaks gRPC alone, and is asked with JSON: binary tensors are not taken",
                    "send the inputs' data as JSON, or call it over gRPC");
        }
        return new Question(
                "ModelInfer",
                body -> V2Transcoder.request(model, version, body),
                message -> json(V2Transcoder.answer(message)));
    }

    private static Question get(String method, MessageLite message, Reader reply) {
        return new Question(method, body -> message.toByteArray(), reply);
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

    /** One request. Thread-safe: its parts follow one another, and only its end comes in from the side. */
    private final class Asking {
        private final HttpExchange x;
        private final UnaryCalls grpc;
        private final Question question;
        private volatile boolean cancelled;
        private volatile @Nullable CompletableFuture<MemoryRegion> underWay;

        Asking(HttpExchange x, UnaryCalls grpc, Question question) {
            this.x = x;
            this.grpc = grpc;
            this.question = question;
        }

        void cancel() {
            cancelled = true;
            CompletableFuture<MemoryRegion> now = underWay;
            if (now != null) {
                now.cancel(true);
            }
        }

        void ask() {
            byte[] body = GrpcOverRest.bytes(x.body());
            byte[] message = question.message.write(body);
            List<Header> metadata = new ArrayList<>();
            x.headers((name, value) -> {
                if (PassedHeaders.passes(name)) {
                    metadata.add(new Header(name, value));
                }
            });
            CompletableFuture<MemoryRegion> answer = grpc.call(
                            SERVICE + question.method, metadata, MemoryRegion.copyOf(message, 0, message.length))
                    .toCompletableFuture();
            underWay = answer;
            if (cancelled) {
                answer.cancel(true);
            }
            Object unused = answer.whenComplete((got, failure) -> {
                if (got == null) {
                    x.fail(Models.failure(failure == null ? new IllegalStateException("no answer") : failure));
                    return;
                }
                byte[] bytes = GrpcOverRest.bytes(got);
                got.release();
                elsewhere.run(bytes.length, () -> end(bytes), x::fail);
            });
        }

        private void end(byte[] message) {
            HttpReply reply;
            try {
                reply = question.reply.read(message);
            } catch (InvalidProtocolBufferException e) {
                throw ServingException.wrap(
                        ErrorCode.INTERNAL, "the service's answer to " + question.method + " cannot be read", e);
            }
            x.reply(reply);
        }
    }
}
