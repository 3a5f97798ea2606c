// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeModel;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.RequestTrace;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
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
        Notes notes = new Notes(false);
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
        Notes notes = new Notes(true);
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
        Notes notes = new Notes(true);
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
        Notes notes = new Notes(false);
        Client client = new Client(servable, Clock.system());
        client.send(notes, List.of(tensors.ints("IN", Shape.of(1, 1), 5)));
        assertThat(client.nextText()).isEqualTo("OUT 1");
        assertThat(client.nextText()).isEqualTo("OUT 2.");
        assertThat(notes.recorded.stream().filter(t -> t.equals("INFER_RESPONSE_COMPLETE")))
                .hasSize(2);
        assertThat(notes.recorded).endsWith("COMPUTE_END", "REQUEST_END");
        servable.unload();
    }

    private ModelServable servable(FakeModel model) {
        return ModelServable.of(
                ID,
                model,
                model.config(),
                new ModelStatistics(ID),
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

    /** Records everything. */
    private static final class Notes implements RequestTrace {
        private final boolean includesTensors;
        final List<String> recorded = Collections.synchronizedList(new ArrayList<>());
        final List<Long> times = Collections.synchronizedList(new ArrayList<>());

        Notes(boolean includesTensors) {
            this.includesTensors = includesTensors;
        }

        @Override
        public void event(Event event, long nanos) {
            recorded.add(event.name());
            times.add(nanos);
        }

        @Override
        public void attribute(String name, String value) {
            recorded.add(name + "=" + value);
        }

        @Override
        public boolean includesTensors() {
            return includesTensors;
        }

        @Override
        public void tensors(String activity, List<Tensor> some) {
            recorded.add(activity + " " + some);
        }

        @Override
        public void model(String name, long version, String requestId) {
            recorded.add("model " + name + " " + version + " " + requestId);
        }

        @Override
        public RequestTrace child(String model) {
            throw new AssertionError("no request of its own");
        }

        @Override
        public @Nullable String traceparent() {
            return null;
        }

        @Override
        public void end() {
            throw new AssertionError("only the caller that started the trace ends it");
        }
    }
}
