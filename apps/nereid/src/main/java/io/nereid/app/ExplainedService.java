// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.control.core.Workload;
import io.nereid.control.gateway.Gateway;
import io.nereid.explain.CalledModel;
import io.nereid.explain.ExplainCodec;
import io.nereid.spi.InferenceEngine;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient.Answer;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;

/**
 * What the explainer of a service asks. A predictor in the engine is asked directly, by a request that takes a place there
 * while the explanation is made; a service that a transformer or a child process answers is asked as a client would, one
 * prediction request after the other. Thread-safe: fixed.
 */
final class ExplainedService implements ExplainCodec.Doors {
    /** What KServe's explainers pass on to the predictor, and what belongs to the trace. */
    private static final List<String> PASSED =
            List.of("authorization", "x-request-id", "x-b3-traceid", "traceparent", "tracestate", "baggage");

    private final Gateway gateway;
    private final String namespace;
    private final String service;
    private final String model;

    /** @param explainer the explainer itself */
    ExplainedService(Gateway gateway, Workload explainer) {
        this.gateway = gateway;
        this.namespace = explainer.namespace();
        this.service = explainer.service();
        this.model = explainer.modelName();
    }

    @Override
    public void find(HttpExchange x, BiConsumer<HttpExchange, InferenceEngine> then) {
        if (!gateway.visit(x, namespace, service, then)) {
            List<Header> headers = new ArrayList<>();
            headers.add(new Header("content-type", "application/json"));
            for (String name : PASSED) {
                String value = x.header(name);
                if (value != null) {
                    headers.add(new Header(name, value));
                }
            }
            then.accept(x, new CalledModel(model, (target, body) -> call(target, headers, body)));
        }
    }

    private CompletionStage<Answer> call(String target, List<Header> headers, MemoryRegion body) {
        return gateway.call(namespace, service, null, target, headers, body);
    }
}
