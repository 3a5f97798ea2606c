// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.spi.Servable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A counted reference to a servable: the version is not unloaded until the handle is closed. Thread-safe. Must not be
 * kept longer than the request it was acquired for.
 *
 * <p>{@link #close} uses a {@link VarHandle} on a field instead of an AtomicBoolean, since a handle is created for
 * every request.
 */
public final class ServableHandle implements AutoCloseable {
    private static final VarHandle CLOSED;

    static {
        try {
            CLOSED = MethodHandles.lookup().findVarHandle(ServableHandle.class, "closed", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final LiveServable live;
    private final int stripe;

    @SuppressWarnings("unused") // through CLOSED
    private volatile boolean closed;

    ServableHandle(LiveServable live, int stripe) {
        this.live = live;
        this.stripe = stripe;
    }

    /** Returns the servable, which must not be used after {@link #close}. */
    public Servable servable() {
        return live.servable;
    }

    /** Releases the reference. The last one of a draining version starts its unload on another thread. Idempotent. */
    @Override
    public void close() {
        if (CLOSED.compareAndSet(this, false, true)) {
            live.release(stripe);
        }
    }
}
