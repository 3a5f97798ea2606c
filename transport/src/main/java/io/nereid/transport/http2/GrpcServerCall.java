// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.AccessLog;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.exchange.Decompression;
import io.nereid.transport.grpc.GrpcHeaders;
import io.nereid.transport.grpc.GrpcMessageDeframer;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.util.concurrent.ScheduledFuture;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The server's side of one gRPC call: deframes and decompresses the client's messages, delivers them to the handler,
 * and frames the responses.
 *
 * <p>Flow control towards the client: while the handler has switched reading off, messages are held and the bytes of
 * arriving data are not returned to the stream's window, so that the client stops once its window is used up.
 *
 * <p>Memory: the bytes received of every message are reserved in the server's byte budget. The reservation is released when
 * the call ends (calls with one message), when the message's memory is freed (streams, large messages), or after
 * delivery (streams, small messages).
 *
 * <p>Confined to the connection's event loop, but for {@code send}, {@code sendAndClose}, {@code close}, {@code
 * isReady} and the fields set when the call begins. {@code ended} decides atomically whether the handler, the client,
 * the deadline or an error ends the call.
 */
public final class GrpcServerCall extends Http2ServerStream implements GrpcCall, GrpcMessageDeframer.Sink {
    private static final Logger LOG = LoggerFactory.getLogger(GrpcServerCall.class);
    private static final AtomicIntegerFieldUpdater<GrpcServerCall> ENDED =
            AtomicIntegerFieldUpdater.newUpdater(GrpcServerCall.class, "ended");
    private static final AtomicIntegerFieldUpdater<GrpcServerCall> HOPS =
            AtomicIntegerFieldUpdater.newUpdater(GrpcServerCall.class, "hops");
    private static final AtomicIntegerFieldUpdater<GrpcServerCall> UNSENT =
            AtomicIntegerFieldUpdater.newUpdater(GrpcServerCall.class, "unsent");
    private static final int PREFIX = 5;
    private static final int READY_BELOW = 64 << 10;

    /** Larger messages are not compressed on an event loop. */
    private static final int MOST_COMPRESSED_HERE = 32 << 10;

    /**
     * Messages of a stream from this size on are charged to the budget until they are freed, not only while delivered.
     */
    private static final int TRACKED = 64 << 10;

    private final ServerContext server;
    private final Http2Stream stream;
    private final Http2Headers headers;
    private final Caller caller;
    private final String path;
    private final @Nullable GrpcMethod method;
    private final boolean single;
    private final GrpcMessageDeframer reader;
    private final long arrivedNanos;
    private long deadlineNanos = Long.MAX_VALUE;
    private ContentEncoding encoding = ContentEncoding.IDENTITY;
    private boolean compress;
    private @Nullable GrpcListener listener;
    private @Nullable ScheduledFuture<?> timer;
    private boolean counted;
    private boolean headersSent;
    private boolean finished;
    private boolean halfClosed;
    private boolean halfCloseNotified;
    private boolean readingOn = true;
    private boolean delivering;
    private int messagesIn;
    private long bytesIn;
    private long bytesOut;

    /** Bytes reserved in the budget until the call ends. */
    private long reserved;

    /** Messages that wait while reading is off. */
    private @Nullable ArrayDeque<Held> held;

    /** The message that is being decompressed; those after it wait in {@link #undecoded}. */
    private @Nullable Decompression decompressing;

    private @Nullable ArrayDeque<Received> undecoded;

    /** Bytes that have not been returned to the stream's window, as messages are held or not decompressed. */
    private int unconsumed;

    /** Bytes of DATA received, and their number when the present message began. */
    private long received;

    private long receivedBefore;

    /** When the present message began, unless the next check has to set it. */
    private long messageNanos;

    private boolean unmeasured;

    private volatile int ended;

    /** The model that a message names, as far as access to it was checked; for the access log. */
    private volatile @Nullable String model;

    /** When the client may try again, for the trailers of a failed call. */
    private volatile @Nullable Duration retryAfter;

    /** Writes handed to the event loop that have not run yet; later writes must not overtake them. */
    private volatile int hops;

    /** Bytes of messages that have not been written to the socket yet. */
    private volatile int unsent;

    /** Whether the handler was given "not ready" and has to be notified of the change. */
    private volatile boolean wasNotReady;

    /** A held message and its reservation in the budget. Immutable. */
    private record Held(MemoryRegion message, int charge) {}

    /** A received message with its reservation of as many bytes. Immutable. */
    private record Received(ByteBuf message, boolean compressed) {}

    GrpcServerCall(
            Http2ServerConnection connection,
            Http2Stream stream,
            Http2Headers headers,
            Caller caller,
            String path,
            @Nullable GrpcMethod method) {
        super(connection);
        this.server = connection.server;
        this.stream = stream;
        this.headers = headers;
        this.caller = caller;
        this.path = path;
        this.method = method;
        this.single = method != null
                && (method.kind() == GrpcMethod.Kind.UNARY || method.kind() == GrpcMethod.Kind.SERVER_STREAMING);
        this.reader = new GrpcMessageDeframer(
                this, connection.budget, server.memory.ahead(), server.options.maxMessageBytes());
        this.arrivedNanos = server.nanos();
        this.messageNanos = arrivedNanos;
    }

    /**
     * Checks the request headers and starts the handler; ends the call with {@code refusal} instead if there is one.
     */
    void begin(@Nullable ServingException refusal) {
        if (refusal != null) {
            server.stats.requestRejected();
            fault(refusal.code(), refusal.describe());
            return;
        }
        GrpcMethod found = method;
        if (found == null) {
            server.stats.requestRejected();
            fault(ErrorCode.UNIMPLEMENTED, "unknown method " + path);
            return;
        }
        ContentEncoding known = ContentEncoding.of(metadata("grpc-encoding"));
        if (known == null) {
            server.stats.requestRejected();
            if (ENDED.compareAndSet(this, 0, 1)) {
                String text = "unsupported grpc-encoding '" + metadata("grpc-encoding")
                        + "' (expected: identity, gzip or deflate)";
                connection.writeEnd(stream, GrpcHeaders.end(ErrorCode.UNIMPLEMENTED, text, true, true));
                finish(ErrorCode.UNIMPLEMENTED);
            }
            return;
        }
        encoding = known;
        CharSequence timeout = headers.get("grpc-timeout");
        if (timeout != null) {
            long nanos = GrpcHeaders.timeoutNanos(timeout);
            if (nanos < 0) {
                server.stats.requestRejected();
                fault(
                        ErrorCode.INVALID_ARGUMENT,
                        "malformed grpc-timeout '" + timeout + "' (expected: up to 8 digits and one of H M S m u n)");
                return;
            }
            long due = arrivedNanos + nanos;
            deadlineNanos = due;
            timer = connection.loop().schedule(this::late, nanos, TimeUnit.NANOSECONDS);
        }
        if (server.options.compressMessages()) {
            String accepted = metadata("grpc-accept-encoding");
            compress = accepted != null && accepted.contains("gzip");
        }
        counted = true;
        server.stats.exchangeStarted();
        try {
            listener = found.handler().start(this);
        } catch (Throwable t) {
            threw(t);
        }
    }

    private void late() {
        fault(
                ErrorCode.DEADLINE_EXCEEDED,
                "deadline exceeded after " + TimeUnit.NANOSECONDS.toMillis(server.nanos() - arrivedNanos) + " ms");
    }

    /** Ends the call for a reason outside the handler (client, deadline, limits), and notifies the handler. */
    private void fault(ErrorCode code, String text) {
        if (ENDED.compareAndSet(this, 0, 1)) {
            writeEnd(code, text);
            notifyCancelled();
            finish(code);
        }
    }

    /** Ends the call with the exception that its handler threw. */
    private void threw(Throwable t) {
        if (ENDED.compareAndSet(this, 0, 1)) {
            ServingException e = server.published(t, path);
            retryAfter = e.retryAfter();
            writeEnd(e.code(), e.describe());
            finish(e.code());
        } else {
            LOG.error("{} threw after its call had ended", path, t);
        }
    }

    private void notifyCancelled() {
        GrpcListener l = listener;
        if (l != null) {
            try {
                l.onCancel();
            } catch (RuntimeException e) {
                LOG.error("{} failed to cancel", path, e);
            }
        }
    }

    private void writeEnd(ErrorCode code, @Nullable String text) {
        Http2Headers end = GrpcHeaders.end(code, text, !headersSent, false);
        Duration wait = retryAfter;
        if (wait != null) {
            end.add(GrpcHeaders.RETRY_PUSHBACK, Long.toString(Math.max(1, wait.toMillis())));
        }
        connection.writeEnd(stream, end);
        connection.flushSoon();
    }

    /** Releases everything that the call holds and writes the access log; runs once. */
    private void finish(ErrorCode code) {
        if (finished) {
            return;
        }
        finished = true;
        if (timer != null) {
            timer.cancel(false);
        }
        connection.monitor().remove(this);
        reader.close();
        ByteBudget budget = connection.budget;
        dropUndecoded();
        ArrayDeque<Held> waiting = held;
        if (waiting != null) {
            held = null;
            for (Held h : waiting) {
                h.message().release();
                budget.release(h.charge());
            }
        }
        consumeHeldBack();
        budget.release(reserved);
        reserved = 0;
        if (counted) {
            server.stats.exchangeFinished();
        }
        AccessLog log = server.options.accessLog();
        if (log != null) {
            log.finished(new AccessLog.Entry(
                    "gRPC",
                    "POST",
                    path,
                    code.number(),
                    bytesIn,
                    bytesOut,
                    server.nanos() - arrivedNanos,
                    connection.client().remote(),
                    metadata("x-request-id"),
                    connection.client().peer(),
                    caller.name(),
                    method == null ? null : method.operations().select("POST", path),
                    model));
        }
    }

    /** Returns the withheld bytes to the stream's window: the client may send again. */
    private void consumeHeldBack() {
        int n = unconsumed;
        if (n > 0) {
            unconsumed = 0;
            connection.consumed(stream, n);
        }
    }

    // ---- from the client

    @Override
    int onData(ByteBuf data, int flow, boolean end) {
        if (finished) {
            return flow;
        }
        received += data.readableBytes();
        reader.read(data);
        if (end && ended == 0) {
            if (reader.inMessage()) {
                fault(ErrorCode.INVALID_ARGUMENT, "the client's last message is truncated");
            } else if (single && messagesIn == 0) {
                fault(ErrorCode.UNIMPLEMENTED, "the request has no message (expected: exactly one)");
            } else {
                halfClosed = true;
                connection.monitor().remove(this);
                notifyHalfClose();
            }
        }
        if (finished || decompressing == null && (held == null || held.isEmpty())) {
            return flow;
        }
        unconsumed += flow; // the handler does not read: keep the client's window small
        return 0;
    }

    private void notifyHalfClose() {
        GrpcListener l = listener;
        if (halfClosed
                && !halfCloseNotified
                && l != null
                && decompressing == null
                && (held == null || held.isEmpty())
                && ended == 0) {
            halfCloseNotified = true;
            try {
                l.onHalfClose();
            } catch (Throwable t) {
                threw(t);
            }
        }
    }

    @Override
    public boolean ended() {
        return ended != 0;
    }

    @Override
    public void onMessage(ByteBuf message, boolean compressed) {
        bytesIn += message.writerIndex();
        unmeasured = true;
        if (single && ++messagesIn > 1) {
            dropped(message);
            fault(ErrorCode.UNIMPLEMENTED, "more than one message (expected: exactly one)");
        } else if (compressed && encoding == ContentEncoding.IDENTITY) {
            dropped(message);
            fault(ErrorCode.INVALID_ARGUMENT, "compressed message without grpc-encoding");
        } else if (decompressing == null) {
            decode(message, compressed);
        } else {
            if (undecoded == null) {
                undecoded = new ArrayDeque<>();
            }
            undecoded.add(new Received(message, compressed));
        }
    }

    private void dropped(ByteBuf message) {
        connection.budget.release(message.writerIndex());
        message.release();
    }

    private void decode(ByteBuf message, boolean compressed) {
        int charge = message.writerIndex();
        if (!compressed || charge == 0) {
            accept(message, charge);
            return;
        }
        Decompression task = new Decompression(
                encoding,
                message,
                charge,
                server.options.maxMessageBytes(),
                connection.budget,
                connection.loop(),
                (plain, taken, error) -> {
                    decompressing = null;
                    if (plain == null) {
                        dropped(message);
                        fault(error == null ? ErrorCode.INTERNAL : error.code(), error == null ? "" : error.describe());
                    } else {
                        accept(plain, Math.toIntExact(taken));
                        decodeNext();
                    }
                });
        decompressing = task;
        task.start(server.codec);
    }

    /** Goes on with the messages that arrived while another one was decompressed. */
    private void decodeNext() {
        ArrayDeque<Received> waiting = undecoded;
        while (waiting != null && decompressing == null && !finished && !waiting.isEmpty()) {
            Received next = waiting.poll();
            decode(next.message(), next.compressed());
        }
        if (decompressing == null && (held == null || held.isEmpty())) {
            consumeHeldBack();
            notifyHalfClose();
        }
    }

    private void dropUndecoded() {
        Decompression task = decompressing;
        if (task != null) {
            decompressing = null;
            task.cancel();
        }
        ArrayDeque<Received> waiting = undecoded;
        if (waiting != null) {
            undecoded = null;
            waiting.forEach(r -> dropped(r.message()));
        }
    }

    private void accept(ByteBuf plain, int reservedBytes) {
        ByteBudget budget = connection.budget;
        int charge = reservedBytes;
        // the reservation is released together with the bytes, as described at the class
        MemoryRegion region;
        if (single) {
            reserved += charge;
            charge = 0;
            region = NettyBuffers.region(plain);
        } else if (charge >= TRACKED) {
            ByteBuf tracked = plain;
            int bytes = charge;
            charge = 0;
            region = MemoryRegion.wrap(tracked.nioBuffer().slice(), () -> {
                tracked.release();
                budget.release(bytes);
            });
        } else {
            region = NettyBuffers.region(plain);
        }
        if (readingOn && !delivering && (held == null || held.isEmpty())) {
            deliver(region, charge);
        } else {
            if (held == null) {
                held = new ArrayDeque<>();
            }
            held.add(new Held(region, charge));
        }
    }

    private void deliver(MemoryRegion message, int charge) {
        GrpcListener l = listener;
        delivering = true;
        try {
            if (l != null && ended == 0) {
                l.onMessage(message);
            }
        } catch (Throwable t) {
            threw(t);
        } finally {
            delivering = false;
            message.release();
            connection.budget.release(charge);
        }
    }

    // ---- the time limits of messages

    @Override
    protected long progress() {
        return received;
    }

    @Override
    protected long held() {
        return reader.reserved() + reserved;
    }

    @Override
    protected void check(long now) {
        boolean due = single || reader.inMessage();
        boolean held = !readingOn || unconsumed > 0 || decompressing != null || !connection.isReading();
        if (!due || held || unmeasured) {
            unmeasured = false;
            messageNanos = now;
            receivedBefore = received;
        } else if (server.memory.isLate(now - messageNanos, stillNanos(now), received - receivedBefore)) {
            fault(ErrorCode.DEADLINE_EXCEEDED, "the client's message did not arrive in time");
        } else if (isSlow()) {
            reader.trim();
        }
    }

    @Override
    protected void cut() {
        fault(
                ErrorCode.RESOURCE_EXHAUSTED,
                "the client's message arrives slowly, and the server's limit of "
                        + server.options.budget().limit() + " bytes of requests in flight is reached (retry later)");
    }

    @Override
    public void onTooLarge(long length) {
        fault(
                ErrorCode.RESOURCE_EXHAUSTED,
                "the message of " + length + " bytes is larger than the limit of " + server.options.maxMessageBytes()
                        + " bytes");
    }

    @Override
    public void onBudgetExhausted(long length) {
        server.memory.shortage(length);
        fault(
                ErrorCode.RESOURCE_EXHAUSTED,
                "cannot accept a message of " + length + " bytes: the server's limit of "
                        + server.options.budget().limit() + " bytes of requests in flight is reached (retry later)");
    }

    @Override
    public void onMalformed(int flag) {
        fault(ErrorCode.INVALID_ARGUMENT, "malformed message prefix: compression flag " + flag + " (expected: 0 or 1)");
    }

    @Override
    void onClosed() {
        if (ENDED.compareAndSet(this, 0, 1)) {
            notifyCancelled();
        }
        finish(ErrorCode.CANCELLED);
    }

    @Override
    public void setReading(boolean reading) {
        readingOn = reading;
        if (!reading || delivering) {
            return;
        }
        ArrayDeque<Held> waiting = held;
        while (waiting != null && readingOn && !waiting.isEmpty() && !finished) {
            Held next = waiting.poll();
            deliver(next.message(), next.charge());
        }
        if (waiting != null && waiting.isEmpty() && decompressing == null) {
            consumeHeldBack();
            notifyHalfClose();
        }
    }

    // ---- to the client

    /** The message with its prefix of five bytes: compression flag and length. */
    private ByteBuf[] framed(ResponseBody message) {
        ResponseBody content = message;
        boolean small = message.tensorCount() == 0
                && message.textLength() >= ContentEncoding.MIN_COMPRESSED
                && message.textLength() <= ContentEncoding.MAX_COMPRESSED;
        // the order of messages is that of the calls: on the event loop a large one is sent uncompressed
        boolean deflated = compress && small && (message.textLength() <= MOST_COMPRESSED_HERE || !inEventLoop());
        if (deflated) {
            content = AbstractHttpExchange.compressed(message, ContentEncoding.GZIP);
        }
        long length = content.length();
        ByteBuf out = NettyBuffers.allocator().directBuffer(PREFIX + GatheringWrite.copied(content));
        out.writeByte(deflated ? 1 : 0);
        out.writeInt((int) length);
        return GatheringWrite.into(out, content);
    }

    private static int size(ByteBuf[] parts) {
        int n = 0;
        for (ByteBuf part : parts) {
            n += part.readableBytes();
        }
        return n;
    }

    /** Runs an action on the event loop after those submitted before; false when the loop has been shut down. */
    private boolean later(Runnable action) {
        HOPS.incrementAndGet(this);
        try {
            connection.loop().execute(() -> {
                HOPS.decrementAndGet(this);
                action.run();
            });
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /** Whether a write may run at once: on the loop, and with no earlier write queued. */
    private boolean now() {
        return hops == 0 && inEventLoop();
    }

    @Override
    public void send(ResponseBody message) {
        if (ended != 0) {
            message.discard();
            return;
        }
        ByteBuf[] parts;
        try {
            parts = framed(message);
        } catch (ServingException | OutOfMemoryError e) {
            message.discard();
            fail(ServingException.from(e));
            return;
        }
        int size = size(parts);
        UNSENT.addAndGet(this, size);
        if (now()) {
            writeMessage(parts, size);
        } else if (!later(() -> writeMessage(parts, size))) {
            GatheringWrite.release(parts);
        }
    }

    private void writeMessage(ByteBuf[] parts, int size) {
        if (finished) {
            GatheringWrite.release(parts);
            return;
        }
        writeHead();
        bytesOut += size - PREFIX;
        ChannelPromise written = connection.newPromise();
        written.addListener(f -> {
            if (UNSENT.addAndGet(this, -size) < READY_BELOW && wasNotReady && ended == 0) {
                wasNotReady = false;
                notifyReady();
            }
        });
        connection.writeData(stream, parts, false, written);
        connection.flushSoon();
    }

    private void notifyReady() {
        GrpcListener l = listener;
        if (l != null) {
            try {
                l.onReady();
            } catch (Throwable t) {
                threw(t);
            }
        }
    }

    private void writeHead() {
        if (!headersSent) {
            headersSent = true;
            connection.writeHeaders(stream, compress ? GrpcHeaders.GZIP_RESPONSE : GrpcHeaders.RESPONSE, false);
        }
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        if (!ENDED.compareAndSet(this, 0, 1)) {
            message.discard();
            return;
        }
        ByteBuf[] parts;
        try {
            parts = framed(message);
        } catch (ServingException | OutOfMemoryError e) {
            message.discard();
            ServingException failure = ServingException.from(e);
            if (!later(() -> writeClose(failure.code(), failure.describe()))) {
                LOG.debug("the server is stopping: {} is not answered", path);
            }
            return;
        }
        if (now()) {
            writeLast(parts);
        } else if (!later(() -> writeLast(parts))) {
            GatheringWrite.release(parts);
        }
    }

    private void writeLast(ByteBuf[] parts) {
        if (finished) {
            GatheringWrite.release(parts);
            return;
        }
        writeHead();
        bytesOut += size(parts) - PREFIX;
        connection.writeData(stream, parts, false, connection.newPromise());
        connection.writeEnd(stream, GrpcHeaders.TRAILERS_OK);
        connection.flushSoon();
        finish(ErrorCode.OK);
    }

    @Override
    public void close(ErrorCode code, @Nullable String message) {
        if (!ENDED.compareAndSet(this, 0, 1)) {
            return;
        }
        if (now()) {
            writeClose(code, message);
        } else {
            later(() -> writeClose(code, message));
        }
    }

    private void writeClose(ErrorCode code, @Nullable String message) {
        if (!finished) {
            writeEnd(code, message);
            finish(code);
        }
    }

    @Override
    public void fail(ServingException e) {
        ServingException published = e.code() == ErrorCode.INTERNAL ? server.published(e, path) : e;
        retryAfter = published.retryAfter();
        close(published.code(), published.describe());
    }

    @Override
    public boolean isReady() {
        if (ended != 0) {
            return false;
        }
        if (unsent < READY_BELOW) {
            return true;
        }
        // the event loop may have written everything before it saw the flag: look again, as no notification may follow
        wasNotReady = true;
        return unsent < READY_BELOW;
    }

    // ---- the head

    /** The request headers as received. Event loop only. */
    public Http2Headers headers() {
        return headers;
    }

    public java.net.SocketAddress remote() {
        return connection.client().remote();
    }

    public io.netty.channel.EventLoop loop() {
        return connection.loop();
    }

    @Override
    public Caller caller() {
        return caller;
    }

    @Override
    public void require(Permission permission, @Nullable String named) {
        model = named;
        GrpcCall.super.require(permission, named);
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        CharSequence value = headers.get(lowerCaseName);
        return value == null ? null : value.toString();
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {
        for (Map.Entry<CharSequence, CharSequence> header : headers) {
            String name = header.getKey().toString();
            if (!name.startsWith(":") && !name.endsWith("-bin")) {
                each.accept(name, header.getValue().toString());
            }
        }
    }

    @Override
    public long deadlineNanos() {
        return deadlineNanos;
    }

    @Override
    public long arrivedNanos() {
        return arrivedNanos;
    }

    @Override
    public boolean inEventLoop() {
        return connection.loop().inEventLoop();
    }
}
