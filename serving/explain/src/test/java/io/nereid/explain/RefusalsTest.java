// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.explain.request.Exchange;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Invalid requests are rejected with the cause and a remedy, and limits hold. */
class RefusalsTest {
    private static FunctionEngine engine() {
        return new FunctionEngine()
                .with("m", 2, "age,income", 0, x -> new double[] {x[0], x[1]})
                .with("one", 2, "", 0, x -> new double[] {x[0] + 0.5})
                .with(
                        "texts",
                        List.of(new TensorSpec("t", DataType.BYTES, Shape.of(-1))),
                        List.of(new TensorSpec("y", DataType.FP64, Shape.of(-1))),
                        "",
                        0,
                        x -> x)
                .with(
                        "image",
                        List.of(new TensorSpec("i", DataType.FP32, Shape.of(-1, 8, 8))),
                        List.of(new TensorSpec("y", DataType.FP64, Shape.of(-1))),
                        "",
                        0,
                        x -> x)
                .with(
                        "labels",
                        List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 2))),
                        List.of(new TensorSpec("y", DataType.BYTES, Shape.of(-1))),
                        "",
                        0,
                        x -> x);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "m | nonsense | 400 | Unrecognized request format: ",
                "m | [] | 400 | the request is not a JSON object",
                "m | {} | 400 | there is no 'instances' in the request",
                "m | {'instances':[]} | 400 | there are 0 instances",
                "m | {'instances':3} | 400 | Expected \"instances\" to be a list",
                "m | {'instances':null} | 400 | Expected \"instances\" to be a list",
                "m | {'inputs':null,'instances':[[1,2]]} | 400 | Expected \"inputs\" to be a list",
                "m | {'inputs':[{'name':'x','shape':[1,2],'datatype':'FP32','data':null}]} | 400 | has data that are"
                        + " not numbers",
                "m | {'instances':[[1,2]],'instances':[[1,2]]} | 400 | field 'instances' is given twice",
                "m | {'instances':[[1,2]],'signature_name':null} | 400 | signature null cannot be explained",
                "m | {'instances':[[1,2]],'parameters':null} | 400 | method 'shap' needs background rows",
                "m | {'instances':[1,2]} | 400 | send each row in brackets",
                "m | {'instances':[[1,2,3]]} | 400 | has 3 values (expected: 2: age, income)",
                "m | {'instances':[['a',2]]} | 400 | row 0 of 'instances' is a list of more than numbers",
                "m | {'instances':[{'age':1}]} | 400 | lacks feature 'income'",
                "m | {'instances':[{'age':1,'incom':1}]} | 400 | did you mean income?",
                "m | {'instances':[{'age':'x','income':1}]} | 400 | feature 'age' in row 0 of 'instances' is 'x'",
                "m | {'instance':[[1,2]]} | 400 | did you mean instances?",
                "m | {'instances':[[1,2]],'parameters':3} | 400 | field 'parameters' is 3",
                "m | {'instances':[[1,2]],'parameters':{'nsample':3}} | 400 | did you mean nsamples?",
                "m | {'instances':[[1,2]],'parameters':{'method':'magic'}} | 400 | kernel_shap",
                "m | {'instances':[[1,2]],'signature_name':'other'} | 400 | signature 'other' cannot be explained",
                "m | {'instances':[[1,2]]} | 400 | method 'shap' needs background rows",
                "m | {'instances':[[1,2]],'parameters':{'method':'lime'}} | 400 | method 'lime' needs background rows",
                "m | {'instances':[[1,2]],'parameters':{'method':'tree_shap'}} | 400 | has no SHAP values of its own",
                "m | {'instances':[[1,2]],'parameters':{'background':[]}} | 400 | parameter 'background' is empty",
                "m | {'instances':[[1,2]],'parameters':{'background':[[1]]}} | 400 | row 0 of 'background' has 1"
                        + " values",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'nsamples':-1}} | 400 | parameter"
                        + " 'nsamples' is -1",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'nsamples':1}} | 400 | twice the features",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'seed':0.5}} | 400 | a whole number",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'target':2}} | 400 | top, all, or a"
                        + " number from 0 to 1",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'output':'z'}} | 400 | unknown output in"
                        + " parameter",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'link':'logit'}} | 400 | needs"
                        + " predictions from 0 to 1",
                "m | {'instances':[[1,2]],'parameters':{'background':[[0,0]],'timeout_ms':60000}} | 400 | from 1 to"
                        + " 30000",
                "m | {'instances':[[1,2],[3,4]],'parameters':{'method':'permutation'}} | 400 | needs parameter"
                        + " 'targets'",
                "m | {'instances':[[1,2],[3,4]],'parameters':{'method':'permutation','targets':[1]}} | 400 | has 1"
                        + " values for 2",
                "m | {'instances':[[1,2],[3,4]],'parameters':{'method':'permutation','targets':[0,1],'metric':'r2'}} |"
                        + " 400 | is for one number",
                "m | {'instances':[[1,2],[3,4]],'parameters':{'method':'permutation','targets':[0,1],'metric':'f1'}} |"
                        + " 400 | log_loss",
                "m | {'instances':[[1,2]],'parameters':{'method':'counterfactual','background':[[0,0],[1,1]]}} | 400 |"
                        + " a class from 0 to 1",
                "m | {'instances':[[1,2]],'parameters':{'method':'counterfactual','desired':5,'background':[[0,0]]}} |"
                        + " 400 | a class from 0 to 1",
                "m | {'instances':[[1,2]],'parameters':{'method':'counterfactual','desired':1}} | 400 | or 'ranges'",
                "m | {'instances':[[1,2]],'parameters':{'method':'counterfactual','desired':0,'background':[[1,2]]}} |"
                        + " 400 | no feature may move",
                "m | {'instances':[[1,2]],'parameters':{'method':'counterfactual','desired':0,'immutable':['agee'],'background':[[1,2]]}}"
                        + " | 400 | did you mean age?",
                "one | {'instances':[[1,2]],'parameters':{'method':'counterfactual','desired':1,'background':[[1,2]]}}"
                        + " | 400 | give limits",
                "texts | {'instances':['a']} | 400 | its input 't' takes strings",
                "image | {'instances':[[1,2]]} | 400 | its input 'i' is of shape [-1,8,8]",
                "labels | {'instances':[[1,2]]} | 400 | are texts",
                "none | {'instances':[[1,2]]} | 404 | Model with name none does not exist.",
            })
    void badRequestsAreRejectedWithTheCause(String model, String body, int status, String text) {
        Exchange x = engine().ask(model, body.replace('\'', '"'));
        assertThat(x.text()).startsWith("{\"error\":").contains(text.replace("\"", "\\\""));
        assertThat(x.status()).isEqualTo(status);
    }

    @Test
    void theLimitOfPredictionsHolds() {
        FunctionEngine engine = engine();
        ExplainSettings settings =
                ExplainSettings.of("shap", Map.of("max-predictions", "10", "max_instances", "3"), List.of());
        String route = "/v1/models/{model}:explain";
        Exchange x = engine.ask(
                settings,
                route,
                "{\"instances\":[[1,2],[3,4]],\"parameters\":{\"background\":[[0,0],[0,1],[1,0]]}}",
                "m");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text())
                .contains("15 predictions, and one request may make 10, of which 2 are made", "max_predictions");
        assertThat(engine.batches).hasSize(1);
        Exchange many = engine.ask(settings, route, "{\"instances\":[[1,2],[3,4],[5,6],[7,8]]}", "m");
        assertThat(many.text()).contains("there are 4 instances (expected: 1 to 3)", "max_instances");
    }

    @Test
    void theTimeLimitEndsTheExplanation() {
        FunctionEngine engine = engine();
        engine.step = 20_000_000;
        Exchange x = engine.ask(
                "m",
                "{\"instances\":[[1,2],[3,4],[5,6],[7,8]],\"parameters\":{\"background\":[[0,0]],\"timeout_ms\":50}}");
        assertThat(x.status()).isEqualTo(504);
        assertThat(x.text()).contains("not ready within its limit of 50 ms");
    }

    @Test
    void anErrorOfTheModelIsReturned() {
        FunctionEngine engine = engine();
        engine.failure = ServingException.of(ErrorCode.RESOURCE_EXHAUSTED, "the queue is full");
        Exchange x = engine.ask("m", "{\"instances\":[[1,2]],\"parameters\":{\"background\":[[0,0]]}}");
        assertThat(x.status()).isEqualTo(429);
        assertThat(x.text()).contains("the queue is full");
    }

    @Test
    void cancellationEndsTheCallsInFlight() {
        FunctionEngine engine = engine();
        engine.hold = true;
        Exchange x = engine.ask("m", "{\"instances\":[[1,2]],\"parameters\":{\"background\":[[0,0]]}}");
        assertThat(x.answered()).isFalse();
        x.leave();
        assertThat(engine.cancelled).isEqualTo(1);
        engine.hold = false;
        answer(engine);
        assertThat(x.status()).isEqualTo(499);
    }

    private static void answer(FunctionEngine engine) {
        Tensor y = Tensor.allocate("y", DataType.FP64, Shape.of(1, 2));
        engine.held.remove(0).next(new InferenceResponse(new ServableId("m", 3), "", List.of(y), Map.of()), true);
    }

    @Test
    void fewRequestsToTheModelAreInFlightAndFewExplanationsAtOnce() {
        FunctionEngine engine = engine();
        engine.with("m", 2, "", 2, x -> x);
        engine.hold = true;
        ExplainSettings settings = ExplainSettings.of("shap", Map.of("max_concurrency", "1"), List.of());
        ExplainCodec codec = new ExplainCodec(engine, Runnable::run, engine, settings);
        String body = "{\"instances\":[[1,2],[3,4],[5,6],[7,8],[1,2],[3,4],[5,6],[7,8],[1,2],[3,4],[5,6]]}";
        List<Exchange> exchanges = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            exchanges.add(new Exchange(body, "m"));
            codec.httpRoutes().get(0).handler().handle(exchanges.get(i));
        }
        assertThat(engine.held).hasSize(4);
        assertThat(exchanges.get(0).answered()).isFalse();
        assertThat(exchanges.get(1).status()).isEqualTo(429);
        assertThat(exchanges.get(1).text()).contains("1 explanations are under way", "max_concurrency");
        exchanges.get(0).leave();
        while (!engine.held.isEmpty()) {
            engine.held.remove(0).fail(ServingException.of(ErrorCode.CANCELLED, "cancelled"));
        }
        assertThat(exchanges.get(0).status()).isEqualTo(499);
        Exchange again = new Exchange("{}", "m");
        codec.httpRoutes().get(0).handler().handle(again);
        assertThat(again.status()).isEqualTo(400);
    }
}
