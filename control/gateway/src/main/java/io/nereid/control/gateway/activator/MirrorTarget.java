// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import java.util.concurrent.atomic.AtomicInteger;

/** A revision that receives copies of another revision's requests. Thread-safe. */
public final class MirrorTarget {
    public final ActivatorSlot target;
    final int percent;
    final AtomicInteger inFlight = new AtomicInteger();

    public MirrorTarget(ActivatorSlot target, int percent) {
        this.target = target;
        this.percent = percent;
    }
}
