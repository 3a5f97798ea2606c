// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.explain.request.Exchange;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.json.JsonValues;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamResponse;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Remote models are explained like local ones, and responses that cannot be explained are reported. */
class RemoteModelTest {
    private final List<String> targets = new ArrayList<>();
    private final List<MemoryRegion> answers = new ArrayList<>();

    private static MemoryRegion region(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    private Exchange ask(
            Function<List<?>, CompletionStage<UpstreamResponse>> model, String body, String... parameters) {
        RemoteModel called = new RemoteModel("own", (target, json) -> {
            targets.add(target);
            byte[] bytes = new byte[json.size()];
            json.getBytes(0, bytes, 0, bytes.length);
            json.release();
            return model.apply((List<?>) ((Map<?, ?>) JsonValues.readDoubles(bytes)).get("instances"));
        });
        ExplainCodec codec = new ExplainCodec(called, Runnable::run, Clock.system(), ExplainSettings.none());
        Exchange exchange = new Exchange(body, parameters.length == 0 ? new String[] {"own"} : parameters);
        HttpRoute route = codec.httpRoutes().get(parameters.length > 1 ? 1 : 0);
        route.handler().handle(exchange);
        return exchange;
    }

    private CompletionStage<UpstreamResponse> answer(int status, String text) {
        MemoryRegion body = region(text);
        answers.add(body);
        return CompletableFuture.completedStage(new UpstreamResponse(status, List.of(), body));
    }

    private CompletionStage<UpstreamResponse> linear(List<?> rows) {
        StringBuilder out = new StringBuilder();
        for (Object each : rows) {
            double[] row = (double[]) each;
            out.append(out.isEmpty() ? "" : ",").append(2 * row[0] + 3 * row[1] - row[2]);
        }
        return answer(200, "{\"predictions\":[" + out + "]}");
    }

    @Test
    void aFunctionBehindJsonHasItsShapValues() {
        Exchange x = ask(
                this::linear, "{\"instances\":[[1,2,3]],\"parameters\":{\"background\":[[0,0,0],[2,2,2],[4,4,4]]}}");
        assertThat((double[]) x.first().get("shap_values")).containsExactly(new double[] {-2, 0, -1}, within());
        assertThat(x.first().get("explained_value")).isEqualTo(5.0);
        assertThat(x.tree().containsKey("model_version")).isFalse();
        assertThat(targets).isNotEmpty().allMatch("/v1/models/own:predict"::equals);
    }

    private static org.assertj.core.data.Offset<Double> within() {
        return org.assertj.core.data.Offset.offset(1e-9);
    }

    @Test
    void listsOfNumbersAreSeveralOutputs() {
        Exchange x = ask(
                rows -> answer(200, "{\"predictions\":[" + "[1,2],".repeat(rows.size() - 1) + "[1,2]]}"),
                "{\"instances\":[[1,2,3]],\"parameters\":{\"background\":[[0,0,0]]}}");
        assertThat((double[]) x.first().get("prediction")).containsExactly(1, 2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "200 | nonsense | 400 | is not JSON",
                "200 | {} | 400 | has no 'predictions'",
                "200 | {'predictions':3} | 400 | not a list",
                "200 | {'predictions':[1,2,3]} | 400 | has 3 predictions for 1 rows",
                "200 | {'predictions':['a']} | 400 | that are not numbers",
                "200 | {'predictions':[{'label':1}]} | 400 | that are not numbers",
                "200 | {'predictions':[null]} | 400 | null",
                "404 | {'error':'nobody'} | 400 | status 404: {'error':'nobody'} (the explainer calls",
                "500 | {'error':'boom'} | 500 | status 500: {'error':'boom'}",
                "503 | | 503 | status 503",
                "429 | slow | 429 | status 429: slow",
            })
    void responsesThatCannotBeExplainedAreReported(int status, String body, int expected, String text) {
        Exchange x = ask(
                rows -> answer(status, body == null ? "" : body.replace('\'', '"')),
                "{\"instances\":[[1]],\"parameters\":{\"background\":[[0]]}}");
        assertThat(x.status()).as(x.text()).isEqualTo(expected);
        assertThat(x.text().replace("\\\"", "'")).contains(text);
    }

    @Test
    void connectionErrorsAreReportedUnchanged() {
        Exchange x = ask(
                rows -> CompletableFuture.failedStage(
                        ServingException.wrap(ErrorCode.UNAVAILABLE, "no process answers", new ConnectException())),
                "{\"instances\":[[1]],\"parameters\":{\"background\":[[0]]}}");
        assertThat(x.status()).isEqualTo(503);
        assertThat(x.text()).contains("no process answers");
    }

    @Test
    void aMissingResponseTimesOut() throws InterruptedException {
        CompletableFuture<UpstreamResponse> never = new CompletableFuture<>();
        Exchange x =
                ask(rows -> never, "{\"instances\":[[1]],\"parameters\":{\"background\":[[0]],\"timeout_ms\":50}}");
        assertThat(x.await(java.time.Duration.ofSeconds(20))).isTrue();
        assertThat(x.status()).as(x.text()).isEqualTo(504);
        MemoryRegion late = region("{\"predictions\":[1]}");
        assertThat(never.complete(new UpstreamResponse(200, List.of(), late.retain())))
                .isTrue();
        assertThat(late.release()).as("the late answer was let go").isTrue();
    }

    @Test
    void cancellationEndsThePrediction() {
        Exchange x =
                ask(rows -> new CompletableFuture<>(), "{\"instances\":[[1]],\"parameters\":{\"background\":[[0]]}}");
        assertThat(x.answered()).isFalse();
        x.leave();
        assertThat(x.status()).isEqualTo(499);
    }

    @Test
    void otherNamesAndVersionsAreNotFound() {
        assertThat(ask(this::linear, "{\"instances\":[[1,2,3]]}", "other").status())
                .isEqualTo(404);
        assertThat(ask(this::linear, "{\"instances\":[[1,2,3]]}", "own", "1").status())
                .isEqualTo(404);
        assertThat(targets).isEmpty();
    }
}
