// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;

/**
 * Runs the conversion of messages: of small ones on the calling thread, of large ones on a pool. Immutable.
 *
 * @param pool the pool, owned by its creator
 */
record CodecExecutor(Executor pool) {
    /** Larger messages would block the calling thread, which may be an event loop, for too long. */
    private static final int MOST_HERE = 64 << 10;

    /** Runs a task on {@code bytes} bytes, now or later; an exception is passed to {@code failed}. */
    void run(int bytes, Runnable task, Consumer<ServingException> failed) {
        Runnable guarded = () -> {
            try {
                task.run();
            } catch (RuntimeException | OutOfMemoryError e) {
                failed.accept(ServingException.from(e));
            }
        };
        if (bytes <= MOST_HERE) {
            guarded.run();
            return;
        }
        try {
            pool.execute(guarded);
        } catch (RejectedExecutionException e) {
            failed.accept(ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down", "try again"));
        }
    }
}
