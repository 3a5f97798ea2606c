// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import static io.nereid.client.rest.HttpCalls.segment;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.Futures;
import io.nereid.client.protocol.ProtocolConnection;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;

/** V1 of KServe, and TensorFlow Serving's REST API. Thread-safe. */
public final class V1Connection implements ProtocolConnection {
    private final HttpCalls http;

    public V1Connection(HttpCalls http) {
        this.http = http;
    }

    @Override
    public String name() {
        return "V1";
    }

    private static String path(String model, String version) {
        String path = "/v1/models/" + segment(model);
        if (version.startsWith("labels/")) {
            return path + "/labels/" + segment(version.substring("labels/".length()));
        }
        return version.isEmpty() ? path : path + "/versions/" + segment(version);
    }

    @Override
    public CompletableFuture<InferResult> infer(InferRequest request, CallContext call) {
        byte[] body = V1RestCodec.write(request);
        return Failures.map(
                http.postJson(path(request.model(), request.version()) + ":predict", body, call),
                reply -> V1RestCodec.read(reply.body(), request));
    }

    @Override
    public CompletableFuture<String> postJson(
            String model, String version, String verb, String json, CallContext call) {
        if (verb.equals("generate")) {
            throw refused("'generate'", "V2 over REST");
        }
        return Failures.map(
                http.postJson(path(model, version) + ":" + verb, Json.checked(json), call),
                reply -> new String(reply.body(), StandardCharsets.UTF_8));
    }

    /** V1 has no route for it: a server that answers with any status below 500 is live. */
    @Override
    public CompletableFuture<Boolean> live(CallContext call) {
        CompletableFuture<HttpAnswer> asked = http.get("/", call);
        CompletableFuture<Boolean> live = new CompletableFuture<>();
        Futures.cancelWith(live, asked);
        Futures.whenDone(asked, (reply, e) -> {
            Throwable failure = Failures.unwrap(e);
            if (failure == null) {
                live.complete(true);
            } else if (failure instanceof InferenceException known && known.httpStatus() > 0) {
                live.complete(known.httpStatus() < 500);
            } else {
                live.completeExceptionally(failure);
            }
        });
        return live;
    }

    /** KServe's servers say {@code ready}; TensorFlow Serving lists the states of versions. */
    @Override
    public CompletableFuture<Boolean> modelReady(String model, String version, CallContext call) {
        return Failures.health(http.get(path(model, version), call), reply -> {
            JsonNode states = Json.tree(reply.body()).get("model_version_status");
            if (states == null) {
                return reply.body();
            }
            boolean available = false;
            for (JsonNode each : states) {
                available |= Json.text(each, "state").equals("AVAILABLE");
            }
            return ("{\"ready\":" + available + "}").getBytes(StandardCharsets.UTF_8);
        });
    }

    @Override
    public void close() {
        http.close();
    }
}
