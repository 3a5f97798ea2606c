// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.endpoint.Upstream.Answer;
import io.nereid.endpoint.Upstream.Header;
import io.nereid.json.JsonWriter;
import io.nereid.tensor.MemoryRegion;
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
 * A {@link JsonTransformer} in front of a predictor that is asked over HTTP's words, without a socket: predictions of V1 and V2
 * go through the steps, all else is answered as the predictor answers. Thread-safe: fixed.
 */
final class JsonCodec implements ProtocolCodec {
    /** What is told to the predictor of a request. */
    private static final Pattern PASSED = Pattern.compile(
            "x-request-id|x-b3-.*|b3|traceparent|tracestate|baggage|authorization|nereid-.*|x-forwarded-.*");

    private static final Set<String> OWN =
            Set.of("host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive");

    private final JsonTransformer transformer;
    private final Faults faults;
    private final Executor executor;
    private final JavaTransformer.Predictor predictor;

    JsonCodec(JsonTransformer transformer, Faults faults, Executor executor, JavaTransformer.Predictor predictor) {
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
                HttpRoute.post("/v1/models/{model}:predict", x -> accept(x, false)),
                HttpRoute.post("/v1/models/{model}/versions/{version}:predict", x -> accept(x, false)),
                HttpRoute.post("/v2/models/{model}/infer", x -> accept(x, true)),
                HttpRoute.post("/v2/models/{model}/versions/{version}/infer", x -> accept(x, true)),
                new HttpRoute(HttpRoute.ANY, "/{rest...}", this::pass));
    }

    /** As the predictor answers. */
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
            x.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the transformer is ending", "try again"));
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
        Object payload = JsonTree.read(body);
        if (payload == null) {
            throw ServingException.invalidArgument("the body is null, expected an object of JSON");
        }
        Map<String, String> headers = new LinkedHashMap<>();
        x.headers(headers::putIfAbsent);
        Written made = faults.step("preprocess", () -> Written.of(transformer.preprocess(payload, headers), v2));
        List<Header> passed = new ArrayList<>(List.of(new Header("content-type", HttpReply.JSON)));
        headers.forEach((name, value) -> {
            if (PASSED.matcher(name).matches()) {
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
            tree = JsonTree.read(result);
        } catch (ServingException e) {
            throw ServingException.wrap(ErrorCode.INTERNAL, "the predictor's answer is no JSON: " + e.getMessage(), e);
        }
        Written made = faults.step(
                "postprocess", () -> Written.of(tree == null ? null : transformer.postprocess(tree, headers), false));
        x.reply(HttpReply.json(200, made.text.array(), made.text.length()));
    }

    /** A tree as text, and whether it is of V2. */
    private record Written(JsonWriter text, boolean v2) {
        static Written of(@Nullable Object tree, boolean asked) {
            JsonWriter writer = new JsonWriter(256);
            JsonTree.write(writer, tree);
            return new Written(writer, isV2(tree, asked));
        }
    }

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

    /** Takes a whole answer; its body is given up after that. */
    private interface Then {
        void take(Answer answer);
    }

    private void ask(HttpExchange x, String method, String target, List<Header> headers, MemoryRegion body, Then then) {
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

    private static byte[] bytes(Answer answer) {
        byte[] body = new byte[answer.body().size()];
        answer.body().getBytes(0, body, 0, body.length);
        return body;
    }

    private static HttpReply reply(Answer answer) {
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
                new io.nereid.endpoint.Content(body, body.length));
    }
}
