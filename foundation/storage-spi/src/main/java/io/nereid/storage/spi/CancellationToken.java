// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A cancellation token: cancelled at most once, runs the registered callbacks on cancellation. Thread-safe. */
public final class CancellationToken {
    private final CountDownLatch ended = new CountDownLatch(1);

    @GuardedBy("endings") private final Set<Runnable> endings = new HashSet<>();

    /** Creates a token that is not cancelled. */
    public CancellationToken() {}

    /** Whether the token is cancelled. */
    public boolean cancelled() {
        return ended.getCount() == 0;
    }

    /**
     * Throws when the token is cancelled.
     *
     * @throws ServingException CANCELLED
     */
    public void check() {
        if (cancelled()) {
            throw ServingException.of(ErrorCode.CANCELLED, "the fetch was cancelled");
        }
    }

    /** Cancels the token and runs the callbacks on the calling thread. */
    public void cancel() {
        List<Runnable> now;
        synchronized (endings) {
            ended.countDown();
            now = new ArrayList<>(endings);
            endings.clear();
        }
        now.forEach(Runnable::run);
    }

    /** Registers a callback, which runs at once if the token is cancelled already. */
    public void add(Runnable ending) {
        synchronized (endings) {
            if (!cancelled()) {
                endings.add(ending);
                return;
            }
        }
        ending.run();
    }

    /** Removes a callback. */
    public void remove(Runnable ending) {
        synchronized (endings) {
            endings.remove(ending);
        }
    }

    /** Sleeps; a cancellation ends the wait with an exception. */
    public void pause(long millis) {
        try {
            if (ended.await(millis, TimeUnit.MILLISECONDS)) {
                check();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ServingException.of(ErrorCode.CANCELLED, "the fetch was interrupted");
        }
    }
}
