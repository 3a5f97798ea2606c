// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class JsonTransformerCodecTest {
    private final List<String> asked = new ArrayList<>();
    private final List<List<Header>> sent = new ArrayList<>();
    private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();
    private Supplier<CompletionStage<UpstreamResponse>> answer = () -> answered(200, "{\"predictions\":[1]}");
    private boolean ending;

    /** Adds a word from a header to the request and to the response. */
    private static class Words implements JsonTransformer {
        @Override
        public @Nullable Object preprocess(Object payload, Map<String, String> headers) {
            return Map.of("instances", List.of(((Map<?, ?>) payload).get("text"), headers.get("x-word")));
        }

        @Override
        public @Nullable Object postprocess(Object result, Map<String, String> headers) {
            return Map.of("of", headers.get("x-word"), "is", new Object[] {result, new int[] {1, 2}});
        }
    }

    private static CompletionStage<UpstreamResponse> answered(int status, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        List<Header> headers = List.of(
                new Header("content-type", "application/json"),
                new Header("content-length", "" + bytes.length),
                new Header("x-of", "predictor"));
        return CompletableFuture.completedStage(
                new UpstreamResponse(status, headers, MemoryRegion.copyOf(bytes, 0, bytes.length)));
    }

    private FakeExchange post(JsonTransformer transformer, String path, String body) {
        return send(transformer, new FakeExchange("POST", path, body));
    }

    private FakeExchange send(JsonTransformer transformer, FakeExchange x) {
        x.with("x-word", "w");
        x.with("x-request-id", "7");
        x.with("cookie", "secret");
        JsonTransformerCodec codec = new JsonTransformerCodec(
                transformer,
                new UserCodeErrors(getClass().getClassLoader(), "m"),
                task -> {
                    if (ending) {
                        throw new RejectedExecutionException();
                    }
                    tasks.add(task);
                },
                (method, target, headers, body) -> {
                    byte[] bytes = new byte[body.size()];
                    body.getBytes(0, bytes, 0, bytes.length);
                    body.release();
                    asked.add(method + " " + target + " " + new String(bytes, StandardCharsets.UTF_8));
                    sent.add(headers);
                    return answer.get();
                });
        for (HttpRoute route : codec.httpRoutes()) {
            String tail = route.template().substring(route.template().lastIndexOf('}') + 1);
            boolean versioned = x.path().contains("/versions/");
            boolean fits = route.method().equals(HttpRoute.ANY)
                    || (x.method().equals("POST")
                            && x.path().startsWith(route.template().substring(0, 4))
                            && x.path().endsWith(tail)
                            && versioned == route.template().contains("{version}"));
            if (fits) {
                route.handler().handle(x);
                break;
            }
        }
        Runnable next;
        while ((next = tasks.poll()) != null) {
            next.run();
        }
        return x;
    }

    @Test
    void bodiesGoThroughBothStepsWithTheHeaders() {
        FakeExchange x = post(new Words(), "/v1/models/m:predict", "{\"text\":\"a\"}");
        assertThat(asked).containsExactly("POST /v1/models/m:predict {\"instances\":[\"a\",\"w\"]}");
        assertThat(sent.get(0))
                .contains(new Header("x-request-id", "7"), new Header("content-type", "application/json"))
                .noneMatch(h -> h.name().equals("cookie"));
        assertThat(x.answer()).startsWith("200 {").contains("\"of\":\"w\"").contains("[{\"predictions\":[1]},[1,2]]");
    }

    @Test
    void aBodyOfAnotherProtocolIsSentInThatProtocol() {
        JsonTransformer toV2 = new JsonTransformer() {
            @Override
            public Object preprocess(Object payload, Map<String, String> headers) {
                return Map.of("inputs", List.of(Map.of("datatype", "FP32")));
            }
        };
        FakeExchange unused = post(toV2, "/v1/models/m/versions/3:predict", "{}");
        FakeExchange more = post(new Words(), "/v2/models/m/infer", "{\"text\":\"a\"}");
        FakeExchange same = post(new JsonTransformer() {}, "/v2/models/m/versions/3/infer", "{\"inputs\":[]}");
        assertThat(asked.get(0)).startsWith("POST /v2/models/m/versions/3/infer {\"inputs\"");
        assertThat(asked.get(1)).startsWith("POST /v1/models/m:predict {\"instances\"");
        assertThat(asked.get(2)).isEqualTo("POST /v2/models/m/versions/3/infer {\"inputs\":[]}");
        assertThat(List.of(unused, more, same)).allMatch(x -> x.answer().startsWith("200"));
    }

    @Test
    void errorsOfThePredictorAreForwardedUnchanged() {
        answer = () -> answered(418, "teapot");
        assertThat(post(new Words(), "/v1/models/m:predict", "{\"text\":\"a\"}").answer())
                .isEqualTo("418 teapot");
        answer = () -> CompletableFuture.failedStage(ServingException.of(ErrorCode.UNAVAILABLE, "away"));
        assertThat(post(new Words(), "/v1/models/m:predict", "{\"text\":\"a\"}").answer())
                .contains("503", "away");
        answer = () -> answered(200, "no json");
        assertThat(post(new Words(), "/v1/models/m:predict", "{\"text\":\"a\"}").answer())
                .contains("500", "the predictor's answer is not JSON");
    }

    @Test
    void otherRoutesAreForwardedToThePredictor() {
        FakeExchange x = send(new Words(), new FakeExchange("GET", "/v2/models/m", ""));
        assertThat(asked).containsExactly("GET /v2/models/m?a=b ");
        assertThat(x.answer()).isEqualTo("200 {\"predictions\":[1]}");
        answer = () -> answered(200, "{}");
        assertThat(post(new Words(), "/v1/models/m:explain", "{\"text\":1}").answer())
                .isEqualTo("200 {}");
        assertThat(asked.get(1)).isEqualTo("POST /v1/models/m:explain {\"text\":1}");
    }

    @Test
    void errorsAreAttributedToTheClientOrTheStep() {
        assertThat(post(new Words(), "/v1/models/m:predict", "{").answer()).startsWith("400");
        assertThat(post(new Words(), "/v1/models/m:predict", "null").answer())
                .startsWith("400")
                .contains("is null");
        assertThat(post(new Words(), "/v1/models/m:predict", "{\"a\":1,\"a\":2}")
                        .answer())
                .contains("given twice");
        assertThat(post(new Words(), "/v1/models/m:predict", "[1]").answer())
                .startsWith("500")
                .contains("preprocess of the transformer of model 'm' failed: ClassCastException");
        FakeExchange binary = new FakeExchange("POST", "/v2/models/m/infer", "{}");
        binary.with("inference-header-content-length", "2");
        assertThat(send(new Words(), binary).answer()).startsWith("400").contains("binary tensors");
        JsonTransformer odd = new JsonTransformer() {
            @Override
            public Object preprocess(Object payload, Map<String, String> headers) {
                return new Thread();
            }
        };
        assertThat(post(odd, "/v1/models/m:predict", "{}").answer()).contains("a java.lang.Thread is not JSON");
        assertThat(asked).isEmpty();
        ending = true;
        assertThat(post(new Words(), "/v1/models/m:predict", "{}").answer()).startsWith("503");
    }
}
