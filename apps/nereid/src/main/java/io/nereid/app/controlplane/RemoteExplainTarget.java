// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.explain.ExplainCodec;
import io.nereid.explain.RemoteModel;
import io.nereid.spi.InferenceEngine;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;

/**
 * How an explainer calls a model that another process or server serves: as a client would, one prediction request after the
 * other. Immutable and thread-safe.
 */
public final class RemoteExplainTarget implements ExplainCodec.EngineFinder {
    /** The request headers that KServe's explainers forward to the predictor, and those of tracing. */
    private static final List<String> PASSED =
            List.of("authorization", "x-request-id", "x-b3-traceid", "traceparent", "tracestate", "baggage");

    private final String model;
    private final Caller caller;

    /** Sends prediction requests. */
    @FunctionalInterface
    public interface Caller {
        /**
         * Posts JSON.
         *
         * @param target the path
         * @param body its ownership passes to this method
         * @return the whole response, whatever its status
         */
        CompletionStage<UpstreamResponse> call(String target, List<Header> headers, MemoryRegion body);
    }

    /** @param model the name that clients use */
    public RemoteExplainTarget(String model, Caller caller) {
        this.model = model;
        this.caller = caller;
    }

    @Override
    public void find(HttpExchange x, BiConsumer<HttpExchange, InferenceEngine> then) {
        List<Header> headers = new ArrayList<>();
        headers.add(new Header("content-type", "application/json"));
        for (String name : PASSED) {
            String value = x.header(name);
            if (value != null) {
                headers.add(new Header(name, value));
            }
        }
        then.accept(x, new RemoteModel(model, (target, body) -> caller.call(target, headers, body)));
    }
}
