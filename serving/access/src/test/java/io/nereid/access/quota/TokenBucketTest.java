// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The rate limit over a clock that the test sets. */
class TokenBucketTest {
    private static final long SECOND = 1_000_000_000L;

    @Test
    void aSecondsUnitsAreThereAtOnceAndThenComeEvenly() {
        TokenBucket bucket = new TokenBucket(10, 0);
        for (int i = 0; i < 10; i++) {
            assertThat(bucket.take(1, 0)).isZero();
        }
        long wait = bucket.take(1, 0);
        assertThat(wait).isEqualTo(SECOND / 10);
        assertThat(bucket.take(1, wait - 1)).isPositive();
        assertThat(bucket.take(1, wait)).isZero();
        assertThat(bucket.take(1, wait)).isPositive();
    }

    @Test
    void theRateHoldsOverALongTime() {
        TokenBucket bucket = new TokenBucket(7, 0);
        int taken = 0;
        for (long now = 0; now < 60 * SECOND; now += SECOND / 100) {
            taken += bucket.take(1, now) == 0 ? 1 : 0;
        }
        assertThat(taken).isBetween(7 * 60, 7 * 61);
    }

    @Test
    void aRequestLargerThanTheStoreIsSlowedDownAndNotRefusedForEver() {
        TokenBucket bucket = new TokenBucket(100, 0);
        assertThat(bucket.take(1_000, 0)).isZero();
        assertThat(bucket.take(1, SECOND)).as("nine seconds are owed").isPositive();
        assertThat(bucket.take(1, 10 * SECOND + SECOND / 100)).isZero();
    }
}
