// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.csv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.InMemoryExchange;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The order of events that a socket cannot produce at will. */
class CsvInferenceTest {
    private static final ServableId ID = new ServableId("m", 1);

    /** An engine that leaves its one request to the test. */
    private static final class HeldEngine implements InferenceEngine {
        private ResponseSink sink;
        private boolean cancelled;

        @Override
        public InferenceCall infer(InferenceRequest request, ResponseSink to) {
            request.release();
            sink = to;
            return () -> cancelled = true;
        }

        @Override
        public ModelMetadata metadata(ModelRef model) {
            List<TensorSpec> x = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 2)));
            return new ModelMetadata(ID, "linear", x, x, 8, Map.of());
        }

        @Override
        public ModelConfig config(ModelRef model) {
            return ModelConfig.unspecified(model.model());
        }
    }

    private static final class Exchange extends InMemoryExchange {
        Exchange(String body) {
            super("POST", "/csv/m", List.of("m"), region(body));
        }
    }

    private final HeldEngine engine = new HeldEngine();
    private final Exchange exchange = new Exchange("1,2\n");
    private final CsvInference inference = new CsvInference(engine, exchange, ModelRef.latest("m"));

    private static InferenceResponse response(float value) {
        Tensor y = Tensor.allocate("y", DataType.FP32, Shape.of(1, 1));
        y.buffer().putFloat(value);
        return new InferenceResponse(ID, "", List.of(y), Map.of());
    }

    @Test
    void theRequestEndsWithItsClient() {
        exchange.onCancel(inference::cancel);
        inference.start();
        assertThat(engine.cancelled).isFalse();
        exchange.leave();
        assertThat(engine.cancelled).isTrue();
        engine.sink.fail(ServingException.of(ErrorCode.CANCELLED, "cancelled"));
        assertThat(exchange.status()).isEqualTo(499);
    }

    @Test
    void aClientThatLeftBeforeTheStartIsNotForgotten() {
        inference.cancel();
        inference.start();
        assertThat(engine.cancelled).isTrue();
        engine.sink.next(response(1), true);
        assertThat(exchange.text()).isEqualTo("1.0\n");
    }

    @Test
    void aDecoupledModelGetsOneReply() {
        inference.start();
        engine.sink.next(response(1), false);
        engine.sink.next(response(2), false);
        engine.sink.next(response(3), true);
        assertThat(exchange.status()).isEqualTo(501);
        assertThat(exchange.text()).contains("model 'm' is decoupled");
        assertThat(engine.cancelled).isTrue();
    }

    @Test
    void anOutputOfAnotherTypeIsAnError() {
        inference.start();
        Tensor y = Tensor.allocate("y", DataType.INT64, Shape.of(1));
        engine.sink.next(new InferenceResponse(ID, "", List.of(y), Map.of()), true);
        assertThat(exchange.status()).isEqualTo(501);
        assertThat(exchange.text()).contains("output 'y' is INT64 (expected: FP32)");
    }
}
