// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Clock;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.api.access.LocalAccessPolicy;
import io.nereid.transport.server.Server;
import io.nereid.transport.tls.TlsOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The addresses, limits and timeouts of a {@link Server}. Immutable; made with {@link #builder()}.
 *
 * <pre>{@code
 * ServerOptions options = ServerOptions.builder()
 *         .listen("0.0.0.0", 8080)
 *         .listen("0.0.0.0", 8443, ServerOptions.Purpose.ALL, tls)
 *         .maxBodyBytes(256 << 20)
 *         .build();
 * }</pre>
 *
 * @param listen the addresses to listen on
 * @param eventLoops threads that read and write sockets; 0 for a quarter of the cores, at least one
 * @param maxBodyBytes largest HTTP request body, compressed and decompressed
 * @param maxMessageBytes largest gRPC message from a client, compressed and decompressed
 * @param maxHeadBytes largest request line and headers together
 * @param budget bytes of request bodies, and of responses that clients have not taken, that may be in flight
 * @param idleTimeout the time without traffic after which an HTTP/1.1 connection is closed and an HTTP/2 client is
 *     pinged
 * @param requestTimeout the time limit for a request's head; its body has this time and what the bytes received take
 *     at 64 KiB/s, and may not pause for half of it
 * @param compressReplies whether HTTP clients that accept it get text of 1 KiB to 1 MiB compressed
 * @param compressMessages whether gRPC clients that accept gzip get messages of 1 KiB to 1 MiB of text compressed
 * @param maxConnections the most connections on all addresses for everything; 0 to derive it from the limit on file
 *     descriptors
 * @param nativeTransport whether to use epoll where it is available
 * @param clock the server's clock
 * @param accessLog receives finished exchanges and calls; null to log none
 * @param virtualHosts chooses, from the head of every request, the virtual host whose routes serve it in place of the
 *     server's own
 * @param access decides who may do what
 * @param corsOrigins the origins of web pages that may call the server; empty for none
 * @param loops event loops to share, which their creator closes; null to create {@code eventLoops} of its own
 * @param codecExecutor runs decompression, and the compression of large responses; null for threads of its own
 */
public record ServerOptions(
        List<Listen> listen,
        int eventLoops,
        int maxBodyBytes,
        int maxMessageBytes,
        int maxHeadBytes,
        ByteBudget budget,
        Duration idleTimeout,
        Duration requestTimeout,
        boolean compressReplies,
        boolean compressMessages,
        int maxConnections,
        boolean nativeTransport,
        Clock clock,
        @Nullable AccessLog accessLog,
        VirtualHosts virtualHosts,
        AccessPolicy access,
        List<String> corsOrigins,
        @Nullable EventLoops loops,
        @Nullable Executor codecExecutor) {
    /** What is served on an address. */
    public enum Purpose {
        /** Every route and method. */
        ALL,
        /** Only the route {@code /metrics}. */
        METRICS
    }

    /**
     * One address to listen on. Immutable.
     *
     * @param host a host name or address of this machine, such as {@code 127.0.0.1}; {@code 0.0.0.0} for all; or
     *     {@code unix:} and the path of a Unix domain socket
     * @param port the port; 0 for any free one; ignored for a Unix domain socket
     * @param purpose what is served there
     * @param tls the TLS options; null for plain text
     */
    public record Listen(
            String host,
            int port,
            Purpose purpose,
            @Nullable TlsOptions tls) {
        /** An address without TLS. */
        public Listen(String host, int port, Purpose purpose) {
            this(host, port, purpose, null);
        }

        /** The path of a Unix domain socket; null for a network address. */
        public @Nullable Path path() {
            return host.startsWith("unix:") ? Path.of(host.substring(5)) : null;
        }
    }

    /** Copies the lists. */
    public ServerOptions {
        listen = List.copyOf(listen);
        corsOrigins = List.copyOf(corsOrigins);
    }

    /** A builder with the defaults and no address. */
    public static Builder builder() {
        return new Builder();
    }

    /** Collects options. Confined to one thread. */
    public static final class Builder {
        private final List<Listen> listen = new ArrayList<>();
        private int eventLoops;
        private int maxBodyBytes = 64 << 20;
        private int maxMessageBytes = 64 << 20;
        private int maxHeadBytes = 16 << 10;
        private ByteBudget budget = new ByteBudget(RequestMemoryLimit.ofProcess());
        private Duration idleTimeout = Duration.ofSeconds(90);
        private Duration requestTimeout = Duration.ofSeconds(60);
        private boolean compressReplies = true;
        private boolean compressMessages;
        private int maxConnections;
        private boolean nativeTransport = true;
        private Clock clock = Clock.system();
        private @Nullable AccessLog accessLog;
        private VirtualHosts virtualHosts = VirtualHosts.NONE;
        private AccessPolicy access = new LocalAccessPolicy(false, Set.of());
        private List<String> corsOrigins = List.of();
        private @Nullable EventLoops loops;
        private @Nullable Executor codecExecutor;

        private Builder() {}

        /** Adds an address that serves everything. */
        public Builder listen(String host, int port) {
            return listen(host, port, Purpose.ALL);
        }

        /** Adds an address. */
        public Builder listen(String host, int port, Purpose purpose) {
            return listen(host, port, purpose, null);
        }

        /** Adds an address with TLS, unless {@code tls} is null. */
        public Builder listen(String host, int port, Purpose purpose, @Nullable TlsOptions tls) {
            listen.add(new Listen(host, port, purpose, tls));
            return this;
        }

        /** Sets the number of event loops; 0 for the default. */
        public Builder eventLoops(int count) {
            this.eventLoops = count;
            return this;
        }

        /** Sets the largest HTTP request body. */
        public Builder maxBodyBytes(int bytes) {
            this.maxBodyBytes = bytes;
            return this;
        }

        /** Sets the largest gRPC message. */
        public Builder maxMessageBytes(int bytes) {
            this.maxMessageBytes = bytes;
            return this;
        }

        /** Sets the largest request head. */
        public Builder maxHeadBytes(int bytes) {
            this.maxHeadBytes = bytes;
            return this;
        }

        /** Sets the budget of request bytes in flight. */
        public Builder budget(ByteBudget shared) {
            this.budget = shared;
            return this;
        }

        /** Sets the idle timeout of connections. */
        public Builder idleTimeout(Duration timeout) {
            this.idleTimeout = timeout;
            return this;
        }

        /** Sets the time limit for receiving a request. */
        public Builder requestTimeout(Duration timeout) {
            this.requestTimeout = timeout;
            return this;
        }

        /** Switches the compression of HTTP responses. */
        public Builder compressReplies(boolean on) {
            this.compressReplies = on;
            return this;
        }

        /** Switches the compression of gRPC messages. */
        public Builder compressMessages(boolean on) {
            this.compressMessages = on;
            return this;
        }

        /** Sets the most connections; 0 to derive it. */
        public Builder maxConnections(int most) {
            this.maxConnections = most;
            return this;
        }

        /** Switches the native transport. */
        public Builder nativeTransport(boolean on) {
            this.nativeTransport = on;
            return this;
        }

        /** Sets the clock. */
        public Builder clock(Clock other) {
            this.clock = other;
            return this;
        }

        /** Sets the access log. */
        public Builder accessLog(AccessLog log) {
            this.accessLog = log;
            return this;
        }

        /** Sets the virtual hosts. */
        public Builder virtualHosts(VirtualHosts hosts) {
            this.virtualHosts = hosts;
            return this;
        }

        /** Sets the access policy; by default, what changes something is open to local callers only. */
        public Builder access(AccessPolicy policy) {
            this.access = policy;
            return this;
        }

        /** Sets the origins of web pages that may call the server, such as {@code https://app.example}. */
        public Builder corsOrigins(List<String> origins) {
            this.corsOrigins = origins;
            return this;
        }

        /** Sets event loops to share; the server then creates none of its own. */
        public Builder loops(EventLoops shared) {
            this.loops = shared;
            return this;
        }

        /** Sets the executor for work that would hold up an event loop; its creator ends it. */
        public Builder codecExecutor(Executor executor) {
            this.codecExecutor = executor;
            return this;
        }

        /** The options. */
        public ServerOptions build() {
            return new ServerOptions(
                    listen,
                    eventLoops,
                    maxBodyBytes,
                    maxMessageBytes,
                    maxHeadBytes,
                    budget,
                    idleTimeout,
                    requestTimeout,
                    compressReplies,
                    compressMessages,
                    maxConnections,
                    nativeTransport,
                    clock,
                    accessLog,
                    virtualHosts,
                    access,
                    corsOrigins,
                    loops,
                    codecExecutor);
        }
    }
}
