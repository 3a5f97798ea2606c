// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.loop;

import java.time.Duration;

/** Retry delays: they double from the shortest to the longest. */
public record Retries(Duration shortest, Duration longest) {
    /** The delays after a failed reconciliation: a second, doubling to five minutes. */
    public static Retries ofReconciliation() {
        return new Retries(Duration.ofSeconds(1), Duration.ofMinutes(5));
    }
}
