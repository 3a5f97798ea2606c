// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import java.util.concurrent.atomic.AtomicLong;

/** A clock that the test advances. Thread-safe. */
public final class FakeClock implements Clock {
    public static final long START_MILLIS = 1_700_000_000_000L;

    private final AtomicLong nanos = new AtomicLong(1_000);

    public void advance(long by) {
        nanos.addAndGet(by);
    }

    @Override
    public long nanos() {
        return nanos.get();
    }

    @Override
    public long millis() {
        return START_MILLIS + nanos.get() / 1_000_000;
    }
}
