// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.app.controlplane.V2ProtocolTranscoder;
import io.nereid.app.process.CacheDirectory;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionCodecs;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.ServedModel;
import io.nereid.engine.Engine;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.repository.ManagedModels;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.transport.EventLoops;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.api.VirtualHosts.VirtualHostFactory;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the model of one folder, or the models in it, to all clients of the server's ports under the names that they use:
 * what a service on one machine is to the gateway, without a control plane. Thread-safe.
 *
 * <pre>{@code
 * ModelServer models = new ModelServer(served, clock, source, engine, engine, codecs, pool, loops);
 * listen.virtualHosts(models.hosts());
 * engine.start().thenCompose(started -> models.load());
 * }</pre>
 */
public final class ModelServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelServer.class);

    /** What the server itself answers, for all models. */
    private static final List<String> OF_SERVER = List.of("/metrics", "/admin/", "/grpc.reflection.");

    private final ServedModel served;
    private final ManagedModels source;
    private final PooledUpstreamClient upstream;
    private final Gateway gateway;
    private final RevisionActivator activator;
    private final @Nullable PayloadLogging logging;
    private final CompletableFuture<Void> loaded = new CompletableFuture<>();

    /** The states of the versions, by the model's name in the engine. */
    @GuardedBy("this") private final Map<String, Map<Long, ServableState>> states = new HashMap<>();

    @GuardedBy("this") private List<String> names = List.of();

    /**
     * Creates the server without loading the model.
     *
     * @param source the engine's source of the model
     * @param inference the engine's inference API, behind what observes requests
     * @param codecs the protocols around the models, under the names that clients use
     * @param pool runs work that would block event loops
     * @param loops of the connections to the receivers of logged requests
     * @param payloadLog the value of the option {@code --payload-log}; null for no log
     * @throws ServingException INVALID_ARGUMENT for a wrong setting of the log
     */
    public ModelServer(
            ServedModel served,
            Clock clock,
            ManagedModels source,
            InferenceEngine inference,
            Engine engine,
            RevisionCodecs codecs,
            Executor pool,
            EventLoops loops,
            @Nullable String payloadLog) {
        this.served = served;
        this.source = source;
        PooledUpstreamClient.Options options = PooledUpstreamClient.Options.DEFAULT.withLoops(loops);
        this.upstream = new PooledUpstreamClient(options);
        this.gateway = new Gateway(
                inference, engine, codecs, upstream, new V2ProtocolTranscoder(pool), clock, (space, name) -> {});
        String name = served.modelName();
        RevisionActivator.Settings usual = RevisionActivator.Settings.of(name);
        this.activator = gateway.openActivator(
                "",
                name,
                new RevisionActivator.Settings(name, 0, usual.queued(), Duration.ZERO, usual.held(), usual.mirrored()),
                new RevisionTarget.Models(name, false, name));
        this.logging = payloadLog == null
                ? null
                : new PayloadLogging(
                        payloadLog, options, clock, CacheDirectory.directory().resolve("payload-log"), System.getenv());
        activator.listener(logging == null ? null : logging.listener());
        engine.onState(this::changed);
    }

    /** Leads the requests for models to them. */
    public VirtualHosts hosts() {
        return head -> {
            String path = head.path();
            for (String own : OF_SERVER) {
                if (path.startsWith(own)) {
                    return null;
                }
            }
            return activator.routes().at("");
        };
    }

    /** Sets the factory of virtual hosts. Call it before the first request. */
    public void hostFactory(VirtualHostFactory factory) {
        gateway.hostFactory(factory);
    }

    /**
     * Loads the models, when the engine runs. Completes when all are available; fails with FAILED_PRECONDITION and the
     * reasons when one cannot be loaded.
     */
    public CompletionStage<Void> load() {
        served.warnings().forEach(warning -> LOG.warn("{}", warning));
        String name = served.model().name();
        List<String> placed = source.place(List.of(served.model())).getOrDefault(name, List.of());
        activator.destination(new RevisionTarget.Models(name, !placed.equals(List.of(name)), served.modelName()));
        synchronized (this) {
            names = placed;
        }
        check();
        return loaded;
    }

    private void changed(ServableState state) {
        synchronized (this) {
            Map<Long, ServableState> versions =
                    states.computeIfAbsent(state.id().model(), model -> new HashMap<>());
            if (state.phase() == Phase.GONE) {
                versions.remove(state.id().version());
            } else {
                versions.put(state.id().version(), state);
            }
        }
        check();
    }

    private void check() {
        boolean complete;
        List<String> reasons = new ArrayList<>();
        synchronized (this) {
            complete = !names.isEmpty();
            for (String name : names) {
                boolean available = false;
                boolean pending = false;
                List<String> failed = new ArrayList<>();
                for (ServableState version : states.getOrDefault(name, Map.of()).values()) {
                    available |= version.phase() == Phase.AVAILABLE;
                    pending |= version.phase().ordinal() < Phase.AVAILABLE.ordinal();
                    if (version.phase() == Phase.FAILED) {
                        String what = names.size() == 1 ? "" : "model '" + name + "': ";
                        failed.add(what + (version.reason() == null ? "it failed to load" : version.reason()));
                    }
                }
                complete &= available;
                if (!available && !pending) {
                    reasons.addAll(failed);
                }
            }
        }
        if (complete) {
            activator.capacity(1);
            loaded.complete(null);
        } else if (!reasons.isEmpty()) {
            loaded.completeExceptionally(ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.join("; ", reasons),
                    "correct the model's files, or the storage URI"));
        }
    }

    /** Adds what the server counts to a page. */
    public void writeMetrics(MetricsWriter page) {
        gateway.writeMetrics(page);
        if (logging != null) {
            logging.writeMetrics(page);
        }
    }

    @Override
    public void close() {
        gateway.close();
        if (logging != null) {
            logging.close();
        }
        upstream.close();
    }
}
