// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.engine.ModelActivity;
import org.junit.jupiter.api.Test;

/** Quantiles from the counts of a histogram. */
class LatencyWindowTest {
    private static final long[] BOUNDS = ModelActivity.latencyBounds();

    private static long[] counts(long... first) {
        return java.util.Arrays.copyOf(first, BOUNDS.length + 1);
    }

    @Test
    void withoutRequestsThereIsNoQuantile() {
        LatencyWindow window = new LatencyWindow(3);
        assertThat(window.micros(0.5)).isEqualTo(-1);
        window.add(counts(5, 5));
        assertThat(window.micros(0.5))
                .as("what was before the first reading does not count")
                .isEqualTo(-1);
        window.add(counts(5, 5));
        assertThat(window.micros(0.99)).isEqualTo(-1);
    }

    @Test
    void aQuantileLiesWithinItsBucket() {
        LatencyWindow window = new LatencyWindow(3);
        window.add(counts());
        window.add(counts(0, 100)); // all between the first two bounds: 50 and 100 µs
        assertThat(window.micros(0.5)).isEqualTo(75);
        assertThat(window.micros(1)).isEqualTo(100);
        window.add(counts(0, 100, 100));
        assertThat(window.micros(0.25)).isEqualTo(75);
        assertThat(window.micros(0.75)).isEqualTo(175);
    }

    @Test
    void olderReadingsLeaveTheWindow() {
        LatencyWindow window = new LatencyWindow(2);
        window.add(counts());
        window.add(counts(100));
        window.add(counts(100));
        assertThat(window.micros(0.5)).isEqualTo(25);
        window.add(counts(100));
        assertThat(window.micros(0.5)).isEqualTo(-1);
    }

    @Test
    void aboveTheLastBoundThatBoundIsTheMostThatIsKnown() {
        long[] late = counts();
        late[BOUNDS.length] = 1;
        LatencyWindow window = new LatencyWindow(2);
        window.add(counts());
        window.add(late);
        assertThat(window.micros(0.5)).isEqualTo(BOUNDS[BOUNDS.length - 1] / 1_000);
    }
}
