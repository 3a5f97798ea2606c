// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.base.ServingException;
import io.nereid.transport.ServerContext;
import io.nereid.transport.codec.BodyReceiveAllocator;
import io.nereid.transport.memory.BodyBuffer;
import io.nereid.transport.memory.ClientMemory;
import io.nereid.transport.memory.ClientMemoryMonitor;
import io.netty.buffer.ByteBuf;
import java.net.SocketAddress;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Receives the bodies of one HTTP/1.x connection, one after another: those of known length and chunked ones. The socket
 * writes a body of known length straight into its buffer, but for the bytes that arrived together with the head. A body
 * that does not arrive at once is observed, and its request refused when it is too slow. Confined to the connection's
 * event loop.
 */
final class Http1Body extends ClientMemory {
    private final Http1Connection connection;
    private final ServerContext server;
    private final BodyReceiveAllocator reads;
    private final ClientMemoryMonitor monitor;
    private @Nullable BodyBuffer known;
    private @Nullable ChunkedBodyDecoder chunks;
    private long startedNanos;

    Http1Body(Http1Connection connection, ServerContext server, BodyReceiveAllocator reads) {
        this.connection = connection;
        this.server = server;
        this.reads = reads;
        this.monitor = server.memory.monitor(connection.loop());
    }

    /**
     * Begins a body of known length.
     *
     * @param arrived how many bytes follow the head in what was read with it
     * @throws ServingException RESOURCE_EXHAUSTED when the budget or the memory is short
     */
    void begin(int length, int arrived, long nowNanos) {
        if (length > server.options.budget().left()) {
            server.memory.shortage(length);
            throw BodyBuffer.exhausted(server.options.budget(), length);
        }
        known = new BodyBuffer(server.memory, server.options.budget(), length, arrived);
        startedNanos = nowNanos;
        if (arrived < length) {
            monitor.add(this);
        }
    }

    /** Begins a chunked body. */
    void beginChunked(long nowNanos) {
        chunks = new ChunkedBodyDecoder(
                server.options.budget(), server.options.maxBodyBytes(), server.options.maxHeadBytes());
        startedNanos = nowNanos;
        monitor.add(this);
    }

    /**
     * Adopts what the socket has written into the body's buffer.
     *
     * @return whether {@code in} was such a write; then it was released
     */
    boolean adopt(ByteBuf in) {
        BodyBuffer open = known;
        if (open == null || !reads.issued(in)) {
            return false;
        }
        // only the writer index has to move
        open.buffer().writerIndex(open.received() + in.readableBytes());
        in.release();
        return true;
    }

    /**
     * Reads bytes of the body.
     *
     * @return whether the body is complete; bytes after it are left in {@code in}
     * @throws ServingException INVALID_ARGUMENT when malformed, RESOURCE_EXHAUSTED when too large, and with a remedy when
     *     the budget or the memory is short
     */
    boolean read(ByteBuf in) {
        ChunkedBodyDecoder reader = chunks;
        if (reader != null) {
            return reader.read(in);
        }
        Objects.requireNonNull(known).append(in);
        return continued();
    }

    /**
     * Prepares the next read of a body of known length.
     *
     * @return whether the body is complete
     * @throws ServingException RESOURCE_EXHAUSTED when the budget or the memory is short
     */
    boolean continued() {
        BodyBuffer open = Objects.requireNonNull(known);
        if (open.isComplete()) {
            return true;
        }
        open.grow(0);
        reads.target(open.buffer());
        return false;
    }

    /** The bytes that the complete body has reserved in the budget. */
    int reserved() {
        return (int) held();
    }

    /** Hands the complete body over, together with its reservation. */
    ByteBuf take() {
        monitor.remove(this);
        BodyBuffer open = known;
        if (open != null) {
            known = null;
            reads.target(null);
            return open.take();
        }
        ChunkedBodyDecoder reader = Objects.requireNonNull(chunks);
        chunks = null;
        return reader.take();
    }

    /** Releases an incomplete body. */
    void drop() {
        monitor.remove(this);
        BodyBuffer open = known;
        if (open != null) {
            known = null;
            reads.target(null);
            open.close();
        }
        ChunkedBodyDecoder reader = chunks;
        if (reader != null) {
            chunks = null;
            reader.close();
        }
    }

    @Override
    protected long progress() {
        BodyBuffer open = known;
        ChunkedBodyDecoder reader = chunks;
        return open != null ? open.received() : reader == null ? 0 : reader.received();
    }

    @Override
    protected long held() {
        BodyBuffer open = known;
        ChunkedBodyDecoder reader = chunks;
        return open != null ? open.reserved() : reader == null ? 0 : reader.reserved();
    }

    @Override
    protected SocketAddress client() {
        return connection.client().remote();
    }

    @Override
    protected void check(long now) {
        if (!connection.isReading()) {
            return;
        }
        if (server.memory.isLate(now - startedNanos, stillNanos(now), progress())) {
            connection.refuse(408, "the request body did not arrive in time");
            return;
        }
        BodyBuffer open = known;
        if (open != null && isSlow()) {
            open.trim();
            reads.target(open.buffer());
        }
    }

    @Override
    protected void cut() {
        connection.refuse(
                429,
                "the request body arrives slowly, and the server's limit of "
                        + server.options.budget().limit() + " bytes of requests in flight is reached (retry later)");
    }
}
