// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.protocols.v1.FakeClient;
import io.nereid.protocols.v1.FakeEngine;
import io.nereid.protocols.v1.FakeExchange;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.transport.api.HttpReply;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CloudEventTest {
    private static final String PATH = "/v1/models/m:predict";
    private static final Map<String, String> EVENT = Map.of(
            "ce-specversion", "1.0",
            "ce-id", "36077800-0c23-4f38-a0b4-01f4369f670a",
            "ce-source", "https://example.com/event-producer",
            "ce-type", "com.example.sampletype1",
            "ce-time", "2021-01-28T21:04:43.144141+00:00",
            "ce-mine", "yes",
            "content-type", "application/json");
    private static final String STRUCTURED =
            "{\"specversion\": \"1.0\", \"id\": \"36077800\", \"source\": \"https://e.com/x\", \"type\": \"t1\","
                    + " \"time\": \"2021-01-28T21:04:43Z\", \"mine\": 7, \"datacontenttype\": \"application/json\","
                    + " \"data\": {\"instances\": [[1, 2]]}}";
    private static final Clock CLOCK = new Clock() {
        @Override
        public long nanos() {
            return 0;
        }

        @Override
        public long millis() {
            return 1_700_000_000_000L;
        }
    };

    private final FakeEngine engine = new FakeEngine();

    private FakeClient client(V1Options.Builder options) {
        engine.add(
                "m",
                List.of(new TensorSpec("x", DataType.INT32, Shape.of(-1, 2))),
                List.of(new TensorSpec("y", DataType.INT32, Shape.of(-1, 2))));
        return new FakeClient(new V1Codec(engine, engine, Runnable::run, options.build()));
    }

    private FakeExchange call(String body, Map<String, String> headers) {
        return client(V1Options.builder(CLOCK)).call("POST", PATH, body, headers);
    }

    private static Map<String, String> headers(FakeExchange x) {
        Map<String, String> all = new LinkedHashMap<>();
        String[] headers = x.answer().headers();
        for (int i = 0; i < headers.length; i += 2) {
            all.put(headers[i], headers[i + 1]);
        }
        return all;
    }

    @Test
    void anEventInHeadersIsAnsweredByOneInHeaders() {
        FakeExchange x = call("{\"instances\":[[1,2]]}", EVENT);
        assertThat(x.status()).isEqualTo(200);
        assertThat(x.text()).isEqualTo("{\"predictions\":[[1,2]]}");
        assertThat(x.answer().contentType()).isEqualTo("application/json");
        Map<String, String> headers = headers(x);
        assertThat(headers)
                .containsOnlyKeys("ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time")
                .containsEntry("ce-specversion", "1.0")
                .containsEntry("ce-source", "io.kserve.inference.m")
                .containsEntry("ce-type", "io.kserve.inference.response")
                .containsEntry("ce-time", "2023-11-14T22:13:20Z");
        assertThat(headers.get("ce-id")).hasSize(36).isNotEqualTo(EVENT.get("ce-id"));
    }

    @Test
    void aStructuredEventIsAnsweredByAStructuredOne() {
        for (String type : List.of("application/cloudevents+json", "application/cloudevents+json; charset=utf-8")) {
            FakeExchange x = call(STRUCTURED, Map.of("content-type", type));
            assertThat(x.status()).as(x.text()).isEqualTo(200);
            assertThat(x.answer().contentType()).isEqualTo("application/cloudevents+json");
            assertThat(x.answer().headers()).isEmpty();
            assertThat(x.text().replaceFirst("\"id\":\"[-0-9a-f]{36}\"", "\"id\":\"?\""))
                    .isEqualTo("{\"specversion\":\"1.0\",\"id\":\"?\",\"source\":\"io.kserve.inference.m\","
                            + "\"type\":\"io.kserve.inference.response\",\"time\":\"2023-11-14T22:13:20Z\","
                            + "\"data\":{\"predictions\":[[1,2]]}}");
        }
    }

    @Test
    void aCompleteStructuredEventIsOneUnderPlainJsonToo() {
        FakeExchange x = call(STRUCTURED, Map.of("content-type", "application/json"));
        assertThat(x.answer().contentType()).isEqualTo("application/cloudevents+json");
        FakeExchange without =
                call(STRUCTURED.replace("\"time\"", "\"thyme\""), Map.of("content-type", "application/json"));
        assertThat(without.status()).isEqualTo(400);
        assertThat(without.text()).contains("Missing 'inputs' or 'instances' key");
    }

    @Test
    void theDataMayBeInBase64() {
        FakeExchange x = call(
                "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\","
                        + "\"data_base64\":\"eyJpbnN0YW5jZXMiOltbMSwyXV19\"}",
                Map.of("content-type", "application/cloudevents+json"));
        assertThat(x.text()).endsWith("\"data\":{\"predictions\":[[1,2]]}}");
    }

    @Test
    void typeAndSourceAreTheOperatorsAndAttributesAreRepeatedWhenAsked() {
        V1Options.Events events =
                V1Options.Events.of(Map.of("CE_TYPE", "my.type", "CE_SOURCE", "https://my.source", "CE_MERGE", "True"));
        FakeClient client = client(V1Options.builder(CLOCK).events(events));
        Map<String, String> request = new LinkedHashMap<>(EVENT);
        request.put("ce-datacontenttype", "application/json");
        Map<String, String> headers = headers(client.call("POST", PATH, "{\"instances\":[[1,2]]}", request));
        assertThat(headers)
                .containsOnlyKeys("ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time", "ce-mine")
                .containsEntry("ce-type", "my.type")
                .containsEntry("ce-source", "https://my.source")
                .containsEntry("ce-mine", "yes")
                .containsEntry("ce-time", "2023-11-14T22:13:20Z");
        String structured = client.call(
                        "POST", PATH, STRUCTURED, Map.of("content-type", "application/cloudevents+json"))
                .text();
        assertThat(structured)
                .contains("\"type\":\"my.type\"", "\"mine\":7,", "\"datacontenttype\":\"application/json\"")
                .doesNotContain("36077800", "t1");
    }

    @Test
    void anIncompleteEventIsRejected() {
        Map<String, String> some = new LinkedHashMap<>(EVENT);
        some.remove("ce-source");
        refused("{\"instances\":[[1,2]]}", some, "Cloud Event Exceptions: Failed to find source in HTTP request");
        some.put("ce-source", "s");
        some.put("ce-specversion", "7");
        refused("{\"instances\":[[1,2]]}", some, "Cloud Event Exceptions: Found invalid specversion 7");
        refused("{nope", EVENT, "Failed to decode or parse binary json cloudevent: ");
        Map<String, String> structured = Map.of("content-type", "application/cloudevents+json");
        refused("{nope", structured, "Unrecognized request format: ");
        refused("[]", structured, "Unrecognized request format: ");
        refused(
                STRUCTURED.replace("\"id\"", "\"ide\""),
                structured,
                "Cloud Event Exceptions: Failed to find id in HTTP request");
        refused(
                STRUCTURED.replace("\"data\"", "\"date\""),
                structured,
                "Cloud Event Exceptions: the event has no data");
        refused(STRUCTURED.replace("instances", "instants"), structured, "Missing 'inputs' or 'instances' key");
    }

    private void refused(String body, Map<String, String> headers, String text) {
        FakeExchange x = call(body, headers);
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).startsWith("{\"error\":" + HttpReply.quote(text).replaceFirst("\"$", ""));
        assertThat(x.answer().contentType()).isEqualTo("application/json");
        assertThat(x.answer().headers()).isEmpty();
    }

    @Test
    void errorsOfOtherRequestsAreUnchanged() {
        FakeExchange x = client(V1Options.builder(CLOCK).trailingText(true))
                .call("POST", PATH, "{\"data_base64\":7} and more", Map.of());
        assertThat(x.text()).contains("Missing 'inputs' or 'instances' key");
    }

    @Test
    void anIdAloneMakesNoEvent() {
        FakeExchange x = call("{\"instances\":[[1,2]]}", Map.of("ce-id", "7"));
        assertThat(x.text()).isEqualTo("{\"predictions\":[[1,2]]}");
        assertThat(x.answer().headers()).isEmpty();
    }

    @Test
    void pagesOfOtherOriginsMayReadEvents() {
        FakeExchange x =
                client(V1Options.builder(CLOCK).cors(true)).call("POST", PATH, "{\"instances\":[[1,2]]}", EVENT);
        assertThat(headers(x)).containsEntry("access-control-allow-origin", "*").containsKey("ce-id");
    }
}
