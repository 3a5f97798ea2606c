// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeModel;
import io.nereid.engine.RecordingTrace;
import io.nereid.engine.metrics.EngineMetrics;
import io.nereid.engine.metrics.HostMetrics;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TraceTest {
    private static final ServableId ID = new ServableId("m", 1);

    private final CountedTensors tensors = new CountedTensors();
    private final DeviceExecutor pool = new DeviceExecutor("test", 1);

    @AfterEach
    void nothingIsLeft() {
        pool.close();
        tensors.assertAllFreed();
    }

    @Test
    void aTraceHasTheEventsInOrderAndTheReasonWhyTheBatchWasClosed() throws Exception {
        ModelServable servable = servable(new FakeModel(config(false), ModelTraits.DEFAULT, FakeModel::identity));
        RecordingTrace notes = new RecordingTrace(false);
        Client client = new Client(servable, Clock.system());
        client.send(notes, List.of(tensors.ints("IN", Shape.of(1, 1), 5)));
        assertThat(client.nextText()).isEqualTo("OUT 5.");
        assertThat(notes.recorded)
                .containsExactly(
                        "model m 1 id-7",
                        "REQUEST_START",
                        "QUEUE_START",
                        "COMPUTE_START",
                        "batch.cut=no_more",
                        "batch.requests=1",
                        "COMPUTE_INPUT_END",
                        "COMPUTE_OUTPUT_START",
                        "INFER_RESPONSE_COMPLETE",
                        "COMPUTE_END",
                        "REQUEST_END");
        assertThat(notes.times).isSorted();
        servable.unload();
    }

    @Test
    void tensorsAreTracedIfRequested() throws Exception {
        ModelServable servable = servable(new FakeModel(config(false), ModelTraits.DEFAULT, FakeModel::identity));
        RecordingTrace notes = new RecordingTrace(true);
        Client client = new Client(servable, Clock.system());
        client.send(notes, List.of(tensors.ints("IN", Shape.of(1, 1), 5)));
        assertThat(client.nextText()).isEqualTo("OUT 5.");
        assertThat(notes.recorded.stream().filter(t -> t.startsWith("TENSOR")))
                .containsExactly(
                        "TENSOR_QUEUE_INPUT [INT32[1,1] 'IN']",
                        "TENSOR_BACKEND_INPUT [INT32[1,1] 'IN']",
                        "TENSOR_BACKEND_OUTPUT [INT32[1,1] 'OUT']");
        servable.unload();
    }

    @Test
    void aRejectedRequestIsTracedFromBeginToEnd() throws Exception {
        ModelServable servable = servable(new FakeModel(config(false), ModelTraits.DEFAULT, FakeModel::identity));
        RecordingTrace notes = new RecordingTrace(true);
        Client client = new Client(servable, Clock.system());
        client.send(notes, List.of(tensors.floats("IN", Shape.of(1, 1), 5)));
        client.nextFailure();
        assertThat(notes.recorded).containsExactly("model m 1 id-7", "REQUEST_START", "REQUEST_END");
        servable.unload();
    }

    @Test
    void everyAnswerOfADecoupledModelIsAMoment() throws Exception {
        ModelServable servable = servable(new FakeModel(config(true), requests -> {
            requests.get(0).respond(List.of(tensors.ints("OUT", Shape.of(1, 1), 1)), Map.of());
            requests.get(0).complete(List.of(tensors.ints("OUT", Shape.of(1, 1), 2)), Map.of());
        }));
        RecordingTrace notes = new RecordingTrace(false);
        Client client = new Client(servable, Clock.system());
        client.send(notes, List.of(tensors.ints("IN", Shape.of(1, 1), 5)));
        assertThat(client.nextText()).isEqualTo("OUT 1");
        assertThat(client.nextText()).isEqualTo("OUT 2.");
        assertThat(notes.recorded.stream().filter(t -> t.equals("INFER_RESPONSE_COMPLETE")))
                .hasSize(2);
        assertThat(notes.recorded).endsWith("COMPUTE_END", "REQUEST_END");
        servable.unload();
    }

    @Test
    void aTracedRequestIsTheExampleOfTheBucketsThatItIsCountedIn() throws Exception {
        MetricsOptions options = MetricsOptions.DEFAULT.withHost(false).with("histogram_latencies", "true");
        ModelConfig config = config(false);
        ModelServable servable = servable(
                new FakeModel(config, ModelTraits.DEFAULT, FakeModel::identity),
                new ModelStatistics(ID, config, options, Clock.system()));
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("IN", Shape.of(2, 1), 5, 6)));
        assertThat(client.nextText()).isEqualTo("OUT 5 6.");
        assertThat(openMetrics(servable, options))
                .as("a request that is not traced")
                .doesNotContain("trace_id");
        client.send(new RecordingTrace(false), List.of(tensors.ints("IN", Shape.of(2, 1), 5, 6)));
        assertThat(client.nextText()).isEqualTo("OUT 5 6.");
        String page = openMetrics(servable, options);
        for (String name : List.of(
                "nereid_request_duration_seconds",
                "nereid_queue_duration_seconds",
                "nereid_compute_duration_seconds",
                "nereid_batch_size",
                "nv_inference_first_response_histogram_ms")) {
            assertThat(page.lines().filter(l -> l.startsWith(name) && l.contains("trace_id")))
                    .singleElement(InstanceOfAssertFactories.STRING)
                    .as(name)
                    .matches(name + "_bucket\\{.*,le=\"[^\"]+\"} [12] # \\{trace_id=\"t1\"} [0-9.E-]+");
        }
        assertThat(page)
                .contains("nereid_batch_size_bucket{model=\"m\",version=\"1\",le=\"2.0\"} 2 # {trace_id=\"t1\"} 2\n");
        servable.unload();
    }

    private static String openMetrics(ModelServable servable, MetricsOptions options) {
        return MetricsWriter.page(
                MetricsFormat.OPENMETRICS,
                page -> new EngineMetrics(page, List.of(servable), options).write(new HostMetrics(), Map.of()));
    }

    private ModelServable servable(FakeModel model) {
        return servable(model, new ModelStatistics(ID));
    }

    private ModelServable servable(FakeModel model, ModelStatistics statistics) {
        return ModelServable.of(
                ID,
                model,
                model.config(),
                statistics,
                pool,
                SchedulerOptions.DEFAULT,
                InitialStateFiles.NONE,
                Clock.system());
    }

    private static ModelConfig config(boolean decoupled) {
        return FakeModel.config(
                        8,
                        Duration.ZERO,
                        List.of(new TensorSpec("IN", DataType.INT32, Shape.of(1))),
                        List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(1))))
                .toBuilder()
                .decoupled(decoupled)
                .build();
    }
}
