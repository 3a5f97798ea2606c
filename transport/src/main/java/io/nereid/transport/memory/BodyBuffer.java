// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.memory;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.codec.GatheringWrite;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;

/**
 * The buffer of a body, or a gRPC message, whose length is declared. Its capacity is reserved in a budget and follows
 * the bytes that have arrived, as the length is the client's claim: it starts at 64 KiB and doubles. When it is complete
 * its capacity is the length.
 *
 * <p>Doubling copies. Most bodies arrive at once, so the whole length is allocated ahead of the bytes where it is a
 * small part of the budget and the sum over all bodies stays below a quarter of it; {@link #trim()} takes that back from
 * a client that has become slow. Confined to the event loop of its connection.
 */
public final class BodyBuffer implements AutoCloseable {
    private static final int FIRST = 64 << 10;

    private final ByteBudget budget;
    private final ByteBudget ahead;
    private final int length;
    private ByteBuf buffer;

    /** Bytes reserved in {@link #ahead}. */
    private long claimed;

    private boolean trimmed;

    /**
     * Allocates the buffer.
     *
     * @param budget where the capacity is reserved, a share of {@code memory}'s budget
     * @param length the bytes declared
     * @param arrived the bytes that can be appended at once
     * @throws ServingException RESOURCE_EXHAUSTED, with a remedy, when the budget or the memory is short
     */
    public BodyBuffer(RequestMemory memory, ByteBudget budget, int length, int arrived) {
        this(budget, memory.ahead(), length, arrived);
    }

    /** As above, with a limit of the bytes that are allocated and have not arrived. */
    public BodyBuffer(ByteBudget budget, ByteBudget ahead, int length, int arrived) {
        this.budget = budget;
        this.ahead = ahead;
        this.length = length;
        int capacity = capacity(Math.min(arrived, length));
        try {
            this.buffer = allocate(budget, capacity);
        } catch (ServingException e) {
            ahead.release(claimed);
            throw e;
        }
    }

    /**
     * Reserves {@code capacity} bytes and allocates them.
     *
     * @throws ServingException RESOURCE_EXHAUSTED, with a remedy; nothing is reserved then
     */
    public static ByteBuf allocate(ByteBudget budget, int capacity) {
        if (capacity == 0) {
            return Unpooled.EMPTY_BUFFER;
        }
        if (!budget.tryReserve(capacity)) {
            throw exhausted(budget, capacity);
        }
        try {
            return GatheringWrite.exact(capacity);
        } catch (ServingException | Error e) {
            budget.release(capacity);
            throw e;
        }
    }

    /** The error of a request for which the budget has too few bytes. */
    public static ServingException exhausted(ByteBudget budget, long length) {
        return ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED,
                "cannot accept a request body of " + length + " bytes: the server's limit of " + budget.limit()
                        + " bytes of requests in flight is reached",
                "retry later");
    }

    /** The capacity for the bytes that have arrived; claims what it is ahead of them. */
    private int capacity(int arrived) {
        int missing = length - arrived;
        if (length <= FIRST || missing == 0) {
            return length;
        }
        // an eighth has arrived: the client is sending, and the copies of the last steps are saved
        if (!trimmed && missing <= 7L * arrived) {
            return length;
        }
        if (!trimmed && claimed == 0 && missing <= ahead.limit() / 8 && ahead.tryReserve(missing)) {
            claimed = missing;
            return length;
        }
        return (int) Math.min(length, Math.max(FIRST, 2L * arrived));
    }

    /** The present buffer; its writer index is the number of bytes received. Stays owned by this. */
    public ByteBuf buffer() {
        return buffer;
    }

    /** The bytes received. */
    public int received() {
        return buffer.writerIndex();
    }

    /** The bytes declared. */
    public int length() {
        return length;
    }

    /** Whether all bytes have been received. */
    public boolean isComplete() {
        return buffer.writerIndex() == length;
    }

    /** The bytes reserved in the budget. */
    public int reserved() {
        return buffer.capacity();
    }

    /**
     * Appends bytes of {@code in}, up to the declared length, and advances its reader index.
     *
     * @throws ServingException RESOURCE_EXHAUSTED, with a remedy, when the buffer cannot grow
     */
    public void append(ByteBuf in) {
        while (in.isReadable() && !isComplete()) {
            grow(in.readableBytes());
            buffer.writeBytes(in, Math.min(in.readableBytes(), buffer.writableBytes()));
        }
    }

    /**
     * Ensures space for a byte, unless the body is complete.
     *
     * @param arriving the bytes that can be appended at once
     * @throws ServingException RESOURCE_EXHAUSTED, with a remedy, when the buffer cannot grow
     */
    public void grow(int arriving) {
        if (buffer.isWritable() || isComplete()) {
            return;
        }
        int received = received();
        moveTo(capacity((int) Math.min(length, (long) received + arriving)));
    }

    /** Gives back what is allocated ahead of the bytes received, from a client that is slow; it then grows by doubling. */
    public void trim() {
        trimmed = true;
        int received = received();
        if (buffer.capacity() - received > FIRST) {
            try {
                moveTo(received + FIRST);
            } catch (ServingException e) {
                return; // no memory for the copy: another client is cut instead
            }
            ahead.release(claimed);
            claimed = 0;
        }
    }

    private void moveTo(int capacity) {
        ByteBuf old = buffer;
        buffer = allocate(budget, capacity);
        buffer.writeBytes(old, 0, old.writerIndex());
        budget.release(old.capacity());
        old.release();
    }

    /** Hands a complete body over to the caller, together with the reservation of its capacity in the budget. */
    public ByteBuf take() {
        ahead.release(claimed);
        claimed = 0;
        return buffer;
    }

    /** Releases a body that was not taken. */
    @Override
    public void close() {
        ahead.release(claimed);
        claimed = 0;
        budget.release(buffer.capacity());
        buffer.release();
    }
}
