// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckRequest;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse.ServingStatus;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelMetadataRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelReadyResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerLiveResponse;
import io.nereid.protocols.v2.proto.OpenInference.ServerReadyResponse;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Answer;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.VirtualHosts.Site;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Answers gRPC calls of V2 for a server that speaks V2 over REST alone: inference with tensors as JSON, readiness and
 * metadata. What REST has no path for is answered with UNIMPLEMENTED. Thread-safe: fixed.
 */
public final class GrpcOverRest {
    private static final String SERVICE = "/" + GrpcControl.SERVICE + "/";
    private static final String HEALTH = "/" + GrpcHealthService.SERVICE + "/Check";

    /** Tells of the services whose calls are answered here. */
    private static final Map<String, GrpcMethod> REFLECTIONS = GrpcReflectionService.ofV2().methods().stream()
            .collect(Collectors.toUnmodifiableMap(GrpcMethod::path, m -> m));

    private final Elsewhere elsewhere;

    /** @param pool turns large messages into JSON, and back */
    public GrpcOverRest(Executor pool) {
        this.elsewhere = new Elsewhere(pool);
    }

    /**
     * Begins to answer a call; on its event loop, or on another thread when its metadata can be read there.
     *
     * @param rest asked in the call's place
     * @throws ServingException UNIMPLEMENTED for a method that REST has no path for
     */
    public GrpcListener start(GrpcCall call, Site rest) {
        String path = call.path();
        GrpcMethod reflection = REFLECTIONS.get(path);
        if (reflection != null) {
            return reflection.handler().start(call);
        }
        Function<byte[], Asked> reader;
        if (path.equals(HEALTH)) {
            reader = message -> health(parse(HealthCheckRequest.parser(), message));
        } else {
            reader = switch (path.startsWith(SERVICE) ? path.substring(SERVICE.length()) : "") {
                case "ModelInfer" -> message -> infer(parse(ModelInferRequest.parser(), message));
                case "ModelMetadata" -> message -> metadata(parse(ModelMetadataRequest.parser(), message));
                case "ModelReady" -> message -> ready(parse(ModelReadyRequest.parser(), message));
                case "ServerMetadata" ->
                    message -> get("/v2", body -> RestFacts.server(body).toByteArray());
                case "ServerReady" -> message -> yes("/v2/health/ready", GrpcOverRest::serverReady);
                case "ServerLive" -> message -> yes("/v2/health/live", GrpcOverRest::serverLive);
                default ->
                    throw ServingException.of(
                            ErrorCode.UNIMPLEMENTED,
                            "the service speaks REST alone, where " + path + " has no like",
                            "over gRPC it answers ModelInfer, ModelMetadata, ModelReady and what is asked of the"
                                    + " server");
            };
        }
        List<Header> headers = new ArrayList<>();
        call.metadata((name, value) -> {
            if (PassedHeaders.passes(name)) {
                headers.add(new Header(name, value));
            }
        });
        return new Asking(call, rest, headers, reader);
    }

    // ---- what is asked ----

    /**
     * One request of REST in the place of a call.
     *
     * @param body null for a GET
     * @param answer makes the message of the body of an answer that is well
     * @param refusal makes the message of a status that says no, or null when a no is an error
     */
    private record Asked(
            String target,
            byte @Nullable [] body,
            Function<byte[], byte[]> answer,
            @Nullable Function<Integer, byte @Nullable []> refusal) {}

    private static Asked get(String target, Function<byte[], byte[]> answer) {
        return new Asked(target, null, answer, null);
    }

    /** A question that 200 affirms and 400 and 503 deny, as servers say that they are not ready. */
    private static Asked yes(String target, Function<Boolean, MessageLite> message) {
        return new Asked(
                target,
                null,
                body -> message.apply(true).toByteArray(),
                status -> status == 400 || status == 503 ? message.apply(false).toByteArray() : null);
    }

    private static Asked infer(ModelInferRequest request) {
        boolean raw = request.getRawInputContentsCount() > 0;
        String model = request.getModelName();
        return new Asked(
                model(model, request.getModelVersion()) + "/infer",
                V2Transcoder.body(request),
                body -> V2Transcoder.message(model, request.getId(), body, raw),
                null);
    }

    private static Asked metadata(ModelMetadataRequest request) {
        return get(
                model(request.getName(), request.getVersion()),
                body -> RestFacts.model(body).toByteArray());
    }

    private static Asked ready(ModelReadyRequest request) {
        return yes(
                model(request.getName(), request.getVersion()) + "/ready",
                is -> ModelReadyResponse.newBuilder().setReady(is).build());
    }

    private static Asked health(HealthCheckRequest request) {
        String service = request.getService();
        if (!service.isEmpty() && !service.equals(GrpcControl.SERVICE)) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "unknown service '" + service + "'");
        }
        return yes(
                "/v2/health/ready",
                is -> HealthCheckResponse.newBuilder()
                        .setStatus(is ? ServingStatus.SERVING : ServingStatus.NOT_SERVING)
                        .build());
    }

    private static MessageLite serverReady(boolean is) {
        return ServerReadyResponse.newBuilder().setReady(is).build();
    }

    private static MessageLite serverLive(boolean is) {
        return ServerLiveResponse.newBuilder().setLive(is).build();
    }

    private static String model(String name, String version) {
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("the request names no model");
        }
        return "/v2/models/" + escaped(name) + (version.isEmpty() ? "" : "/versions/" + escaped(version));
    }

    private static String escaped(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static <M> M parse(Parser<M> parser, byte[] bytes) {
        try {
            return parser.parseFrom(bytes);
        } catch (InvalidProtocolBufferException e) {
            throw ServingException.invalidArgument("the message cannot be read: " + e.getMessage());
        }
    }

    static byte[] bytes(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    /** One call. Thread-safe: its parts follow one another, and only its end comes in from the side. */
    private final class Asking implements GrpcListener {
        private final GrpcCall call;
        private final Site rest;
        private final List<Header> headers;
        private final Function<byte[], Asked> reader;
        private boolean started;
        private volatile boolean cancelled;
        private volatile @Nullable CompletableFuture<Answer> underWay;

        Asking(GrpcCall call, Site rest, List<Header> headers, Function<byte[], Asked> reader) {
            this.call = call;
            this.rest = rest;
            this.headers = headers;
            this.reader = reader;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            if (started) {
                throw ServingException.invalidArgument("more than one message in a unary call");
            }
            started = true;
            byte[] copy = bytes(message);
            elsewhere.run(copy.length, () -> ask(reader.apply(copy)), call::fail);
        }

        @Override
        public void onHalfClose() {
            if (!started) {
                throw ServingException.invalidArgument("the call ended without a message");
            }
        }

        @Override
        public void onCancel() {
            cancelled = true;
            CompletableFuture<Answer> now = underWay;
            if (now != null) {
                now.cancel(true);
            }
        }

        private void ask(Asked asked) {
            byte[] body = asked.body();
            MemoryRegion region = MemoryRegion.empty();
            if (body != null) {
                headers.add(new Header("content-type", HttpReply.JSON));
                region = MemoryRegion.copyOf(body, 0, body.length);
            }
            CompletableFuture<Answer> answer = rest.call(body == null ? "GET" : "POST", asked.target(), headers, region)
                    .toCompletableFuture();
            underWay = answer;
            if (cancelled) {
                answer.cancel(true);
            }
            Object unused = answer.whenComplete((got, failure) -> {
                if (answer.isCancelled()) {
                    call.close(ErrorCode.CANCELLED, "the request was cancelled");
                } else if (got == null) {
                    call.fail(Models.failure(failure == null ? new IllegalStateException("no answer") : failure));
                } else {
                    byte[] told = bytes(got.body());
                    got.body().release();
                    elsewhere.run(told.length, () -> end(asked, got.status(), told), call::fail);
                }
            });
        }

        private void end(Asked asked, int status, byte[] body) {
            byte[] message = null;
            if (status >= 200 && status < 300) {
                message = asked.answer().apply(body);
            } else if (asked.refusal() != null) {
                message = asked.refusal().apply(status);
            }
            if (message == null) {
                String said = RestFacts.error(body);
                throw ServingException.of(
                        HttpStatusCodes.code(status), said.isEmpty() ? "the service answered " + status : said);
            }
            call.sendAndClose(new ResponseBody(message, message.length));
        }
    }
}
