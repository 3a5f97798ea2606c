// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;

/**
 * Where whole messages are written and read: here, or on a pool when they are large. Immutable.
 *
 * @param pool belongs to whoever made it
 */
record Elsewhere(Executor pool) {
    /** Bytes beyond which the calling thread, which may be an event loop, would be held up. */
    private static final int MOST_HERE = 64 << 10;

    /** Runs a task that works on so many bytes, and tells what it throws; it may have run when this returns. */
    void run(int bytes, Runnable task, Consumer<ServingException> failed) {
        Runnable guarded = () -> {
            try {
                task.run();
            } catch (RuntimeException e) {
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
