// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.ModelRequest;
import io.nereid.backends.python.Arena.Chunk;
import io.nereid.base.ServingException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/** A request that a worker has, and the memory of its inputs. Thread-safe: it ends once. */
final class OpenRequest {
    private final ModelRequest request;
    private final List<Chunk> inputs;
    private final CountDownLatch ends;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** @param ends counted down at the end */
    OpenRequest(ModelRequest request, List<Chunk> inputs, CountDownLatch ends) {
        this.request = request;
        this.inputs = inputs;
        this.ends = ends;
    }

    ModelRequest request() {
        return request;
    }

    boolean ended() {
        return ended.get();
    }

    /** Ends it with what {@code how} does, unless it has ended before. */
    void end(Runnable how) {
        if (ended.compareAndSet(false, true)) {
            try {
                how.run();
            } finally {
                inputs.forEach(Chunk::release);
                ends.countDown();
            }
        }
    }

    void fail(ServingException e) {
        end(() -> request.fail(e));
    }
}
