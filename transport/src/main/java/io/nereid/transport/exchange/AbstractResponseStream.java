// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.base.ServingException;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.codec.GatheringWrite;
import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A response that is sent piece by piece, independent of the protocol's version. Pieces are encoded on the caller's
 * thread and written on the event loop, in order. Thread-safe for callers that call one after the other; the two
 * counters are shared with the event loop.
 */
public abstract class AbstractResponseStream implements ResponseStream {
    private static final ByteBuf[] NOTHING = {};

    final AbstractHttpExchange exchange;
    private final int status;
    private final AtomicLong unsent = new AtomicLong();

    /** Actions handed to the event loop that have not run yet. */
    private final AtomicInteger waiting = new AtomicInteger();

    private long bytesOut;
    private boolean over;

    public AbstractResponseStream(AbstractHttpExchange exchange, int status) {
        this.exchange = exchange;
        this.status = status;
    }

    @Override
    public final void send(ResponseBody piece) {
        long length = piece.length();
        if (over || length == 0 || exchange.isGone() || exchange.method().equals("HEAD")) {
            piece.discard();
            return;
        }
        ByteBuf[] parts;
        try {
            parts = render(piece);
        } catch (ServingException | OutOfMemoryError e) {
            // no memory for the piece: the response ends here, and the client sees that it is incomplete
            piece.discard();
            abort();
            return;
        }
        bytesOut += length;
        put(parts, length);
    }

    /** Writes buffers on the event loop and counts them as {@code length} unsent bytes until they have been written. */
    public final void put(ByteBuf[] parts, long length) {
        unsent.addAndGet(length);
        inLoop(parts, () -> {
            if (exchange.isGone()) {
                GatheringWrite.release(parts);
                unsent.addAndGet(-length);
                dropped();
            } else {
                write(parts, waiting.get() > 0, done -> unsent.addAndGet(-length));
            }
        });
    }

    /**
     * Runs the action on the event loop, after those submitted before. It runs at once only when called on the loop
     * while none of them is queued: otherwise it would overtake them.
     */
    private void inLoop(ByteBuf[] parts, Runnable action) {
        if (waiting.get() == 0 && exchange.inEventLoop()) {
            action.run();
            return;
        }
        waiting.incrementAndGet();
        try {
            exchange.loop().execute(() -> {
                waiting.decrementAndGet();
                action.run();
            });
        } catch (RejectedExecutionException e) {
            GatheringWrite.release(parts);
        }
    }

    @Override
    public final void end() {
        if (!over) {
            over = true;
            exchange.streamed(status, bytesOut);
            inLoop(NOTHING, this::finish);
        }
    }

    @Override
    public final void abort() {
        if (!over) {
            over = true;
            exchange.streamed(status, bytesOut);
            inLoop(NOTHING, this::breakOff);
        }
    }

    @Override
    public final long unsentBytes() {
        return unsent.get();
    }

    /** Encodes a piece and takes it over. Any thread. */
    public abstract ByteBuf[] render(ResponseBody piece);

    /**
     * Writes buffers and takes them over. Event loop only.
     *
     * @param more whether another piece, or the end, is queued on the event loop: the buffers may be flushed with it
     * @param written called on success and on failure
     */
    public abstract void write(ByteBuf[] parts, boolean more, GenericFutureListener<Future<Void>> written);

    /** Called when the client has left and a piece is not written. Event loop only. */
    void dropped() {}

    /** Writes the end of the response. Event loop only. */
    public abstract void finish();

    /** Closes the connection, or resets the stream, within the body. Event loop only. */
    public abstract void breakOff();
}
