// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import static io.nereid.client.rest.HttpCalls.segment;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.ServerMetadata;
import io.nereid.client.infer.TensorDataType;
import io.nereid.client.options.TensorEncoding;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.Futures;
import io.nereid.client.protocol.ProtocolConnection;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Open Inference V2 over HTTP. Thread-safe. */
public final class V2RestConnection implements ProtocolConnection {
    private static final String LENGTH = "inference-header-content-length";

    private final HttpCalls http;
    private final TensorEncoding encoding;

    /** Whether the server takes binary tensor data; null until it has said so. */
    private volatile @Nullable Boolean binary;

    public V2RestConnection(HttpCalls http, TensorEncoding encoding) {
        this.http = http;
        this.encoding = encoding;
    }

    @Override
    public String name() {
        return "V2 over REST";
    }

    private static String path(String model, String version) {
        String path = "/v2/models/" + segment(model);
        return version.isEmpty() ? path : path + "/versions/" + segment(version);
    }

    @Override
    public CompletableFuture<InferResult> infer(InferRequest request, CallContext call) {
        Boolean form = form(request);
        if (form != null) {
            return infer(request, form, call);
        }
        CompletableFuture<ServerMetadata> metadata = serverMetadata(call);
        CompletableFuture<InferResult> result = new CompletableFuture<>();
        Futures.whenDone(result, (v, e) -> metadata.cancel(true));
        Futures.whenDone(metadata, (described, e) -> {
            if (result.isDone()) {
                return;
            }
            boolean found = described != null && described.extensions().contains("binary_tensor_data");
            // a server that answers with an error, such as 404, is not asked again; one that does not answer is
            if (described != null || !Failures.isTransient(e)) {
                binary = found;
            }
            try {
                CompletableFuture<InferResult> sent = infer(request, found, call);
                Futures.whenDone(result, (v, failed) -> sent.cancel(true));
                Futures.whenDone(sent, (v, failed) -> Failures.copy(v, failed, result));
            } catch (RuntimeException failed) {
                result.completeExceptionally(failed);
            }
        });
        return result;
    }

    private @Nullable Boolean form(InferRequest request) {
        if (encoding != TensorEncoding.AUTO) {
            return encoding == TensorEncoding.BINARY;
        }
        boolean needed = request.inputs().values().stream()
                .anyMatch(t -> t.dataType() == TensorDataType.FP16 || t.dataType() == TensorDataType.BF16);
        return needed ? Boolean.TRUE : binary;
    }

    private CompletableFuture<InferResult> infer(InferRequest request, boolean withBinary, CallContext call) {
        List<ByteBuffer> body = V2RestCodec.write(request, withBinary);
        Map<String, String> headers = new HashMap<>();
        headers.put("content-type", withBinary ? "application/octet-stream" : "application/json");
        if (withBinary) {
            headers.put(LENGTH, Integer.toString(body.get(0).remaining()));
        }
        return Failures.map(
                http.send("POST", path(request.model(), request.version()) + "/infer", headers, body, call),
                V2RestConnection::result);
    }

    private static InferResult result(HttpAnswer reply) {
        String given = reply.headers().firstValue(LENGTH).orElse("");
        int length = given.matches("\\d{1,9}") ? Integer.parseInt(given) : reply.body().length;
        if (length > reply.body().length) {
            throw Json.unreadable("a JSON length of " + length + " in " + reply.body().length + " bytes", null);
        }
        return V2RestCodec.read(reply.body(), length);
    }

    @Override
    public CompletableFuture<String> postJson(
            String model, String version, String verb, String json, CallContext call) {
        if (!verb.equals("generate")) {
            throw refused("'" + verb + "'", "V1");
        }
        return Failures.map(
                http.postJson(path(model, version) + "/generate", Json.checked(json), call),
                reply -> new String(reply.body(), StandardCharsets.UTF_8));
    }

    @Override
    public void generateStream(
            String model, String version, String json, CallContext call, Flow.Subscriber<? super String> subscriber) {
        EventStream events = new EventStream(subscriber);
        byte[] body = Json.checked(json);
        events.begin(() -> http.lines(path(model, version) + "/generate_stream", body, call, events));
    }

    @Override
    public CompletableFuture<Boolean> live(CallContext call) {
        return ok("/v2/health/live", call);
    }

    @Override
    public CompletableFuture<Boolean> ready(CallContext call) {
        return ok("/v2/health/ready", call);
    }

    @Override
    public CompletableFuture<Boolean> modelReady(String model, String version, CallContext call) {
        return ok(path(model, version) + "/ready", call);
    }

    private CompletableFuture<Boolean> ok(String path, CallContext call) {
        return Failures.health(http.get(path, call), HttpAnswer::body);
    }

    @Override
    public CompletableFuture<ServerMetadata> serverMetadata(CallContext call) {
        return document(
                "/v2",
                call,
                root -> new ServerMetadata(
                        Json.text(root, "name"), Json.text(root, "version"), Json.texts(root, "extensions")));
    }

    @Override
    public CompletableFuture<ModelMetadataResponse> modelMetadata(String model, String version, CallContext call) {
        return document(
                path(model, version),
                call,
                root -> new ModelMetadataResponse(
                        Json.text(root, "name"),
                        Json.texts(root, "versions"),
                        Json.text(root, "platform"),
                        tensors(root.path("inputs")),
                        tensors(root.path("outputs"))));
    }

    private static List<ModelMetadataResponse.TensorMetadata> tensors(JsonNode array) {
        List<ModelMetadataResponse.TensorMetadata> tensors = new ArrayList<>();
        for (JsonNode tensor : array) {
            List<Long> shape = new ArrayList<>();
            tensor.path("shape").forEach(dim -> shape.add(dim.asLong()));
            tensors.add(new ModelMetadataResponse.TensorMetadata(
                    Json.text(tensor, "name"), Json.text(tensor, "datatype"), shape));
        }
        return tensors;
    }

    @Override
    public CompletableFuture<String> modelConfig(String model, String version, CallContext call) {
        return document(path(model, version) + "/config", call, JsonNode::toString);
    }

    @Override
    public CompletableFuture<List<ModelStatisticsResponse>> statistics(String model, String version, CallContext call) {
        String path = model.isEmpty() ? "/v2/models/stats" : path(model, version) + "/stats";
        return document(path, call, root -> {
            List<ModelStatisticsResponse> all = new ArrayList<>();
            for (JsonNode each : root.path("model_stats")) {
                Map<String, ModelStatisticsResponse.Total> durations = new HashMap<>();
                each.path("inference_stats")
                        .properties()
                        .forEach(field -> durations.put(
                                field.getKey(),
                                new ModelStatisticsResponse.Total(
                                        field.getValue().path("count").asLong(),
                                        field.getValue().path("ns").asLong())));
                all.add(new ModelStatisticsResponse(
                        Json.text(each, "name"),
                        Json.text(each, "version"),
                        each.path("last_inference").asLong(),
                        each.path("inference_count").asLong(),
                        each.path("execution_count").asLong(),
                        durations));
            }
            return all;
        });
    }

    @Override
    public CompletableFuture<List<RepositoryModel>> repositoryIndex(boolean readyOnly, CallContext call) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        if (readyOnly) {
            body.put("ready", true);
        }
        return Failures.map(http.postJson("/v2/repository/index", bytes(body), call), reply -> {
            List<RepositoryModel> models = new ArrayList<>();
            for (JsonNode each : Json.tree(reply.body())) {
                models.add(new RepositoryModel(
                        Json.text(each, "name"),
                        Json.text(each, "version"),
                        Json.text(each, "state"),
                        Json.text(each, "reason")));
            }
            return models;
        });
    }

    @Override
    public CompletableFuture<Void> load(String model, Map<String, String> parameters, CallContext call) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        parameters.forEach((name, value) -> body.withObject("/parameters").put(name, value));
        return manage(model, "/load", body, call);
    }

    @Override
    public CompletableFuture<Void> unload(String model, boolean dependents, CallContext call) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        if (dependents) {
            body.withObject("/parameters").put("unload_dependents", true);
        }
        return manage(model, "/unload", body, call);
    }

    private CompletableFuture<Void> manage(String model, String verb, ObjectNode body, CallContext call) {
        return Failures.done(http.postJson("/v2/repository/models/" + segment(model) + verb, bytes(body), call));
    }

    private static byte[] bytes(JsonNode body) {
        return body.toString().getBytes(StandardCharsets.UTF_8);
    }

    private <T> CompletableFuture<T> document(String path, CallContext call, Function<JsonNode, T> read) {
        return Failures.map(http.get(path, call), reply -> read.apply(Json.tree(reply.body())));
    }

    @Override
    public void close() {
        http.close();
    }
}
