// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.common;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.protocols.v1.FakeClient;
import io.nereid.protocols.v1.FakeEngine;
import io.nereid.protocols.v1.FakeExchange;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.protocols.v1.common.TfServingMetrics.Entrypoint;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TfServingMetricsTest {
    private final V1Options options = V1Options.builder(Clock.system())
            .metricsPath("")
            .queueDepths(() -> Map.of("m", 7L))
            .extraMetrics(page -> {
                page.family(":tensorflow:serving:request_log_count", MetricType.COUNTER, "");
                page.sample(LabelSet.of("model_name", "m").with("status_code", "OK"), 3);
            })
            .build();
    private final TfServingMetrics metrics = new TfServingMetrics(options);

    @Test
    void requestsAreCountedByModelAndStatus() {
        metrics.started("m");
        metrics.started("m");
        metrics.started("m");
        metrics.finished("m", Api.PREDICT, Entrypoint.REST, ErrorCode.OK, 50_000);
        metrics.finished("m", Api.PREDICT, Entrypoint.GRPC, ErrorCode.UNAVAILABLE, 50_000);
        metrics.rejected("other \"one\"", ErrorCode.NOT_FOUND);
        assertThat(metrics.page(MetricsFormat.TEXT).lines())
                .contains(
                        "# TYPE :tensorflow:serving:request_count counter",
                        ":tensorflow:serving:request_count{model_name=\"m\",status=\"OK\"} 1",
                        ":tensorflow:serving:request_count{model_name=\"m\",status=\"UNAVAILABLE\"} 1",
                        ":tensorflow:serving:request_count{model_name=\"other \\\"one\\\"\",status=\"NOT_FOUND\"} 1",
                        ":tensorflow:serving:requests_in_flight{model_name=\"m\"} 1",
                        ":tensorflow:serving:requests_queued{model_name=\"m\"} 7",
                        ":tensorflow:serving:request_log_count{model_name=\"m\",status_code=\"OK\"} 3");
    }

    @Test
    void latenciesFallIntoThirtyThreeBucketsThatGrowByFourFifths() {
        metrics.started("m");
        metrics.started("m");
        metrics.finished("m", Api.CLASSIFY, Entrypoint.GRPC, ErrorCode.OK, 10_000);
        metrics.finished("m", Api.CLASSIFY, Entrypoint.GRPC, ErrorCode.OK, 33_000);
        String labels = "model_name=\"m\",API=\"Classify\",entrypoint=\"GRPC\"";
        List<String> lines = metrics.page(MetricsFormat.TEXT)
                .lines()
                .filter(l -> l.startsWith(":tensorflow:serving:request_latency"))
                .toList();
        assertThat(lines)
                .hasSize(36)
                .startsWith(
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"10\"} 1",
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"18\"} 1",
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"32.4\"} 1",
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"58.32\"} 2",
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"104.976\"} 2",
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"188.957\"} 2")
                .endsWith(
                        ":tensorflow:serving:request_latency_bucket{" + labels + ",le=\"+Inf\"} 2",
                        ":tensorflow:serving:request_latency_sum{" + labels + "} 43",
                        ":tensorflow:serving:request_latency_count{" + labels + "} 2");
        assertThat(lines.get(32)).contains("le=\"1.47476e+09\"");
    }

    @Test
    void examplesAndRunsAreCountedApart() {
        metrics.ran("m", Api.REGRESS, "onnxruntime_onnx", 20_000);
        metrics.examples("m", 3);
        metrics.examples("m", 5);
        assertThat(metrics.page(MetricsFormat.TEXT).lines())
                .contains(
                        ":tensorflow:serving:runtime_latency_bucket{model_name=\"m\",API=\"Regress\","
                                + "runtime=\"onnxruntime_onnx\",le=\"32.4\"} 1",
                        ":tensorflow:serving:request_example_counts_bucket{model=\"m\",le=\"4\"} 1",
                        ":tensorflow:serving:request_example_counts_bucket{model=\"m\",le=\"8\"} 2",
                        ":tensorflow:serving:request_example_counts_sum{model=\"m\"} 8",
                        ":tensorflow:serving:request_example_counts_count{model=\"m\"} 2",
                        ":tensorflow:serving:request_example_count_total{model=\"m\"} 8");
    }

    @Test
    void openMetricsHasTheSameNames() {
        metrics.started("m");
        metrics.finished("m", Api.PREDICT, Entrypoint.REST, ErrorCode.OK, 18_000);
        metrics.examples("m", 3);
        assertThat(metrics.page(MetricsFormat.OPENMETRICS).lines())
                .contains(
                        "# TYPE :tensorflow:serving:request_count unknown",
                        ":tensorflow:serving:request_count{model_name=\"m\",status=\"OK\"} 1",
                        "# TYPE :tensorflow:serving:request_latency histogram",
                        ":tensorflow:serving:request_latency_bucket{model_name=\"m\",API=\"Predict\",entrypoint=\"REST\",le=\"18.0\"}"
                                + " 1",
                        "# TYPE :tensorflow:serving:request_example_count counter",
                        ":tensorflow:serving:request_example_count_total{model=\"m\"} 3",
                        ":tensorflow:serving:request_log_count{model_name=\"m\",status_code=\"OK\"} 3")
                .endsWith("# EOF")
                .noneMatch(l -> l.startsWith("# HELP"));
    }

    @Test
    void aServerWithoutThePageMeasuresNothing() {
        TfServingMetrics off = new TfServingMetrics(V1Options.defaults(Clock.system()));
        off.started("m");
        off.finished("m", Api.PREDICT, Entrypoint.REST, ErrorCode.OK, 1);
        off.rejected("m", ErrorCode.NOT_FOUND);
        assertThat(off.measuring()).isFalse();
        assertThat(off.page(MetricsFormat.TEXT)).doesNotContain("model_name");
    }

    @Test
    void thePageIsWhereTheOperatorWantsItAndCountsWhatRestServes() {
        FakeEngine engine = new FakeEngine();
        engine.add(
                "m",
                List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))),
                List.of(new TensorSpec("y", DataType.FP32, Shape.of(-1))));
        FakeClient client = new FakeClient(new V1Codec(engine, engine, Runnable::run, options));
        client.call("POST", "/v1/models/m:predict", "{\"instances\":[1]}");
        client.call("POST", "/v1/models/m:predict", "{\"instances\":[\"a\"]}");
        client.call("POST", "/v1/models/m:regress", "{\"examples\":[{\"x\":1.5},{\"x\":2.5}]}");
        FakeExchange page = client.call("GET", "/monitoring/prometheus/metrics", "");
        assertThat(page.status()).isEqualTo(200);
        assertThat(page.answer().contentType()).isEqualTo("text/plain; charset=utf-8");
        FakeExchange negotiated = client.call(
                "GET", "/monitoring/prometheus/metrics", "", Map.of("accept", "application/openmetrics-text"));
        assertThat(negotiated.answer().contentType())
                .isEqualTo("application/openmetrics-text; version=1.0.0; charset=utf-8");
        assertThat(negotiated.text()).endsWith("# EOF\n");
        assertThat(page.text().lines())
                .contains(
                        ":tensorflow:serving:request_count{model_name=\"m\",status=\"OK\"} 2",
                        ":tensorflow:serving:request_count{model_name=\"m\",status=\"INVALID_ARGUMENT\"} 1",
                        ":tensorflow:serving:request_latency_count{model_name=\"m\",API=\"Predict\",entrypoint=\"REST\"}"
                                + " 1",
                        ":tensorflow:serving:request_latency_count{model_name=\"m\",API=\"Regress\",entrypoint=\"REST\"}"
                                + " 1",
                        ":tensorflow:serving:runtime_latency_count{model_name=\"m\",API=\"Predict\",runtime=\"fake\"}"
                                + " 1",
                        ":tensorflow:serving:request_example_count_total{model=\"m\"} 2",
                        ":tensorflow:serving:requests_in_flight{model_name=\"m\"} 0");
        FakeClient moved = new FakeClient(new V1Codec(
                engine,
                engine,
                Runnable::run,
                V1Options.builder(Clock.system()).metricsPath("/page").build()));
        assertThat(moved.call("GET", "/page", "").status()).isEqualTo(200);
    }
}
