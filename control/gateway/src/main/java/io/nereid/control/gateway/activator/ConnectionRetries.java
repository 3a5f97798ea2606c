// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.upstream.ReplicaBalancer.Endpoint;
import java.net.ConnectException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * What happens to one request when no connection to a replica could be made. Nothing has been sent then, so that it can be
 * sent again: at once to up to two other replicas, then after pauses to any, for five seconds in all. In that time the gateway
 * learns of a replica that has gone, and a container that has ended is started again; a request is not lost to either.
 * For one thread at a time.
 */
final class ConnectionRetries {
    private static final int MOST_AT_ONCE = 3;
    private static final long FIRST_PAUSE_MILLIS = 50;
    private static final long LONGEST_PAUSE_MILLIS = 500;
    private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final RevisionActivator activator;
    private List<Endpoint> tried = List.of();
    private boolean failed;
    private long firstFailure;
    private long pause = FIRST_PAUSE_MILLIS;

    ConnectionRetries(RevisionActivator activator) {
        this.activator = activator;
    }

    /** Whether no connection was made, so that the request cannot have been executed. */
    static boolean neverSent(ServingException e) {
        return e.code() == ErrorCode.UNAVAILABLE && e.getCause() instanceof ConnectException;
    }

    /** The replicas that the next try must not take. */
    List<Endpoint> tried() {
        return tried;
    }

    /**
     * Records that a replica could not be reached.
     *
     * @return what runs the next try; null when there have been enough
     */
    @Nullable Executor after(Endpoint endpoint) {
        Executor executor = activator.context().executor;
        long now = activator.context().clock.nanos();
        activator.unreachable(endpoint);
        if (!failed) {
            failed = true;
            firstFailure = now;
        }
        List<Endpoint> more = new ArrayList<>(tried);
        more.add(endpoint);
        if (more.size() < MOST_AT_ONCE && activator.replicas().hasOther(more)) {
            tried = List.copyOf(more);
            return Runnable::run;
        }
        if (now - firstFailure >= LONGEST_NANOS) {
            return null;
        }
        tried = List.of();
        long millis = pause;
        pause = Math.min(2 * pause, LONGEST_PAUSE_MILLIS);
        return CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS, executor);
    }
}
