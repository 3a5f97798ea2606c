// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.FakeObservation;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.options.V2Options;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RestObservabilityTest {
    private static final String INPUT =
            "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]}]}";

    private final FakeEngine engine = new FakeEngine();
    private final FakeObservation observation = new FakeObservation();
    private final V2Codec codec =
            new V2Codec(engine, engine, observation, Clock.system(), Runnable::run, V2Options.defaults("1", 1 << 20));

    private FakeExchange get(String path) {
        return Wire.send(codec, new FakeExchange("GET", path, new byte[0]));
    }

    private FakeExchange post(String path, String body) {
        return Wire.send(codec, new FakeExchange("POST", path, Wire.utf8(body)));
    }

    private static Total total(int n) {
        return new Total(n, n * 100L);
    }

    @Test
    void everyFigureIsPrintedUnderItsName() {
        observation.reports = List.of(new ModelStatisticsSnapshot(
                "m",
                3,
                1_700_000_000_000L,
                20,
                10,
                total(1),
                total(2),
                total(3),
                total(4),
                total(5),
                total(6),
                total(7),
                total(8),
                List.of(new ModelStatisticsSnapshot.Batch(4, total(9), total(10), total(11))),
                Map.of(
                        "0",
                        new ModelStatisticsSnapshot.Response(
                                total(1), total(2), total(3), total(4), total(5), total(6))),
                List.of(new ModelStatisticsSnapshot.Memory("CPU", 0, 77))));
        assertThat(get("/v2/models/m/versions/3/stats").text())
                .isEqualTo("{\"model_stats\":[{\"name\":\"m\",\"version\":\"3\",\"last_inference\":1700000000000,"
                        + "\"inference_count\":20,\"execution_count\":10,\"inference_stats\":{"
                        + "\"success\":{\"count\":1,\"ns\":100},\"fail\":{\"count\":2,\"ns\":200},"
                        + "\"queue\":{\"count\":3,\"ns\":300},\"compute_input\":{\"count\":4,\"ns\":400},"
                        + "\"compute_infer\":{\"count\":5,\"ns\":500},\"compute_output\":{\"count\":6,\"ns\":600},"
                        + "\"cache_hit\":{\"count\":7,\"ns\":700},\"cache_miss\":{\"count\":8,\"ns\":800}},"
                        + "\"response_stats\":{\"0\":{\"compute_infer\":{\"count\":1,\"ns\":100},"
                        + "\"compute_output\":{\"count\":2,\"ns\":200},\"success\":{\"count\":3,\"ns\":300},"
                        + "\"fail\":{\"count\":4,\"ns\":400},\"empty_response\":{\"count\":5,\"ns\":500},"
                        + "\"cancel\":{\"count\":6,\"ns\":600}}},"
                        + "\"batch_stats\":[{\"batch_size\":4,\"compute_input\":{\"count\":9,\"ns\":900},"
                        + "\"compute_infer\":{\"count\":10,\"ns\":1000},"
                        + "\"compute_output\":{\"count\":11,\"ns\":1100}}],"
                        + "\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":77}]}]}");
        assertThat(observation.asked).isEqualTo("m 3");
        get("/v2/models/m/stats");
        assertThat(observation.asked).isEqualTo("m -1");
        assertThat(get("/v2/models/stats").status).isEqualTo(200);
        assertThat(observation.asked).isEqualTo("null -1");
        assertThat(get("/v2/models/nobody/stats").status).isEqualTo(400);
    }

    @Test
    void traceSettingsAreReadAndChangedForTheServerAndForAModel() {
        assertThat(get("/v2/trace/setting").text()).isEqualTo("{\"trace_level\":[\"OFF\"],\"trace_rate\":\"1000\"}");
        FakeExchange changed = post(
                "/v2/models/identity/trace/setting",
                "{\"trace_level\":[\"TIMESTAMPS\",\"TENSORS\"],\"trace_rate\":5,\"log_frequency\":null}");
        assertThat(changed.text()).isEqualTo("{\"trace_level\":[\"TIMESTAMPS\",\"TENSORS\"],\"trace_rate\":\"5\"}");
        assertThat(observation.asked)
                .isEqualTo("identity {trace_level=[TIMESTAMPS, TENSORS], trace_rate=[5], log_frequency=null}");
        assertThat(get("/v2/models/identity/trace/setting").status).isEqualTo(200);
        assertThat(observation.asked).isEqualTo("identity");
        assertThat(get("/v2/models/nobody/trace/setting").status).isEqualTo(404);
        assertThat(post("/v2/trace/setting", "{\"trace_rate\":{}}").status).isEqualTo(400);
        assertThat(post("/v2/trace/setting", "").status).isEqualTo(200);
    }

    @Test
    void logSettingsAreReadAndChanged() {
        assertThat(get("/v2/logging").text())
                .isEqualTo("{\"log_info\":true,\"log_verbose_level\":0,\"log_format\":\"default\"}");
        assertThat(post("/v2/logging", "{\"log_info\":false,\"log_verbose_level\":2,\"log_format\":\"ISO8601\"}")
                        .text())
                .isEqualTo("{\"log_info\":false,\"log_verbose_level\":2,\"log_format\":\"ISO8601\"}");
        assertThat(post("/v2/logging", "{\"log_info\":null}").status).isEqualTo(400);
    }

    @Test
    void aTracedInferenceNotesArrivalAndAnswerAndEndsOnce() {
        FakeExchange x = new FakeExchange("POST", "/v2/models/identity/infer", Wire.utf8(INPUT))
                .header("traceparent", "00-1-2-01");
        assertThat(Wire.send(codec, x).status).isEqualTo(200);
        FakeObservation.Trace trace = observation.traces.get(0);
        assertThat(engine.last.options().trace()).isSameAs(trace);
        assertThat(trace.model).isEqualTo("identity");
        assertThat(trace.traceparent).isEqualTo("00-1-2-01");
        assertThat(trace.events)
                .containsExactly("HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END", "end");
    }

    @Test
    void theTraceOfARejectedRequestEndsToo() {
        post("/v2/models/identity/infer", "{");
        post("/v2/models/nobody/infer", INPUT);
        post("/v2/models/nobody/generate", "{}");
        assertThat(observation.traces)
                .hasSize(3)
                .allSatisfy(trace -> assertThat(trace.events).endsWith("HTTP_SEND_START", "HTTP_SEND_END", "end"));
    }

    @Test
    void aRequestThatIsNotSampledHasNoTrace() {
        observation.sampling = false;
        post("/v2/models/identity/infer", INPUT);
        assertThat(engine.last.options().trace()).isNull();
    }
}
