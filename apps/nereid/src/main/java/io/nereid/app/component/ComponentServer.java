// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.access.AccessControl;
import io.nereid.app.controlplane.JavaTransformerFactory;
import io.nereid.app.controlplane.RemoteExplainTarget;
import io.nereid.app.controlplane.V2ProtocolTranscoder;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.local.LocalInfrastructure;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.explain.ExplainCodec;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.repository.ManagedModels;
import io.nereid.transform.JavaTransformer;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A transformer or explainer as a process of its own, which does what a component of {@code nereid serve --control} does, in
 * front of a predictor that another server serves. Confined to the thread that starts it; {@link #stop} is called once, by
 * any thread.
 *
 * <pre>{@code
 * ComponentServer server = new ComponentServer(workload, "iris-predictor.default", listen, access, directory, output);
 * server.start();
 * Failure reason = server.failed().toCompletableFuture().get();
 * }</pre>
 */
final class ComponentServer implements AutoCloseable {
    private final Workload workload;
    private final Clock clock = Clock.system();
    private final AccessControl access;
    private final EventLoops loops;
    private final PooledUpstreamClient upstream;
    private final ExecutorService pool =
            Threads.pool("codec", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
    private final Gateway gateway;
    private final RemotePredictor predictor;
    private final LocalInfrastructure infrastructure;
    private final Server transport;
    private final CompletableFuture<Failure> failed = new CompletableFuture<>();
    private volatile boolean ready;
    private volatile boolean ending;

    /**
     * Creates the server without starting it.
     *
     * @param workload the component; its artifacts are directories or files of this machine
     * @param predictorHost the address of the predictor, as {@link RemotePredictor} takes it
     * @param access closed with the server
     * @param directory for logs and copies of what runs
     * @param output receives the lines of the component's log
     * @throws ServingException INVALID_ARGUMENT for a wrong address
     */
    ComponentServer(
            Workload workload,
            String predictorHost,
            ServerOptions.Builder listen,
            AccessControl access,
            Path directory,
            Consumer<String> output) {
        this.workload = workload;
        this.access = access;
        this.loops = new EventLoops(listen.build().eventLoops(), true);
        this.upstream = new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT.withLoops(loops));
        this.predictor = new RemotePredictor(upstream, predictorHost, Duration.ofMinutes(10));
        this.gateway = new Gateway(upstream, new V2ProtocolTranscoder(pool), clock, this::wake);
        this.infrastructure = LocalInfrastructure.ofComponent(
                LocalSettings.of(directory, System.getenv()),
                new ManagedModels(List.of()),
                ComponentServer::present,
                new Components(new JavaTransformerFactory(new Predictors(), directory)),
                gateway,
                clock,
                predictor.address(),
                output);
        infrastructure.onChange((namespace, service) -> look());
        VirtualHosts hosts = this::host;
        this.transport = new Server(
                listen.clock(clock)
                        .virtualHosts(hosts)
                        .loops(loops)
                        .access(access)
                        .codecExecutor(pool)
                        .build(),
                List.of(new ComponentCodec(() -> ready && !ending, gateway::writeMetrics)));
        gateway.hostFactory(transport);
    }

    private void wake(String namespace, String revision) {
        infrastructure.wake(namespace, revision);
    }

    private VirtualHosts.@Nullable VirtualHost host(VirtualHosts.Head head) {
        if (ComponentCodec.PATHS.contains(head.path())) {
            return null;
        }
        RevisionActivator activator = gateway.activator(workload.namespace(), workload.revision());
        if (activator == null) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the server is starting", "try again in a moment");
        }
        return activator.routes().at("");
    }

    /** Opens the ports and starts the component, which is not waited for. */
    List<InetSocketAddress> start() {
        infrastructure.start();
        Route.Backend backend =
                new Route.Backend(List.of(new Route.Target(workload.revision(), 100, null)), List.of(), null);
        Route route = new Route(
                workload.namespace(),
                workload.service(),
                "InferenceService",
                List.of(),
                Map.of(workload.component(), backend),
                "");
        infrastructure.apply(
                workload.namespace(),
                workload.service(),
                new Plan(List.of(workload), route, List.of(), JsonNodeFactory.instance.objectNode(), List.of(), null));
        List<InetSocketAddress> addresses = transport.start();
        look();
        return addresses;
    }

    private void look() {
        WorkloadState state =
                infrastructure.observe(workload.namespace(), workload.service()).get(workload.revision());
        if (state == null) {
            return;
        }
        ready = state.replicas() > 0;
        Failure failure = state.failure();
        if (failure != null && !ready && !ending) {
            failed.complete(failure);
        }
    }

    /** Completes with the reason when the component cannot run, or has ended by itself. */
    CompletionStage<Failure> failed() {
        return failed;
    }

    /**
     * Ends without losing a request: it is not ready at once, serves as before for the grace period, then accepts no more
     * connections, and ends when the requests that it has are done.
     *
     * @param limit the longest time for all of that
     * @return whether all requests were done within the limit
     */
    boolean stop(Duration grace, Duration limit) {
        ending = true;
        boolean drained = transport.drain(grace, () -> true, limit);
        close();
        return drained;
    }

    /** Ends at once. */
    @Override
    public void close() {
        ending = true;
        transport.close();
        infrastructure.close();
        gateway.close();
        upstream.close();
        pool.shutdown();
        access.close();
        loops.close();
    }

    /** What an init container or a volume has put there. */
    private static CompletionStage<ArtifactFetcher.Lease> present(
            Workload.Artifact artifact, String namespace, Consumer<String> log) {
        Path path = Path.of(artifact.uri());
        if (!Files.exists(path)) {
            return CompletableFuture.failedStage(ServingException.of(
                    ErrorCode.NOT_FOUND, "there is no '" + path + "', which --dir names", "mount the files there"));
        }
        return CompletableFuture.completedStage(new Present(path));
    }

    private record Present(Path path) implements ArtifactFetcher.Lease {
        @Override
        public void close() {
            // The files are not this process's.
        }
    }

    /** Explainers and transformers in this process. */
    private final class Components implements InProcessComponents {
        private final JavaTransformerFactory steps;

        Components(JavaTransformerFactory steps) {
            this.steps = steps;
        }

        @Override
        public RunningComponent explainer(Workload explainer, Workload.Explainer form, List<Path> files) {
            ExplainSettings settings = ExplainSettings.of(form.method(), form.settings(), files);
            RemoteExplainTarget target = new RemoteExplainTarget(
                    explainer.modelName(), (path, headers, body) -> predictor.call("POST", path, headers, body));
            return new Served(List.of(new ExplainCodec(target, pool, clock, settings)));
        }

        @Override
        public RunningComponent transformer(Workload transformer, Workload.Transformer form, Path jar) {
            return steps.of(transformer, form, jar);
        }

        @Override
        public RunningComponent graph(Route route) {
            throw ServingException.of(ErrorCode.UNIMPLEMENTED, "this process runs no graphs");
        }
    }

    private record Served(List<ProtocolCodec> codecs) implements InProcessComponents.RunningComponent {
        @Override
        public void close() {
            // Nothing to release.
        }
    }

    /** The predictor of transformers in this process. */
    private final class Predictors implements JavaTransformerFactory.Predictors {
        @Override
        public List<ProtocolCodec> tensors(Workload transformer, JavaTransformer steps) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "the steps of the jar work on tensors (Transformer), which needs the model in the same process",
                    "write them as a JsonTransformer, or in Python");
        }

        @Override
        public JavaTransformer.Predictor json(Workload transformer) {
            return predictor::call;
        }
    }
}
