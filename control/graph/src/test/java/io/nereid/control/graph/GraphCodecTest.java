// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** The scenarios of KServe's graph tests, with services that always succeed or always fail. */
class GraphCodecTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SUCCESS = "{\"predictions\":[{\"message\":\"SUCCESS\"}]}";
    private static final String REFUSED = "{\"detail\":\"Intentional 404 code\"}";

    private final List<String> calls = new ArrayList<>();
    private int dice;

    private CompletionStage<UpstreamResponse> call(Step step, byte[] body) {
        calls.add(step.serviceName() + " " + new String(body, StandardCharsets.UTF_8));
        return switch (String.valueOf(step.serviceName())) {
            case "good" -> answer(200, SUCCESS);
            case "bad" -> answer(404, REFUSED);
            case "text" -> answer(200, "plain");
            case "gone" ->
                CompletableFuture.failedStage(ServingException.of(ErrorCode.UNAVAILABLE, "no service at gone"));
            default -> answer(200, "{\"predictions\":[" + step.serviceName().length() + "]}");
        };
    }

    private static CompletionStage<UpstreamResponse> answer(int status, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return CompletableFuture.completedStage(
                new UpstreamResponse(status, List.of(), MemoryRegion.copyOf(bytes, 0, bytes.length)));
    }

    private StepResult run(String nodes, String body) throws Exception {
        ObjectNode spec = (ObjectNode) JSON.readTree("{\"nodes\":" + nodes + "}");
        Function<ObjectNode, Map<String, InferenceGraph.Node>> read = InferenceGraph::readNodes;
        GraphExecution run = new GraphExecution(
                CompiledGraph.compile(read.apply(spec)),
                new GraphCodec.Settings(List.of(), Duration.ZERO, Duration.ZERO, () -> dice),
                (step, headers, bytes, timeout) -> call(step, bytes),
                List.of(),
                Clock.system());
        return run.start(body.getBytes(StandardCharsets.UTF_8))
                .toCompletableFuture()
                .get();
    }

    private static void is(StepResult outcome, int status, String body) throws Exception {
        assertThat(outcome.status()).isEqualTo(status);
        assertThat(JSON.readTree(outcome.body())).isEqualTo(JSON.readTree(body));
    }

    private static String sequence(String... steps) {
        return "{\"root\":{\"routerType\":\"Sequence\",\"steps\":[" + String.join(",", steps) + "]}}";
    }

    @Test
    void aSequenceEndsWithItsLastStep() throws Exception {
        is(run(sequence("{\"serviceName\":\"good\"}", "{\"serviceName\":\"bad\"}"), "{}"), 404, REFUSED);
        is(run(sequence("{\"serviceName\":\"bad\"}", "{\"serviceName\":\"good\"}"), "{}"), 200, SUCCESS);
    }

    @Test
    void aHardStepThatFailsEndsTheSequence() throws Exception {
        is(
                run(sequence("{\"serviceName\":\"bad\",\"dependency\":\"Hard\"}", "{\"serviceName\":\"good\"}"), "{}"),
                404,
                REFUSED);
        assertThat(calls).hasSize(1);
    }

    @Test
    void aStepGetsTheRequestOrTheFormerResponse() throws Exception {
        run(
                sequence(
                        "{\"serviceName\":\"abc\"}",
                        "{\"serviceName\":\"x\"}",
                        "{\"serviceName\":\"y\",\"data\":\"$response\",\"mapPredictionsToInstances\":true}"),
                "{\"instances\":[7]}");
        assertThat(calls).containsExactly("abc {\"instances\":[7]}", "x {\"instances\":[7]}", "y {\"instances\":[1]}");
    }

    @Test
    void aConditionEndsTheSequenceWithTheFormerResponse() throws Exception {
        is(
                run(
                        sequence(
                                "{\"serviceName\":\"good\"}",
                                "{\"serviceName\":\"bad\",\"condition\":\"predictions.#(message==\\\"FAIL\\\")\"}"),
                        "{}"),
                200,
                SUCCESS);
        is(
                run(
                        sequence(
                                "{\"serviceName\":\"good\"}",
                                "{\"serviceName\":\"bad\",\"condition\":\"predictions.#(message==\\\"SUCCESS\\\")\"}"),
                        "{}"),
                404,
                REFUSED);
        assertThat(run(sequence("{\"serviceName\":\"text\"}", "{\"serviceName\":\"good\",\"condition\":\"a\"}"), "{}")
                        .status())
                .isEqualTo(500);
    }

    private static final String SWITCH = """
        {"root": {"routerType": "Switch", "steps": [
          {"serviceName": "bad", "condition": "[@this].#(decision==\\"ERROR\\")"},
          {"serviceName": "good", "condition": "[@this].#(decision==\\"SUCCESS\\")"}]}}
        """;

    @Test
    void aSwitchTakesTheFirstStepWhoseConditionHolds() throws Exception {
        is(run(SWITCH, "{\"decision\":\"ERROR\"}"), 404, REFUSED);
        is(run(SWITCH, "{\"decision\":\"SUCCESS\"}"), 200, SUCCESS);
        String none = "{\"error\":\"Failed to process request\","
                + "\"cause\":\"None of the routes matched with the switch condition\"}";
        is(run(SWITCH, "{\"decision\":\"OTHER\"}"), 404, none);
        is(run(SWITCH, "no json"), 404, none);
    }

    @Test
    void aSwitchWithoutAMatchInAStepEndsTheGraph() throws Exception {
        String none = "{\"error\":\"Failed to process request\","
                + "\"cause\":\"None of the routes matched with the switch condition\"}";
        String inner =
                "\"inner\":{\"routerType\":\"Switch\",\"steps\":[{\"serviceName\":\"good\",\"condition\":\"x\"}]}}";
        String unmet = sequence("{\"nodeName\":\"inner\"}", "{\"serviceName\":\"good\",\"condition\":\"predictions\"}");
        is(run(unmet.substring(0, unmet.length() - 1) + "," + inner, "{}"), 500, none);
        String soft = sequence("{\"nodeName\":\"inner\"}", "{\"serviceName\":\"good\"}");
        is(run(soft.substring(0, soft.length() - 1) + "," + inner, "{}"), 500, none);
        assertThat(calls).isEmpty();
        String ensemble = soft.replace("Sequence", "Ensemble");
        is(run(ensemble.substring(0, ensemble.length() - 1) + "," + inner, "{}"), 500, none);
        String splitter =
                "{\"root\":{\"routerType\":\"Splitter\",\"steps\":[{\"nodeName\":\"inner\",\"weight\":100}]}," + inner;
        is(run(splitter, "{}"), 500, none);
    }

    @Test
    void anEnsembleMergesWhatIsAnObject() throws Exception {
        String nodes = """
            {"root": {"routerType": "Ensemble", "steps": [
              {"name": "a", "serviceName": "good"}, {"serviceName": "bad"}]}}
            """;
        is(run(nodes, "{}"), 200, "{\"a\":" + SUCCESS + ",\"1\":" + REFUSED + "}");
        is(run(nodes.replace("\"bad\"", "\"bad\",\"dependency\":\"Hard\""), "{}"), 404, REFUSED);
        assertThat(run(nodes.replace("\"bad\"", "\"text\""), "{}").status()).isEqualTo(500);
        is(
                run(nodes.replace("\"bad\"", "\"gone\""), "{}"),
                200,
                "{\"a\":" + SUCCESS
                        + ",\"1\":{\"error\":\"Failed to process request\",\"cause\":\"no service at gone\"}}");
    }

    @Test
    void aSplitterFollowsTheWeights() throws Exception {
        String nodes = """
            {"root": {"routerType": "Splitter", "steps": [
              {"serviceName": "bad", "weight": 30}, {"nodeName": "other", "weight": 70}]},
             "other": {"routerType": "Sequence", "steps": [{"serviceName": "good"}]}}
            """;
        for (dice = 0; dice < 100; dice++) {
            is(run(nodes, "{}"), dice < 30 ? 404 : 200, dice < 30 ? REFUSED : SUCCESS);
        }
    }

    @Test
    void anUnavailableServiceIsReportedWithItsStatus() throws Exception {
        StepResult outcome = run(sequence("{\"serviceName\":\"gone\"}"), "{}");
        assertThat(outcome.status()).isEqualTo(503);
        assertThat(new String(outcome.body(), StandardCharsets.UTF_8)).contains("no service at gone");
    }

    @Test
    void aWrongConditionNamesItsStep() {
        assertThatThrownBy(() -> run(sequence("{\"name\":\"s\",\"serviceName\":\"a\",\"condition\":\"a..b\"}"), "{}"))
                .hasMessageContaining("step s of node 'root'")
                .hasMessageContaining("a..b");
        assertThatThrownBy(() -> run("{\"root\":{\"routerType\":\"Sequence\",\"steps\":[{\"nodeName\":\"x\"}]}}", "{}"))
                .hasMessageContaining("no node 'x'");
    }
}
