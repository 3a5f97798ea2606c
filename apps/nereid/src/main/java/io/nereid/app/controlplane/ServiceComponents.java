// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.base.Clock;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.graph.GraphCodec;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.explain.ExplainCodec;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.payload.PayloadLogs;
import io.nereid.payload.PayloadSettings;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Creates the in-process components of services: graphs, Java transformers, explainers and payload loggers.
 * Thread-safe.
 */
final class ServiceComponents implements InProcessComponents {
    private final Gateway gateway;
    private final UpstreamClient upstream;
    private final Function<String, InferenceServiceConfig> configs;
    private final Executor pool;
    private final Clock clock;
    private final PayloadLogs logs;
    private final LoggerConnections upstreams;
    private final JavaTransformerFactory steps;

    /** @param pool runs the computations of explanations */
    ServiceComponents(
            Gateway gateway,
            UpstreamClient upstream,
            Function<String, InferenceServiceConfig> configs,
            Executor pool,
            Clock clock,
            PayloadLogs logs,
            LoggerConnections upstreams,
            JavaTransformerFactory steps) {
        this.gateway = gateway;
        this.upstream = upstream;
        this.configs = configs;
        this.pool = pool;
        this.clock = clock;
        this.logs = logs;
        this.upstreams = upstreams;
        this.steps = steps;
    }

    @Override
    public RunningComponent explainer(Workload workload, Workload.Explainer form, List<Path> files) {
        ExplainSettings settings = ExplainSettings.of(form.method(), form.settings(), files);
        ExplainTarget target = new ExplainTarget(gateway, workload);
        return new Codecs(List.of(new ExplainCodec(target, pool, clock, settings)));
    }

    @Override
    public RunningComponent transformer(Workload workload, Workload.Transformer form, Path jar) {
        return steps.of(workload, form, jar);
    }

    @Override
    public RunningComponent graph(Route route) {
        GraphCodec codec = GraphEndpoints.of(route, configs.apply(route.namespace()), gateway, upstream, clock, false);
        return new Codecs(List.of(codec));
    }

    @Override
    public @Nullable PayloadLogger payloadLogger(Workload workload) {
        Workload.Logger logger = workload.logger();
        if (logger == null) {
            return null;
        }
        PayloadSettings settings =
                PayloadSettings.read(logger.url(), logger.mode(), logger.settings(), workload.annotations());
        return new PayloadLogListener(logs, workload, settings, upstreams.of(workload.namespace(), settings));
    }

    /** A component without resources of its own. */
    private record Codecs(List<ProtocolCodec> codecs) implements RunningComponent {
        @Override
        public void close() {
            // Nothing to release.
        }
    }
}
