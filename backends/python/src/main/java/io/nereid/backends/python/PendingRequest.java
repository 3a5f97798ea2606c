// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.ModelRequest;
import io.nereid.backends.python.SharedMemoryArena.Chunk;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A request that a worker is processing, with the chunks of shared memory that hold its inputs. Thread-safe: several
 * threads may try to end it, and only the first one does.
 */
final class PendingRequest {
    private final ModelRequest request;
    private final List<Chunk> inputs;
    private final AtomicBoolean ended = new AtomicBoolean();
    /** Whether the run of the request is over, so that nothing but an answer or the worker's end can end it. */
    private volatile boolean later;

    PendingRequest(ModelRequest request, List<Chunk> inputs) {
        this.request = request;
        this.inputs = inputs;
    }

    /** The run is over and the model answers afterwards. */
    void answerLater() {
        later = true;
        request.answerLater();
    }

    boolean later() {
        return later;
    }

    ModelRequest request() {
        return request;
    }

    boolean ended() {
        return ended.get();
    }

    /** Runs {@code how} and releases the inputs, unless the request has ended before. */
    void end(Runnable how) {
        if (ended.compareAndSet(false, true)) {
            try {
                how.run();
            } finally {
                inputs.forEach(Chunk::release);
            }
        }
    }

    /** Gives the request back to the caller of the run without an end; false when it has ended before. */
    boolean withdraw() {
        boolean[] withdrawn = new boolean[1];
        end(() -> withdrawn[0] = true);
        return withdrawn[0];
    }

    void fail(ServingException e) {
        end(() -> request.fail(e));
    }
}
