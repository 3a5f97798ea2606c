// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.endpoint.Content;
import io.nereid.endpoint.HttpStream;
import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A reply in pieces, whatever the protocol's version. Its callers follow one another; the two counters are shared with
 * the event loop.
 */
abstract class ReplyStream implements HttpStream {
    private static final ByteBuf[] NOTHING = {};

    final Exchange exchange;
    private final int status;
    private final AtomicLong unsent = new AtomicLong();
    private final AtomicInteger waiting = new AtomicInteger();
    private long bytesOut;
    private boolean over;

    ReplyStream(Exchange exchange, int status) {
        this.exchange = exchange;
        this.status = status;
    }

    @Override
    public final void send(Content piece) {
        long length = piece.length();
        if (over || length == 0 || exchange.isGone() || exchange.method().equals("HEAD")) {
            piece.discard();
            return;
        }
        bytesOut += length;
        put(render(piece), length);
    }

    /** Has buffers written from the event loop, and counts them as {@code length} bytes until they are. */
    final void put(ByteBuf[] parts, long length) {
        unsent.addAndGet(length);
        inLoop(parts, () -> {
            if (exchange.isGone()) {
                Gather.release(parts);
                unsent.addAndGet(-length);
                dropped();
            } else {
                write(parts, done -> unsent.addAndGet(-length));
            }
        });
    }

    /** Runs the action on the event loop, behind those that wait there already. */
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
            Gather.release(parts);
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

    /** The buffers of a piece; takes it over. Any thread. */
    abstract ByteBuf[] render(Content piece);

    /** Writes buffers, taking them over; {@code written} is told when they are, or never will be. Event loop only. */
    abstract void write(ByteBuf[] parts, GenericFutureListener<Future<Void>> written);

    /** The client has left: nothing more is written. Event loop only. */
    void dropped() {}

    /** Writes the end. Event loop only. */
    abstract void finish();

    /** Ends the connection or stream within the body. Event loop only. */
    abstract void breakOff();
}
