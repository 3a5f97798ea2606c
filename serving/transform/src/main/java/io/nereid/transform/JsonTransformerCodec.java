// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The endpoint of a {@link JsonTransformer} in front of a predictor that is called with HTTP requests within the
 * process. Predictions of V1 and V2 go through the steps; all other requests are forwarded to the predictor unchanged.
 * Thread-safe: immutable.
 */
final class JsonTransformerCodec implements ProtocolCodec {
    /** The client's headers that are forwarded to the predictor. */
    private static final Pattern FORWARDED = Pattern.compile(
            "x-request-id|x-b3-.*|b3|traceparent|tracestate|baggage|authorization|nereid-.*|x-forwarded-.*");

    private static final Set<String> OWN =
            Set.of("host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive");

    private final JsonTransformer transformer;
    private final UserCodeErrors faults;
    private final Executor executor;
    private final JavaTransformer.Predictor predictor;

    JsonTransformerCodec(
            JsonTransformer transformer,
            UserCodeErrors faults,
            Executor executor,
            JavaTransformer.Predictor predictor) {
        this.transformer = transformer;
        this.faults = faults;
        this.executor = executor;
        this.predictor = predictor;
    }

    @Override
    public String name() {
        return "json";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.post("/v1/models/{model}:predict", Operation.INFERENCE, x -> accept(x, false)),
                HttpRoute.post(
                        "/v1/models/{model}/versions/{version}:predict", Operation.INFERENCE, x -> accept(x, false)),
                HttpRoute.post("/v2/models/{model}/infer", Operation.INFERENCE, x -> accept(x, true)),
                HttpRoute.post(
                        "/v2/models/{model}/versions/{version}/infer", Operation.INFERENCE, x -> accept(x, true)),
                new HttpRoute(HttpRoute.ANY, "/{rest...}", Operation::ofPath, this::pass));
    }

    /** Forwards a request and its response unchanged. */
    private void pass(HttpExchange x) {
        List<Header> headers = new ArrayList<>();
        x.headers((name, value) -> {
            if (!OWN.contains(name)) {
                headers.add(new Header(name, value));
            }
        });
        String target = x.query().isEmpty() ? x.path() : x.path() + "?" + x.query();
        ask(x, x.method(), target, headers, x.body().retain(), answer -> x.reply(reply(answer)));
    }

    private void accept(HttpExchange x, boolean v2) {
        submit(x, () -> before(x, v2));
    }

    private void submit(HttpExchange x, Runnable task) {
        try {
            executor.execute(() -> guarded(x, task));
        } catch (RejectedExecutionException e) {
            x.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the transformer is shutting down", "try again"));
        }
    }

    private static void guarded(HttpExchange x, Runnable task) {
        HttpReply failed;
        try {
            task.run();
            return;
        } catch (RuntimeException e) {
            failed = HttpReply.error(ServingException.from(e));
        }
        x.reply(failed);
    }

    private void before(HttpExchange x, boolean v2) {
        if (x.header("inference-header-content-length") != null) {
            throw ServingException.invalidArgument(
                    "this transformer does not take binary tensors", "send the inputs' data as JSON");
        }
        byte[] body = new byte[x.body().size()];
        x.body().getBytes(0, body, 0, body.length);
        Object payload = JsonValues.read(body);
        if (payload == null) {
            throw ServingException.invalidArgument("the body is null, expected an object of JSON");
        }
        Map<String, String> headers = new LinkedHashMap<>();
        x.headers(headers::putIfAbsent);
        Written made = faults.step("preprocess", () -> Written.of(transformer.preprocess(payload, headers), v2));
        List<Header> passed = new ArrayList<>(List.of(new Header("content-type", HttpReply.JSON)));
        headers.forEach((name, value) -> {
            if (FORWARDED.matcher(name).matches()) {
                passed.add(new Header(name, value));
            }
        });
        MemoryRegion region = MemoryRegion.copyOf(made.text.array(), 0, made.text.length());
        ask(x, "POST", target(x, v2, made.v2), passed, region, answer -> {
            if (answer.status() >= 300) {
                x.reply(reply(answer));
            } else {
                byte[] result = bytes(answer);
                submit(x, () -> after(x, result, headers));
            }
        });
    }

    private void after(HttpExchange x, byte[] result, Map<String, String> headers) {
        Object tree;
        try {
            tree = JsonValues.read(result);
        } catch (ServingException e) {
            throw ServingException.wrap(ErrorCode.INTERNAL, "the predictor's answer is not JSON: " + e.getMessage(), e);
        }
        Written made = faults.step(
                "postprocess", () -> Written.of(tree == null ? null : transformer.postprocess(tree, headers), false));
        x.reply(HttpReply.json(200, made.text.array(), made.text.length()));
    }

    /** The result of a step as JSON text, and whether it is a V2 body. */
    private record Written(JsonWriter text, boolean v2) {
        static Written of(@Nullable Object tree, boolean asked) {
            JsonWriter writer = new JsonWriter(256);
            JsonValues.write(writer, tree);
            return new Written(writer, isV2(tree, asked));
        }
    }

    /** Whether a body is V2: by its fields, else by the protocol of the request. */
    private static boolean isV2(@Nullable Object tree, boolean asked) {
        if (!(tree instanceof Map<?, ?> map)) {
            return asked;
        }
        if (map.containsKey("instances")) {
            return false;
        }
        boolean tensors = map.get("inputs") instanceof List<?> inputs
                && !inputs.isEmpty()
                && inputs.get(0) instanceof Map<?, ?> first
                && first.containsKey("datatype");
        return tensors || asked;
    }

    /** The predictor's path for a prediction. Another protocol than the request's has a path without the version. */
    private static String target(HttpExchange x, boolean v2, boolean asV2) {
        if (v2 == asV2) {
            return x.path();
        }
        String path = x.path();
        int from = "/v1/models/".length();
        int to = path.length() - (v2 ? "/infer".length() : ":predict".length());
        String model = path.substring(from, to);
        return asV2 ? "/v2/models/" + model + "/infer" : "/v1/models/" + model + ":predict";
    }

    /** Handles a whole response, whose body is released afterwards. */
    private interface AnswerHandler {
        void take(UpstreamResponse answer);
    }

    private void ask(
            HttpExchange x, String method, String target, List<Header> headers, MemoryRegion body, AnswerHandler then) {
        var unused = predictor.call(method, target, headers, body).whenComplete((answer, e) -> {
            if (answer == null) {
                x.fail(ServingException.from(e == null ? new IllegalStateException("no answer") : e));
                return;
            }
            try {
                guarded(x, () -> then.take(answer));
            } finally {
                answer.body().release();
            }
        });
    }

    private static byte[] bytes(UpstreamResponse answer) {
        byte[] body = new byte[answer.body().size()];
        answer.body().getBytes(0, body, 0, body.length);
        return body;
    }

    private static HttpReply reply(UpstreamResponse answer) {
        String type = "";
        List<String> headers = new ArrayList<>();
        for (Header header : answer.headers()) {
            if (header.name().equals("content-type")) {
                type = header.value();
            } else if (!OWN.contains(header.name())) {
                headers.add(header.name());
                headers.add(header.value());
            }
        }
        byte[] body = bytes(answer);
        return new HttpReply(
                answer.status(),
                type,
                headers.toArray(String[]::new),
                new io.nereid.transport.api.ResponseBody(body, body.length));
    }
}
