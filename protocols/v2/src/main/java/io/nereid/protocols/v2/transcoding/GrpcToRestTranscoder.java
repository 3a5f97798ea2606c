// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.codec.RepositoryIndex;
import io.nereid.protocols.v2.grpc.GrpcHealthService;
import io.nereid.protocols.v2.grpc.GrpcManagement;
import io.nereid.protocols.v2.grpc.GrpcReflectionService;
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
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Serves V2 gRPC calls by requests to a service that supports only REST: inference with tensors as JSON, readiness and
 * metadata. Methods that have no equivalent in REST get UNIMPLEMENTED. Thread-safe: immutable.
 */
public final class GrpcToRestTranscoder {
    private static final String SERVICE = "/" + GrpcManagement.SERVICE + "/";
    private static final String HEALTH = "/" + GrpcHealthService.SERVICE + "/Check";

    /** The reflection methods, by path: answered here and not by the service. */
    private static final Map<String, GrpcMethod> REFLECTIONS = GrpcReflectionService.ofV2().methods().stream()
            .collect(Collectors.toUnmodifiableMap(GrpcMethod::path, m -> m));

    private final CodecExecutor codec;

    /** @param pool runs the conversion of large messages; owned by the caller */
    public GrpcToRestTranscoder(Executor pool) {
        this.codec = new CodecExecutor(pool);
    }

    /**
     * Starts to serve a call; on its event loop, or on another thread when its metadata can be read there.
     *
     * @param rest the service
     * @throws ServingException UNIMPLEMENTED for a method that has no equivalent in REST
     */
    public GrpcListener start(GrpcCall call, VirtualHost rest) {
        String path = call.path();
        GrpcMethod reflection = REFLECTIONS.get(path);
        if (reflection != null) {
            return reflection.handler().start(call);
        }
        Function<byte[], RestRequest> reader;
        if (path.equals(HEALTH)) {
            reader = message -> health(parse(HealthCheckRequest.parser(), message));
        } else {
            reader = switch (path.startsWith(SERVICE) ? path.substring(SERVICE.length()) : "") {
                case "ModelInfer" -> message -> infer(parse(ModelInferRequest.parser(), message));
                case "ModelMetadata" -> message -> metadata(parse(ModelMetadataRequest.parser(), message));
                case "ModelReady" -> message -> ready(parse(ModelReadyRequest.parser(), message));
                case "ServerMetadata" ->
                    message -> get("/v2", body -> RestMetadata.server(body).toByteArray());
                case "ServerReady" -> message -> yes("/v2/health/ready", GrpcToRestTranscoder::serverReady);
                case "ServerLive" -> message -> yes("/v2/health/live", GrpcToRestTranscoder::serverLive);
                default ->
                    throw ServingException.of(
                            ErrorCode.UNIMPLEMENTED,
                            "the service supports only REST, where " + path + " has no equivalent",
                            "over gRPC it supports ModelInfer, ModelMetadata, ModelReady, ServerMetadata, ServerReady"
                                    + " and ServerLive");
            };
        }
        List<Header> headers = new ArrayList<>();
        call.metadata((name, value) -> {
            if (ForwardedHeaders.passes(name)) {
                headers.add(new Header(name, value));
            }
        });
        return new ForwardedCall(call, rest, headers, reader);
    }

    // ---- the REST request of a call ----

    /**
     * The REST request for a gRPC call. Immutable.
     *
     * @param body null for a GET
     * @param answer converts the body of a successful response to a message
     * @param refusal converts the status of an unsuccessful response to a message; null when every such status is an
     *     error
     */
    private record RestRequest(
            String target,
            byte @Nullable [] body,
            Function<byte[], byte[]> answer,
            @Nullable Function<Integer, byte @Nullable []> refusal) {}

    private static RestRequest get(String target, Function<byte[], byte[]> answer) {
        return new RestRequest(target, null, answer, null);
    }

    /** A readiness check: 200 means true, 400 and 503 mean false, as servers report that they are not ready. */
    private static RestRequest yes(String target, Function<Boolean, MessageLite> message) {
        return yes(target, message, Set.of(400, 503));
    }

    /** @param no the statuses that mean no */
    private static RestRequest yes(String target, Function<Boolean, MessageLite> message, Set<Integer> no) {
        return new RestRequest(
                target,
                null,
                body -> message.apply(true).toByteArray(),
                status -> no.contains(status) ? message.apply(false).toByteArray() : null);
    }

    private static RestRequest infer(ModelInferRequest request) {
        boolean raw = request.getRawInputContentsCount() > 0;
        String model = request.getModelName();
        return new RestRequest(
                model(model, request.getModelVersion()) + "/infer",
                MessageTranscoder.body(request),
                body -> MessageTranscoder.message(model, request.getId(), body, raw),
                null);
    }

    private static RestRequest metadata(ModelMetadataRequest request) {
        return get(
                model(request.getName(), request.getVersion()),
                body -> RestMetadata.model(body).toByteArray());
    }

    private static RestRequest ready(ModelReadyRequest request) {
        return yes(
                model(request.getName(), request.getVersion()) + "/ready",
                is -> ModelReadyResponse.newBuilder().setReady(is).build(),
                Set.of(400, 404, 503));
    }

    private static RestRequest health(HealthCheckRequest request) {
        String service = request.getService();
        if (!service.isEmpty() && !service.equals(GrpcManagement.SERVICE)) {
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
            throw ServingException.invalidArgument("the request does not name a model");
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
            throw ServingException.invalidArgument("malformed protobuf message: " + e.getMessage());
        }
    }

    static byte[] bytes(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    /** One call. Thread-safe: its steps run one after the other; only {@link #onCancel} runs concurrently. */
    private final class ForwardedCall implements GrpcListener {
        private final GrpcCall call;
        private final VirtualHost rest;
        private final List<Header> headers;
        private final Function<byte[], RestRequest> reader;
        private boolean started;
        private volatile boolean cancelled;
        private volatile @Nullable CompletableFuture<UpstreamResponse> inFlight;

        ForwardedCall(GrpcCall call, VirtualHost rest, List<Header> headers, Function<byte[], RestRequest> reader) {
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
            codec.run(copy.length, () -> send(reader.apply(copy)), call::fail);
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
            CompletableFuture<UpstreamResponse> now = inFlight;
            if (now != null) {
                now.cancel(true);
            }
        }

        private void send(RestRequest restRequest) {
            byte[] body = restRequest.body();
            MemoryRegion region = MemoryRegion.empty();
            if (body != null) {
                headers.add(new Header("content-type", HttpReply.JSON));
                region = MemoryRegion.copyOf(body, 0, body.length);
            }
            CompletableFuture<UpstreamResponse> answer = rest.call(
                            body == null ? "GET" : "POST", restRequest.target(), headers, region)
                    .toCompletableFuture();
            inFlight = answer;
            if (cancelled) {
                answer.cancel(true);
            }
            Object unused = answer.whenComplete((got, failure) -> {
                if (answer.isCancelled()) {
                    call.close(ErrorCode.CANCELLED, "the request was cancelled");
                } else if (got == null) {
                    call.fail(RepositoryIndex.failure(
                            failure == null ? new IllegalStateException("no response") : failure));
                } else {
                    byte[] bytes = bytes(got.body());
                    got.body().release();
                    codec.run(bytes.length, () -> end(restRequest, got.status(), bytes), call::fail);
                }
            });
        }

        private void end(RestRequest restRequest, int status, byte[] body) {
            byte[] message = null;
            if (status >= 200 && status < 300) {
                message = restRequest.answer().apply(body);
            } else if (restRequest.refusal() != null) {
                message = restRequest.refusal().apply(status);
            }
            if (message == null) {
                String error = RestMetadata.error(body);
                throw ServingException.of(
                        HttpStatusCodes.code(status), error.isEmpty() ? "the service answered " + status : error);
            }
            call.sendAndClose(new ResponseBody(message, message.length));
        }
    }
}
