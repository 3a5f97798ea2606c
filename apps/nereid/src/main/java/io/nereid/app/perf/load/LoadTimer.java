// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import io.nereid.base.Clock;
import java.util.concurrent.locks.LockSupport;

/** The time of a load, and waiting for a moment of it. Tests have one of their own. Thread-safe. */
public interface LoadTimer {
    /** Monotonic nanoseconds with an arbitrary origin; compare by subtraction. */
    long nanos();

    /** Waits until a moment, or until the thread is unparked or interrupted; may return early. */
    void park(long untilNanos);

    /** The time of the system. */
    static LoadTimer system() {
        Clock clock = Clock.system();
        return new LoadTimer() {
            @Override
            public long nanos() {
                return clock.nanos();
            }

            @Override
            public void park(long untilNanos) {
                long left = untilNanos - clock.nanos();
                if (left > 0) {
                    LockSupport.parkNanos(left);
                }
            }
        };
    }
}
