// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.control.core.Workload;
import io.nereid.control.gateway.Gateway;
import io.nereid.explain.ExplainCodec;
import io.nereid.spi.InferenceEngine;
import io.nereid.transport.api.HttpExchange;
import java.util.function.BiConsumer;

/**
 * How the explainer of a service calls the predictor. A predictor in the engine is called directly, by a request that
 * counts as active while the explanation is computed. A transformer or a predictor in a child process is called as a
 * client would, one prediction request after the other. Immutable and thread-safe.
 */
final class ExplainTarget implements ExplainCodec.EngineFinder {
    private final Gateway gateway;
    private final String namespace;
    private final String service;
    private final RemoteExplainTarget remote;

    /** @param explainer the explainer's workload */
    ExplainTarget(Gateway gateway, Workload explainer) {
        this.gateway = gateway;
        this.namespace = explainer.namespace();
        this.service = explainer.service();
        this.remote = new RemoteExplainTarget(
                explainer.modelName(),
                (target, headers, body) -> gateway.call(namespace, service, null, target, headers, body));
    }

    @Override
    public void find(HttpExchange x, BiConsumer<HttpExchange, InferenceEngine> then) {
        if (!gateway.runNested(x, namespace, service, then)) {
            remote.find(x, then);
        }
    }
}
