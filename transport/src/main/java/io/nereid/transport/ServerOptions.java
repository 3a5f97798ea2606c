// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Clock;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.VirtualHosts;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How a {@link Server} listens and what it refuses. Immutable; made with {@link #builder()}.
 *
 * @param listen the addresses to listen on
 * @param eventLoops threads that read and write sockets; 0 for a quarter of the cores, at least one
 * @param maxBodyBytes largest HTTP request body, before and after inflation
 * @param maxMessageBytes largest gRPC message from a client, before and after inflation
 * @param maxHeadBytes largest request line and headers together
 * @param budget bytes of request bodies that may be in flight in the process
 * @param idleTimeout an HTTP/1.1 connection on which nothing moves for so long is closed; on HTTP/2 a ping is sent
 * @param requestTimeout a request's head must be complete after so long, its body soon after (at 64 KiB/s)
 * @param compressReplies whether HTTP clients that ask for it get texts of 1 KiB to 1 MiB compressed
 * @param compressMessages whether gRPC clients that accept gzip get messages of 1 KiB to 1 MiB of text compressed
 * @param nativeTransport whether epoll is used where it is to be had
 * @param clock the server's clock
 * @param accessLog hears of finished exchanges; null for nobody
 * @param virtualHosts whose routes serve a request where it is not the server's own; asked for the head of every
 *     request
 * @param loops the threads that read and write sockets, shared and closed by whoever made them; null for {@code
 *     eventLoops} of the server's own
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
        boolean nativeTransport,
        Clock clock,
        @Nullable AccessLog accessLog,
        VirtualHosts virtualHosts,
        @Nullable EventLoops loops) {
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
     * @param host a host name or address of this machine, such as {@code 127.0.0.1}; {@code 0.0.0.0} for all; or {@code
     *     unix:} and the path of a socket in the file system
     * @param port the port; 0 for any free one; of no matter for a path
     * @param purpose what is served there
     * @param tls how it is encrypted; null when it is not
     */
    public record Listen(
            String host,
            int port,
            Purpose purpose,
            @Nullable TlsOptions tls) {
        /** An address that is not encrypted. */
        public Listen(String host, int port, Purpose purpose) {
            this(host, port, purpose, null);
        }

        /** The path of a socket in the file system; null for an address of the network. */
        @Nullable
        Path path() {
            return host.startsWith("unix:") ? Path.of(host.substring(5)) : null;
        }
    }

    /** Copies the list. */
    public ServerOptions {
        listen = List.copyOf(listen);
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
        private ByteBudget budget = new ByteBudget(1L << 30);
        private Duration idleTimeout = Duration.ofSeconds(90);
        private Duration requestTimeout = Duration.ofSeconds(60);
        private boolean compressReplies = true;
        private boolean compressMessages;
        private boolean nativeTransport = true;
        private Clock clock = Clock.system();
        private @Nullable AccessLog accessLog;
        private VirtualHosts virtualHosts = VirtualHosts.NONE;
        private @Nullable EventLoops loops;

        private Builder() {}

        /** Adds an address that serves everything. */
        public Builder listen(String host, int port) {
            return listen(host, port, Purpose.ALL);
        }

        /** Adds an address. */
        public Builder listen(String host, int port, Purpose purpose) {
            return listen(host, port, purpose, null);
        }

        /** Adds an address that is encrypted, unless {@code tls} is null. */
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

        /** Sets how long a connection may lie still. */
        public Builder idleTimeout(Duration timeout) {
            this.idleTimeout = timeout;
            return this;
        }

        /** Sets how long a request may take to arrive. */
        public Builder requestTimeout(Duration timeout) {
            this.requestTimeout = timeout;
            return this;
        }

        /** Switches the compression of HTTP replies. */
        public Builder compressReplies(boolean on) {
            this.compressReplies = on;
            return this;
        }

        /** Switches the compression of gRPC messages. */
        public Builder compressMessages(boolean on) {
            this.compressMessages = on;
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

        /** Sets who hears of finished exchanges. */
        public Builder accessLog(AccessLog log) {
            this.accessLog = log;
            return this;
        }

        /** Sets whose routes serve a request. */
        public Builder virtualHosts(VirtualHosts hosts) {
            this.virtualHosts = hosts;
            return this;
        }

        /** Has the server use threads that others use as well, in the place of its own. */
        public Builder loops(EventLoops shared) {
            this.loops = shared;
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
                    nativeTransport,
                    clock,
                    accessLog,
                    virtualHosts,
                    loops);
        }
    }
}
