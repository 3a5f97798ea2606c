// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Servable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The counted right to use one version until {@link #close}: as long as it is open, the version is not unloaded.
 * Thread-safe; not to be kept beyond the request it was acquired for.
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

    private final Live live;
    private final int stripe;

    @SuppressWarnings("unused") // through CLOSED
    private volatile boolean closed;

    ServableHandle(Live live, int stripe) {
        this.live = live;
        this.stripe = stripe;
    }

    /** The version; not to be used after {@link #close}. */
    public Servable servable() {
        return live.servable;
    }

    /** Gives the right back; the last one of a draining version lets its unloading begin on another thread. Idempotent. */
    @Override
    public void close() {
        if (CLOSED.compareAndSet(this, false, true)) {
            live.release(stripe);
        }
    }
}
