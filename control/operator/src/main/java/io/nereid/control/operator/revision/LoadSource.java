// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.operator.gateway.RevisionLoad;
import java.time.Duration;

/** Reports the load of revisions. Implementations are thread-safe; only {@link #start} and {@link #awaitRoute} block. */
public interface LoadSource extends AutoCloseable {
    /**
     * Starts to measure.
     *
     * @param limit the longest time to wait for what is needed for it
     * @param listener is called at once for a request that waits at a revision without pods
     * @throws io.nereid.base.ServingException UNAVAILABLE, PERMISSION_DENIED
     */
    void start(Duration limit, WakeListener listener);

    /**
     * Whether the load of all requests is known at this time. Without that, a load of zero does not mean that there are no
     * requests.
     */
    boolean isComplete();

    /** Whether requests reach services: at least one gateway is ready. */
    boolean isServing();

    /** Sets what is called when {@link #isServing} has changed; it does not block. Set before the start. */
    void onServing(Runnable listener);

    /** The load of a revision at all gateways; zeros for one without requests. */
    RevisionLoad load(String namespace, String revision);

    /**
     * Waits until requests follow a route of a service at all gateways that answer.
     *
     * @param text the route as the gateways read it
     * @return false when the limit passed before
     */
    boolean awaitRoute(String namespace, String name, String text, Duration limit) throws InterruptedException;

    @Override
    void close();
}
