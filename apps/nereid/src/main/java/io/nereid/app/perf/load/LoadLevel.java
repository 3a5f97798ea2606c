// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import java.math.BigDecimal;

/**
 * One load: requests at the same time, each followed by the next one (closed loop), or requests per second, whatever the
 * responses do (open loop). Immutable.
 *
 * @param open whether the loop is open
 * @param value requests at the same time, or requests per second
 */
public record LoadLevel(boolean open, double value) {
    /** The number as it was given: {@code 8}, {@code 0.5}. */
    public String number() {
        return BigDecimal.valueOf(value).stripTrailingZeros().toPlainString();
    }

    /** The load in words: {@code concurrency 8}, {@code 100 requests/s}. */
    public String describe() {
        return open ? number() + " requests/s" : "concurrency " + number();
    }
}
