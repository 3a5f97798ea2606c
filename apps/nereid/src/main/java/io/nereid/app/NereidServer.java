// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.engine.Engine;
import io.nereid.engine.EngineOptions;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.V2Options;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.Server;
import io.nereid.transport.ServerOptions;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;

/**
 * The server's object graph, composed by hand from top to bottom: engine, codecs, transport. Thread-safe; {@link #stop} is
 * called once.
 */
final class NereidServer {
    private final Engine engine;
    private final Server transport;
    private final ExecutorService codecPool;

    NereidServer(EngineOptions engineOptions, ServerOptions.Builder listen, ByteBudget budget, V2Options v2) {
        Clock clock = Clock.system();
        List<Backend> backends = Backends.find();
        this.engine = new Engine(engineOptions, backends, clock);
        this.codecPool = Threads.pool("codec", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
        List<ProtocolCodec> codecs = List.of(
                new V2Codec(engine, engine, clock, codecPool, v2),
                new V1Codec(engine, engine, codecPool),
                new AdminCodec(engine, this::stats, budget));
        this.transport = new Server(listen.clock(clock).budget(budget).build(), codecs);
    }

    private io.nereid.transport.TransportStats stats() {
        return transport.stats();
    }

    Engine engine() {
        return engine;
    }

    /** Opens the ports; models are not loading yet. */
    List<InetSocketAddress> listen() {
        return transport.start();
    }

    /** Starts loading; completes when every model answers or has failed. */
    CompletionStage<Void> load() {
        return engine.start();
    }

    /** Readiness turns false, then no new connections are taken; what is in flight gets up to {@code limit}. */
    boolean stop(Duration limit) {
        engine.beginDrain();
        transport.announceDrain();
        boolean drained = transport.drain(limit);
        transport.close();
        engine.close(limit);
        codecPool.shutdown();
        return drained;
    }
}
