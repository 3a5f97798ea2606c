// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.reconcile;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.Plan;

/** Records Kubernetes events about resources; best effort. Implementations are thread-safe and do not throw. */
public interface EventSink {
    /** Records an event about a resource. */
    void record(ObjectNode about, Plan.Event event);

    /** Removes old events, where the store does not do so by itself; called every few minutes. */
    default void sweep() {}
}
