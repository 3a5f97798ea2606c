// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.control.core.Workload;
import io.nereid.control.gateway.Gateway;
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
 * How the explainer of a service calls the predictor. A predictor in the engine is called directly, by a request that
 * counts as active while the explanation is computed. A transformer or a predictor in a child process is called as a
 * client would, one prediction request after the other. Immutable and thread-safe.
 */
final class ExplainTarget implements ExplainCodec.EngineFinder {
    /** The request headers that KServe's explainers forward to the predictor, and those of tracing. */
    private static final List<String> PASSED =
            List.of("authorization", "x-request-id", "x-b3-traceid", "traceparent", "tracestate", "baggage");

    private final Gateway gateway;
    private final String namespace;
    private final String service;
    private final String model;

    /** @param explainer the explainer's workload */
    ExplainTarget(Gateway gateway, Workload explainer) {
        this.gateway = gateway;
        this.namespace = explainer.namespace();
        this.service = explainer.service();
        this.model = explainer.modelName();
    }

    @Override
    public void find(HttpExchange x, BiConsumer<HttpExchange, InferenceEngine> then) {
        if (!gateway.runNested(x, namespace, service, then)) {
            List<Header> headers = new ArrayList<>();
            headers.add(new Header("content-type", "application/json"));
            for (String name : PASSED) {
                String value = x.header(name);
                if (value != null) {
                    headers.add(new Header(name, value));
                }
            }
            then.accept(x, new RemoteModel(model, (target, body) -> call(target, headers, body)));
        }
    }

    private CompletionStage<UpstreamResponse> call(String target, List<Header> headers, MemoryRegion body) {
        return gateway.call(namespace, service, null, target, headers, body);
    }
}
