// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.base.ServingException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class PoolScalerTest {
    private static final long SECOND = 1_000_000_000L;

    private static PoolScaler scaler(int min, int max) {
        return new PoolScaler(new PoolScaler.Settings(
                min, max, 4, 1_000, 0.5, 0.8, Duration.ofSeconds(60), Duration.ofSeconds(6), Duration.ofMinutes(10)));
    }

    private static PoolScaler.Decision steady(
            PoolScaler scaler, int from, int seconds, double busy, int ready, double bytes) {
        PoolScaler.Decision last = null;
        for (int s = from; s < from + seconds; s++) {
            scaler.record(s * SECOND, busy);
            last = scaler.decide(s * SECOND, ready, bytes);
        }
        assertThat(last).isNotNull();
        return last;
    }

    @Test
    void theLargerOfMemoryAndLoadDecides() {
        assertThat(steady(scaler(1, 0), 0, 60, 10, 5, 900)).isEqualTo(new PoolScaler.Decision(5, 2, 5, false));
        assertThat(steady(scaler(1, 0), 0, 60, 2, 5, 7_900)).isEqualTo(new PoolScaler.Decision(10, 10, 1, false));
        assertThat(steady(scaler(3, 4), 0, 60, 40, 4, 0).pods()).isEqualTo(4);
        assertThat(steady(scaler(3, 0), 0, 60, 0, 4, 0).pods()).isEqualTo(3);
    }

    @Test
    void aBurstDecidesWithinSeconds() {
        PoolScaler scaler = scaler(1, 0);
        steady(scaler, 0, 60, 4, 2, 0);
        PoolScaler.Decision burst = steady(scaler, 60, 6, 40, 2, 0);
        assertThat(burst.panicking()).isTrue();
        assertThat(burst.pods()).isEqualTo(20);
    }

    @Test
    void podsGoAfterTheDelayOnly() {
        PoolScaler scaler = scaler(1, 0);
        steady(scaler, 0, 120, 20, 10, 0);
        assertThat(steady(scaler, 120, 590, 4, 10, 0).pods()).isEqualTo(10);
        assertThat(steady(scaler, 710, 80, 4, 10, 0).pods()).isEqualTo(2);
    }

    @Test
    void theWorkingSetIsWhatTheHitRateNeeds() {
        // Two models with 99 of 100 requests, and a hundred models with the rest.
        double[] rates = new double[102];
        long[] bytes = new long[102];
        for (int i = 0; i < 102; i++) {
            rates[i] = i < 2 ? 49.5 : 0.01;
            bytes[i] = 10;
        }
        WorkingSet.Demand demand = new WorkingSet.Demand(rates, bytes);
        assertThat(WorkingSet.of(demand, 0.985).bytes()).isBetween(19.0, 21.5);
        assertThat(WorkingSet.of(demand, 1).bytes()).isCloseTo(1_020, within(1.0));
        WorkingSet half = WorkingSet.of(demand, 0.995);
        assertThat(half.bytes()).isCloseTo(520, within(25.0));
        assertThat(half.hitRate()).isCloseTo(0.995, within(1e-6));
        assertThat(WorkingSet.of(new WorkingSet.Demand(new double[0], new long[0]), 0.9)
                        .bytes())
                .isZero();
    }

    @Test
    void badSettingsAreRefused() {
        assertThatThrownBy(() -> scaler(3, 2))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("a pool of 3 to 2 pods");
        assertThatThrownBy(() -> scaler(0, 2)).isInstanceOf(ServingException.class);
    }
}
