// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.observe.RequestTrace.Event;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceManagerTest {
    @TempDir
    Path folder;

    private TraceManager files(String level, String rate, String count, String frequency) {
        return new TraceManager(
                new TraceOptions(
                        TraceOptions.Mode.TRITON,
                        Map.of("level", level, "rate", rate, "count", count),
                        Map.of("file", folder.resolve("trace.json").toString(), "log-frequency", frequency),
                        Map.of()),
                Clock.system());
    }

    private static void request(TraceManager tracing, long at) {
        RequestTrace trace = tracing.trace("simple", null);
        assertThat(trace).isNotNull();
        assertThat(trace.traceId()).matches("[1-9][0-9]*");
        trace.model("simple", 1, "r" + at);
        trace.event(Event.REQUEST_START, at);
        trace.attribute("batch.cut", "no_more");
        trace.event(Event.REQUEST_END, at + 5);
        trace.end();
    }

    @Test
    void aFileHoldsOneArrayOfAllTraces() throws Exception {
        TraceManager tracing = files("TIMESTAMPS", "1", "-1", "0");
        request(tracing, 10);
        request(tracing, 20);
        tracing.close();
        JsonNode all = new ObjectMapper().readTree(Files.readString(folder.resolve("trace.json")));
        assertThat(all).hasSize(4);
        assertThat(all.get(0).get("id").asLong()).isEqualTo(1);
        assertThat(all.get(0).get("model_name").asText()).isEqualTo("simple");
        assertThat(all.get(0).get("model_version").asLong()).isEqualTo(1);
        assertThat(all.get(0).get("request_id").asText()).isEqualTo("r10");
        assertThat(all.get(0).get("batch.cut").asText()).isEqualTo("no_more");
        assertThat(all.get(1).toString())
                .isEqualTo(
                        "{\"id\":1,\"timestamps\":[{\"name\":\"REQUEST_START\",\"ns\":10},{\"name\":\"REQUEST_END\",\"ns\":15}]}");
        assertThat(all.get(2).get("id").asLong()).isEqualTo(2);
    }

    @Test
    void everySoManyTracesMakeACompleteFile() throws Exception {
        TraceManager tracing = files("TIMESTAMPS", "1", "-1", "2");
        for (int i = 0; i < 5; i++) {
            request(tracing, i);
        }
        tracing.close();
        ObjectMapper mapper = new ObjectMapper();
        assertThat(mapper.readTree(Files.readString(folder.resolve("trace.json.0"))))
                .hasSize(4);
        assertThat(mapper.readTree(Files.readString(folder.resolve("trace.json.1"))))
                .hasSize(4);
        assertThat(mapper.readTree(Files.readString(folder.resolve("trace.json.2"))))
                .hasSize(2);
    }

    @Test
    void stepsOfAnEnsembleNameTheirParentAndTensorsAreTracedOnRequest() throws Exception {
        TraceManager tracing = files("TIMESTAMPS,TENSORS", "1", "-1", "0");
        RequestTrace trace = tracing.trace("pipe", null);
        trace.model("pipe", 1, "");
        RequestTrace step = trace.child("simple");
        step.model("simple", 3, "");
        assertThat(step.includesTensors()).isTrue();
        byte[] bytes = {1, 0, 0, 0, (byte) 0xfe, (byte) 0xff, (byte) 0xff, (byte) 0xff};
        try (Tensor t = Tensor.over("X", DataType.INT32, Shape.of(1, 2), MemoryRegion.copyOf(bytes, 0, 8), 0, 8)) {
            step.tensors("TENSOR_QUEUE_INPUT", List.of(t));
        }
        step.end();
        trace.end();
        tracing.close();
        JsonNode all = new ObjectMapper().readTree(Files.readString(folder.resolve("trace.json")));
        assertThat(all.get(1).get("parent_id").asLong()).isEqualTo(1);
        assertThat(all.get(2).toString())
                .isEqualTo(
                        "{\"id\":2,\"activity\":\"TENSOR_QUEUE_INPUT\",\"tensor\":{\"name\":\"X\",\"data\":\"1,-2\",\"shape\":\"1,2\",\"dtype\":\"INT32\"}}");
    }

    @Test
    void everyNthRequestIsTakenUpToANumberOfThem() {
        try (TraceManager tracing = files("TIMESTAMPS", "3", "2", "0")) {
            StringBuilder taken = new StringBuilder();
            for (int i = 0; i < 12; i++) {
                taken.append(tracing.trace("m", null) == null ? '.' : 'x');
            }
            assertThat(taken.toString()).isEqualTo("..x..x......");
            assertThat(tracing.settings(null).get("trace_count")).containsExactly("0");
        }
    }

    @Test
    void aModelsOwnSettingsStayAndTheOthersFollowTheServer() {
        try (TraceManager tracing = files("OFF", "1000", "-1", "0")) {
            assertThat(tracing.trace("m", null)).isNull();
            assertThat(tracing.update("m", Map.of("trace_level", List.of("TIMESTAMPS")))
                            .get("trace_level"))
                    .containsExactly("TIMESTAMPS");
            assertThat(tracing.update(null, Map.of("trace_rate", List.of("1"))).get("trace_level"))
                    .containsExactly("OFF");
            assertThat(tracing.settings("m").get("trace_rate")).containsExactly("1");
            assertThat(tracing.trace("m", null)).isNotNull();
            assertThat(tracing.trace("other", null)).isNull();
            Map<String, List<String>> back = new HashMap<>();
            back.put("trace_level", null);
            assertThat(tracing.update("m", back).get("trace_level")).containsExactly("OFF");
            assertThat(tracing.trace("m", null)).isNull();
        }
    }

    @Test
    void aWrongSettingChangesNothing() {
        try (TraceManager tracing = files("OFF", "7", "-1", "0")) {
            assertThatThrownBy(() -> tracing.update(null, Map.of("trace_level", List.of("OFF", "TENSORS"))))
                    .hasMessageContaining("Expect only one trace level 'OFF' is specified");
            assertThatThrownBy(() -> tracing.update(null, Map.of("trace_file", List.of("/x"))))
                    .hasMessageContaining("trace file location can not be updated through network protocol")
                    .satisfies(e -> assertThat(((ServingException) e).code()).isEqualTo(ErrorCode.UNIMPLEMENTED));
            assertThatThrownBy(() -> tracing.update(null, Map.of("trace_rate", List.of("0"))))
                    .hasMessageContaining("got: 0");
            assertThatThrownBy(() -> tracing.update(null, Map.of("trace_rat", List.of("1"))))
                    .hasMessageContaining("trace_rat");
            assertThat(tracing.settings(null))
                    .containsEntry("trace_rate", List.of("7"))
                    .containsEntry("trace_mode", List.of("triton"));
        }
    }

    @Test
    void anUnknownOptionIsRejectedWithTheNearestName() {
        assertThatThrownBy(() -> new TraceManager(
                        new TraceOptions(TraceOptions.Mode.TRITON, Map.of("rat", "1"), Map.of(), Map.of()),
                        Clock.system()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("'rat'");
    }

    @Test
    void spansReachACollectorAndContinueTheCallersTrace() throws Exception {
        LinkedBlockingQueue<String> bodies = new LinkedBlockingQueue<>();
        HttpServer collector = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        collector.createContext("/v1/traces", exchange -> {
            bodies.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.ISO_8859_1));
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        collector.start();
        try {
            TraceManager tracing = new TraceManager(
                    new TraceOptions(
                            TraceOptions.Mode.OPENTELEMETRY,
                            Map.of("level", "TIMESTAMPS", "rate", "1000000"),
                            Map.of(
                                    "url",
                                    "http://localhost:" + collector.getAddress().getPort() + "/v1/traces",
                                    "bsp_schedule_delay",
                                    "50"),
                            Map.of("service.name", "sea")),
                    Clock.system());
            String caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
            assertThat(tracing.trace("simple", null)).as("one in a million").isNull();
            RequestTrace trace = tracing.trace("simple", caller);
            assertThat(trace).as("the caller samples").isNotNull();
            assertThat(trace.traceparent())
                    .startsWith("00-0af7651916cd43dd8448eb211c80319c-")
                    .isNotEqualTo(caller);
            assertThat(trace.traceId()).isEqualTo("0af7651916cd43dd8448eb211c80319c");
            trace.model("simple", 1, "r");
            trace.event(Event.HTTP_RECV_START, 1);
            trace.event(Event.COMPUTE_START, 5);
            trace.event(Event.COMPUTE_END, 6);
            trace.child("inner").end();
            trace.end();
            tracing.close();
            String body = bodies.poll(10, TimeUnit.SECONDS);
            assertThat(body)
                    .contains(
                            "InferRequest",
                            "simple",
                            "inner",
                            "compute",
                            "triton.model_version",
                            "HTTP_RECV_START",
                            "sea");
        } finally {
            collector.stop(0);
        }
    }
}
