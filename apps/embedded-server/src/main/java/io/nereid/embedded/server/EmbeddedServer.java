// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.server;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.embedded.Nereid;
import io.nereid.protocols.openapi.OpenApiCodec;
import io.nereid.protocols.openapi.options.OpenApiOptions;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.management.ModelControl;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.server.Server;
import io.nereid.transport.tls.TlsOptions;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;

/**
 * Serves the models of a {@link Nereid} over Open Inference (REST and gRPC) and TensorFlow Serving's protocols, with the
 * server's own transport: HTTP/1.1, HTTP/2 and gRPC on each port. It listens where {@link Builder#listen} says. Without further
 * settings clients may ask models, and may not change anything.
 *
 * <p>Thread-safe. Close it before the {@link Nereid}, which it does not own.
 *
 * <pre>{@code
 * try (Nereid nereid = Nereid.builder().repository(models).build();
 *         EmbeddedServer server = EmbeddedServer.builder(nereid).listen("127.0.0.1", 8000).start()) {
 *     LOG.info("models on port {}", server.port());
 * }
 * }</pre>
 */
public final class EmbeddedServer implements AutoCloseable {
    private final Server transport;
    private final ExecutorService codecPool;
    private final List<InetSocketAddress> addresses;

    private EmbeddedServer(Builder from) {
        Clock clock = Clock.system();
        this.codecPool = Threads.pool("codec", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
        try {
            ServerOptions.Builder options = ServerOptions.builder().clock(clock).codecExecutor(codecPool);
            for (ServerOptions.Listen one : from.listen) {
                options.listen(one.host(), one.port(), one.purpose(), one.tls());
            }
            if (from.access != null) {
                options.access(from.access);
            }
            ServerOptions built = options.build();
            ModelControl control =
                    from.modelControl ? from.nereid.control() : new ReadOnlyControl(from.nereid.control());
            List<ProtocolCodec> protocols = List.of(
                    new V2Codec(
                            from.nereid.engine(),
                            control,
                            new EngineObservability(from.nereid),
                            clock,
                            codecPool,
                            V2Options.defaults(version(), built.maxBodyBytes())),
                    new V1Codec(
                            from.nereid.engine(),
                            control,
                            codecPool,
                            V1Options.builder(clock).build()),
                    new MetricsPage(from.nereid, codecPool));
            List<ProtocolCodec> codecs =
                    OpenApiCodec.added(protocols, from.nereid.engine(), codecPool, OpenApiOptions.of(version()));
            this.transport = new Server(built, codecs);
            this.addresses = transport.start();
        } catch (RuntimeException e) {
            codecPool.shutdownNow();
            throw e;
        }
    }

    private static String version() {
        String version = EmbeddedServer.class.getPackage().getImplementationVersion();
        return version == null ? "embedded" : version;
    }

    /** Starts to describe the ports for the models of an application. */
    public static Builder builder(Nereid nereid) {
        return new Builder(nereid);
    }

    /** Describes an {@link EmbeddedServer}. Confined to one thread. */
    public static final class Builder {
        private final Nereid nereid;
        private final List<ServerOptions.Listen> listen = new ArrayList<>();
        private @Nullable AccessPolicy access;
        private boolean modelControl;

        private Builder(Nereid nereid) {
            this.nereid = nereid;
        }

        /** Listens on a port of an address of this machine; port 0 for any free one. */
        public Builder listen(String host, int port) {
            return listen(host, port, null);
        }

        /**
         * Listens on a port of an address of this machine.
         *
         * @param port 0 for any free one
         * @param tls null for plain text
         */
        public Builder listen(String host, int port, @Nullable TlsOptions tls) {
            listen.add(new ServerOptions.Listen(host, port, ServerOptions.Purpose.ALL, tls));
            return this;
        }

        /**
         * Decides who may do what. Without it everyone who reaches a port may ask models, and what is guarded, such as loading,
         * is allowed on loopback addresses alone.
         */
        public Builder access(AccessPolicy policy) {
            this.access = policy;
            return this;
        }

        /** Lets clients that the access policy allows it load and unload models. */
        public Builder modelControl(boolean allowed) {
            this.modelControl = allowed;
            return this;
        }

        /**
         * Opens the ports.
         *
         * @throws ServingException FAILED_PRECONDITION for a port that is taken, or without a port
         */
        public EmbeddedServer start() {
            if (listen.isEmpty()) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "the server has no port", "call listen(\"127.0.0.1\", 8000)");
            }
            return new EmbeddedServer(this);
        }
    }

    /** The first port. */
    public int port() {
        return addresses.get(0).getPort();
    }

    /** The addresses of all ports, in their order. */
    public List<InetSocketAddress> addresses() {
        return addresses;
    }

    /** As {@link #close(Duration)}, with 30 seconds. */
    @Override
    public void close() {
        close(Duration.ofSeconds(30));
    }

    /** Takes no new connections, lets the requests in progress end within a time limit, and closes the ports. */
    public void close(Duration limit) {
        boolean unused = transport.drain(limit);
        transport.close();
        codecPool.shutdown();
    }
}
