// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import java.util.concurrent.atomic.AtomicInteger;

/** A revision that receives copies of another revision's requests. Thread-safe. */
final class MirrorTarget {
    final ActivatorSlot target;
    final int percent;
    final AtomicInteger underWay = new AtomicInteger();

    MirrorTarget(ActivatorSlot target, int percent) {
        this.target = target;
        this.percent = percent;
    }
}
