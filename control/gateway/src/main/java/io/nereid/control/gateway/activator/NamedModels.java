// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/**
 * A service with many models, each of which has a revision of its own: leads requests to the revision of the model that
 * they name, and answers requests about the service itself. HTTP requests name the model in the path, and calls of gRPC
 * in the first message: in field 1 for Open Inference, and in field 1 of the {@code ModelSpec} in field 1 for TensorFlow
 * Serving. Thread-safe.
 *
 * <pre>{@code
 * NamedModels models = new NamedModels("many");
 * models.put("iris", activator);
 * gateway.openActivator("default", "many-predictor-00001", settings, new RevisionTarget.Handler(List.of(models)));
 * }</pre>
 */
public final class NamedModels implements ProtocolCodec {
    private static final List<String> PATHS = List.of("/v1/models/", "/v2/models/");
    private static final String TENSORFLOW = "/tensorflow.serving.";
    private static final int NAME_FIELD = 1 << 3 | ProtobufReader.BYTES;
    private static final int LONGEST = 253;
    private static final int LISTED = 20;

    private final String service;
    private final Map<String, RevisionActivator> models = new ConcurrentSkipListMap<>();

    /** @param service the name of the service, for metadata, permissions and messages */
    public NamedModels(String service) {
        this.service = service;
    }

    /** Adds a model, or replaces its activator. */
    public void put(String model, RevisionActivator activator) {
        models.put(model, activator);
    }

    /** Removes a model, unless another activator has replaced this one. */
    public void remove(String model, RevisionActivator activator) {
        models.remove(model, activator);
    }

    /** Whether it has no model. */
    public boolean isEmpty() {
        return models.isEmpty();
    }

    /** The activator for the model that a path names; null when the path names none, or one that the service does not have. */
    @Nullable RevisionActivator find(String path) {
        String model = model(path);
        return model == null ? null : models.get(model);
    }

    private static @Nullable String model(String path) {
        for (String prefix : PATHS) {
            if (path.startsWith(prefix)) {
                int end = prefix.length();
                while (end < path.length() && path.charAt(end) != '/' && path.charAt(end) != ':') {
                    end++;
                }
                return end == prefix.length() ? null : path.substring(prefix.length(), end);
            }
        }
        return null;
    }

    @Override
    public String name() {
        return "named-models";
    }

    // ---- HTTP ----

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(new HttpRoute(HttpRoute.ANY, "/{rest...}", Operation::ofPath, this::handle));
    }

    private void handle(HttpExchange x) {
        String path = x.path();
        boolean get = x.method().equals("GET");
        if (get && path.equals("/v1/models")) {
            x.reply(HttpReply.json(200, list("{\"models\":[", "", "", "]}")));
        } else if (path.equals("/v2/repository/index") && (get || x.method().equals("POST"))) {
            x.reply(HttpReply.json(200, list("[", "{\"name\":", ",\"state\":\"READY\",\"reason\":\"\"}", "]")));
        } else if (get && path.equals("/v2")) {
            x.reply(HttpReply.json(
                    200,
                    "{\"name\":" + HttpReply.quote(service)
                            + ",\"version\":\"\",\"extensions\":[\"model_repository\"]}"));
        } else if (get && path.equals("/v2/health/live")) {
            x.reply(HttpReply.json(200, "{\"live\":true}"));
        } else if (get && path.equals("/v2/health/ready")) {
            x.reply(HttpReply.json(200, "{\"ready\":true}"));
        } else if (get && path.equals("/")) {
            x.reply(HttpReply.json(200, "{\"status\":\"alive\"}"));
        } else {
            throw unknown(model(x.path()), path);
        }
    }

    private String list(String open, String before, String after, String close) {
        StringBuilder text = new StringBuilder(open);
        String comma = "";
        for (String model : models.keySet()) {
            text.append(comma).append(before).append(HttpReply.quote(model)).append(after);
            comma = ",";
        }
        return text.append(close).toString();
    }

    private ServingException unknown(@Nullable String model, String path) {
        if (model == null && path.startsWith("/v2/repository/models/")) {
            return ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "models of the service '" + service + "' are not loaded and unloaded by requests",
                    "apply or delete their TrainedModels");
        }
        String has = models.isEmpty()
                ? "it has none"
                : "it has "
                        + String.join(
                                ", ", models.keySet().stream().limit(LISTED).toList())
                        + (models.size() > LISTED ? " and others" : "");
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                model == null
                        ? "the service '" + service + "' has no " + path + " (expected: the path of one of its models,"
                                + " such as /v2/models/NAME/infer or /v1/models/NAME:predict)"
                        : "the service '" + service + "' has no model '" + model + "' (" + has + ")",
                "apply a TrainedModel that names the service");
    }

    // ---- gRPC ----

    @Override
    public List<GrpcMethod> grpcMethods() {
        return List.of(new GrpcMethod("/*", GrpcMethod.Kind.BIDI_STREAMING, Operation::ofPath, this::start));
    }

    private GrpcListener start(GrpcCall call) {
        call.require(Operation.ofPath("POST", call.path()).permission(), service);
        byte[] about = about(call.path().substring(call.path().lastIndexOf('/') + 1));
        return new FirstMessage(this, call, about);
    }

    /** The answer to a call about the service; null for one that names a model. */
    private byte @Nullable [] about(String method) {
        ProtobufWriter writer = new ProtobufWriter();
        switch (method) {
            case "ServerLive", "ServerReady" -> writer.varintField(1, 1);
            case "ServerMetadata" -> {
                writer.textField(1, service);
                writer.textField(3, "model_repository");
            }
            case "RepositoryIndex" -> {
                for (String model : models.keySet()) {
                    int mark = writer.begin(1);
                    writer.textField(1, model);
                    writer.textField(3, "READY");
                    writer.end(mark);
                }
            }
            default -> {
                return null;
            }
        }
        return writer.toByteArray();
    }

    /** The name of the model in a request's first message; empty when it has none. */
    private static String model(String method, MemoryRegion message) {
        ProtobufReader reader = new ProtobufReader();
        ByteBuffer bytes = message.buffer(0, message.size());
        reader.reset(bytes);
        boolean nested = method.startsWith(TENSORFLOW);
        while (reader.hasMore()) {
            int tag = reader.readTag();
            if (tag != NAME_FIELD) {
                reader.skipField(tag);
            } else if (nested) {
                int unused = reader.enter();
                nested = false;
            } else {
                int length = reader.readLength();
                if (length > LONGEST) {
                    throw ServingException.invalidArgument(
                            "the name of the model has " + length + " bytes (expected: at most " + LONGEST + ")");
                }
                byte[] name = new byte[length];
                bytes.get(reader.position(), name);
                return new String(name, StandardCharsets.UTF_8);
            }
        }
        return "";
    }

    /** A call whose model is not known before its first message. As thread-safe as the call. */
    private static final class FirstMessage implements GrpcListener {
        private final NamedModels models;
        private final GrpcCall call;
        private final byte @Nullable [] about;
        private volatile @Nullable GrpcListener direct;
        private volatile boolean answered;

        FirstMessage(NamedModels models, GrpcCall call, byte @Nullable [] about) {
            this.models = models;
            this.call = call;
            this.about = about;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            GrpcListener next = direct;
            if (next == null && !answered) {
                if (about != null) {
                    answered = true;
                    call.sendAndClose(new ResponseBody(about, about.length));
                    return;
                }
                String model = model(call.path(), message);
                RevisionActivator activator = models.models.get(model);
                if (activator == null) {
                    answered = true;
                    throw model.isEmpty()
                            ? ServingException.invalidArgument(
                                    "the request names no model of the service '" + models.service + "'",
                                    "set the name of a model")
                            : models.unknown(model, call.path());
                }
                next = RevisionGrpcCall.start(activator, call, null);
                direct = next;
            }
            if (next != null) {
                next.onMessage(message);
            }
        }

        @Override
        public void onHalfClose() {
            GrpcListener next = direct;
            if (next != null) {
                next.onHalfClose();
            } else if (!answered) {
                answered = true;
                call.fail(ServingException.invalidArgument("the call " + call.path() + " ended without a message"));
            }
        }

        @Override
        public void onCancel() {
            GrpcListener next = direct;
            answered = true;
            if (next != null) {
                next.onCancel();
            }
        }

        @Override
        public void onReady() {
            GrpcListener next = direct;
            if (next != null) {
                next.onReady();
            }
        }
    }
}
