// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.codec.ContentEncoding;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Decompresses one body or message. A small one whose result is small too is decompressed at once on the event loop;
 * any other on an executor, as a few kilobytes can become megabytes. Created, started and cancelled on the event loop,
 * where it also reports.
 */
public final class Decompression {
    /** Larger bodies go to the executor. */
    private static final int MOST_HERE = 16 << 10;

    /** A result that becomes larger than this is given up here and made on the executor. */
    private static final int MOST_RESULT_HERE = 64 << 10;

    /** Receives the result, on the event loop. */
    public interface Receiver {
        /**
         * The result.
         *
         * @param plain the decompressed bytes, with {@code reserved} bytes in the budget; both are taken over. Null
         *     after an error: the compressed bytes and their reservation are the receiver's again then
         */
        void decompressed(@Nullable ByteBuf plain, long reserved, @Nullable ServingException error);
    }

    private final ContentEncoding encoding;
    private final ByteBuf body;
    private final long reserved;
    private final int limit;
    private final ByteBudget budget;
    private final EventLoop loop;
    private final Receiver receiver;
    private volatile boolean cancelled;

    /**
     * Creates a task that is not started.
     *
     * @param body the compressed bytes, which this takes over
     * @param reserved their reservation in the budget, likewise
     * @param limit the most bytes of the result
     */
    public Decompression(
            ContentEncoding encoding,
            ByteBuf body,
            long reserved,
            int limit,
            ByteBudget budget,
            EventLoop loop,
            Receiver receiver) {
        this.encoding = encoding;
        this.body = body;
        this.reserved = reserved;
        this.limit = limit;
        this.budget = budget;
        this.loop = loop;
        this.receiver = receiver;
    }

    /** Begins; reports before it returns when the body is small. */
    public void start(Executor executor) {
        if (body.readableBytes() <= MOST_HERE) {
            int here = Math.min(limit, MOST_RESULT_HERE);
            ByteBuf plain = null;
            ServingException error = null;
            try {
                plain = encoding.inflate(body, here, budget);
            } catch (ServingException e) {
                error = e;
            }
            boolean more = error != null
                    && error.code() == ErrorCode.RESOURCE_EXHAUSTED
                    && error.remedy() == null
                    && here < limit;
            if (!more) {
                report(plain, error);
                return;
            }
        }
        try {
            executor.execute(this::run);
        } catch (RejectedExecutionException e) {
            report(null, ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "retry later"));
        }
    }

    /** The receiver does not want the result any more: everything is released, and nothing is reported. */
    public void cancel() {
        cancelled = true;
    }

    private void run() {
        if (cancelled) {
            dropBody();
            return;
        }
        ByteBuf plain = null;
        ServingException error = null;
        try {
            plain = encoding.inflate(body, limit, budget);
        } catch (ServingException e) {
            error = e;
        } catch (OutOfMemoryError e) {
            error = ServingException.wrap(
                    ErrorCode.RESOURCE_EXHAUSTED, "the server has no memory to decompress", "retry later", e);
        }
        ByteBuf result = plain;
        ServingException failure = error;
        try {
            loop.execute(() -> report(result, failure));
        } catch (RejectedExecutionException e) {
            drop(result);
            dropBody();
        }
    }

    private void report(@Nullable ByteBuf plain, @Nullable ServingException error) {
        if (cancelled) {
            drop(plain);
            dropBody();
        } else if (plain == null) {
            receiver.decompressed(null, reserved, error);
        } else {
            dropBody();
            receiver.decompressed(plain, plain.capacity(), null);
        }
    }

    private void dropBody() {
        body.release();
        budget.release(reserved);
    }

    private void drop(@Nullable ByteBuf plain) {
        if (plain != null) {
            budget.release(plain.capacity());
            plain.release();
        }
    }
}
