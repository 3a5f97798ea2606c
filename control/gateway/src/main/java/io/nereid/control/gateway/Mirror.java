// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import java.util.concurrent.atomic.AtomicInteger;

/** A revision that gets copies of another one's requests. Thread-safe. */
final class Mirror {
    final GateSlot target;
    final int percent;
    final AtomicInteger underWay = new AtomicInteger();

    Mirror(GateSlot target, int percent) {
        this.target = target;
        this.percent = percent;
    }
}
