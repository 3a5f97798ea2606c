// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.csv;

import io.nereid.base.access.Operation;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * {@code POST /csv/{model}}: a line of numbers for each row in, a line of numbers for each row out. For models with one
 * FP32 input. Needs the permission {@code infer}. Thread-safe: has no state of its own.
 */
public final class CsvCodec implements ProtocolCodec {
    /** Bodies up to this size are decoded on the event loop, larger ones on the executor. */
    private static final int INLINE_BYTES = 16 << 10;

    private final InferenceEngine engine;
    private final Executor executor;

    /**
     * Creates the codec.
     *
     * @param engine runs the models
     * @param executor decodes large bodies
     */
    public CsvCodec(InferenceEngine engine, Executor executor) {
        this.engine = engine;
        this.executor = executor;
    }

    @Override
    public String name() {
        return "csv";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(HttpRoute.post("/csv/{model}", Operation.INFERENCE, this::handle));
    }

    private void handle(HttpExchange exchange) {
        CsvInference inference = new CsvInference(engine, exchange, ModelRef.latest(exchange.pathParameter(0)));
        exchange.onCancel(inference::cancel);
        if (exchange.body().size() <= INLINE_BYTES) {
            inference.start();
        } else {
            executor.execute(inference::start);
        }
    }
}
